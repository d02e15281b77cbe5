"""The fast SM engine against the reference: equal in every cycle, cause, count, event and start, on anything drawn."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from stcsim.machine import sm
from stcsim.machine.kernels import sm as fast
from stcsim.machine.sm_record import (
    MACHINE_FIELDS,
    N_BARRIERS,
    N_CAUSES,
    NONE,
    Column,
    Kind,
    Policy,
    SmMachine,
    SmModel,
    SmRun,
    Window,
)

AT_LEAST_ONE = {
    "sub_cores", "queue_depth", "queue_latency", "slot_gap", "slot_gap_fed", "store_gap", "requests", "tag_queue",
    "barrier_base", "n_pipes",
}  # fmt: skip


@st.composite
def machines(draw: st.DrawFn) -> SmMachine:
    """Draw an SM; small numbers, so that waits collide."""
    values = {name: draw(st.integers(int(name in AT_LEAST_ONE), 9)) for name in MACHINE_FIELDS}
    values |= {
        "sub_cores": draw(st.sampled_from([1, 2, 4])),
        "policy": draw(st.sampled_from(list(Policy))),
        "copy_latency": draw(st.integers(0, 40)),
        "n_pipes": draw(st.integers(1, 2)),
    }
    return SmMachine(**values)


@st.composite
def programs(draw: st.DrawFn, n_pipes: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Draw a program: a straight line, or one with a loop somewhere in it."""
    n_rows = draw(st.integers(1, 14))
    rows = np.zeros((n_rows, len(Column)), np.int64)
    barrier = st.sampled_from([NONE, *range(N_BARRIERS)])
    for row in rows:
        row[Column.KIND] = kind = draw(st.sampled_from([k for k in Kind if k != Kind.BRANCH]))
        row[Column.OPCODE] = draw(st.integers(0, 2))
        row[Column.STALL] = draw(st.integers(1, 7))
        row[Column.WRITE_BARRIER] = draw(barrier)
        row[Column.READ_BARRIER] = draw(barrier)
        row[Column.WAIT_MASK] = draw(st.sampled_from([0, 0, *range(64)]))
        row[Column.INTERVAL] = draw(st.integers(1, 8))
        row[Column.LATENCY] = draw(st.integers(0, 12))
        row[Column.PIPE] = draw(st.integers(NONE, n_pipes - 1)) if kind == Kind.INTEGER else NONE
        row[Column.PORT] = draw(st.integers(1, 6))
        row[Column.SLOTS] = draw(st.integers(1, 3))
        row[Column.SLOT_COST] = draw(st.integers(0, 2))
        row[Column.PENDING] = draw(st.integers(0, 3))
        row[Column.BANK] = draw(st.sampled_from([0, 0, 0, 1, 2]))
    if draw(st.booleans()):
        at = draw(st.integers(0, n_rows - 1))
        rows[at, Column.KIND], rows[at, Column.PIPE] = Kind.BRANCH, NONE
        rows[at, Column.TARGET] = draw(st.integers(0, at))
    return rows


@st.composite
def models(draw: st.DrawFn, iterations: int = 4) -> SmModel:
    machine = draw(machines())
    return SmModel(
        program=draw(programs(machine.n_pipes)),
        mnemonics=("first", "second", "third"),
        machine=machine,
        iterations=draw(st.integers(1, iterations)),
        warps_per_cta=draw(st.integers(1, 5)),
        resident_ctas=draw(st.integers(1, 3)),
    )


def assert_same(one: SmRun, other: SmRun) -> None:
    assert one.cycles == other.cycles
    for name in ("causes", "issued", "starts", "events"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@given(models(), st.integers(0, 5), st.integers(0, 60), st.integers(0, 80))
def test_both_engines_give_the_same_cycles_causes_events_and_starts(
    model: SmModel, n_ctas: int, start: int, length: int
) -> None:
    ctas, window = np.array([n_ctas]), Window(start, length)
    (want,) = sm.simulate(model, ctas, window=window, n_starts=3)
    (got,) = fast.simulate(model, ctas, window=window, n_starts=3)
    assert_same(got, want)
    np.testing.assert_array_equal(want.causes.sum(axis=1), want.cycles)


@given(models(iterations=200), st.integers(1, 5))
@settings(max_examples=100)
def test_skipping_periods_changes_nothing(model: SmModel, n_ctas: int) -> None:
    ctas = np.array([n_ctas])
    (want,) = fast.simulate(model, ctas, skipping=False)
    (got,) = fast.simulate(model, ctas)
    assert_same(got, want)


@given(models(), st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_results_do_not_depend_on_threads(model: SmModel, ctas: list[int]) -> None:
    ones = fast.simulate(model, np.array(ctas), threads=1)
    for one, two in zip(ones, fast.simulate(model, np.array(ctas), threads=2), strict=True):
        assert_same(one, two)


@given(models())
def test_every_instruction_of_every_warp_issues_once_an_iteration(model: SmModel) -> None:
    (run,) = fast.simulate(model, np.array([3]))
    times = np.ones(len(model.program), np.int64)
    for at in np.flatnonzero(model.program[:, Column.KIND] == Kind.BRANCH):
        times[model.program[at, Column.TARGET] : at + 1] = model.iterations
    want = np.bincount(model.program[:, Column.OPCODE], times, minlength=3) * 3 * model.warps_per_cta
    np.testing.assert_array_equal(run.issued.sum(axis=0), want)
    assert run.causes.shape == (model.machine.sub_cores, N_CAUSES)
