"""The SM engine's machine code on disk: the same bytes cold and warm, and never an edited callee's old ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stcsim

CODE = """
import numpy as np
from stcsim.h200 import load_loop, machine
from stcsim.machine.kernels import sm
from stcsim.machine.sm_listing import bind_listing
model = bind_listing(load_loop("f16_64x64x32_w32x32_s4"), machine(), iterations=30, resident_ctas=2)
for threads in (1, 2):
    for run in sm.simulate(model, np.array([2, 3]), threads=threads):
        print(run.cycles, run.causes.tolist(), run.issued.tolist())
"""


@pytest.mark.slow
def test_results_are_the_same_cold_and_warm_and_follow_an_edited_callee(root: Path, tmp_path: Path) -> None:
    shutil.copytree(Path(stcsim.__file__).parent, tmp_path / "simulator" / "stcsim")
    for name in ("configs", "isa"):
        shutil.copytree(root / name, tmp_path / name)
    environment = {
        **os.environ, "PYTHONPATH": str(tmp_path / "simulator"), "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }  # fmt: skip

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", CODE],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    cold = run()
    compiled = sorted(path.name for path in (tmp_path / "cache").rglob("*.nbc"))
    assert compiled
    one_thread, two_threads = cold.splitlines()[:2], cold.splitlines()[2:]
    assert one_thread == two_threads
    assert run() == cold
    assert sorted(path.name for path in (tmp_path / "cache").rglob("*.nbc")) == compiled
    kernel = tmp_path / "simulator" / "stcsim" / "machine" / "kernels" / "sm.py"
    text = kernel.read_text(encoding="utf-8")
    assert text.count("return max(at, port_free)") == 1
    kernel.write_text(
        text.replace("return max(at, port_free)", "return max(at, port_free) + 1"), encoding="utf-8"
    )
    assert run() != cold
