"""stcsim from Python: masks in, results out; importing it costs nothing until it is used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stcsim
from stcsim.errors import ConfigError, WorkloadError


def masks(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return rng.random((40, 48)) < 0.3, rng.random((48, 56)) < 0.6


def test_a_pair_of_masks_is_a_product_whose_first_operand_is_the_weight(rng: np.random.Generator) -> None:
    a, b = masks(rng)
    pair = stcsim.simulate((a, b), machine="dstc-v100")
    assert pair == stcsim.simulate(stcsim.gemm(a, b, weight="a"), machine="dstc-v100")
    assert (pair.m, pair.n, pair.k) == (40, 56, 48)
    assert pair.macs_useful == int((a.astype(int) @ b.astype(int)).sum())
    assert pair.check.ok


def test_only_the_zeros_of_values_count(rng: np.random.Generator) -> None:
    a, b = masks(rng)
    values = np.where(a, rng.normal(size=a.shape), 0.0)
    assert stcsim.simulate((values, b), machine="v100") == stcsim.simulate((a, b), machine="v100")


def test_the_weight_goes_to_the_sparse_side(rng: np.random.Generator) -> None:
    a, b = masks(rng)
    result = stcsim.simulate(stcsim.gemm(a, b, weight="b"), machine="dstc-v100")
    assert result.notes == ("transposed: the weight stands on the sparse side (A)",)


def test_overrides_reach_machine_and_kernel_and_an_unused_one_is_told(rng: np.random.Generator) -> None:
    a, b = masks(rng)
    result = stcsim.simulate((a, b), machine="v100", overrides=["machine.clock=1 GHz"])
    assert result.clock_hz == 1e9
    wanted = r"^--set machine\.clok=1: clok: must be a known key .* not clok \(did you mean clock\?\)$"
    with pytest.raises(ConfigError, match=wanted):
        stcsim.simulate((a, b), machine="v100", overrides=["machine.clok=1"])


def test_masks_that_do_not_fit_are_told() -> None:
    with pytest.raises(WorkloadError, match="columns of A and rows of B must agree"):
        stcsim.gemm(np.ones((4, 5)), np.ones((4, 5)))
    with pytest.raises(WorkloadError, match="two dimensions, not 1"):
        stcsim.gemm(np.ones(4), np.ones((4, 5)))


def test_the_tutorial_runs_as_it_stands(root: Path, tmp_path: Path) -> None:
    text = (root / "docs" / "tutorial.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code is not None
    lines = [line for line in code[1].splitlines() if line and not line.startswith("import ")]
    assert len(lines) <= 10
    script = "import matplotlib; matplotlib.use('Agg')\n" + code[1]
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert (tmp_path / "speed_up.png").read_bytes().startswith(b"\x89PNG")


def test_asking_for_the_api_loads_it_and_nothing_else_does() -> None:
    code = (
        "import sys, stcsim; before = 'stcsim.api' in sys.modules; stcsim.simulate; "
        "print(before, 'stcsim.api' in sys.modules, 'matplotlib' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True", "False"]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'stcsim' has no attribute 'simulat'"):
        stcsim.simulat  # noqa: B018
    assert {"gemm", "run_study", "simulate"} <= set(dir(stcsim))
