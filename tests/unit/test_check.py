"""The value check must notice: one wrong element anywhere, a missing tile, a NaN, a wrong shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from stcsim.catalog import load_kernel, load_machine
from stcsim.lowering import LOWERINGS
from stcsim.lowering.check import check_values, expected_tile, sample_tiles
from stcsim.lowering.lowered import Lowered
from stcsim.workload.gemm import Gemm
from stcsim.workload.generator import Uniform, generate
from stcsim.workload.operand import Operand

Tile = npt.NDArray[np.float64]


@pytest.fixture
def lowered() -> Lowered:
    """A 100 x 90 x 40 GEMM on A100: two by two warp tiles, ragged on both sides."""
    a = Operand(generate(Uniform(density=0.5), (100, 40), seed=1), "weight", 1, "test")
    b = Operand(generate(Uniform(density=0.5), (40, 90), seed=1, stream=1), "activation", 2, "test")
    machine, kernel = load_machine("a100-sxm4-40gb")[0], load_kernel("hmma16816_128x128x32")[0]
    return LOWERINGS["dense_inner"].lower(Gemm("test", a, b), kernel.kernel, "fp16", machine.machine)


def test_a_right_program_passes_and_says_how_much_was_compared(lowered: Lowered) -> None:
    assert check_values(lowered, 4, seed=0).fault is None
    assert check_values(lowered, 4, seed=0).share == 1.0
    # One tile: the ragged corner of 36 x 26.
    assert check_values(lowered, 1, seed=0).share == 36 * 26 / 9000


def test_the_expected_product_is_numpys(lowered: Lowered) -> None:
    gemm = lowered.gemm
    a = gemm.a.values(0, 100, 0, 40).astype(int)
    b = gemm.b.values(0, 40, 0, 90).astype(int)
    np.testing.assert_array_equal(expected_tile(gemm, 64, 64, 64, 64), (a @ b)[64:, 64:])


@pytest.mark.parametrize(("row", "column"), [(0, 0), (63, 63), (17, 40)])
def test_one_wrong_element_is_noticed(lowered: Lowered, row: int, column: int) -> None:
    def flip(tile: Tile) -> Tile:
        tile[row, column] += 1
        return tile

    fault = check_values(broken(lowered, (0, 0), flip), 4, seed=0).fault
    assert fault is not None
    assert fault.startswith(f"C[{row}, {column}] is ")


def test_a_nan_is_noticed(lowered: Lowered) -> None:
    def spoil(tile: Tile) -> Tile:
        tile[3, 5] = np.nan
        return tile

    fault = check_values(broken(lowered, (0, 1), spoil), 4, seed=0).fault
    assert fault is not None
    assert fault.startswith("C[3, 69] is nan, not ")


def test_a_dropped_tile_is_noticed(lowered: Lowered) -> None:
    assert check_values(broken(lowered, (1, 1), np.zeros_like), 4, seed=0).fault is not None


def test_a_write_beyond_the_edge_is_noticed(lowered: Lowered) -> None:
    def spill(tile: Tile) -> Tile:
        tile[36, 0] = 1
        return tile

    fault = check_values(broken(lowered, (1, 0), spill), 4, seed=0).fault
    assert fault == "padding at C[100, 0] is 1, not 0"


def test_a_wrong_shape_is_noticed(lowered: Lowered) -> None:
    fault = check_values(broken(lowered, (0, 0), lambda tile: tile[:-1]), 4, seed=0).fault
    assert fault == "warp tile (0, 0) is (63, 64), not (64, 64)"


def test_the_sample_is_seeded_distinct_and_holds_the_last_tile() -> None:
    sample = sample_tiles(7, 9, 5, seed=3)
    assert len(set(sample)) == 5
    assert sample[-1] == (6, 8)
    assert sample == sample_tiles(7, 9, 5, seed=3)
    assert sample != sample_tiles(7, 9, 5, seed=4)
    assert len(sample_tiles(2, 3, 99, seed=0)) == 6
    assert sample_tiles(2, 3, 0, seed=0) == []


def broken(lowered: Lowered, where: tuple[int, int], spoil: Callable[[Tile], Tile]) -> Lowered:
    """Return the same program, spoiled in one warp tile."""

    def execute(i_m: int, i_n: int) -> Tile:
        tile = lowered.execute(i_m, i_n)
        return spoil(tile) if (i_m, i_n) == where else tile

    return replace(lowered, execute=execute)
