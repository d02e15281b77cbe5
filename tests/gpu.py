"""Chips and their CTAs, drawn or made by hand, for the tests of both GPU engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from stcsim.machine.gpu_record import MILLI, GpuModel, GpuWork, L2State

PLAIN = GpuModel(
    sms=1, resident_ctas=1, stages=2, start_ticks=0, head_ticks=0, store_latency_ticks=0, dispatch_ticks=0,
    l2_rate=2**40, sm_rate=2**40, dram_rate=2**40, write_rate=2**40, l2_latency_ticks=0, dram_latency_ticks=0,
    capacity_bytes=2**30, edge_milli=133, persistent=0, lead_milli=0, outstanding_bytes=2**40,
)  # fmt: skip
"""A chip on which nothing but computing takes time."""


@dataclass(frozen=True)
class GpuCase:
    """A chip and its work."""

    model: GpuModel
    work: GpuWork


def work(
    slabs: Sequence[int], ticks: int | Sequence[int], *, bytes_a: int | Sequence[int] = 0,
    bytes_b: int | Sequence[int] = 0, bytes_c: int = 0, written: int = 0, store: int = 0,
    panel_a: Sequence[int] | None = None, panel_b: Sequence[int] | None = None, first: Sequence[int] | None = None,
    tile_c: Sequence[int] | None = None, shared_milli: Sequence[int] = (0, MILLI, MILLI, MILLI),
    fresh_milli: tuple[int, int] = (MILLI, MILLI),
) -> GpuWork:  # fmt: skip
    """CTAs with so many slabs of so many ticks; unless told otherwise each has panels and a tile of its own."""
    n = len(slabs)

    def of_each(values: int | Sequence[int] | None, length: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        given = range(length) if values is None else values
        return np.full(length, given, np.int64) if isinstance(given, int) else np.array(given, np.int64)

    a, b = of_each(panel_a, n), of_each(panel_b, n)
    return GpuWork(
        panel_a=a,
        panel_b=b,
        tile_c=of_each(tile_c, n),
        first=of_each(first or 0, n),
        slabs=of_each(slabs, n),
        slab_ticks=of_each(ticks, n),
        shared_milli=np.array(shared_milli, np.int64),
        store_ticks=of_each(store, n),
        bytes_a=of_each(bytes_a, int(a.max(initial=-1)) + 1),
        bytes_b=of_each(bytes_b, int(b.max(initial=-1)) + 1),
        bytes_c=of_each(bytes_c, n),
        written=of_each(written, n),
        fresh_milli=fresh_milli,
    )


def warm(work: GpuWork) -> L2State:
    """An L2 that holds everything."""
    state = L2State.cold(work)
    for last in (state.last_a, state.last_b, state.last_c):
        last[:] = 0
    return state


def copied(state: L2State) -> L2State:
    """The same state, to be changed apart."""
    return replace(state, last_a=state.last_a.copy(), last_b=state.last_b.copy(), last_c=state.last_c.copy())


def asked_bytes(work: GpuWork) -> int:
    """Bytes of all slabs of all CTAs."""
    of_slab = work.bytes_a[work.panel_a] + work.bytes_b[work.panel_b]
    return int((work.slabs * of_slab).sum())


@st.composite
def models(draw: st.DrawFn) -> GpuModel:
    """Draw a chip; small numbers, so that requests collide and blocks are lost in part."""
    time, rate = st.integers(0, 40), st.integers(1, 8 * MILLI)
    return GpuModel(
        sms=draw(st.integers(1, 5)),
        resident_ctas=draw(st.integers(1, 3)),
        stages=draw(st.integers(1, 5)),
        start_ticks=draw(time),
        head_ticks=draw(time),
        store_latency_ticks=draw(time),
        dispatch_ticks=draw(st.integers(0, 5)),
        l2_rate=draw(rate),
        sm_rate=draw(rate),
        dram_rate=draw(rate),
        write_rate=draw(rate),
        l2_latency_ticks=draw(time),
        dram_latency_ticks=draw(st.integers(0, 90)),
        capacity_bytes=draw(st.sampled_from([0, 64, 500, 4000, 2**30])),
        edge_milli=draw(st.sampled_from([1, 133, MILLI])),
        persistent=draw(st.integers(0, 1)),
        lead_milli=draw(st.sampled_from([0, 0, 300, MILLI - 1])),
        outstanding_bytes=draw(st.sampled_from([1, 20, 300, 2**30])),
    )


@st.composite
def gpu_cases(draw: st.DrawFn, most_ctas: int = 16) -> GpuCase:
    """Draw a chip and CTAs that share panels, some without a slab."""
    model = draw(models())
    n = draw(st.integers(0, most_ctas))
    panels_a, panels_b = draw(st.integers(1, 4)), draw(st.integers(1, 4))

    def ints(low: int, high: int, length: int = n) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=length, max_size=length))

    made = work(
        ints(0, 5),
        ints(0, 60),
        panel_a=ints(0, panels_a - 1),
        panel_b=ints(0, panels_b - 1),
        first=ints(0, 3),
        tile_c=ints(0, 6),
        shared_milli=[0, *sorted(ints(1, MILLI, model.resident_ctas), reverse=True)],
        fresh_milli=(draw(st.integers(0, MILLI)), draw(st.integers(0, MILLI))),
    )
    # A panel that no CTA reads may exist; a tile that several write (the reference allows it) too.
    made = replace(
        made,
        bytes_a=np.array(ints(0, 300, panels_a), np.int64),
        bytes_b=np.array(ints(0, 300, panels_b), np.int64),
        bytes_c=np.array(ints(0, 300), np.int64),
        written=np.array(ints(0, 300), np.int64),
        store_ticks=np.array(ints(0, 40), np.int64),
    )
    return GpuCase(model, made)
