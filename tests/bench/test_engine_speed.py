"""How fast the engines are: simulated instructions a second, warmed up.  Compared, never asserted.

Run with ``make bench``; keep a base with ``--benchmark-save`` and compare with ``--benchmark-compare``.
"""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from stcsim.machine import reference
from stcsim.machine.kernels import sub_core
from stcsim.machine.record import Column, Repeat, SubCoreModel, Work

EMPTY = np.zeros((0, 0), np.uint8)


def dstc_4096(density: float) -> tuple[SubCoreModel, Work]:
    """4096^3 on dstc-v100: 16,384 warp tiles of 4,096 steps on 320 sub-cores."""
    rng = np.random.default_rng(0)
    ops = np.zeros((1, len(Column)), np.int64)
    ops[0, [Column.INTERVAL, Column.LATENCY, Column.SOURCE, Column.REPEAT]] = 1, 4, -1, Repeat.OUTER_GRID
    ones = [rng.binomial(32, density, (128, 4096)).astype(np.uint8) for _ in range(2)]
    tile_m, tile_n = np.divmod(np.arange(128 * 128, dtype=np.int64), 128)
    model = SubCoreModel(ops, ("OHMMA.8161",), 1, 4096, 4, True, ones[0], ones[1], 8, 16)
    return model, Work(np.linspace(0, 128 * 128, 321).astype(np.int64), tile_m, tile_n)


def dense_mma(tiles: int) -> tuple[SubCoreModel, Work]:
    """Warp tiles of 64 x 64 x 4096 by m16n8k16 on eight sub-cores, every issue stepped."""
    ops = np.zeros((32, len(Column)), np.int64)
    for slot, row in enumerate(ops):
        row[[Column.INTERVAL, Column.LATENCY, Column.DESTINATION, Column.SOURCE]] = 8, 25, slot, slot
    model = SubCoreModel(ops, ("HMMA.16816.F32",), 32, 256, 2, True, EMPTY, EMPTY, 1, 1)
    zeros = np.zeros(8 * tiles, np.int64)
    return model, Work(np.arange(0, 8 * tiles + 1, tiles, dtype=np.int64), zeros, zeros)


@pytest.mark.parametrize("density", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("threads", [1, 2])
def test_outer_products_4096_cubed(benchmark: BenchmarkFixture, density: float, threads: int) -> None:
    model, work = dstc_4096(density)
    counters = sub_core.simulate(model, work, threads)
    benchmark.extra_info["instructions"] = int(counters[:, -1].sum())
    benchmark(sub_core.simulate, model, work, threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_dense_mma_instruction_by_instruction(benchmark: BenchmarkFixture, threads: int) -> None:
    model, work = dense_mma(tiles=9)
    counters = sub_core.simulate(model, work, threads)
    benchmark.extra_info["instructions"] = int(counters[:, -1].sum())
    benchmark(sub_core.simulate, model, work, threads)


def test_the_reference_engine(benchmark: BenchmarkFixture) -> None:
    model, work = dense_mma(tiles=1)
    small = SubCoreModel(**{**model.__dict__, "iterations": 8})
    benchmark.extra_info["instructions"] = 8 * 8 * 32
    benchmark(reference.simulate, small, work)
