"""The fast engine of an SM: the rules of `stcsim.machine.sm`, jitted and stepping from event to event.

Place in the data flow: `stcsim.machine.sm_simulator` calls `simulate` (``engine: numba``).  A sub-core is
visited only in cycles in which something can change for it; the cycles between are accounted for at once,
since a condition that held after a visit holds until a time that is known then (`_account`).  Once the whole
state of the SM comes back, whole periods are skipped; that is exact, and `tests/differential` compares with
the run that skips nothing.

State lies in two arrays, so that it can be compared and moved in time as a whole: `times` holds cycles, of
which those in the past are all alike; `plain` holds everything else.  `_run` names the views into them.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from stcsim.machine.kernels._jit import jit
from stcsim.machine.sm_record import (
    CAUSES,
    N_BARRIERS,
    N_CAUSES,
    NO_WINDOW,
    Cause,
    Column,
    EventColumn,
    IntArray,
    Kind,
    Policy,
    SmModel,
    SmRun,
    Window,
)

_NEVER = np.int64(2**62)
_FAR = np.int64(2**61)  # more than this is "not known yet", wherever a skip has moved it

_INTEGER, _MMA, _LOAD, _STORE, _COPY = (
    int(Kind.INTEGER), int(Kind.MMA), int(Kind.LOAD), int(Kind.STORE), int(Kind.COPY),
)  # fmt: skip
_COMMIT, _WAIT_GROUPS, _BARRIER, _BRANCH = (
    int(Kind.COMMIT), int(Kind.WAIT_GROUPS), int(Kind.BARRIER), int(Kind.BRANCH),
)  # fmt: skip
_KIND, _OPCODE, _STALL, _WRITE, _READ, _MASK, _INTERVAL, _LATENCY = (
    int(Column.KIND), int(Column.OPCODE), int(Column.STALL), int(Column.WRITE_BARRIER), int(Column.READ_BARRIER),
    int(Column.WAIT_MASK), int(Column.INTERVAL), int(Column.LATENCY),
)  # fmt: skip
_PIPE, _PORT, _SLOTS, _SLOT_COST, _PENDING, _BANK, _TARGET = (
    int(Column.PIPE), int(Column.PORT), int(Column.SLOTS), int(Column.SLOT_COST), int(Column.PENDING),
    int(Column.BANK), int(Column.TARGET),
)  # fmt: skip
_GTO, _LRR = int(Policy.GTO), int(Policy.LRR)
_BUSY, _ISSUE, _OPERAND, _DEPENDENCY, _BRANCHING = (
    CAUSES.index(Cause.TENSOR_BUSY), CAUSES.index(Cause.ISSUE), CAUSES.index(Cause.OPERAND_FETCH),
    CAUSES.index(Cause.DEPENDENCY), CAUSES.index(Cause.BRANCH),
)  # fmt: skip
_PIPES, _QUEUE, _SHARED, _L2, _AT_BARRIER, _IDLE = (
    CAUSES.index(Cause.INTEGER), CAUSES.index(Cause.MEMORY_QUEUE), CAUSES.index(Cause.SHARED_MEMORY),
    CAUSES.index(Cause.L2), CAUSES.index(Cause.BARRIER), CAUSES.index(Cause.IDLE),
)  # fmt: skip
_N_CAUSES, _N_BARRIERS = int(N_CAUSES), int(N_BARRIERS)
_RESULT_HOLD, _READ_HOLD, _LOAD_HOLD, _COPY_HOLD, _N_HOLDS = (
    0,
    1,
    2,
    3,
    4,
)  # what a scoreboard counter is held for
_E_ISSUE, _E_EXECUTE, _E_WRITE_BACK, _E_SUB_CORE, _E_WARP, _E_CTA, _E_ROW = (
    int(EventColumn.ISSUE), int(EventColumn.EXECUTE), int(EventColumn.WRITE_BACK), int(EventColumn.SUB_CORE),
    int(EventColumn.WARP), int(EventColumn.CTA), int(EventColumn.ROW),
)  # fmt: skip


@jit
def _account(s, ends, start, end, causes):
    """Give cycles [start, end) of sub-core s to causes; cause c holds from `start` until ``ends[s, c]``."""
    for cause in range(_IDLE):
        if ends[s, cause] > start:
            until = min(ends[s, cause], end)
            causes[s, cause] += until - start
            start = until
            if start == end:
                return
    causes[s, _IDLE] += end - start


@jit
def _groups_complete_at(w, pending, n_ring, group, group_left, group_time, old_left, old_time):
    """When at most `pending` groups of warp w are pending, as far as known."""
    if old_left[w] > 0:
        return _NEVER
    at = old_time[w]
    for g in range(max(group[w] - n_ring + 1, 0), group[w] - pending):
        if group_left[w, g % n_ring] > 0:
            return _NEVER
        at = max(at, group_time[w, g % n_ring])
    return at


@jit
def _next_request(r_count, r_time, return_free, before_tags, past_tags, port_free):
    """When the shared port can take the next request, as far as known."""
    at = _NEVER
    for s in range(r_count.shape[0]):
        if r_count[s] > 0 and before_tags[s] == 0:
            at = min(at, max(r_time[s, 0], return_free[s], past_tags[s]))
    return max(at, port_free)


@jit
def _retires_at(p, warps_per_cta, finished, in_flight, results, cycle):
    """When the CTA on place p retires, as far as known after this cycle's retirements."""
    at = cycle + 1
    for w in range(p * warps_per_cta, (p + 1) * warps_per_cta):
        if not finished[w] or in_flight[w] > 0:
            return _NEVER
        at = max(at, results[w])
    return at


