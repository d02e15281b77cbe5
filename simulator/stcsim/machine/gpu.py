"""The reference engine of the whole GPU: CTAs and their K-slabs, L2, DRAM.  Plain Python; it is the specification.

Place in the data flow: `stcsim.machine.gpu_simulator` calls `simulate` (``engine: reference``); differential tests
hold `stcsim.machine.kernels.gpu` equal to it in every tick and byte.  How long a slab takes on an SM is given to
it (from the SM engines); it says when its operands are there.

The rules (docs/gpu.md):

1. *Dispatch.*  The first CTAs start in order, one after the other, round robin over SMs; each later one starts when
   and where one ends.  Persistent: CTAs are fixed to slots.
2. *Stages.*  A CTA asks for its first ``stages - 1`` slabs `start_ticks` after it starts, and computes none before
   `head_ticks` more; when it comes to a slab
   it asks for the one ``stages - 1`` further on.  With a single stage it asks when the slab before is done.
3. *L2 and DRAM.*  A request takes its turn (first come, first served) at L2 and at the port of its SM, and waits for
   room among the bytes on their way to its CTA (Little's law); what L2 has lost takes its turn at DRAM too.  A slab
   has landed when the last of them has served it, plus that one's latency; a block that another CTA is fetching lands
   no earlier than that one's.
4. *Residency in L2.*  A block's age is what has been touched since it was (`stcsim.machine.gpu_record.L2State`); what
   is older than the capacity is lost, by and by (`miss_table`).
5. *Computing.*  A slab is computed when it has landed, its predecessor is done and the SM is free; the SM serves its
   CTAs in the order in which they became ready.
6. *Epilogue.*  After its last slab a CTA stores its tile: its SM's time for storing, or its turn at L2,
   whichever is later; lines of C that L2 no longer holds cost DRAM as many bytes.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from stcsim.machine.gpu_record import (
    MILLI,
    CtaTime,
    GpuModel,
    GpuRun,
    GpuWork,
    IntArray,
    L2State,
    SmTime,
    miss_table,
)


class _Step(IntEnum):
    """What a slot waits for."""

    REQUEST = 0
    READY = 1
    DONE = 2
    STORED = 3


@dataclass
class _Slot:
    """Room for a CTA on an SM, and the CTA in it."""

    sm: int
    cta: int = -1
    slab: int = 0
    """The slab that is computed or waited for, counted from the CTA's first one."""
    step: _Step = _Step.REQUEST
    landed: dict[int, tuple[int, SmTime]] = field(default_factory=dict)
    """When each requested slab is there, and what served it last."""
    on_the_way_until: int = 0
    """When what its CTAs have asked for leaves room for more."""


