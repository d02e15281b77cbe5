"""The fast engine: the rules of `stcsim.machine.reference`, jitted and stepping from event to event.

Place in the data flow: `stcsim.machine.simulator` calls `simulate` (``engine:
numba``).  It visits only cycles in which something can happen, and issues the
data-dependent repetitions of one warp in one go where no other warp could come
between; `tests/differential` holds its counters equal to the reference's.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from stcsim.machine.kernels._jit import jit
from stcsim.machine.record import N_COUNTERS, ByteArray, Column, Counter, IntArray, Repeat, SubCoreModel, Work

_NEVER = np.int64(2**62)

_OPCODE, _INTERVAL, _LATENCY = int(Column.OPCODE), int(Column.INTERVAL), int(Column.LATENCY)
_DESTINATION, _SOURCE, _REPEAT = int(Column.DESTINATION), int(Column.SOURCE), int(Column.REPEAT)
_OUTER_GRID = int(Repeat.OUTER_GRID)
_CYCLES, _BUSY = int(Counter.CYCLES), int(Counter.TENSOR_BUSY)
_DEPENDENCY, _PRODUCTS = int(Counter.DEPENDENCY), int(Counter.PRODUCTS)
_FIRST_MNEMONIC = int(N_COUNTERS)


@jit
def _repetitions(micro_ops, groups_a, groups_b, op, tile_m, tile_n, iteration):
    if micro_ops[op, _REPEAT] == _OUTER_GRID:
        return np.int64(groups_a[tile_m, iteration]) * np.int64(groups_b[tile_n, iteration])
    return np.int64(1)


@jit
def _sub_core(
    micro_ops, n_slots, iterations, n_places, greedy, ones_a, ones_b, groups_a, groups_b, m_inst, n_inst,
    tile_m, tile_n, out,
):  # fmt: skip
    """Run one sub-core; `out` (zeroed) receives the counters.  Arguments as in `SubCoreModel` and `Work`."""
    n_ops = micro_ops.shape[0]
    n_tiles = tile_m.shape[0]
    age = np.full(n_places, -1, np.int64)  # -1: the place is empty
    row = np.zeros(n_places, np.int64)
    column = np.zeros(n_places, np.int64)
    iteration = np.zeros(n_places, np.int64)
    op = np.zeros(n_places, np.int64)
    repetition = np.zeros(n_places, np.int64)
    finished = np.zeros(n_places, np.bool_)
    last_ready = np.zeros(n_places, np.int64)
    ready_at = np.zeros((n_places, max(n_slots, 1)), np.int64)
    cycle = np.int64(0)
    pipe_free_at = np.int64(0)
    last = 0
    n_taken = 0
    n_live = 0
    next_retirement = cycle  # look at the places at once
    one_just_finished = False

    while True:
        # Retire and refill, places in order; next_retirement bounds how far one warp may run ahead.
        look = one_just_finished or next_retirement <= cycle
        one_just_finished = False
        if look:
            n_live = 0
            next_retirement = _NEVER
        for place in range(n_places if look else 0):
            while True:
                if age[place] >= 0 and finished[place] and last_ready[place] <= cycle:
                    age[place] = -1
                if age[place] >= 0 or n_taken == n_tiles:
                    break
                age[place] = n_taken
                row[place] = tile_m[n_taken]
                column[place] = tile_n[n_taken]
                n_taken += 1
                iteration[place] = 0
                op[place] = 0
                repetition[place] = 0
                last_ready[place] = 0
                ready_at[place, :] = 0
                finished[place] = n_ops == 0 or iterations == 0
                while not finished[place] and not _repetitions(
                    micro_ops, groups_a, groups_b, op[place], row[place], column[place], iteration[place]
                ):
                    op[place] += 1
                    if op[place] == n_ops:
                        op[place] = 0
                        iteration[place] += 1
                        finished[place] = iteration[place] == iterations
            if age[place] >= 0:
                n_live += 1
                if finished[place]:
                    next_retirement = min(next_retirement, last_ready[place])
        if n_live == 0:
            break

        # Choose a warp; next_event is the first cycle in which one could issue.
        chosen = -1
        chosen_age = _NEVER
        next_event = next_retirement
        place = last if greedy else last + 1
        for _ in range(n_places):
            if place >= n_places:
                place = 0
            if age[place] >= 0 and not finished[place]:
                source = micro_ops[op[place], _SOURCE]
                ready = pipe_free_at
                if source >= 0 and ready_at[place, source] > ready:
                    ready = ready_at[place, source]
                if ready > cycle:
                    next_event = min(next_event, ready)
                elif not greedy or place == last:
                    chosen = place
                    break
                elif age[place] < chosen_age:
                    chosen = place
                    chosen_age = age[place]
            place += 1
        if chosen < 0:
            busy = min(max(pipe_free_at - cycle, 0), next_event - cycle)
            out[_BUSY] += busy
            out[_DEPENDENCY] += next_event - cycle - busy
            cycle = next_event
            continue

        place = chosen
        last = place
        this = op[place]
        interval = micro_ops[this, _INTERVAL]
        r, c = row[place], column[place]

        # One body of one repeated instruction without sources, gto: nothing can come between its repetitions.
        if greedy and n_ops == 1 and micro_ops[this, _SOURCE] < 0 and repetition[place] == 0:
            k = iteration[place]
            start = cycle
            n_issued = np.int64(0)
            products = np.int64(0)
            while k < iterations:
                n = np.int64(1)
                if micro_ops[this, _REPEAT] == _OUTER_GRID:
                    n = np.int64(groups_a[r, k]) * np.int64(groups_b[c, k])
                    if cycle + n * interval >= next_retirement:
                        break
                    products += np.int64(ones_a[r, k]) * np.int64(ones_b[c, k])
                elif cycle + interval >= next_retirement:
                    break
                cycle += n * interval
                n_issued += n
                k += 1
            if n_issued > 0:
                out[_FIRST_MNEMONIC + micro_ops[this, _OPCODE]] += n_issued
                out[_PRODUCTS] += products
                pipe_free_at = cycle
                last_issue = cycle - interval
                ready_at[place, micro_ops[this, _DESTINATION]] = last_issue + micro_ops[this, _LATENCY]
                last_ready[place] = last_issue + micro_ops[this, _LATENCY]
                iteration[place] = k
                finished[place] = k == iterations
                # The cycle after the last issue is the next one to look at; the pipe may still be busy then.
                out[_BUSY] += last_issue + 1 - start
                cycle = last_issue + 1
                while not finished[place] and not _repetitions(
                    micro_ops, groups_a, groups_b, this, r, c, iteration[place]
                ):
                    iteration[place] += 1
                    finished[place] = iteration[place] == iterations
                one_just_finished = finished[place]
                continue

        # One issue.
        out[_FIRST_MNEMONIC + micro_ops[this, _OPCODE]] += 1
        if micro_ops[this, _REPEAT] == _OUTER_GRID:
            k = iteration[place]
            n_groups_b = np.int64(groups_b[c, k])
            height = min(m_inst, ones_a[r, k] - (repetition[place] // n_groups_b) * m_inst)
            width = min(n_inst, ones_b[c, k] - (repetition[place] % n_groups_b) * n_inst)
            out[_PRODUCTS] += height * width
        pipe_free_at = cycle + interval
        ready = cycle + micro_ops[this, _LATENCY]
        ready_at[place, micro_ops[this, _DESTINATION]] = ready
        repetition[place] += 1
        while not finished[place] and repetition[place] >= _repetitions(
            micro_ops, groups_a, groups_b, op[place], r, c, iteration[place]
        ):
            repetition[place] = 0
            op[place] += 1
            if op[place] == n_ops:
                op[place] = 0
                iteration[place] += 1
                finished[place] = iteration[place] == iterations
        if finished[place]:
            last_ready[place] = ready_at[place].max()
            one_just_finished = True
        out[_BUSY] += 1
        cycle += 1
    out[_CYCLES] = cycle


@jit
def _sub_cores(
    micro_ops, n_slots, iterations, n_places, greedy, ones_a, ones_b, groups_a, groups_b, m_inst, n_inst,
    offsets, tile_m, tile_n, first, end, out,
):  # fmt: skip
    for s in range(first, end):
        _sub_core(
            micro_ops, n_slots, iterations, n_places, greedy, ones_a, ones_b, groups_a, groups_b, m_inst, n_inst,
            tile_m[offsets[s]:offsets[s + 1]], tile_n[offsets[s]:offsets[s + 1]], out[s],
        )  # fmt: skip


def _groups(ones: ByteArray, quantum: int) -> ByteArray:
    return ((ones.astype(np.uint16) + (quantum - 1)) // quantum).astype(np.uint8)


def simulate(model: SubCoreModel, work: Work, threads: int = 1) -> IntArray:
    """Run every sub-core of `work` and return its counters; twin of `stcsim.machine.reference.simulate`.

    Parameters
    ----------
    model : SubCoreModel
    work : Work
    threads : int
        Threads over which the sub-cores are spread; the result does not depend on it.

    Returns
    -------
    counters : ndarray of int64, shape (n_sub_cores, N_COUNTERS + len(model.mnemonics))
    """
    n_sub_cores = len(work.offsets) - 1
    out = np.zeros((n_sub_cores, N_COUNTERS + len(model.mnemonics)), np.int64)
    groups_a, groups_b = _groups(model.ones_a, model.m_inst), _groups(model.ones_b, model.n_inst)

    def run(first: int, end: int) -> None:
        _sub_cores(
            model.micro_ops, model.n_slots, model.iterations, model.resident_warps, model.greedy,
            model.ones_a, model.ones_b, groups_a, groups_b, model.m_inst, model.n_inst,
            work.offsets, work.tile_m, work.tile_n, first, end, out,
        )  # fmt: skip

    bounds = np.linspace(0, n_sub_cores, max(1, threads) + 1).astype(np.int64).tolist()
    if threads <= 1:
        run(0, n_sub_cores)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, bounds[:-1], bounds[1:]))
    return out
