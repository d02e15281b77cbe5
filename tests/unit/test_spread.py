"""Warp tiles reach every sub-core as the raster order of CTAs says, each exactly once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stcsim.config.kernel import Tile
from stcsim.lowering.lowered import Grid
from stcsim.machine.spread import spread

TILE = Tile(m_cta=128, n_cta=64, k_cta=32, m_warp=32, n_warp=32)


def test_warps_of_a_cta_go_round_the_sub_cores_of_its_sm() -> None:
    # 2 x 1 CTAs of 4 x 2 warps on 3 SMs: CTA 0 on SM 0, CTA 1 on SM 1; SM 2 has none.
    work = spread(Grid(256, 64, TILE), sms=3, sub_cores_per_sm=4)
    assert np.diff(work.offsets).tolist() == [2] * 8 + [0] * 4
    # Warp w of a CTA holds warp tile (w // 2, w % 2); warps 0 and 4 are on sub-core 0.
    assert work.tile_m[:2].tolist() == [0, 2]
    assert work.tile_n[:2].tolist() == [0, 0]
    # SM 1, sub-core 3: warps 3 and 7 of CTA 1, whose first row of warp tiles is 4.
    assert work.tile_m[14:16].tolist() == [5, 7]
    assert work.tile_n[14:16].tolist() == [1, 1]


@given(st.integers(0, 400), st.integers(0, 400), st.integers(1, 5))
def test_every_warp_tile_is_given_exactly_once(m: int, n: int, sms: int) -> None:
    grid = Grid(m, n, TILE)
    work = spread(grid, sms, 4)
    got = sorted(zip(work.tile_m.tolist(), work.tile_n.tolist(), strict=True))
    assert got == [(i, j) for i in range(-(-m // 32)) for j in range(-(-n // 32))]
    assert len(work.offsets) == 4 * sms + 1


@pytest.mark.parametrize(("m", "n"), [(0, 10), (10, 0), (0, 0)])
def test_an_empty_output_gives_no_work(m: int, n: int) -> None:
    work = spread(Grid(m, n, TILE), sms=2, sub_cores_per_sm=4)
    assert work.offsets.tolist() == [0] * 9
