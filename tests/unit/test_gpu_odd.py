"""Odd problems on a whole GPU: nothing is lost or made, and no time is shorter than a launch."""

from __future__ import annotations

import pytest

from stcsim.catalog import load_pair
from stcsim.config.study import Engine
from stcsim.gpu_validation import of_sizes
from stcsim.machine.gpu_simulator import LABEL
from stcsim.result.result import Result
from stcsim.run import Settings, run_gemm

MACHINE = "a100-pcie-80gb"
PLAIN, SMALL, SPLIT = "hmma16816_128x128x32", "hmma16816_64x64x32_s10", "hmma16816_64x64x32_s10_splitk4"
SIZES = {
    "one": (1, 1, 1),
    "short K": (256, 256, 8),
    "narrow": (500, 7, 300),
    "column": (65536, 1, 1),
    "row": (1, 65536, 1),
    "GEMV": (1, 4096, 4096),
    "one tile": (64, 64, 2**16),
    "no K": (100, 100, 0),
    "no M": (0, 100, 100),
    "no N": (100, 0, 100),
    "nothing": (0, 0, 0),
}
ENGINES: tuple[Engine, Engine] = ("numba", "reference")
LAUNCH_US = 2.5
"""configs/machines/a100-pcie-80gb.yaml"""


def simulate(m: int, n: int, k: int, kernel: str = PLAIN) -> Result:
    machine, entry = load_pair(MACHINE, kernel)
    return run_gemm(of_sizes(m, n, k), machine, entry, Settings(check_tiles=int(k <= 4096)), seed=0)


@pytest.mark.parametrize("kernel", [PLAIN, SMALL, SPLIT])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_odd_sizes_conserve_and_take_at_least_a_launch(size: tuple[int, int, int], kernel: str) -> None:
    result = simulate(*size, kernel)
    assert result.model == LABEL
    assert sum(result.stalls.values()) == result.cycles * result.sub_cores
    assert min(result.stalls.values()) >= 0
    assert all(0 <= value <= 1 for value in result.utilization.values())
    m, n, k = size
    assert result.macs_total == m * n * k
    if m * n:
        assert result.stalls["launch"] > 0
        assert result.time_us >= LAUNCH_US * 0.999
    else:
        assert result.cycles == 0  # nothing to launch for no element of C
    moved = sum(result.traffic_bytes.values())
    assert result.dram_bytes is not None
    # Split-K leaves partial sums of four bytes for the second kernel, in the place of C's own.
    parts = 4 * 4 * m * n if kernel == SPLIT else 0
    assert 0 <= result.dram_bytes <= moved + parts


@pytest.mark.parametrize("kernel", [PLAIN, SMALL, "hmma16816_64x256x32_s4"])
def test_a_matrix_vector_product_uses_hardly_a_multiplier(kernel: str) -> None:
    result = simulate(1, 4096, 4096, kernel)
    # The pipe is occupied by rows of the tile that hold nothing: of 64 and more, one is useful.
    assert result.utilization["lane"] <= 1 / 64
    assert result.utilization["issue"] < 0.35
    # Effective is issue times lane, so the two bounds above bound it; L2's rate alone would allow three times that.
    assert result.utilization["effective"] < 0.35 / 64
    # Its weights, 32 MiB, stay in L2 (40 MiB) from launch to launch; no faster than L2 can bring them.
    assert result.time_us > 2 * 4096 * 4096 / (4096 * 1.41e9) * 1e6


def test_more_k_of_a_single_tile_costs_time_in_proportion() -> None:
    short, long = (simulate(64, 64, k, SMALL) for k in (2**19, 2**20))
    launch = LAUNCH_US
    assert (long.time_us - launch) / (short.time_us - launch) == pytest.approx(
        2, rel=0.05
    )  # L2 holds less of the longer
    assert long.stalls["tail"] > 0.9 * sum(long.stalls.values())


def test_splitting_k_of_a_single_tile_is_faster_and_accounts_for_the_second_kernel() -> None:
    whole, split = simulate(64, 64, 2**16, SMALL), simulate(64, 64, 2**16, SPLIT)
    assert split.cycles < whole.cycles / 3
    assert "split_k" not in whole.stalls
    assert split.stalls["split_k"] >= split.stalls["launch"]


def test_more_splits_than_slabs_are_as_many_as_there_are_slabs() -> None:
    assert simulate(64, 64, 32, SPLIT).cycles == simulate(64, 64, 32, SMALL).cycles


def test_both_engines_time_an_odd_problem_alike() -> None:
    machine, kernel = load_pair(MACHINE, SPLIT)
    runs = [
        run_gemm(of_sizes(130, 65, 200), machine, kernel, Settings(engine=engine, check_tiles=0), seed=0)
        for engine in ENGINES
    ]
    assert runs[0].stalls == runs[1].stalls
    assert (runs[0].cycles, runs[0].dram_bytes) == (runs[1].cycles, runs[1].dram_bytes)
