"""The fast outer-product engine against its reference, and both against an oracle written from the definitions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from outer import Case, case, cases
from stcsim.machine import outer_reference
from stcsim.machine.kernels import outer
from stcsim.machine.kernels.outer_tables import bank_classes
from stcsim.machine.outer_record import FIRST_CAUSE, LAST_CAUSE, Buffer, OuterCounter
from stcsim.machine.outer_simulator import bank_map


@given(cases())
def test_both_engines_count_the_same(drawn: Case) -> None:
    want = outer_reference.simulate(drawn.model, drawn.work)
    got = outer.simulate(drawn.model, drawn.work, drawn.ones_a, drawn.ones_b)
    np.testing.assert_array_equal(got, want)


@given(cases())
def test_counters_do_not_depend_on_threads(drawn: Case) -> None:
    one, two = (
        outer.simulate(drawn.model, drawn.work, drawn.ones_a, drawn.ones_b, threads) for threads in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


@given(cases())
def test_causes_tile_the_time_of_every_sub_core(drawn: Case) -> None:
    counters = outer.simulate(drawn.model, drawn.work, drawn.ones_a, drawn.ones_b)
    causes = counters[..., FIRST_CAUSE : LAST_CAUSE + 1].sum(axis=-1)
    np.testing.assert_array_equal(causes, counters[..., OuterCounter.CYCLES])


@given(cases())
def test_executed_outer_products_and_products_are_those_of_the_bitmaps(drawn: Case) -> None:
    counters = outer.simulate(drawn.model, drawn.work, drawn.ones_a, drawn.ones_b)
    issued = products = 0
    for i, j in zip(drawn.work.tile_m, drawn.work.tile_n, strict=True):
        a, b = drawn.ones_a[i].astype(int), drawn.ones_b[j].astype(int)
        issued += int((np.ceil(a / drawn.model.m_inst) * np.ceil(b / drawn.model.n_inst)).sum())
        products += int((a * b).sum())
    assert counters[..., OuterCounter.OHMMA].sum() == issued
    assert counters[..., OuterCounter.PRODUCTS].sum() == products


@given(
    drawn=cases(),
    banks=st.sampled_from([8, 32, 128]),
    mapping=st.sampled_from(["row_column", "linear", "xor"]),
)
def test_every_mapping_counts_the_same_on_both_engines(drawn: Case, banks: int, mapping: str) -> None:
    """Banks that are a grid take a path of their own in the fast engine; exclusive-or maps do not."""
    model = replace(
        drawn.model, buffer=int(Buffer.BANKED), n_banks=banks, interval_cycles=1, greedy=True, shared_issue=False,
        bank_of=bank_map(mapping, banks, drawn.model.m_warp, drawn.model.n_warp), accesses_per_cycle=1,
    )  # fmt: skip
    want = outer_reference.simulate(model, drawn.work)
    np.testing.assert_array_equal(outer.simulate(model, drawn.work, drawn.ones_a, drawn.ones_b), want)


def test_banks_are_right_where_the_front_end_takes_longer_than_32_bits_of_cycles() -> None:
    """By hand: 128 products on 32 banks take each for 4 cycles, and the window is 2.

    A step of 8 issues at 0, 1, 4, 8, ... 24, 17 of these cycles conflicts; the buffer takes the next from 28
    on, 3 cycles after the pipe would, and the front end, which stands for 3e9, hides them from its own cause.
    """
    ones = np.ones((32, 3), np.bool_)
    drawn = case([ones], [ones.T], [(0, 0)], buffer=int(Buffer.BANKED), n_banks=32, window=2,
                 bank_of=bank_map("row_column", 32, 32, 32), step_milli=3_000_000_000_000)  # fmt: skip
    counters = outer.simulate(drawn.model, drawn.work, drawn.ones_a, drawn.ones_b)[0, 0]
    assert counters[OuterCounter.TENSOR_BUSY] == 24
    assert counters[OuterCounter.ACCUMULATOR_CONFLICT] == 3 * 17 + 2 * 3
    assert counters[OuterCounter.ISSUE] == 2 * (3_000_000_000 - 3)


def test_bank_maps_are_grids_but_for_exclusive_or() -> None:
    for banks in (8, 32, 128):
        assert bank_classes(bank_map("row_column", banks, 32, 32)) is not None
        assert bank_classes(bank_map("linear", banks, 32, 32)) is not None
    assert bank_classes(bank_map("xor", 32, 32, 32)) is None
    # 128 banks by hand: row 9, column 17 -> (9 mod 8) * 16 + 17 mod 16; linear: (9 * 32 + 17) mod 128.
    assert bank_map("row_column", 128, 32, 32)[9, 17] == 17
    assert bank_map("linear", 128, 32, 32)[9, 17] == 49
    # xor: row 9 ^ (17 // 16) = 8 -> class 0; column 17 ^ (9 // 8) = 16 -> class 0.
    assert bank_map("xor", 128, 32, 32)[9, 17] == 0


def oracle(drawn: Case) -> int:
    """Cycles from the first issue to the last of one warp whose buffer is banked, and nothing else binds.

    Written from the definition of the window, not from the engines: an outer product issues when fewer
    than w earlier ones are undrained; each bank serves its accesses in order of arrival; an outer product
    is drained with the last of its accesses, and not before earlier ones.
    """
    model, work = drawn.model, drawn.work
    free = dict.fromkeys(range(model.n_banks), 0)
    drained: list[int] = []
    now = 0
    for k in range(model.k):
        rows = [r for r in range(64) if int(work.bits_a[0, k]) >> r & 1]
        columns = [c for c in range(64) if int(work.bits_b[0, k]) >> c & 1]
        for i in range(0, len(rows), model.m_inst):
            for j in range(0, len(columns), model.n_inst):
                while sum(at > now for at in drained) >= model.window:
                    now += 1
                hits: dict[int, int] = {}
                for r in rows[i : i + model.m_inst]:
                    for c in columns[j : j + model.n_inst]:
                        bank = int(model.bank_of[r, c])
                        hits[bank] = hits.get(bank, 0) + 1
                for bank, count in hits.items():
                    free[bank] = max(free[bank], now) + -(-count // model.accesses_per_cycle)
                drained.append(max([free[bank] for bank in hits] + drained[-1:]))
                now += 1
    return now


@given(
    seed=st.integers(0, 2**32 - 1),
    density_a=st.sampled_from([0.1, 0.5, 1.0]), density_b=st.sampled_from([0.1, 0.5, 1.0]),
    banks=st.sampled_from([8, 32, 128]), window=st.integers(1, 4), ports=st.integers(1, 2), random_map=st.booleans(),
)  # fmt: skip
def test_banks_and_windows_agree_with_an_oracle(
    seed: int, density_a: float, density_b: float, banks: int, window: int, ports: int, random_map: bool
) -> None:
    rng = np.random.default_rng(seed)
    mask_a, mask_b = rng.random((32, 20)) < density_a, rng.random((20, 32)) < density_b
    row, column = np.arange(32)[:, None], np.arange(32)[None, :]
    by_rule = (row % 8) * 16 + column % 16
    bank_of = rng.integers(0, banks, (32, 32)) if random_map else by_rule % banks
    drawn = case([mask_a], [mask_b], [(0, 0)], buffer=int(Buffer.BANKED), bank_of=bank_of, n_banks=banks,
                 window=window, accesses_per_cycle=ports)  # fmt: skip
    counters = outer.simulate(drawn.model, drawn.work, drawn.ones_a, drawn.ones_b)[0, 0]
    issued = counters[OuterCounter.TENSOR_BUSY] + counters[OuterCounter.ACCUMULATOR_CONFLICT]
    assert issued == oracle(drawn)