@jit
def _same_state(saved_times, times, saved_plain, plain, cycle):
    """Whether the state is the saved one, times counted from `cycle` and past ones all alike."""
    for i in range(plain.shape[0]):
        if plain[i] != saved_plain[i]:
            return False
    for i in range(times.shape[0]):
        if saved_times[i] != _FAR if times[i] >= _FAR else saved_times[i] != max(times[i] - cycle, 0):
            return False
    return True


@jit
def _save_state(saved_times, times, saved_plain, plain, cycle):
    saved_plain[:] = plain
    for i in range(times.shape[0]):
        saved_times[i] = _FAR if times[i] >= _FAR else max(times[i] - cycle, 0)


@jit
def _run(
    program, machine, iterations, warps_per_cta, resident_ctas, n_ctas, skipping, starts, window_start, window_length,
    events, causes, issued,
):  # fmt: skip
    """Run one SM; arguments as in `SmModel`; zeroed `starts`, `events`, `causes` and `issued` receive the results.

    Returns
    -------
    cycles, n_events : int
        A negative count of cycles: nothing can ever happen again although CTAs are left.
    """
    (
        n_sub_cores, policy, branch_cycles, delay_period, delay_cycles, queue_depth, queue_latency, slot_gap,
        slot_gap_fed, fed_window, store_gap, max_requests, return_gap, load_latency, read_release, copy_to_tags,
        max_tags, copy_release, copy_latency, commit_latency, barrier_base, barrier_per_warp, n_pipes,
    ) = machine  # fmt: skip
    n_rows = program.shape[0]
    n_warps = resident_ctas * warps_per_cta
    n_local = (n_warps + n_sub_cores - 1) // n_sub_cores
    n_starts = starts.shape[1]
    n_ring = np.int64(2)
    for row in range(n_rows):
        if program[row, _KIND] == _WAIT_GROUPS:
            n_ring = max(n_ring, program[row, _PENDING] + 2)

    # -- state: times ----------------------------------------------------------------------------------
    holds = _N_BARRIERS * _N_HOLDS
    times = np.zeros(
        n_warps * (5 + holds + n_ring) + n_sub_cores * (9 + n_pipes + queue_depth + max_requests + _N_CAUSES)
        + max_tags + resident_ctas + 4,
        np.int64,
    )  # fmt: skip
    o = 0
    stalled = times[o : o + n_warps]
    o += n_warps
    fetching = times[o : o + n_warps]
    o += n_warps
    at_barrier = times[o : o + n_warps]
    o += n_warps
    results = times[o : o + n_warps]
    o += n_warps
    old_time = times[o : o + n_warps]
    o += n_warps
    held_until = times[o : o + n_warps * holds].reshape(n_warps, holds)
    o += n_warps * holds
    group_time = times[o : o + n_warps * n_ring].reshape(n_warps, n_ring)
    o += n_warps * n_ring
    issue_blocked = times[o : o + n_sub_cores]
    o += n_sub_cores
    tensor_busy = times[o : o + n_sub_cores]
    o += n_sub_cores
    tensor_free = times[o : o + n_sub_cores]
    o += n_sub_cores
    fed = times[o : o + n_sub_cores]
    o += n_sub_cores
    next_slot = times[o : o + n_sub_cores]
    o += n_sub_cores
    return_free = times[o : o + n_sub_cores]
    o += n_sub_cores
    past_tags = times[o : o + n_sub_cores]
    o += n_sub_cores
    wake = times[o : o + n_sub_cores]
    o += n_sub_cores
    accounted = times[o : o + n_sub_cores]
    o += n_sub_cores
    pipe_free = times[o : o + n_sub_cores * n_pipes].reshape(n_sub_cores, n_pipes)
    o += n_sub_cores * n_pipes
    q_time = times[o : o + n_sub_cores * queue_depth].reshape(n_sub_cores, queue_depth)
    o += n_sub_cores * queue_depth
    r_time = times[o : o + n_sub_cores * max_requests].reshape(n_sub_cores, max_requests)
    o += n_sub_cores * max_requests
    ends = times[o : o + n_sub_cores * _N_CAUSES].reshape(n_sub_cores, _N_CAUSES)
    o += n_sub_cores * _N_CAUSES
    t_time = times[o : o + max_tags]
    o += max_tags
    retires = times[o : o + resident_ctas]
    o += resident_ctas
    port_free, tags_free, port_wake, tag_wake = np.int64(0), np.int64(0), _NEVER, _NEVER
    chip = times[o : o + 4]  # the four above, when the state is compared or moved

    # -- state: everything else ------------------------------------------------------------------------
    plain = np.zeros(
        n_warps * (5 + holds + n_ring) + n_sub_cores * (8 + 3 * (queue_depth + max_requests)) + 3 * max_tags + 2
        + resident_ctas,
        np.int64,
    )  # fmt: skip
    o = 0
    at = plain[o : o + n_warps]
    o += n_warps
    finished = plain[o : o + n_warps]
    o += n_warps
    in_flight = plain[o : o + n_warps]
    o += n_warps
    old_left = plain[o : o + n_warps]
    o += n_warps
    ring_phase = plain[o : o + n_warps]
    o += n_warps
    held = plain[o : o + n_warps * holds].reshape(n_warps, holds)
    o += n_warps * holds
    group_left = plain[o : o + n_warps * n_ring].reshape(n_warps, n_ring)
    o += n_warps * n_ring
    last = plain[o : o + n_sub_cores]
    o += n_sub_cores
    slot_cost = plain[o : o + n_sub_cores]
    o += n_sub_cores
    beside_mma = plain[o : o + n_sub_cores]
    o += n_sub_cores
    q_count = plain[o : o + n_sub_cores]
    o += n_sub_cores
    slots_taken = plain[o : o + n_sub_cores]
    o += n_sub_cores
    r_count = plain[o : o + n_sub_cores]
    o += n_sub_cores
    before_tags = plain[o : o + n_sub_cores]
    o += n_sub_cores
    wants_tags = plain[o : o + n_sub_cores]
    o += n_sub_cores
    q_row = plain[o : o + n_sub_cores * queue_depth].reshape(n_sub_cores, queue_depth)
    o += n_sub_cores * queue_depth
    q_warp = plain[o : o + n_sub_cores * queue_depth].reshape(n_sub_cores, queue_depth)
    o += n_sub_cores * queue_depth
    q_age = plain[o : o + n_sub_cores * queue_depth].reshape(n_sub_cores, queue_depth)
    o += n_sub_cores * queue_depth
    r_row = plain[o : o + n_sub_cores * max_requests].reshape(n_sub_cores, max_requests)
    o += n_sub_cores * max_requests
    r_warp = plain[o : o + n_sub_cores * max_requests].reshape(n_sub_cores, max_requests)
    o += n_sub_cores * max_requests
    r_age = plain[o : o + n_sub_cores * max_requests].reshape(n_sub_cores, max_requests)
    o += n_sub_cores * max_requests
    t_row = plain[o : o + max_tags]
    o += max_tags
    t_warp = plain[o : o + max_tags]
    o += max_tags
    t_age = plain[o : o + max_tags]
    o += max_tags
    resident = plain[o : o + resident_ctas]
    o += resident_ctas
    small = plain[o : o + 2]  # port_turn and t_count, when the state is compared
    port_turn, t_count = np.int64(0), np.int64(0)

    # -- not part of the state that is compared --------------------------------------------------------
    iteration = np.zeros(n_warps, np.int64)
    group = np.zeros(n_warps, np.int64)  # number of the warp's open group
    cta_of = np.zeros(n_warps, np.int64)
    q_group = np.zeros((n_sub_cores, queue_depth), np.int64)
    t_group = np.zeros(max_tags, np.int64)
    q_event = np.full((n_sub_cores, queue_depth), -1, np.int64)
    r_event = np.full((n_sub_cores, max_requests), -1, np.int64)
    t_event = np.full(max_tags, -1, np.int64)
    barrier_event = np.full(n_warps, -1, np.int64)
    place_of = np.arange(n_warps) // warps_per_cta
    local_of = np.arange(n_warps) // n_sub_cores
    n_events = 0
    saved_times = np.zeros(times.shape[0] if skipping else 0, np.int64)
    saved_plain = np.zeros(plain.shape[0] if skipping else 0, np.int64)
    saved_iteration = np.zeros(n_warps, np.int64)
    saved_causes = np.zeros(causes.shape, np.int64)
    saved_issued = np.zeros(issued.shape, np.int64)
    saved_cycle = np.int64(-1)
    saved_started = np.int64(-1)
    n_compared, next_save = 0, 1
    n_started = np.int64(0)
    n_resident = 0
    cycle = np.int64(0)
    last[:] = -1
    wake[:] = _NEVER
    retire_wake = np.int64(0)

    while True:
        # CTAs retire, and the next ones take their places.
        if retire_wake <= cycle:
            retire_wake = _NEVER
            for p in range(resident_ctas):
                if retires[p] <= cycle:
                    if resident[p]:
                        resident[p] = 0
                        n_resident -= 1
                    retires[p] = _NEVER
                    if n_started < n_ctas:
                        resident[p] = 1
                        n_resident += 1
                        for w in range(p * warps_per_cta, (p + 1) * warps_per_cta):
                            at[w] = 0
                            iteration[w] = 0
                            finished[w] = 0
                            cta_of[w] = n_started
                            stalled[w] = 0
                            fetching[w] = 0
                            at_barrier[w] = 0
                            results[w] = 0
                            in_flight[w] = 0
                            group[w] = 0
                            ring_phase[w] = 0
                            old_left[w] = 0
                            old_time[w] = 0
                            barrier_event[w] = -1
                            for i in range(holds):
                                held[w, i] = 0
                                held_until[w, i] = 0
                            for i in range(n_ring):
                                group_left[w, i] = 0
                                group_time[w, i] = 0
                        n_started += 1
                    for s in range(n_sub_cores):
                        wake[s] = min(wake[s], cycle)
                retire_wake = min(retire_wake, retires[p])
            if n_resident == 0:
                break

        # Tag stage.
        port_changed = False
        if tag_wake <= cycle:
            row, w = t_row[0], t_warp[0]
            s = w % n_sub_cores
            tags_free = cycle + program[row, _PORT]
            landed = tags_free + copy_latency
            before_tags[s] -= 1
            past_tags[s] = tags_free
            in_flight[w] -= 1
            results[w] = max(results[w], landed)
            g = t_group[0]
            if g > group[w] - n_ring:
                group_left[w, g % n_ring] -= 1
                group_time[w, g % n_ring] = max(group_time[w, g % n_ring], landed)
            else:
                old_left[w] -= 1
                old_time[w] = max(old_time[w], landed)
            if program[row, _WRITE] >= 0:
                h = program[row, _WRITE] * _N_HOLDS + _COPY_HOLD
                held[w, h] -= 1
                held_until[w, h] = max(held_until[w, h], landed)
            if t_event[0] >= 0:
                events[t_event[0], _E_EXECUTE] = cycle
                events[t_event[0], _E_WRITE_BACK] = landed
            t_count -= 1
            for i in range(t_count):
                t_row[i], t_warp[i], t_age[i], t_time[i] = (
                    t_row[i + 1],
                    t_warp[i + 1],
                    t_age[i + 1],
                    t_time[i + 1],
                )
                t_group[i], t_event[i] = t_group[i + 1], t_event[i + 1]
            t_row[t_count], t_warp[t_count], t_age[t_count], t_time[t_count] = 0, 0, 0, 0
            tag_wake = max(tags_free, t_time[0], cycle + 1) if t_count > 0 else _NEVER
            wake[s] = cycle
            for other in range(n_sub_cores):
                if wants_tags[other]:
                    wake[other] = cycle
            if finished[w]:
                p = w // warps_per_cta
                retires[p] = _retires_at(p, warps_per_cta, finished, in_flight, results, cycle)
                retire_wake = min(retire_wake, retires[p])
            port_wake = _next_request(r_count, r_time, return_free, before_tags, past_tags, port_free)

        # Shared port.
        if port_wake <= cycle:
            s = -1
            oldest = _NEVER
            for i in range(n_sub_cores):
                c = (port_turn + i) % n_sub_cores
                if (
                    r_count[c] > 0 and before_tags[c] == 0 and r_time[c, 0] < oldest
                    and r_time[c, 0] <= cycle and return_free[c] <= cycle and past_tags[c] <= cycle
                ):  # fmt: skip
                    s = c
                    oldest = r_time[c, 0]
            row, w = r_row[s, 0], r_warp[s, 0]
            port_turn = (s + 1) % n_sub_cores
            port_free = cycle + program[row, _PORT]
            return_free[s] = cycle + return_gap * program[row, _PORT]
            done = return_free[s]
            if program[row, _KIND] == _LOAD:
                done += load_latency
            in_flight[w] -= 1
            results[w] = max(results[w], done)
            if program[row, _WRITE] >= 0:
                h = program[row, _WRITE] * _N_HOLDS + _LOAD_HOLD
                held[w, h] -= 1
                held_until[w, h] = max(held_until[w, h], done)
            if r_event[s, 0] >= 0:
                events[r_event[s, 0], _E_EXECUTE] = cycle
                events[r_event[s, 0], _E_WRITE_BACK] = done
            r_count[s] -= 1
            n = r_count[s]
            for i in range(n):
                r_row[s, i], r_warp[s, i], r_time[s, i] = r_row[s, i + 1], r_warp[s, i + 1], r_time[s, i + 1]
                r_event[s, i] = r_event[s, i + 1]
            r_row[s, n], r_warp[s, n], r_time[s, n] = 0, 0, 0
            wake[s] = cycle
            if finished[w]:
                p = w // warps_per_cta
                retires[p] = _retires_at(p, warps_per_cta, finished, in_flight, results, cycle)
                retire_wake = min(retire_wake, retires[p])
            port_changed = True

        comes_round = False
        for s in range(n_sub_cores):
            if wake[s] > cycle:
                continue
            if accounted[s] < cycle:
                _account(s, ends, accounted[s], cycle, causes)

            # Operand slot of the oldest memory instruction; then it goes on, if there is room.
            if q_count[s] > 0:
                row = q_row[s, 0]
                kind = program[row, _KIND]
                if (
                    slots_taken[s] < program[row, _SLOTS] and q_time[s, 0] <= cycle and next_slot[s] <= cycle
                    and tensor_busy[s] <= cycle
                ):  # fmt: skip
                    slots_taken[s] += 1
                    gap = slot_gap
                    if kind == _COPY:
                        if fed[s] > cycle or tensor_free[s] > cycle:
                            gap = slot_gap_fed
                    elif kind == _STORE and slots_taken[s] == program[row, _SLOTS]:
                        gap = store_gap
                    next_slot[s] = cycle + gap
                    tensor_free[s] = max(tensor_free[s], cycle) + slot_cost[s]
                if slots_taken[s] == program[row, _SLOTS]:
                    w = q_warp[s, 0]
                    leaves = False
                    released = np.int64(0)
                    if kind == _COPY:
                        leaves = t_count < max_tags
                        wants_tags[s] = 0 if leaves else 1
                        if leaves:
                            t_row[t_count], t_warp[t_count], t_age[t_count] = row, w, q_age[s, 0]
                            t_time[t_count] = cycle + copy_to_tags
                            t_group[t_count], t_event[t_count] = q_group[s, 0], q_event[s, 0]
                            if t_count == 0:
                                tag_wake = max(tags_free, t_time[0], cycle + 1)
                            t_count += 1
                            before_tags[s] += 1
                            released = cycle + copy_release
                            port_changed = True
                    elif r_count[s] < max_requests:
                        leaves = True
                        n = r_count[s]
                        r_row[s, n], r_warp[s, n], r_time[s, n] = row, w, cycle + slot_gap
                        r_event[s, n] = q_event[s, 0]
                        r_count[s] += 1
                        released = cycle + slot_gap + read_release
                        port_changed = True
                    if leaves:
                        if program[row, _READ] >= 0:
                            h = program[row, _READ] * _N_HOLDS + _READ_HOLD
                            held[w, h] -= 1
                            held_until[w, h] = max(held_until[w, h], released)
                        q_count[s] -= 1
                        slots_taken[s] = 0
                        n = q_count[s]
                        for i in range(n):
                            q_row[s, i], q_warp[s, i], q_age[s, i] = (
                                q_row[s, i + 1],
                                q_warp[s, i + 1],
                                q_age[s, i + 1],
                            )
                            q_time[s, i] = q_time[s, i + 1]
                            q_group[s, i], q_event[s, i] = q_group[s, i + 1], q_event[s, i + 1]
                        q_row[s, n], q_warp[s, n], q_age[s, n], q_time[s, n] = 0, 0, 0, 0

            # Which warp issues?
            chosen = -1
            best = _NEVER
            if issue_blocked[s] <= cycle:
                for w in range(s, n_warps, n_sub_cores):
                    if finished[w] or stalled[w] > cycle or fetching[w] > cycle or not resident[place_of[w]]:
                        continue
                    row = at[w]
                    kind = program[row, _KIND]
                    if kind == _MMA:
                        if tensor_free[s] > cycle:
                            continue
                    elif at_barrier[w] > cycle:
                        continue
                    elif kind in (_LOAD, _STORE, _COPY):
                        if q_count[s] == queue_depth:
                            continue
                    elif kind == _WAIT_GROUPS and _groups_complete_at(
                        w, program[row, _PENDING], n_ring, group, group_left, group_time, old_left, old_time
                    ) > cycle:  # fmt: skip
                        continue
                    pipe = program[row, _PIPE]
                    if pipe >= 0 and pipe_free[s, pipe] > cycle:
                        continue
                    mask = program[row, _MASK]
                    h = 0
                    clear = True
                    while mask:
                        if mask & 1 and (
                            held[w, h] > 0 or held[w, h + 1] > 0 or held[w, h + 2] > 0 or held[w, h + 3] > 0
                            or held_until[w, h] > cycle or held_until[w, h + 1] > cycle or held_until[w, h + 2] > cycle
                            or held_until[w, h + 3] > cycle
                        ):  # fmt: skip
                            clear = False
                            break
                        mask >>= 1
                        h += _N_HOLDS
                    if not clear:
                        continue
                    local = local_of[w]
                    if policy == _GTO:
                        rank = -1 if local == last[s] else cta_of[w] * warps_per_cta + w % warps_per_cta
                    elif policy == _LRR:
                        rank = local - last[s] - 1
                    else:
                        rank = local - last[s]
                    if policy != _GTO and rank < 0:
                        rank += n_local + 1
                    if rank < best:
                        best = rank
                        chosen = w

            if chosen >= 0:
                w = chosen
                row = at[w]
                kind = program[row, _KIND]
                event = -1
                if window_start <= cycle < window_start + window_length:
                    event = n_events
                    n_events += 1
                    events[event, _E_ISSUE] = cycle
                    events[event, _E_EXECUTE] = cycle
                    events[event, _E_WRITE_BACK] = cycle + program[row, _LATENCY]
                    events[event, _E_SUB_CORE] = s
                    events[event, _E_WARP] = w % warps_per_cta
                    events[event, _E_CTA] = cta_of[w]
                    events[event, _E_ROW] = row
                last[s] = local_of[w]
                issued[s, program[row, _OPCODE]] += 1
                issue_blocked[s] = cycle + 1 + program[row, _BANK]
                stalled[w] = cycle + program[row, _STALL]
                results[w] = max(results[w], cycle + program[row, _LATENCY])
                is_memory = kind in (_LOAD, _STORE, _COPY)
                write = program[row, _WRITE]
                if write >= 0:
                    if is_memory:
                        held[w, write * _N_HOLDS + (_COPY_HOLD if kind == _COPY else _LOAD_HOLD)] += 1
                    else:
                        h = write * _N_HOLDS + _RESULT_HOLD
                        held_until[w, h] = max(held_until[w, h], cycle + program[row, _LATENCY])
                if kind == _MMA:
                    tensor_busy[s] = cycle + program[row, _INTERVAL]
                    tensor_free[s] = tensor_busy[s]
                    fed[s] = cycle + fed_window
                    slot_cost[s] = program[row, _SLOT_COST]
                elif kind == _INTEGER:
                    if program[row, _PIPE] >= 0:
                        pipe_free[s, program[row, _PIPE]] = cycle + program[row, _INTERVAL]
                    if delay_period > 0:
                        beside_mma[s] += 1
                        if beside_mma[s] == delay_period:
                            beside_mma[s] = 0
                            if tensor_free[s] > cycle:
                                tensor_free[s] += delay_cycles
                elif is_memory:
                    if program[row, _READ] >= 0:
                        held[w, program[row, _READ] * _N_HOLDS + _READ_HOLD] += 1
                    in_flight[w] += 1
                    if kind == _COPY:
                        group_left[w, group[w] % n_ring] += 1
                    n = q_count[s]
                    q_row[s, n], q_warp[s, n], q_age[s, n] = row, w, 0
                    q_time[s, n] = cycle + queue_latency
                    q_group[s, n], q_event[s, n] = group[w], event
                    q_count[s] += 1
                elif kind == _COMMIT:
                    g = group[w] % n_ring
                    group_time[w, g] = max(group_time[w, g], cycle + commit_latency)
                    group[w] += 1
                    g = (
                        group[w] % n_ring
                    )  # the group that stood here is one that no wait can tell from older ones
                    ring_phase[w] = g
                    old_left[w] += group_left[w, g]
                    old_time[w] = max(old_time[w], group_time[w, g])
                    group_left[w, g] = 0
                    group_time[w, g] = 0
                elif kind == _BARRIER:
                    barrier_event[w] = event
                    at_barrier[w] = _NEVER
                    first = w // warps_per_cta * warps_per_cta
                    everybody = True
                    for mate in range(first, first + warps_per_cta):
                        everybody = everybody and at_barrier[mate] >= _FAR
                    if everybody:
                        until = cycle + barrier_base + barrier_per_warp * warps_per_cta
                        for mate in range(first, first + warps_per_cta):
                            at_barrier[mate] = until
                            results[mate] = max(results[mate], until)
                            if barrier_event[mate] >= 0:
                                events[barrier_event[mate], _E_WRITE_BACK] = until
                        for other in range(n_sub_cores):
                            # Sub-cores after this one see the release in this cycle, those before it in the next.
                            wake[other] = min(wake[other], cycle if other > s else cycle + 1)
                at[w] += 1
                if kind == _BRANCH and iteration[w] + 1 < iterations:
                    iteration[w] += 1
                    fetching[w] = cycle + branch_cycles
                    at[w] = program[row, _TARGET]
                    if cta_of[w] < resident_ctas and iteration[w] < n_starts:
                        starts[w, iteration[w]] = max(fetching[w], stalled[w])
                    comes_round = comes_round or w < warps_per_cta
                if at[w] == n_rows:
                    finished[w] = 1
                    p = w // warps_per_cta
                    retires[p] = _retires_at(p, warps_per_cta, finished, in_flight, results, cycle)
                    retire_wake = min(retire_wake, retires[p])
                causes[s, _BUSY if tensor_busy[s] > cycle else _ISSUE] += 1
                accounted[s] = cycle + 1
            else:
                accounted[s] = cycle

            # Until when does each cause hold, and when can something happen here again?
            for cause in range(_N_CAUSES):
                ends[s, cause] = 0
            ends[s, _BUSY] = tensor_busy[s]
            soon = _NEVER
            for w in range(s, n_warps, n_sub_cores):
                if not resident[place_of[w]]:
                    continue
                if finished[w]:
                    ends[s, _DEPENDENCY] = max(
                        ends[s, _DEPENDENCY], _NEVER if in_flight[w] > 0 else results[w]
                    )
                    continue
                row = at[w]
                kind = program[row, _KIND]
                earliest = max(issue_blocked[s], cycle + 1, fetching[w])
                ends[s, _OPERAND] = max(ends[s, _OPERAND], issue_blocked[s])
                ends[s, _BRANCHING] = max(ends[s, _BRANCHING], fetching[w])
                until = stalled[w]
                if program[row, _MASK]:
                    reading, loading, copying = np.int64(0), np.int64(0), np.int64(0)
                    for b in range(_N_BARRIERS):
                        if program[row, _MASK] >> b & 1:
                            h = b * _N_HOLDS
                            until = max(until, _NEVER if held[w, h] > 0 else held_until[w, h])
                            reading = max(reading, _NEVER if held[w, h + 1] > 0 else held_until[w, h + 1])
                            loading = max(loading, _NEVER if held[w, h + 2] > 0 else held_until[w, h + 2])
                            copying = max(copying, _NEVER if held[w, h + 3] > 0 else held_until[w, h + 3])
                    ends[s, _QUEUE] = max(ends[s, _QUEUE], reading)
                    ends[s, _SHARED] = max(ends[s, _SHARED], loading)
                    ends[s, _L2] = max(ends[s, _L2], copying)
                    earliest = max(earliest, reading, loading, copying)
                ends[s, _DEPENDENCY] = max(ends[s, _DEPENDENCY], until)
                earliest = max(earliest, until)
                pipe = program[row, _PIPE]
                if pipe >= 0:
                    ends[s, _PIPES] = max(ends[s, _PIPES], pipe_free[s, pipe])
                    earliest = max(earliest, pipe_free[s, pipe])
                if kind == _MMA:
                    ends[s, _OPERAND] = max(ends[s, _OPERAND], tensor_free[s])
                    earliest = max(earliest, tensor_free[s])
                else:
                    ends[s, _AT_BARRIER] = max(ends[s, _AT_BARRIER], at_barrier[w])
                    earliest = max(earliest, at_barrier[w])
                    if kind == _WAIT_GROUPS:
                        until = _groups_complete_at(
                            w,
                            program[row, _PENDING],
                            n_ring,
                            group,
                            group_left,
                            group_time,
                            old_left,
                            old_time,
                        )
                        ends[s, _L2] = max(ends[s, _L2], until)
                        earliest = max(earliest, until)
                    elif kind in (_LOAD, _STORE, _COPY) and q_count[s] == queue_depth:
                        ends[s, _QUEUE] = _NEVER
                        earliest = _NEVER
                soon = min(soon, earliest)
            if q_count[s] > 0 and slots_taken[s] < program[q_row[s, 0], _SLOTS]:
                soon = min(soon, max(q_time[s, 0], next_slot[s], tensor_busy[s], cycle + 1))
            wake[s] = soon

        if port_changed:
            port_wake = max(
                _next_request(r_count, r_time, return_free, before_tags, past_tags, port_free), cycle + 1
            )

        # Skip whole periods once the state comes back.
        if skipping and comes_round:
            for s in range(n_sub_cores):
                if accounted[s] <= cycle:
                    _account(s, ends, accounted[s], cycle + 1, causes)
                    accounted[s] = cycle + 1
                for i in range(q_count[s]):
                    q_age[s, i] = group[q_warp[s, i]] - q_group[s, i]
                for i in range(max_requests):
                    r_age[s, i] = cycle - r_time[s, i] if i < r_count[s] else 0
            for i in range(t_count):
                t_age[i] = group[t_warp[i]] - t_group[i]
            chip[0], chip[1], chip[2], chip[3] = port_free, tags_free, port_wake, tag_wake
            small[0], small[1] = port_turn, t_count
            n_compared += 1
            if saved_started == n_started and _same_state(saved_times, times, saved_plain, plain, cycle):
                period = cycle - saved_cycle
                n_periods = _NEVER
                for w in range(n_warps):
                    if resident[place_of[w]] and iteration[w] > saved_iteration[w]:
                        left = iterations - 1 - iteration[w]
                        n_periods = min(n_periods, left // (iteration[w] - saved_iteration[w]))
                if 0 < n_periods < _FAR:
                    for w in range(n_warps):
                        iteration[w] += n_periods * (iteration[w] - saved_iteration[w])
                    for s in range(n_sub_cores):
                        for i in range(causes.shape[1]):
                            causes[s, i] += n_periods * (causes[s, i] - saved_causes[s, i])
                        for i in range(issued.shape[1]):
                            issued[s, i] += n_periods * (issued[s, i] - saved_issued[s, i])
                    moved = n_periods * period
                    for i in range(times.shape[0]):
                        times[i] += moved
                    if retire_wake < _FAR:
                        retire_wake += moved
                    port_free, tags_free, port_wake, tag_wake = chip[0], chip[1], chip[2], chip[3]
                    cycle += moved
                saved_started = -1
                n_compared, next_save = 0, 1
            elif n_compared == next_save or saved_started != n_started:
                if saved_started != n_started:
                    n_compared = 1
                next_save = 2 * n_compared
                _save_state(saved_times, times, saved_plain, plain, cycle)
                saved_iteration[:] = iteration
                saved_causes[:] = causes
                saved_issued[:] = issued
                saved_cycle = cycle
                saved_started = n_started

        soon = min(retire_wake, tag_wake, port_wake)
        for s in range(n_sub_cores):
            soon = min(soon, wake[s])
        if soon >= _FAR:
            return np.int64(-1), n_events
        cycle = max(soon, cycle + 1)

    for s in range(n_sub_cores):
        if accounted[s] < cycle:
            _account(s, ends, accounted[s], cycle, causes)
    return cycle, n_events


def simulate(
    model: SmModel,
    ctas: IntArray,
    *,
    window: Window = NO_WINDOW,
    n_starts: int = 0,
    threads: int = 1,
    skipping: bool = True,
) -> list[SmRun]:
    """Run SMs that differ in how many CTAs they get; twin of `stcsim.machine.sm.simulate`.

    Parameters
    ----------
    model : SmModel
    ctas : ndarray of int64
        CTAs of each SM.
    window, n_starts
        As the twin takes them; either of them switches skipping off.
    threads : int
        Threads over which the SMs are spread; the result does not depend on it.
    skipping : bool
        Whether periods are skipped once the state of an SM comes back; the result does not depend on it.

    Returns
    -------
    runs : list of SmRun
    """
    machine = model.machine
    skips = skipping and window.length == 0 and n_starts == 0

    def run(n_ctas: int) -> SmRun:
        starts = np.zeros((model.resident_ctas * model.warps_per_cta, n_starts), np.int64)
        events = np.zeros((window.length * machine.sub_cores, len(EventColumn)), np.int64)
        causes = np.zeros((machine.sub_cores, N_CAUSES), np.int64)
        issued = np.zeros((machine.sub_cores, len(model.mnemonics)), np.int64)
        if n_ctas == 0 or len(model.program) == 0:
            return SmRun(0, causes, issued, starts, events[:0])
        cycles, n_events = _run(
            model.program, tuple(machine.vector().tolist()), model.iterations, model.warps_per_cta, model.resident_ctas,
            n_ctas, skips, starts, window.start, window.length, events, causes, issued,
        )  # fmt: skip
        if cycles < 0:
            message = "an SM program waits for something that never comes"
            raise AssertionError(message)
        return SmRun(int(cycles), causes, issued, starts, events[:n_events])

    if threads <= 1 or len(ctas) == 1:
        return [run(n) for n in ctas.tolist()]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, ctas.tolist()))
