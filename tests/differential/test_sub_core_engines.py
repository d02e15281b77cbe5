"""The fast engine against the reference engine: equal in every counter, on anything drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stcsim.machine import reference
from stcsim.machine.kernels import sub_core
from stcsim.machine.record import Column, Counter, Repeat, SubCoreModel, Work


@st.composite
def models(draw: st.DrawFn) -> SubCoreModel:
    """Draw a loop body, a machine and step tables; one-instruction bodies often, since they run ahead."""
    n_slots = draw(st.integers(1, 3))
    n_mnemonics = draw(st.integers(1, 2))
    n_ops = draw(st.sampled_from([1, 1, 2, 3, 5]))
    repeats = draw(st.booleans())
    ops = np.zeros((n_ops, len(Column)), np.int64)
    for row in ops:
        row[Column.OPCODE] = draw(st.integers(0, n_mnemonics - 1))
        row[Column.INTERVAL] = draw(st.integers(1, 6))
        row[Column.LATENCY] = draw(st.integers(1, 12))
        row[Column.DESTINATION] = draw(st.integers(0, n_slots - 1))
        row[Column.SOURCE] = draw(st.sampled_from([-1, -1, *range(n_slots)]))
        row[Column.REPEAT] = Repeat.OUTER_GRID if repeats and draw(st.integers(0, 3)) else Repeat.ONCE
    iterations = draw(st.integers(0, 9))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    density = draw(st.sampled_from([0.0, 0.3, 1.0]))
    ones_a, ones_b = (
        (rng.integers(0, 33, (3, iterations)) * (rng.random((3, iterations)) < density)).astype(np.uint8)
        for _ in range(2)
    )
    return SubCoreModel(
        micro_ops=ops,
        mnemonics=("first", "second")[:n_mnemonics],
        n_slots=n_slots,
        iterations=iterations,
        resident_warps=draw(st.integers(1, 5)),
        greedy=draw(st.booleans()),
        ones_a=ones_a,
        ones_b=ones_b,
        m_inst=draw(st.sampled_from([4, 8, 16])),
        n_inst=draw(st.sampled_from([8, 16])),
    )


@st.composite
def works(draw: st.DrawFn) -> Work:
    """Draw up to three sub-cores with their tiles."""
    counts = draw(st.lists(st.integers(0, 7), min_size=1, max_size=3))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    tiles = draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=sum(counts), max_size=sum(counts))
    )
    pairs = np.array(tiles, np.int64).reshape(-1, 2)
    return Work(offsets, pairs[:, 0].copy(), pairs[:, 1].copy())


@given(models(), works())
def test_both_engines_count_the_same(model: SubCoreModel, work: Work) -> None:
    want = reference.simulate(model, work)
    np.testing.assert_array_equal(sub_core.simulate(model, work, threads=1), want)


@given(models(), works())
def test_counters_do_not_depend_on_threads(model: SubCoreModel, work: Work) -> None:
    one = sub_core.simulate(model, work, threads=1)
    np.testing.assert_array_equal(sub_core.simulate(model, work, threads=2), one)


@given(models(), works())
def test_busy_and_stalls_tile_the_time_of_every_sub_core(model: SubCoreModel, work: Work) -> None:
    counters = reference.simulate(model, work)
    total = counters[:, Counter.TENSOR_BUSY] + counters[:, Counter.DEPENDENCY]
    np.testing.assert_array_equal(total, counters[:, Counter.CYCLES])


@given(models(), works())
def test_issued_outer_products_are_those_of_the_step_tables(model: SubCoreModel, work: Work) -> None:
    counters = sub_core.simulate(model, work)
    want = np.zeros_like(counters[:, len(Counter) :])
    products = np.zeros(len(want), np.int64)
    for s in range(len(want)):
        for i in range(work.offsets[s], work.offsets[s + 1]):
            rows = model.ones_a[work.tile_m[i]].astype(int)
            columns = model.ones_b[work.tile_n[i]].astype(int)
            grids = np.ceil(rows / model.m_inst) * np.ceil(columns / model.n_inst)
            for op in model.micro_ops:
                repeated = op[Column.REPEAT] == Repeat.OUTER_GRID
                want[s, op[Column.OPCODE]] += int(grids.sum()) if repeated else model.iterations
                products[s] += int((rows * columns).sum()) if repeated else 0
    np.testing.assert_array_equal(counters[:, len(Counter) :], want)
    np.testing.assert_array_equal(counters[:, Counter.PRODUCTS], products)
