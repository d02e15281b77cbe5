"""The fast engine of the whole GPU: the rules of `stcsim.machine.gpu`, jitted.

Place in the data flow: `stcsim.machine.gpu_simulator` calls `simulate` (``engine: numba``).  One event for each slab
that is computed, and one for each that was waited for, in a heap of one entry a slot: (time, slot) in one number.
"""

from __future__ import annotations

import numpy as np

from stcsim.machine.gpu_record import (
    AGE_STEPS,
    MILLI,
    MODEL_FIELDS,
    MOST_AGE,
    CtaTime,
    GpuModel,
    GpuRun,
    GpuWork,
    L2State,
    SmTime,
    miss_table,
)
from stcsim.machine.kernels._jit import inlined, jit

_COMPUTE, _PROLOGUE, _L2, _DRAM, _EPILOGUE, _TAIL = (
    int(SmTime.COMPUTE), int(SmTime.PROLOGUE), int(SmTime.L2), int(SmTime.DRAM), int(SmTime.EPILOGUE), int(SmTime.TAIL),
)  # fmt: skip
_N_TIMES = len(SmTime)
_STARTED, _LANDED, _COMPUTED, _STORED_AT = (
    int(CtaTime.STARTED), int(CtaTime.LANDED), int(CtaTime.COMPUTED), int(CtaTime.STORED),
)  # fmt: skip
_REQUEST, _READY, _DONE, _STORED = 0, 1, 2, 3
_L2_FREE, _DRAM_FREE, _TOUCHED, _L2_BYTES, _READ_BYTES, _WRITE_BYTES = 0, 1, 2, 3, 4, 5
_AGE_STEPS, _MOST_AGE, _MILLI = AGE_STEPS, MOST_AGE, MILLI


@inlined
def _push(heap, n, key):
    i = n
    while i > 0 and heap[(i - 1) >> 1] > key:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    heap[i] = key


@jit
def _drop_first(heap, n):
    """Take the first of n entries out."""
    last = heap[n - 1]
    i, child = 0, 1
    while child < n - 1:
        if child + 1 < n - 1 and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[i] = heap[child]
        i, child = child, 2 * child + 1
    heap[i] = last


@jit
def _touch(chip, miss_of_age, capacity, last, n_bytes):
    room = max(1, capacity)
    age = min(chip[_TOUCHED] - last, _MOST_AGE * room) * _AGE_STEPS // room
    chip[_TOUCHED] += n_bytes * min(age, _AGE_STEPS) // _AGE_STEPS
    return n_bytes * miss_of_age[age] // _MILLI


@jit
def _ask_dram(chip, rate, now, n_bytes):
    chip[_DRAM_FREE] = max(chip[_DRAM_FREE], now) + n_bytes * _MILLI // rate
    return chip[_DRAM_FREE]


