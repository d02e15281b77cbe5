"""Reading a footprint over and over, against an H200 (facts of data/h200/mem_bandwidth.csv, L2_read_cg, two runs)."""

from __future__ import annotations

import pytest
from tests.gpu import PLAIN, work

from stcsim.catalog import load_machine
from stcsim.machine.gpu_record import MILLI, TICKS, L2State
from stcsim.machine.kernels.gpu import simulate

SLAB_BYTES = 16384
L2_BYTES, DRAM_BYTES = 32.6, 17.3
"""Bytes a cycle and SM: what the smallest and the largest footprints reach."""


@pytest.mark.parametrize(
    ("footprint_bytes", "measured"),
    [(50_331_648, 32.6), (58_720_256, 28.6), (67_108_864, 20.0), (100_663_296, 17.7)],
)
def test_a_footprint_beyond_l2_is_read_as_fast_as_on_an_h200(footprint_bytes: int, measured: float) -> None:
    h200 = load_machine("h200-mma-sync")[0].machine
    assert h200.gpu is not None

    def rate(bytes_per_cycle_and_sm: float) -> int:
        return round(bytes_per_cycle_and_sm * h200.sms * MILLI / TICKS)

    slabs = footprint_bytes // SLAB_BYTES // h200.sms
    model = PLAIN.but(
        sms=h200.sms,
        stages=5,
        capacity_bytes=h200.gpu.l2.capacity,
        edge_milli=round(h200.gpu.l2.edge_fraction * MILLI),
        l2_rate=rate(L2_BYTES),
        dram_rate=rate(DRAM_BYTES),
        l2_latency_ticks=h200.gpu.l2.latency_cycles * TICKS,
        dram_latency_ticks=h200.gpu.dram.latency_cycles * TICKS,
    )
    ctas = work([slabs] * h200.sms, 1, bytes_a=SLAB_BYTES)
    l2 = L2State.cold(ctas)
    simulate(model, ctas, l2)
    run = simulate(model, ctas, l2)
    reached = run.l2_bytes / h200.sms / (run.ticks / TICKS)
    assert reached == pytest.approx(measured, rel=0.05)