@dataclass
class _Chip:
    """State of everything that CTAs share."""

    model: GpuModel
    work: GpuWork
    l2: L2State
    miss_of_age: list[int]
    arrives_a: dict[tuple[int, int], int] = field(default_factory=dict)
    arrives_b: dict[tuple[int, int], int] = field(default_factory=dict)
    l2_free: int = 0
    dram_free: int = 0
    l2_bytes: int = 0
    dram_read_bytes: int = 0
    dram_write_bytes: int = 0

    def touch(self, last: int, n_bytes: int) -> int:
        """Ask L2 for a block touched last at `last`; return how many of its bytes are no longer there."""
        age = self.l2.age(last, self.model.capacity_bytes)
        self.l2.touch(age, n_bytes)
        return n_bytes * self.miss_of_age[age] // MILLI

    def ask_dram(self, now: int, n_bytes: int) -> int:
        """Take a turn at DRAM; return when the last byte is served."""
        self.dram_free = max(self.dram_free, now) + n_bytes * MILLI // self.model.dram_rate
        return self.dram_free

    def block(
        self, now: int, last: IntArray, arrives: dict[tuple[int, int], int], key: tuple[int, int], n_bytes: int,
        fresh_milli: int,
    ) -> tuple[int, int]:  # fmt: skip
        """Look a block up in L2, fetch what is lost; return how much, and when DRAM has brought it (0: nothing)."""
        lost = self.touch(int(last[key]), n_bytes * fresh_milli // MILLI)
        last[key] = self.l2.touched_bytes
        if lost:
            arrives[key] = self.ask_dram(now, lost) + self.model.dram_latency_ticks
            self.dram_read_bytes += lost
        return lost, arrives.get(key, 0)

    def fetch(self, now: int, cta: int, slab: int, sm_port: int, slot: _Slot) -> tuple[int, SmTime, int]:
        """Ask for both operands' slab; return when it has landed, what served it last, the SM port's next turn."""
        work, model = self.work, self.model
        a, b, k = int(work.panel_a[cta]), int(work.panel_b[cta]), int(work.first[cta]) + slab
        bytes_a, bytes_b = int(work.bytes_a[a]), int(work.bytes_b[b])
        lost_a, a_arrives = self.block(
            now, self.l2.last_a, self.arrives_a, (a, k), bytes_a, work.fresh_milli[0]
        )
        lost_b, b_arrives = self.block(
            now, self.l2.last_b, self.arrives_b, (b, k), bytes_b, work.fresh_milli[1]
        )
        n_bytes, lost, from_dram = bytes_a + bytes_b, lost_a + lost_b, max(a_arrives, b_arrives)
        self.l2_bytes += n_bytes
        self.l2_free = max(self.l2_free, now) + n_bytes * MILLI // model.l2_rate
        # Each byte holds a place among those on their way for as long as its source takes.
        held = (n_bytes - lost) * model.l2_latency_ticks + lost * model.dram_latency_ticks
        slot.on_the_way_until = max(slot.on_the_way_until, now) + held // model.outstanding_bytes
        sm_port = max(sm_port, now) + n_bytes * MILLI // model.sm_rate
        from_l2 = max(self.l2_free, sm_port, slot.on_the_way_until) + model.l2_latency_ticks
        served_by = SmTime.DRAM if from_dram > from_l2 else SmTime.L2
        lead = int(work.slab_ticks[cta]) * model.lead_milli // MILLI
        return max(from_dram - lead, from_l2 - lead, now + model.l2_latency_ticks), served_by, sm_port

    def store(self, now: int, cta: int) -> int:
        """Write a CTA's tile; return when it is written."""
        n_bytes, tile = int(self.work.bytes_c[cta]), int(self.work.tile_c[cta])
        lost = self.touch(int(self.l2.last_c[tile]), n_bytes)
        self.l2.last_c[tile] = self.l2.touched_bytes
        if lost:
            self.ask_dram(now, lost)
            self.dram_write_bytes += lost
        turn = int(self.work.written[cta]) * MILLI // self.model.write_rate
        self.l2_free = max(self.l2_free, now) + turn
        return max(now + int(self.work.store_ticks[cta]), self.l2_free) + self.model.store_latency_ticks


def simulate(model: GpuModel, work: GpuWork, l2: L2State) -> GpuRun:
    """Run all CTAs; `l2` is left as the run leaves it.

    Parameters
    ----------
    model : GpuModel
    work : GpuWork
    l2 : L2State
        Changed in place: a further run starts with what this one left.

    Returns
    -------
    run : GpuRun
    """
    chip = _Chip(model, work, l2, miss_table(model.edge_milli).tolist())
    n_ctas, n_slots = len(work.slabs), model.sms * model.resident_ctas
    slots = [_Slot(sm=i % model.sms) for i in range(n_slots)]
    active = [0] * model.sms
    sm_free = [0] * model.sms
    sm_port = [0] * model.sms
    stored_at = [0] * model.sms
    sm_ticks = np.zeros((model.sms, len(SmTime)), np.int64)
    compute_ticks = np.zeros(model.resident_ctas + 1, np.int64)
    cta_ticks = np.zeros((n_ctas, len(CtaTime)), np.int64)
    queue: list[tuple[int, int]] = []
    ahead = max(1, model.stages - 1)
    end = 0

    def request(now: int, slot: _Slot, cta: int, first: int, stop: int) -> None:
        for slab in range(first, min(stop, int(work.slabs[cta]))):
            landed, served_by, sm_port[slot.sm] = chip.fetch(now, cta, slab, sm_port[slot.sm], slot)
            slot.landed[slab] = landed, served_by

    for i in range(min(n_slots, n_ctas)):
        slots[i].cta = i
        active[slots[i].sm] += 1
        cta_ticks[i, CtaTime.STARTED] = i * model.dispatch_ticks
        heapq.heappush(queue, (i * model.dispatch_ticks + model.start_ticks, i))
    started = min(n_slots, n_ctas)

    while queue:
        now, i = heapq.heappop(queue)
        slot = slots[i]
        sm, cta = slot.sm, slot.cta
        if slot.step == _Step.REQUEST:
            request(now, slot, cta, 0, ahead)
        if slot.step == _Step.DONE:
            slot.landed.pop(slot.slab)
            slot.slab += 1
            if model.stages == 1:
                request(now, slot, cta, slot.slab, slot.slab + 1)
        if slot.step in (_Step.REQUEST, _Step.DONE):
            if slot.slab < work.slabs[cta]:
                head = model.head_ticks if slot.slab == 0 else 0
                slot.step = _Step.READY
                heapq.heappush(queue, (max(now + head, slot.landed[slot.slab][0]), i))
            else:
                if model.persistent and cta + n_slots < n_ctas:
                    request(now, slot, cta + n_slots, 0, ahead)
                if work.slabs[cta] == 0:
                    cta_ticks[cta, CtaTime.LANDED] = now
                cta_ticks[cta, CtaTime.COMPUTED] = now
                written = chip.store(now, cta)
                stored_at[sm] = max(stored_at[sm], written)
                slot.step = _Step.STORED
                heapq.heappush(queue, (written, i))
            continue
        if slot.step == _Step.READY:
            start = max(now, sm_free[sm])
            gap = start - sm_free[sm]
            storing = min(max(0, stored_at[sm] - sm_free[sm]), gap)
            sm_ticks[sm, SmTime.EPILOGUE] += storing
            if slot.slab == 0:
                cta_ticks[cta, CtaTime.LANDED] = slot.landed[0][0]
            waited = SmTime.PROLOGUE if slot.slab == 0 else slot.landed[slot.slab][1]
            sm_ticks[sm, waited] += gap - storing
            ticks = int(work.slab_ticks[cta]) * int(work.shared_milli[active[sm]]) // MILLI
            sm_ticks[sm, SmTime.COMPUTE] += ticks
            compute_ticks[active[sm]] += ticks
            sm_free[sm] = start + ticks
            if model.stages > 1:
                request(now, slot, cta, slot.slab + ahead, slot.slab + ahead + 1)
            slot.step = _Step.DONE
            heapq.heappush(queue, (sm_free[sm], i))
            continue
        end = max(end, now)
        cta_ticks[cta, CtaTime.STORED] = now
        following = cta + n_slots if model.persistent else started
        if following >= n_ctas:
            active[sm] -= 1
            continue
        started += 1
        slot.cta, slot.slab = following, 0
        cta_ticks[following, CtaTime.STARTED] = now
        if model.persistent and work.slabs[following]:
            slot.step = _Step.READY
            heapq.heappush(queue, (max(now, slot.landed[0][0]), i))
        else:
            slot.step = _Step.REQUEST
            heapq.heappush(queue, (now + model.start_ticks, i))

    for sm in range(model.sms):
        storing = max(0, stored_at[sm] - sm_free[sm])
        sm_ticks[sm, SmTime.EPILOGUE] += storing
        sm_ticks[sm, SmTime.TAIL] += end - sm_free[sm] - storing
    return GpuRun(
        ticks=end,
        sm_ticks=sm_ticks,
        compute_ticks=compute_ticks,
        cta_ticks=cta_ticks,
        l2_bytes=chip.l2_bytes,
        dram_read_bytes=chip.dram_read_bytes,
        dram_write_bytes=chip.dram_write_bytes,
    )
