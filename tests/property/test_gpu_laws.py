"""Laws of the GPU level, and the counter-examples where a law that one would expect does not hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu import PLAIN, GpuCase, gpu_cases, models, warm, work
from stcsim.auto import listed
from stcsim.catalog import MachineEntry, load_kernel, load_machine
from stcsim.config.gpu import SustainedClock
from stcsim.config.kernel import Kernel
from stcsim.gpu_validation import of_sizes
from stcsim.lowering import LOWERINGS
from stcsim.lowering.lowered import Lowered
from stcsim.lowering.raster import raster
from stcsim.machine import gpu_simulator
from stcsim.machine.gpu_record import MILLI, GpuModel, GpuWork, L2State
from stcsim.machine.gpu_simulator import apportion, least_seconds, sustained_hz
from stcsim.machine.kernels.gpu import simulate
from stcsim.machine.simulator import simulate as run_on
from stcsim.machine.simulator import slab_timing

RATES = ("l2_rate", "sm_rate", "dram_rate", "write_rate", "outstanding_bytes")
TIMES = (
    "start_ticks", "head_ticks", "store_latency_ticks", "dispatch_ticks", "l2_latency_ticks", "dram_latency_ticks",
)  # fmt: skip
WORK = ("slab_ticks", "store_ticks", "bytes_a", "bytes_b", "bytes_c", "written")
UNSHARED = {"l2_rate": 2**40, "dram_rate": 2**40, "write_rate": 2**40, "resident_ctas": 1}
"""Nothing that CTAs share takes time."""


def ticks(model: GpuModel, ctas: GpuWork, *, cold: bool = False) -> int:
    return simulate(model, ctas, L2State.cold(ctas) if cold else warm(ctas)).ticks


@st.composite
def improvements(draw: st.DrawFn, model: GpuModel, ctas: GpuWork) -> tuple[str, GpuModel, GpuWork]:
    """Draw something that gets better: a rate, a time, or what one CTA (or panel) has to do."""
    what = draw(st.sampled_from([*RATES, *TIMES, *WORK, "slabs"]))
    if what in RATES:
        return what, model.but(**{what: getattr(model, what) + draw(st.integers(1, 9 * MILLI))}), ctas
    if what in TIMES:
        return what, model.but(**{what: draw(st.integers(0, getattr(model, what)))}), ctas
    values = getattr(ctas, what).copy()
    for i in range(len(values)):
        values[i] = draw(st.integers(min(int(what == "slabs"), int(values[i])), int(values[i])))
    return what, model, replace(ctas, **{what: values})


def own_panels(case: GpuCase) -> GpuWork:
    """The same CTAs with panels and tiles of their own."""
    ctas = case.work
    n = np.arange(len(ctas.slabs), dtype=np.int64)
    changes = {"panel_a": n, "panel_b": n, "tile_c": n}
    changes |= {"bytes_a": ctas.bytes_a[ctas.panel_a], "bytes_b": ctas.bytes_b[ctas.panel_b]}
    return replace(ctas, **changes)


# -- what is faster is faster -----------------------------------------------------------------------------


@given(data=st.data(), model=models(), cold=st.booleans())
def test_one_cta_is_never_slower_with_more_bandwidth_less_latency_or_less_work(
    data: st.DataObject, model: GpuModel, cold: bool
) -> None:
    ints = st.integers(0, 300)
    ctas = work(
        [data.draw(st.integers(0, 12))], data.draw(st.integers(0, 60)), bytes_a=data.draw(ints),
        bytes_b=data.draw(ints), bytes_c=data.draw(ints), written=data.draw(ints), store=data.draw(ints),
    )  # fmt: skip
    what, better, less = data.draw(improvements(model, ctas))
    assert ticks(better, less, cold=cold) <= ticks(model, ctas, cold=cold), what


@given(data=st.data(), case=gpu_cases(), cold=st.booleans())
def test_a_static_assignment_is_never_slower_where_ctas_share_nothing_that_takes_time(
    data: st.DataObject, case: GpuCase, cold: bool
) -> None:
    model = case.model.but(persistent=1, lead_milli=0, capacity_bytes=2**30, **UNSHARED)
    ctas = own_panels(case)
    what, better, less = data.draw(improvements(model, ctas))
    assert ticks(better, less, cold=cold) <= ticks(model, ctas, cold=cold), what


@given(case=gpu_cases(most_ctas=40), more=st.integers(1, 4))
def test_more_sms_are_never_slower_where_ctas_share_nothing_that_takes_time(case: GpuCase, more: int) -> None:
    # List scheduling of independent jobs: with one more place every job starts no later.
    model = case.model.but(persistent=0, dispatch_ticks=0, lead_milli=0, **UNSHARED)
    ctas = own_panels(case)
    assert ticks(model.but(sms=model.sms + more), ctas) <= ticks(model, ctas)


# -- counter-examples: queues that serve first come, first served, and CTAs that go where a slot is free ---


def test_less_work_may_be_slower_where_another_cta_then_finds_the_queue_taken() -> None:
    # One stage, 100 bytes a slab, L2 at 1 a tick; CTA 0: two slabs on SM 0; CTA 1: one of 200 ticks on SM 1, from 150.
    # CTA 0 asks 0, landed 100, run until 160, asks 160.  CTA 1 asked at 150: L2 150-250, run 250-450.  Ends at 450.
    # With slabs of 40 ticks CTA 0 asks at 140: L2 140-240; CTA 1 waits: L2 240-340, run 340-540.
    model = PLAIN.but(sms=2, stages=1, dispatch_ticks=150, l2_rate=MILLI, persistent=1)
    assert ticks(model, work([2, 1], [60, 200], bytes_a=100)) == 450
    assert ticks(model, work([2, 1], [40, 200], bytes_a=100)) == 540


def test_more_sms_may_be_slower_where_a_cta_that_starts_sooner_takes_the_queue() -> None:
    # One stage; CTA 0: 2 slabs of 200 ticks, 10 bytes; CTA 1: 225 ticks, no bytes; CTA 2: 1 tick, 150 bytes.
    # L2 at 1 a tick; 100 ticks between the first starts.
    # Two SMs: CTA 0 landed 10, run until 210, asks, landed 220, run until 420.  CTA 1 100-325, CTA 2 325-476.
    # Three: CTA 2 asks at 200: L2 200-350; CTA 0 asks at 210: L2 350-360, run 360-560.
    model = PLAIN.but(sms=2, stages=1, dispatch_ticks=100, l2_rate=MILLI)
    ctas = work([2, 1, 1], [200, 225, 1], bytes_a=[10, 0, 150])
    assert ticks(model, ctas) == 476
    assert ticks(model.but(sms=3), ctas) == 560


def test_more_sms_may_be_slower_for_ctas_that_are_all_alike() -> None:
    # Seven CTAs, two on an SM.  Slots of several SMs get free close to each other, and the next CTA goes to the first:
    # with three SMs one of them gets both slots' worth of the last CTAs, with two it does not.
    model = PLAIN.but(sms=2, resident_ctas=2, stages=1, l2_latency_ticks=10, sm_rate=MILLI, l2_rate=2 * MILLI)
    ctas = work([2] * 7, 20, bytes_a=30)
    assert (ticks(model, ctas), ticks(model.but(sms=3), ctas)) == (270, 300)


# -- the parts around the engine --------------------------------------------------------------------------


@given(
    shares=st.dictionaries(st.text(max_size=3), st.fractions(0, 1000), max_size=8),
    total=st.integers(0, 10**12),
)
def test_apportioned_parts_sum_to_the_total_and_are_within_one_of_their_share(
    shares: dict[str, Fraction], total: int
) -> None:
    parts = apportion(shares, total)
    assert sum(parts.values()) == total
    whole = sum(shares.values(), Fraction(0))
    for cause, share in shares.items():
        if whole:
            assert abs(parts.get(cause, 0) - share * total / whole) < 1


@given(
    law=st.builds(SustainedClock, onset_fraction=st.floats(0.05, 1), exponent=st.floats(0.01, 1)),
    one=st.floats(0, 4),
    other=st.floats(0, 4),
)
def test_the_sustained_clock_falls_with_activity_but_never_so_far_that_less_is_done_in_a_second(
    law: SustainedClock, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    assert sustained_hz(1e9, law, high) <= sustained_hz(1e9, law, low) <= 1e9
    # Work in a second is activity times clock; an exponent of at most 1 lets it grow.
    assert low * sustained_hz(1e9, law, low) <= high * sustained_hz(1e9, law, high) * (1 + 1e-12)
    assert sustained_hz(1e9, None, high) == 1e9


def test_the_raster_visits_every_tile_once_for_all_small_grids_and_groups() -> None:
    for ctas_m in range(8):
        for ctas_n in range(8):
            for group in range(1, 11):
                rows, columns = raster(ctas_m, ctas_n, group)
                seen = sorted(zip(rows.tolist(), columns.tolist(), strict=True))
                assert seen == [(row, column) for row in range(ctas_m) for column in range(ctas_n)]


def test_the_raster_goes_through_a_group_of_rows_column_by_column() -> None:
    rows, columns = raster(3, 2, 2)
    assert rows.tolist() == [0, 1, 0, 1, 2, 2]
    assert columns.tolist() == [0, 0, 1, 1, 0, 1]


# -- whole problems on an A100 ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def a100() -> MachineEntry:
    return load_machine("a100-pcie-80gb")[0]


def lowered(
    machine: MachineEntry, kernel: Kernel, m: int, n: int, k: int, *, name: str = "validation"
) -> Lowered:
    gemm = replace(of_sizes(m, n, k), name=name)
    dtype = next(iter(kernel.instructions))
    return LOWERINGS[kernel.lowering].of_shape(gemm, kernel, dtype, machine.machine)


def test_the_timing_depends_on_neither_threads_nor_the_layers_name(a100: MachineEntry) -> None:
    kernel = load_kernel("hmma16816_128x64x32_s6_splitk2")[0].kernel
    want = run_on(lowered(a100, kernel, 700, 500, 900), a100.machine)
    assert run_on(lowered(a100, kernel, 700, 500, 900, name="other"), a100.machine, threads=2) == want
    assert run_on(lowered(a100, kernel, 700, 500, 900), a100.machine) == want


@pytest.mark.parametrize(
    ("name", "m", "n", "k", "events"),
    [
        ("hmma16816_128x128x32_s5", 2048, 2048, 2048, 2**11),  # 16,384 slabs, 8 to one
        (
            "hmma16816_64x64x32_s10",
            2048,
            2048,
            4096,
            2**14,
        ),  # 131,072 slabs, 9 to one: never fewer than stages - 1
        ("hmma_sp16832_256x128x64_s3", 4096, 4096, 4096, 2**12),  # 32,768 slabs, 8 to one
    ],
)
def test_counting_several_slabs_of_a_long_k_as_one_changes_the_cycles_by_less_than_three_percent(
    a100: MachineEntry, monkeypatch: pytest.MonkeyPatch, name: str, m: int, n: int, k: int, events: int
) -> None:
    # docs/gpu.md says where it changes them by more.
    problem = lowered(a100, load_kernel(name)[0].kernel, m, n, k)
    fine = run_on(problem, a100.machine)
    monkeypatch.setattr(gpu_simulator, "EVENTS", events)
    coarse = run_on(problem, a100.machine)
    assert coarse.cycles != fine.cycles
    assert coarse.cycles == pytest.approx(fine.cycles, rel=0.03)


@pytest.fixture(scope="module")
def tabulated(a100: MachineEntry) -> list[Kernel]:
    kernels = [entry.kernel for dtype in ("fp16", "int8") for entry in listed(a100, dtype)]
    return list({kernel.name: kernel for kernel in kernels}.values())


def least_and_simulated(machine: MachineEntry, problem: Lowered) -> tuple[float, float]:
    timing = run_on(problem, machine.machine)
    slab = slab_timing(problem, machine.machine, "numba", 1)
    seconds = timing.cycles / (timing.clock_hz or machine.machine.clock)
    return least_seconds(problem, machine.machine, slab), seconds


@settings(max_examples=15)
@given(data=st.data())
def test_no_kernel_of_the_tables_is_faster_than_its_least_time(
    a100: MachineEntry, tabulated: list[Kernel], data: st.DataObject
) -> None:
    sizes = st.integers(1, 4096)
    kernel = data.draw(st.sampled_from(tabulated))
    problem = lowered(a100, kernel, data.draw(sizes), data.draw(sizes), data.draw(sizes))
    least, seconds = least_and_simulated(a100, problem)
    assert 0 < least <= seconds


def test_the_least_time_is_a_bound_where_a_falling_clock_meets_dram(a100: MachineEntry) -> None:
    kernel = load_kernel("imma16832_128x256x64_s3")[0].kernel
    least, seconds = least_and_simulated(a100, lowered(a100, kernel, 128, 26880, 183410))
    assert least <= seconds
