"""``level: gpu`` and ``level: sm`` time the same instructions: they differ in what the pipes wait for, not in work."""

from __future__ import annotations

import pytest

from stcsim.catalog import load_pair
from stcsim.gpu_validation import of_sizes
from stcsim.result.result import Result
from stcsim.run import Settings, run_gemm, try_kernels

PAIRS = [
    ("a100-sxm4-40gb", "hmma16816_128x128x32"),
    ("v100", "hmma884_128x128x32"),
    ("dstc-v100", "spwmma_128x128x32"),
    ("dstc-v100", "owmma_128x128x32"),
]


def run(machine: str, kernel: str, size: tuple[int, int, int], level: str) -> Result:
    settings = Settings(check_tiles=0, level=level)  # type: ignore[arg-type]
    return run_gemm(of_sizes(*size), *load_pair(machine, kernel), settings, seed=0)


@pytest.mark.parametrize(("machine", "kernel"), PAIRS)
@pytest.mark.parametrize("size", [(64, 64, 8), (300, 200, 100), (7, 1, 65), (1, 1, 1), (5, 5, 0)], ids=str)
def test_levels_agree_on_work_and_the_gpu_takes_longer(
    machine: str, kernel: str, size: tuple[int, int, int]
) -> None:
    gpu, sm = run(machine, kernel, size, "gpu"), run(machine, kernel, size, "sm")
    assert gpu.stalls["tensor_busy"] == sm.stalls["tensor_busy"]
    assert gpu.instructions == sm.instructions
    assert gpu.mac_slots == sm.mac_slots
    assert gpu.cycles > sm.cycles


def test_kernels_race_at_the_level_that_was_asked_for() -> None:
    machine, _ = load_pair("a100-sxm4-40gb")
    settings = Settings(check_tiles=0, level="sm")
    tried = [one for one in try_kernels(of_sizes(64, 64, 64), machine, settings, every=True) if one.timing]
    assert tried
    assert all("launch" not in one.timing.stalls for one in tried if one.timing)
