"""The fast GPU engine against the reference: equal in every tick and byte and in the L2 left behind, on any chip."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from gpu import GpuCase, asked_bytes, copied, gpu_cases
from stcsim.machine import gpu as reference
from stcsim.machine.gpu_record import CtaTime, GpuRun, L2State, SmTime
from stcsim.machine.kernels import gpu as fast


def assert_same(one: GpuRun, other: GpuRun) -> None:
    for name in ("ticks", "l2_bytes", "dram_read_bytes", "dram_write_bytes"):
        assert getattr(one, name) == getattr(other, name), name
    for name in ("sm_ticks", "compute_ticks", "cta_ticks"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_same_l2(one: L2State, other: L2State) -> None:
    assert one.touched_bytes == other.touched_bytes
    for name in ("last_a", "last_b", "last_c"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def assert_conserves(run: GpuRun, case: GpuCase) -> None:
    assert (run.sm_ticks.sum(axis=1) == run.ticks).all()
    assert run.sm_ticks.min(initial=0) >= 0
    assert run.compute_ticks.sum() == run.sm_ticks[:, SmTime.COMPUTE].sum()
    assert run.l2_bytes == asked_bytes(case.work)
    assert 0 <= run.dram_read_bytes <= run.l2_bytes
    assert 0 <= run.dram_write_bytes <= case.work.bytes_c.sum()
    assert (np.diff(run.cta_ticks, axis=1)[:, CtaTime.LANDED :] >= 0).all()
    assert run.ticks == run.cta_ticks[:, CtaTime.STORED].max(initial=0)


@given(case=gpu_cases())
def test_both_engines_agree_in_every_tick_and_byte_over_two_runs_in_a_row(case: GpuCase) -> None:
    state = L2State.cold(case.work)
    other = copied(state)
    for _ in range(2):
        run = reference.simulate(case.model, case.work, state)
        assert_same(run, fast.simulate(case.model, case.work, other))
        assert_same_l2(state, other)
        assert_conserves(run, case)


@given(case=gpu_cases(most_ctas=60))
def test_both_engines_agree_on_many_waves(case: GpuCase) -> None:
    state, other = L2State.cold(case.work), L2State.cold(case.work)
    run = reference.simulate(case.model, case.work, state)
    assert_same(run, fast.simulate(case.model, case.work, other))
    assert_same_l2(state, other)
    assert_conserves(run, case)