@jit
def _block(
    chip, miss_of_age, capacity, dram_rate, dram_latency, last, arrives, panel, k, now, n_bytes, fresh_milli
):
    lost = _touch(chip, miss_of_age, capacity, last[panel, k], n_bytes * fresh_milli // _MILLI)
    last[panel, k] = chip[_TOUCHED]
    if lost > 0:
        arrives[panel, k] = _ask_dram(chip, dram_rate, now, lost) + dram_latency
        chip[_READ_BYTES] += lost
    return lost


@jit
def _run(
    p, panel_a, panel_b, tile_c, first, slabs, slab_ticks, shared_milli, store_ticks, bytes_a, bytes_b, bytes_c,
    written, fresh_a, fresh_b, last_a, last_b, last_c, touched, miss_of_age, sm_ticks, compute_ticks,
    cta_ticks,
):  # fmt: skip
    """Run all CTAs; return the end and the chip's counters."""
    (
        sms, resident_ctas, stages, start_ticks, head_ticks, store_latency, dispatch, l2_rate, sm_rate, dram_rate,
        write_rate, l2_latency, dram_latency, capacity, _edge, persistent, lead_milli, outstanding,
    ) = p  # fmt: skip
    n_ctas, n_slots = len(slabs), sms * resident_ctas
    ahead = max(1, stages - 1)
    chip = np.zeros(6, np.int64)
    chip[_TOUCHED] = touched
    arrives_a, arrives_b = np.zeros_like(last_a), np.zeros_like(last_b)
    heap = np.zeros(n_slots + 1, np.int64)
    of_slot = np.full(n_slots, -1, np.int64)
    at_slab = np.zeros(n_slots, np.int64)
    step = np.zeros(n_slots, np.int64)
    ring = ahead + 1
    landed, served_by = np.zeros((n_slots, ring), np.int64), np.zeros((n_slots, ring), np.int64)
    active, sm_free = np.zeros(sms, np.int64), np.zeros(sms, np.int64)
    on_the_way_until = np.zeros(n_slots, np.int64)
    sm_port, stored_at = np.zeros(sms, np.int64), np.zeros(sms, np.int64)
    end = 0
    started = min(n_slots, n_ctas)
    waiting = 0
    for i in range(started):
        of_slot[i] = i
        active[i % sms] += 1
        cta_ticks[i, _STARTED] = i * dispatch
        _push(heap, waiting, (i * dispatch + start_ticks) * n_slots + i)
        waiting += 1

    while waiting > 0:
        now = heap[0] // n_slots
        i = heap[0] - now * n_slots
        _drop_first(heap, waiting)
        waiting -= 1
        sm, cta = i % sms, of_slot[i]
        if step[i] == _DONE:
            at_slab[i] += 1
        stored = step[i] != _STORED and at_slab[i] == slabs[cta]
        to_cta, ask_from, ask_to = cta, 0, 0
        if stored:
            if persistent and cta + n_slots < n_ctas:
                to_cta, ask_to = cta + n_slots, ahead
        elif step[i] == _REQUEST:
            ask_to = ahead
        elif (step[i] == _DONE and stages == 1) or (step[i] == _READY and stages > 1):
            ask_from = at_slab[i] + (ahead if stages > 1 else 0)
            ask_to = ask_from + 1
        for slab in range(ask_from, min(ask_to, slabs[to_cta])):
            a, b, k = panel_a[to_cta], panel_b[to_cta], first[to_cta] + slab
            lost = _block(
                chip, miss_of_age, capacity, dram_rate, dram_latency, last_a, arrives_a, a, k, now, bytes_a[a], fresh_a
            )  # fmt: skip
            lost += _block(
                chip, miss_of_age, capacity, dram_rate, dram_latency, last_b, arrives_b, b, k, now, bytes_b[b], fresh_b
            )  # fmt: skip
            from_dram = max(arrives_a[a, k], arrives_b[b, k])
            n_bytes = bytes_a[a] + bytes_b[b]
            chip[_L2_BYTES] += n_bytes
            chip[_L2_FREE] = max(chip[_L2_FREE], now) + n_bytes * _MILLI // l2_rate
            held = (n_bytes - lost) * l2_latency + lost * dram_latency
            on_the_way_until[i] = max(on_the_way_until[i], now) + held // outstanding
            sm_port[sm] = max(sm_port[sm], now) + n_bytes * _MILLI // sm_rate
            from_l2 = max(max(chip[_L2_FREE], sm_port[sm]), on_the_way_until[i]) + l2_latency
            lead = slab_ticks[to_cta] * lead_milli // _MILLI
            landed[i, slab % ring] = max(max(from_dram, from_l2) - lead, now + l2_latency)
            served_by[i, slab % ring] = _DRAM if from_dram > from_l2 else _L2

        if stored:
            if slabs[cta] == 0:
                cta_ticks[cta, _LANDED] = now
            cta_ticks[cta, _COMPUTED] = now
            lost = _touch(chip, miss_of_age, capacity, last_c[tile_c[cta]], bytes_c[cta])
            last_c[tile_c[cta]] = chip[_TOUCHED]
            if lost > 0:
                _ask_dram(chip, dram_rate, now, lost)
                chip[_WRITE_BYTES] += lost
            chip[_L2_FREE] = max(chip[_L2_FREE], now) + written[cta] * _MILLI // write_rate
            done = max(now + store_ticks[cta], chip[_L2_FREE]) + store_latency
            stored_at[sm] = max(stored_at[sm], done)
            step[i] = _STORED
            _push(heap, waiting, done * n_slots + i)
            waiting += 1
            continue
        if step[i] == _REQUEST or step[i] == _DONE:
            earliest = now + head_ticks if at_slab[i] == 0 else now
            step[i] = _READY
            _push(heap, waiting, max(earliest, landed[i, at_slab[i] % ring]) * n_slots + i)
            waiting += 1
            continue
        if step[i] == _READY:
            start = max(now, sm_free[sm])
            gap = start - sm_free[sm]
            storing = min(max(0, stored_at[sm] - sm_free[sm]), gap)
            sm_ticks[sm, _EPILOGUE] += storing
            if at_slab[i] == 0:
                cta_ticks[cta, _LANDED] = landed[i, 0]
            waited = _PROLOGUE if at_slab[i] == 0 else served_by[i, at_slab[i] % ring]
            sm_ticks[sm, waited] += gap - storing
            ticks = slab_ticks[cta] * shared_milli[active[sm]] // _MILLI
            sm_ticks[sm, _COMPUTE] += ticks
            compute_ticks[active[sm]] += ticks
            sm_free[sm] = start + ticks
            step[i] = _DONE
            _push(heap, waiting, sm_free[sm] * n_slots + i)
            waiting += 1
            continue
        end = max(end, now)
        cta_ticks[cta, _STORED_AT] = now
        following = cta + n_slots if persistent else started
        if following >= n_ctas:
            active[sm] -= 1
            continue
        started += 1
        of_slot[i], at_slab[i] = following, 0
        cta_ticks[following, _STARTED] = now
        if persistent and slabs[following] > 0:
            step[i] = _READY
            _push(heap, waiting, max(now, landed[i, 0]) * n_slots + i)
        else:
            step[i] = _REQUEST
            _push(heap, waiting, (now + start_ticks) * n_slots + i)
        waiting += 1

    for sm in range(sms):
        storing = max(0, stored_at[sm] - sm_free[sm])
        sm_ticks[sm, _EPILOGUE] += storing
        sm_ticks[sm, _TAIL] += end - sm_free[sm] - storing
    return end, chip


def simulate(model: GpuModel, work: GpuWork, l2: L2State) -> GpuRun:
    """Run all CTAs; arguments and returns as `stcsim.machine.gpu.simulate`."""
    sm_ticks = np.zeros((model.sms, _N_TIMES), np.int64)
    compute_ticks = np.zeros(model.resident_ctas + 1, np.int64)
    cta_ticks = np.zeros((len(work.slabs), len(CtaTime)), np.int64)
    p = tuple(int(value) for value in model.vector())
    if len(p) != len(MODEL_FIELDS):
        message = "the engine must take every field of the model"
        raise AssertionError(message)
    end, chip = _run(
        p, work.panel_a, work.panel_b, work.tile_c, work.first, work.slabs, work.slab_ticks, work.shared_milli,
        work.store_ticks, work.bytes_a, work.bytes_b, work.bytes_c, work.written,
        *work.fresh_milli, l2.last_a, l2.last_b, l2.last_c,
        l2.touched_bytes, miss_table(model.edge_milli), sm_ticks, compute_ticks, cta_ticks,
    )  # fmt: skip
    l2.touched_bytes = int(chip[_TOUCHED])
    return GpuRun(
        ticks=int(end),
        sm_ticks=sm_ticks,
        compute_ticks=compute_ticks,
        cta_ticks=cta_ticks,
        l2_bytes=int(chip[_L2_BYTES]),
        dram_read_bytes=int(chip[_READ_BYTES]),
        dram_write_bytes=int(chip[_WRITE_BYTES]),
    )
