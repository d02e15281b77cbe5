"""The documents say what the program does: the YAML reference is its own, the README's commands run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_the_yaml_reference_is_in_step_with_the_models(stcsim: Run, root: Path) -> None:
    want = stcsim("schema", "reference").out
    assert (root / "docs" / "yaml.md").read_text(encoding="utf-8") == want


def commands(text: str) -> list[str]:
    return re.findall(r"^    (stcsim sim .*|stcsim run .*)$", text, re.MULTILINE)


def test_the_commands_of_the_readme_run(
    stcsim: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    found = commands((root / "README.md").read_text(encoding="utf-8"))
    assert len(found) >= 3
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.eye(64, dtype=bool))
    np.save("b.npy", np.ones((64, 40), bool))
    shutil.copy(root / "workloads" / "traces" / "resnet50thin_china.npz", "china.npz")
    for command in found:
        # The quick start runs whole in CI; its large GEMM is cut down here.
        words = [str(root / word) if word.startswith("configs/") else word for word in command.split()[1:]]
        words = [word.replace("$PWD", str(tmp_path)) for word in words]
        if "quickstart" in command:
            words += [f"--set=workloads.2.gemm.{axis}=256" for axis in "mnk"]
        ended = stcsim(*(word.replace("4096", "512") for word in words))
        assert ended.status == 0, f"{command}: {ended.err}"


def test_the_errors_that_the_readme_shows_are_the_ones_that_are_told(
    stcsim: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    study = re.search(r"```yaml\n(name: mine.*?)```", text, re.DOTALL)
    shown = re.search(r"^    (mine\.yaml:.*)$", text, re.MULTILINE)
    assert study is not None
    assert shown is not None
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(study[1].replace("density: 0.4", "densty: 0.4"))
    assert shown[1] in stcsim("run", "mine.yaml").err.splitlines()
