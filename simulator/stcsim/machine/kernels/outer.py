"""The fast engine of the outer-product SM: the rules of `stcsim.machine.outer_reference`, event by event.

Place in the data flow: `stcsim.machine.outer_simulator` calls `simulate`
(``engine: numba``).  The sub-cores of an SM meet only at barriers and where a
CTA gives its place to the next, so each runs ahead by whole slabs of one warp
(gto) or single outer products (lrr) and the one that is least far goes next;
`tests/differential` holds the counters equal to the reference's.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from stcsim.machine.kernels._jit import borrowing, inlined, jit
from stcsim.machine.kernels.banks import BANK_BLOCK, send_accesses
from stcsim.machine.outer_record import (
    MILLI,
    N_OUTER_COUNTERS,
    Buffer,
    IntArray,
    OuterCounter,
    OuterModel,
    OuterWork,
)

_NEVER = np.int64(2**62)
_MILLI = np.int64(MILLI)
_FAR = np.int64(2**30)
_WORDS, _BANKED = int(Buffer.WORDS), int(Buffer.BANKED)
_BUSY, _CONFLICT, _ISSUE = (
    int(OuterCounter.TENSOR_BUSY), int(OuterCounter.ACCUMULATOR_CONFLICT), int(OuterCounter.ISSUE),
)  # fmt: skip
_DEPENDENCY, _SHARED, _BARRIER = (
    int(OuterCounter.DEPENDENCY), int(OuterCounter.SHARED_MEMORY), int(OuterCounter.BARRIER),
)  # fmt: skip
_PROLOGUE, _EPILOGUE, _IMBALANCE = (
    int(OuterCounter.PROLOGUE), int(OuterCounter.EPILOGUE), int(OuterCounter.IMBALANCE),
)  # fmt: skip
_CYCLES, _OHMMA, _PRODUCTS = int(OuterCounter.CYCLES), int(OuterCounter.OHMMA), int(OuterCounter.PRODUCTS)
_LOADS, _WAVEFRONTS = int(OuterCounter.LOADS), int(OuterCounter.WAVEFRONTS)
_POPC, _SLABS = int(OuterCounter.POPC), int(OuterCounter.SLABS)

# Columns of the state of a warp: one row for each place of each sub-core.
_AGE, _STARTED, _C_READY, _RELEASED, _ARRIVED, _FINISHED, _DONE = 0, 1, 2, 3, 4, 5, 6
_TILE_M, _TILE_N, _TILE_WORDS, _CURRENT, _NEXT, _STEP, _REPETITION = 7, 8, 9, 10, 11, 12, 13
_READY, _LATE, _NEXT_READY, _NEXT_LATE, _FETCH_AT = 14, 15, 16, 17, 18
_N_WARP = 19

# Columns of the state of a sub-core.
_LOCAL, _ACCOUNTED, _LAST, _PIPE, _PORT, _INTEGER, _FILL, _DRAIN = 0, 1, 2, 3, 4, 5, 6, 7
_FRONT_CYCLE, _FRONT_MILLI, _BUFFER_CYCLE, _BUFFER_WORD, _RING, _ORIGIN = 8, 9, 10, 11, 12, 13
_N_SUB_CORE = 14

# Places of the parameters in the model vector; `_vector` fills it in this order.
_NAMES = (
    "sub_cores", "resident_ctas", "greedy", "m_inst", "n_inst", "k", "k_slab", "slabs_per_stage",
    "interval_cycles", "latency_cycles", "buffer", "words_per_cycle", "accesses_per_cycle", "window", "step_milli",
    "skipped_milli", "popc_cycles", "popc_latency_cycles", "popc_instructions", "shared_issue",
    "load_wavefront_cycles", "load_latency_cycles", "bitmap_wavefronts", "bitmap_loads", "element_bytes",
    "load_c_words_per_cycle", "drain_words_per_cycle", "barrier_base_cycles", "barrier_warp_cycles",
    "grid_a", "grid_b", "slabs",
)  # fmt: skip
(
    _P_SUB_CORES, _P_RESIDENT, _P_GREEDY, _P_M_INST, _P_N_INST, _P_K, _P_K_SLAB, _P_STAGE,
    _P_INTERVAL, _P_LATENCY, _P_BUFFER, _P_WORDS, _P_ACCESSES, _P_WINDOW, _P_STEP,
    _P_SKIPPED, _P_POPC, _P_POPC_LATENCY, _P_POPC_N, _P_SHARED_ISSUE,
    _P_WAVEFRONT, _P_LOAD_LATENCY, _P_BITMAP_WAVEFRONTS, _P_BITMAP_LOADS, _P_BYTES,
    _P_LOAD_C, _P_DRAIN, _P_BARRIER, _P_BARRIER_WARP, _P_GRID_A, _P_GRID_B, _P_SLABS,
) = range(len(_NAMES))  # fmt: skip


@inlined
def _next_slab(p, groups_a, groups_b, tile_m, tile_n, start):
    """Return the first slab from `start` on that has a step with ones of both operands, -1 for none."""
    for slab in range(start, p[_P_SLABS]):
        for k in range(slab * p[_P_K_SLAB], min((slab + 1) * p[_P_K_SLAB], p[_P_K])):
            if groups_a[tile_m, k] and groups_b[tile_n, k]:
                return slab
    return -1


@inlined
def _charge(cores, c, milli, cycle):
    """Keep the front end busy for `milli` thousandths of a cycle, from `cycle` or from when it is free."""
    if cores[c, _FRONT_CYCLE] < cycle:
        cores[c, _FRONT_CYCLE] = cycle
        cores[c, _FRONT_MILLI] = 0
    total = cores[c, _FRONT_MILLI] + milli
    if total >= _MILLI:
        cores[c, _FRONT_CYCLE] += total // _MILLI
        total %= _MILLI
    cores[c, _FRONT_MILLI] = total


@inlined
def _fetch(p, cores, c, out, n_a, n_b, cycle):
    """Load a slab of n_a and n_b non-zeros through the sub-core's share of the port and count its ones."""
    values = -(-n_a * p[_P_BYTES] // 128) + -(-n_b * p[_P_BYTES] // 128)
    bits_at = max(cycle, cores[c, _PORT]) + p[_P_BITMAP_WAVEFRONTS] * p[_P_WAVEFRONT]
    cores[c, _PORT] = bits_at + values * p[_P_WAVEFRONT]
    values_at = cores[c, _PORT] + p[_P_LOAD_LATENCY]
    cores[c, _INTEGER] = max(bits_at + p[_P_LOAD_LATENCY], cores[c, _INTEGER]) + p[_P_POPC]
    counted_at = cores[c, _INTEGER] + p[_P_POPC_LATENCY]
    loads = p[_P_BITMAP_LOADS] + values
    out[c, _LOADS] += loads
    out[c, _WAVEFRONTS] += p[_P_BITMAP_WAVEFRONTS] + values
    out[c, _POPC] += p[_P_POPC_N]
    out[c, _SLABS] += 1
    if p[_P_SHARED_ISSUE]:
        _charge(cores, c, (loads + p[_P_POPC_N]) * _MILLI, cycle)
    return max(values_at, counted_at), np.int64(counted_at > values_at)


@inlined
def _serve(p, cores, c, warps, out, slab_a, slab_b, cycle):
    """Serve the fetches that are due up to `cycle`, by time and then by place."""
    while True:
        w = -1
        at = cycle + 1
        for place in range(warps.shape[1]):
            if warps[c, place, _FETCH_AT] < at:
                w = place
                at = warps[c, place, _FETCH_AT]
        if w < 0:
            return
        warps[c, w, _FETCH_AT] = _NEVER
        tile_m, tile_n = warps[c, w, _TILE_M], warps[c, w, _TILE_N]
        if warps[c, w, _READY] == _NEVER:
            slab = warps[c, w, _CURRENT]
            ready, late = _fetch(p, cores, c, out, slab_a[tile_m, slab], slab_b[tile_n, slab], at)
            warps[c, w, _READY] = ready
            warps[c, w, _LATE] = late
        if warps[c, w, _NEXT] >= 0 and warps[c, w, _NEXT_READY] == _NEVER:
            slab = warps[c, w, _NEXT]
            ready, late = _fetch(p, cores, c, out, slab_a[tile_m, slab], slab_b[tile_n, slab], at)
            warps[c, w, _NEXT_READY] = ready
            warps[c, w, _NEXT_LATE] = late


@inlined
def _buffer_ready(p, cores, c, drained):
    """Cycle from which the accumulator buffer takes another outer product."""
    if p[_P_BUFFER] == _WORDS:
        return cores[c, _BUFFER_CYCLE]
    if p[_P_BUFFER] == _BANKED:
        return drained[c, cores[c, _RING]]
    return np.int64(0)


@inlined
def _reason(warps, c, w, cycle, conflict, issue):
    """Say what a warp waits for in `cycle`; `conflict` and `issue` say so of buffer and front end."""
    if warps[c, w, _FINISHED] >= 0:
        return _EPILOGUE if warps[c, w, _DONE] > cycle else _IMBALANCE
    if warps[c, w, _ARRIVED] >= 0 or warps[c, w, _RELEASED] > cycle:
        return _BARRIER
    if warps[c, w, _C_READY] > cycle:
        return _PROLOGUE
    if warps[c, w, _READY] > cycle:
        return _DEPENDENCY if warps[c, w, _READY] != _NEVER and warps[c, w, _LATE] else _SHARED
    if conflict:
        return _CONFLICT
    return _ISSUE if issue else _IMBALANCE


@inlined
def _account(p, cores, c, warps, drained, out, until):
    """Say what the cycles since the last look went to; nothing has changed in between."""
    cycle = cores[c, _ACCOUNTED]
    if cycle >= until:
        return
    cores[c, _ACCOUNTED] = until
    if cores[c, _PIPE] > cycle:
        out[c, _BUSY] += until - cycle
        return
    conflict = _buffer_ready(p, cores, c, drained) > cycle
    issue = cores[c, _FRONT_CYCLE] > cycle
    cause = _IMBALANCE
    for place in range(warps.shape[1]):
        if warps[c, place, _AGE] >= 0:
            cause = min(cause, _reason(warps, c, place, cycle, conflict, issue))
    out[c, cause] += until - cycle


@inlined
def _first_step(p, groups_a, groups_b, tile_m, tile_n, slab, step):
    """Return the first step of a slab from `step` on with ones of both operands, and the slab's length."""
    begin = slab * p[_P_K_SLAB]
    length = min(p[_P_K_SLAB], p[_P_K] - begin)
    while step < length and not (groups_a[tile_m, begin + step] and groups_b[tile_n, begin + step]):
        step += 1
    return step, length


@inlined
def _finish_slab(p, cores, c, warps, w, groups_a, groups_b, cycle):
    """Begin the warp's next slab, or meet the CTA where a stage ends, or drain; `cycle` is the first one after."""
    stage = (warps[c, w, _CURRENT] + 1) // p[_P_STAGE]
    warps[c, w, _REPETITION] = 0
    if warps[c, w, _NEXT] < 0:
        warps[c, w, _FINISHED] = cycle
        last_sum = cycle - 1 + p[_P_LATENCY]
        if p[_P_DRAIN]:
            cores[c, _DRAIN] = max(last_sum, cores[c, _DRAIN]) + -(-warps[c, w, _TILE_WORDS] // p[_P_DRAIN])
            warps[c, w, _DONE] = cores[c, _DRAIN]
        else:
            warps[c, w, _DONE] = last_sum
        return
    slab, tile_m, tile_n = warps[c, w, _NEXT], warps[c, w, _TILE_M], warps[c, w, _TILE_N]
    warps[c, w, _CURRENT] = slab
    warps[c, w, _READY] = warps[c, w, _NEXT_READY]
    warps[c, w, _LATE] = warps[c, w, _NEXT_LATE]
    warps[c, w, _NEXT] = _next_slab(p, groups_a, groups_b, tile_m, tile_n, slab + 1)
    warps[c, w, _NEXT_READY] = _NEVER
    warps[c, w, _STEP], _ = _first_step(p, groups_a, groups_b, tile_m, tile_n, slab, 0)
    if p[_P_BARRIER] >= 0 and (slab + 1) // p[_P_STAGE] > stage:
        warps[c, w, _ARRIVED] = cycle
    elif warps[c, w, _NEXT] >= 0:
        warps[c, w, _FETCH_AT] = cycle


@borrowing
def _take(p, cores, c, free, drained, bank_of, bits_a, bits_b, i, j, products, cycle, scratch):
    """Send the products of group i of A by group j of B to the accumulator buffer."""
    if p[_P_BUFFER] == _WORDS:
        rate = p[_P_WORDS]
        if cores[c, _BUFFER_CYCLE] < cycle:
            cores[c, _BUFFER_CYCLE] = cycle
            cores[c, _BUFFER_WORD] = 0
        word = cores[c, _BUFFER_WORD] + products
        while word >= rate:
            word -= rate
            cores[c, _BUFFER_CYCLE] += 1
        cores[c, _BUFFER_WORD] = word
    elif p[_P_BUFFER] == _BANKED:
        _take_banked(p, cores, c, free, drained, bank_of, bits_a, bits_b, i, j, cycle, scratch)


@borrowing
def _take_banked(p, cores, c, free, drained, bank_of, bits_a, bits_b, i, j, cycle, scratch):
    """Count the accesses of each bank, product by product, and move the banks on."""
    n_banks = free.shape[1]
    scratch[:] = 0
    one = np.uint64(1)
    row_from, row_to = i * p[_P_M_INST], (i + 1) * p[_P_M_INST]
    col_from, col_to = j * p[_P_N_INST], (j + 1) * p[_P_N_INST]
    n_row = 0
    for row in range(bank_of.shape[0]):
        if (bits_a >> np.uint64(row)) & one:
            if n_row >= row_to:
                break
            if n_row >= row_from:
                n_col = 0
                for col in range(bank_of.shape[1]):
                    if (bits_b >> np.uint64(col)) & one:
                        if n_col >= col_to:
                            break
                        if n_col >= col_from:
                            scratch[bank_of[row, col]] += 1
                        n_col += 1
            n_row += 1
    last = np.int64(0)
    ports = p[_P_ACCESSES]
    for bank in range(n_banks):
        if scratch[bank]:
            free[c, bank] = max(free[c, bank], cycle) + (scratch[bank] + ports - 1) // ports
            last = max(last, free[c, bank])
    ring = cores[c, _RING]
    previous = drained[c, ring - 1 if ring > 0 else p[_P_WINDOW] - 1]
    drained[c, ring] = max(last, previous)
    cores[c, _RING] = ring + 1 if ring + 1 < p[_P_WINDOW] else 0


@borrowing
def _run_slab(
    p, cores, c, warps, w, free, drained, bank_of, out, ones_a, ones_b, groups_a, groups_b, bits_a, bits_b,
    scratch, single,
):  # fmt: skip
    """Issue the warp's outer products from its local time on: to the end of its slab, or one of them."""
    cycle = cores[c, _LOCAL]
    tile_m, tile_n, slab = warps[c, w, _TILE_M], warps[c, w, _TILE_N], warps[c, w, _CURRENT]
    step, repetition = warps[c, w, _STEP], warps[c, w, _REPETITION]
    begin = slab * p[_P_K_SLAB]
    m_inst, n_inst, interval = p[_P_M_INST], p[_P_N_INST], p[_P_INTERVAL]
    grid = p[_P_GRID_A] * p[_P_GRID_B]
    while True:
        k = begin + step
        n_a, n_b = np.int64(ones_a[tile_m, k]), np.int64(ones_b[tile_n, k])
        g_a, g_b = np.int64(groups_a[tile_m, k]), np.int64(groups_b[tile_n, k])
        n = g_a * g_b
        i, j = repetition // g_b, repetition % g_b
        while repetition < n:
            # Blocked cycles before this issue: pipe, then buffer, then front end.
            buffer_at = _buffer_ready(p, cores, c, drained)
            at = max(cycle, cores[c, _PIPE], buffer_at, cores[c, _FRONT_CYCLE])
            if at > cycle:
                busy_to = min(max(cores[c, _PIPE], cycle), at)
                out[c, _BUSY] += busy_to - cycle
                conflict_to = min(max(buffer_at, busy_to), at)
                out[c, _CONFLICT] += conflict_to - busy_to
                out[c, _ISSUE] += at - conflict_to
                cycle = at
            products = min(m_inst, n_a - i * m_inst) * min(n_inst, n_b - j * n_inst)
            _take(
                p, cores, c, free, drained, bank_of, bits_a[tile_m, k], bits_b[tile_n, k], i, j,
                products, cycle, scratch,
            )  # fmt: skip
            out[c, _OHMMA] += 1
            out[c, _PRODUCTS] += products
            cores[c, _PIPE] = cycle + interval
            _charge(cores, c, interval * _MILLI, cycle)
            repetition += 1
            j += 1
            if j == g_b:
                j = 0
                i += 1
            out[c, _BUSY] += 1
            cycle += 1
            if single and repetition < n:
                break
        if repetition < n:
            break
        # The step is done: the front end pays for it and for what it skips.
        repetition = 0
        cost = p[_P_STEP] + (grid - n) * p[_P_SKIPPED]
        following, length = _first_step(p, groups_a, groups_b, tile_m, tile_n, slab, step + 1)
        for passed in range(step + 1, following):
            executed = np.int64(groups_a[tile_m, begin + passed]) * np.int64(groups_b[tile_n, begin + passed])
            cost += (grid - executed) * p[_P_SKIPPED]
        _charge(cores, c, cost, cycle - 1)
        step = following
        if step == length:
            warps[c, w, _STEP] = step
            _finish_slab(p, cores, c, warps, w, groups_a, groups_b, cycle)
            cores[c, _LOCAL] = cycle
            cores[c, _ACCOUNTED] = cycle
            return
        if single:
            break
    warps[c, w, _STEP] = step
    warps[c, w, _REPETITION] = repetition
    cores[c, _LOCAL] = cycle
    cores[c, _ACCOUNTED] = cycle


@borrowing
def _run_slab_streaming(p, cores, c, warps, w, out, ones_a, ones_b, groups_a, groups_b):
    """Do what `_run_slab` does, to the end of the slab, for an interval of 1 and a buffer that is not banked.

    Kept in registers: `backlog`, the words that the buffer still has to add at `cycle`.  Within a step only
    the buffer can delay an outer product: the pipe is free a cycle after each, the front end asks for its
    time between steps.
    """
    cycle = cores[c, _LOCAL]
    front_cycle, front_milli = cores[c, _FRONT_CYCLE], cores[c, _FRONT_MILLI]
    rate = p[_P_WORDS] if p[_P_BUFFER] == _WORDS else np.int64(2**40)
    backlog = max((cores[c, _BUFFER_CYCLE] - cycle) * rate + cores[c, _BUFFER_WORD], 0)
    m_inst, n_inst = p[_P_M_INST], p[_P_N_INST]
    step_milli, skipped_milli = p[_P_STEP], p[_P_SKIPPED]
    grid = p[_P_GRID_A] * p[_P_GRID_B]
    tile_m, tile_n = warps[c, w, _TILE_M], warps[c, w, _TILE_N]
    begin = warps[c, w, _CURRENT] * p[_P_K_SLAB]
    end = min(begin + p[_P_K_SLAB], p[_P_K])
    start = cycle
    conflict = issue = issued = made = np.int64(0)
    for k in range(begin + warps[c, w, _STEP], end):
        g_a, g_b = np.int64(groups_a[tile_m, k]), np.int64(groups_b[tile_n, k])
        n = g_a * g_b
        cost = (grid - n) * skipped_milli
        if n > 0:
            n_a, n_b = np.int64(ones_a[tile_m, k]), np.int64(ones_b[tile_n, k])
            cost += step_milli
            issued += n
            made += n_a * n_b
            # Before the first outer product of the step: the buffer, then the front end.
            waited = np.int64(0)
            while backlog >= rate:
                backlog -= rate
                waited += 1
            conflict += waited
            cycle += waited
            if front_cycle > cycle:
                waited = front_cycle - cycle
                issue += waited
                cycle = front_cycle
                backlog = max(backlog - waited * rate, 0)
            elif front_cycle < cycle:
                front_milli = 0
            last_height = n_a - (g_a - 1) * m_inst
            last_width = n_b - (g_b - 1) * n_inst
            for i in range(g_a):
                height = m_inst if i < g_a - 1 else last_height
                for j in range(g_b):
                    width = n_inst if j < g_b - 1 else last_width
                    while backlog >= rate:
                        backlog -= rate
                        conflict += 1
                        cycle += 1
                        front_milli = 0
                    backlog = max(backlog + height * width - rate, 0)
                    cycle += 1
            front_cycle = cycle
        if cost > 0:
            front_milli += cost
            if front_milli >= _MILLI:
                front_cycle += front_milli // _MILLI
                front_milli %= _MILLI
    out[c, _CONFLICT] += conflict
    out[c, _ISSUE] += issue
    out[c, _BUSY] += cycle - start - conflict - issue
    out[c, _OHMMA] += issued
    out[c, _PRODUCTS] += made
    cores[c, _PIPE] = cycle
    cores[c, _FRONT_CYCLE] = front_cycle
    cores[c, _FRONT_MILLI] = front_milli
    cores[c, _BUFFER_CYCLE] = cycle + backlog // rate
    cores[c, _BUFFER_WORD] = backlog % rate
    cores[c, _LOCAL] = cycle
    cores[c, _ACCOUNTED] = cycle
    warps[c, w, _REPETITION] = 0
    _finish_slab(p, cores, c, warps, w, groups_a, groups_b, cycle)


@borrowing
def _run_slab_banked(p, cores, c, warps, w, near, drained, class_a, class_b, most_a, most_b, out,
                     ones_a, ones_b, groups_a, groups_b):  # fmt: skip
    """Do what `_run_slab` does, to the end of the slab, for an interval of 1 and banks that are a grid.

    A bank is (class of the row, class of the column), so that a group of rows and a group of columns send
    class_a[...] x class_b[...] accesses to each.  Where all banks are idle and none gets two, they need not be
    looked at: whatever issues later finds them idle again.  Elsewhere all of them are, without a branch: a bank
    that gets nothing is not free later than `last`, which never goes back, and to be free at `cycle` or before
    it is the same to all that issue later.

    `near` has when each bank is free, in cycles past the first of the slab that was run last: as 32 bits (see
    `_fits_32_bits`), which is twice as many banks an instruction as whole cycles are.
    """
    cycle = cores[c, _LOCAL]
    front_cycle, front_milli = cores[c, _FRONT_CYCLE], cores[c, _FRONT_MILLI]
    ring, window = cores[c, _RING], p[_P_WINDOW]
    grid = p[_P_GRID_A] * p[_P_GRID_B]
    tile_m, tile_n = warps[c, w, _TILE_M], warps[c, w, _TILE_N]
    begin = warps[c, w, _CURRENT] * p[_P_K_SLAB]
    end = min(begin + p[_P_K_SLAB], p[_P_K])
    n_blocks, n_rows = near.shape[1], near.shape[2]
    last = drained[c, ring - 1 if ring > 0 else window - 1]
    start = cycle
    past = min(start - cores[c, _ORIGIN], _FAR)
    for block in range(n_blocks):
        for row in range(n_rows):
            for lane in range(BANK_BLOCK):
                near[c, block, row, lane] = max(near[c, block, row, lane] - past, 0)
    cores[c, _ORIGIN] = start
    conflict = issue = issued = made = np.int64(0)
    for k in range(begin + warps[c, w, _STEP], end):
        g_a, g_b = np.int64(groups_a[tile_m, k]), np.int64(groups_b[tile_n, k])
        n = g_a * g_b
        cost = (grid - n) * p[_P_SKIPPED]
        if n > 0:
            cost += p[_P_STEP]
            issued += n
            made += np.int64(ones_a[tile_m, k]) * np.int64(ones_b[tile_n, k])
            for i in range(g_a):
                for j in range(g_b):
                    buffer_at = drained[c, ring]
                    if buffer_at > cycle:
                        conflict += buffer_at - cycle
                        cycle = buffer_at
                    if front_cycle > cycle:
                        issue += front_cycle - cycle
                        cycle = front_cycle
                    elif front_cycle < cycle:
                        front_milli = 0
                    most = np.int64(most_a[tile_m, k, i]) * np.int64(most_b[tile_n, k, j])
                    if last <= cycle and (most == 1 or window == 1):
                        last = cycle + most
                    else:
                        now = np.int32(cycle - start)
                        rows_at = ((tile_m * class_a.shape[1] + k) * class_a.shape[2] + i) * n_rows
                        columns_at = ((tile_n * class_b.shape[1] + k) * class_b.shape[2] + j) * n_blocks
                        for block in range(n_blocks):
                            latest = send_accesses(
                                near, (c * n_blocks + block) * n_rows * BANK_BLOCK, n_rows,
                                class_a, rows_at, class_b, (columns_at + block) * BANK_BLOCK, now,
                            )  # fmt: skip
                            last = max(last, start + latest)
                    drained[c, ring] = last
                    ring += 1
                    if ring == window:
                        ring = 0
                    cycle += 1
                    front_cycle = cycle
        if cost > 0:
            front_milli += cost
            if front_milli >= _MILLI:
                front_cycle += front_milli // _MILLI
                front_milli %= _MILLI
    out[c, _CONFLICT] += conflict
    out[c, _ISSUE] += issue
    out[c, _BUSY] += cycle - start - conflict - issue
    out[c, _OHMMA] += issued
    out[c, _PRODUCTS] += made
    cores[c, _PIPE] = cycle
    cores[c, _FRONT_CYCLE] = front_cycle
    cores[c, _FRONT_MILLI] = front_milli
    cores[c, _RING] = ring
    cores[c, _LOCAL] = cycle
    cores[c, _ACCOUNTED] = cycle
    warps[c, w, _REPETITION] = 0
    _finish_slab(p, cores, c, warps, w, groups_a, groups_b, cycle)


@borrowing
def _decide(
    p, cores, c, warps, free, drained, bank_of, out, ones_a, ones_b, groups_a, groups_b, slab_a, slab_b,
    bits_a, bits_b, scratch, near, class_a, class_b, most_a, most_b,
):  # fmt: skip
    """Go on from a sub-core's local time: issue, or find the next cycle in which something changes."""
    cycle = cores[c, _LOCAL]
    _account(p, cores, c, warps, drained, out, cycle)
    _serve(p, cores, c, warps, out, slab_a, slab_b, cycle)
    n = warps.shape[1]
    buffer_at = _buffer_ready(p, cores, c, drained)
    open_at = max(cores[c, _PIPE], buffer_at, cores[c, _FRONT_CYCLE])
    following = _NEVER
    if cores[c, _PIPE] > cycle:
        following = min(following, cores[c, _PIPE])
    if buffer_at > cycle:
        following = min(following, buffer_at)
    if cores[c, _FRONT_CYCLE] > cycle:
        following = min(following, cores[c, _FRONT_CYCLE])
    chosen = -1
    w = cores[c, _LAST] if p[_P_GREEDY] else cores[c, _LAST] + 1
    for _ in range(n):
        if w >= n:
            w = 0
        if warps[c, w, _AGE] >= 0:
            if cycle < warps[c, w, _FETCH_AT] < following:
                following = warps[c, w, _FETCH_AT]
            if warps[c, w, _FINISHED] >= 0:
                if cycle < warps[c, w, _DONE] < following:
                    following = warps[c, w, _DONE]
            elif warps[c, w, _ARRIVED] < 0:
                at = max(warps[c, w, _RELEASED], warps[c, w, _C_READY])
                if cycle < warps[c, w, _RELEASED] < following:
                    following = warps[c, w, _RELEASED]
                if cycle < warps[c, w, _C_READY] < following:
                    following = warps[c, w, _C_READY]
                if cycle < warps[c, w, _READY] < following:
                    following = warps[c, w, _READY]
                if max(at, warps[c, w, _READY]) <= cycle and open_at <= cycle:
                    if not p[_P_GREEDY]:
                        if chosen < 0:
                            chosen = w
                    elif w == cores[c, _LAST]:
                        chosen = w
                        break
                    elif chosen < 0 or warps[c, w, _AGE] < warps[c, chosen, _AGE]:
                        chosen = w
        w += 1
    if chosen < 0:
        cores[c, _LOCAL] = following
        return -1
    cores[c, _LAST] = chosen
    single = not p[_P_GREEDY] or p[_P_SHARED_ISSUE]
    if not single and p[_P_BUFFER] == _BANKED and p[_P_INTERVAL] == 1 and class_a.shape[0] > 0:
        _run_slab_banked(
            p, cores, c, warps, chosen, near, drained, class_a, class_b, most_a, most_b, out,
            ones_a, ones_b, groups_a, groups_b,
        )  # fmt: skip
        return chosen
    if not single and p[_P_BUFFER] != _BANKED and p[_P_INTERVAL] == 1:
        _run_slab_streaming(p, cores, c, warps, chosen, out, ones_a, ones_b, groups_a, groups_b)
        return chosen
    _run_slab(
        p, cores, c, warps, chosen, free, drained, bank_of, out, ones_a, ones_b, groups_a, groups_b, bits_a, bits_b,
        scratch, single,
    )  # fmt: skip
    return chosen


@jit
def _sm(
    p, bank_of, n_banks, cta_warps, first, end, warp_offsets, warp_index, tile_m, tile_n, words,
    ones_a, ones_b, groups_a, groups_b, slab_a, slab_b, bits_a, bits_b, class_a, class_b, most_a, most_b, out,
):  # fmt: skip
    """Run one SM; `out` (sub_cores, counters), zeroed, receives the counters."""
    n_cores = p[_P_SUB_CORES]
    n_slots = p[_P_RESIDENT]
    n_places = -(-n_slots * cta_warps // n_cores)
    warps = np.zeros((n_cores, n_places, _N_WARP), np.int64)
    warps[:, :, _AGE] = -1
    warps[:, :, _FETCH_AT] = _NEVER
    cores = np.zeros((n_cores, _N_SUB_CORE), np.int64)
    cores[:, _LOCAL] = _NEVER
    free = np.zeros((n_cores, n_banks), np.int64)
    near = np.zeros((n_cores, class_b.shape[3], class_a.shape[3], BANK_BLOCK), np.int32)
    drained = np.zeros((n_cores, max(p[_P_WINDOW], 1)), np.int64)
    scratch = np.zeros(n_banks, np.int64)
    cta_of = np.full(n_slots, -1, np.int64)
    retire_at = np.full(n_slots, _NEVER, np.int64)
    present = np.zeros(n_slots, np.int64)  # warps of the CTA
    there = np.zeros(n_slots, np.int64)  # of them, those that wait at a barrier or have finished
    next_cta = first
    total = np.int64(0)
    for slot in range(n_slots):
        retire_at[slot] = 0
    while True:
        # The next thing that happens: a CTA that retires, or the sub-core that is least far.
        now = _NEVER
        for slot in range(n_slots):
            now = min(now, retire_at[slot])
        least = 0
        for core in range(1, n_cores):
            if cores[core, _LOCAL] < cores[least, _LOCAL]:
                least = core
        if now <= cores[least, _LOCAL]:
            for core in range(n_cores):
                _account(p, cores, core, warps, drained, out, now)
            for slot in range(n_slots):
                while retire_at[slot] == now:
                    retire_at[slot] = _NEVER
                    if cta_of[slot] >= 0:
                        for w in range(cta_warps):
                            number = slot * cta_warps + w
                            warps[number % n_cores, number // n_cores, _AGE] = -1
                        cta_of[slot] = -1
                    if next_cta == end:
                        break
                    cta = next_cta
                    next_cta += 1
                    cta_of[slot] = cta
                    all_done = now
                    unfinished = 0
                    present[slot] = warp_offsets[cta + 1] - warp_offsets[cta]
                    for i in range(warp_offsets[cta], warp_offsets[cta + 1]):
                        number = slot * cta_warps + warp_index[i]
                        core = cores[number % n_cores]
                        warp = warps[number % n_cores, number // n_cores]
                        warp[_AGE] = i
                        warp[_STARTED] = now
                        warp[_TILE_M] = tile_m[i]
                        warp[_TILE_N] = tile_n[i]
                        warp[_TILE_WORDS] = words[i]
                        warp[_REPETITION] = 0
                        warp[_ARRIVED] = -1
                        warp[_FINISHED] = -1
                        warp[_DONE] = _NEVER
                        warp[_RELEASED] = now
                        warp[_READY] = _NEVER
                        warp[_NEXT_READY] = _NEVER
                        warp[_FETCH_AT] = _NEVER
                        warp[_C_READY] = now
                        if p[_P_LOAD_C]:
                            core[_FILL] = max(now, core[_FILL]) + -(-words[i] // p[_P_LOAD_C])
                            warp[_C_READY] = core[_FILL]
                        warp[_CURRENT] = _next_slab(p, groups_a, groups_b, tile_m[i], tile_n[i], 0)
                        if warp[_CURRENT] < 0:
                            warp[_FINISHED] = warp[_C_READY]
                            warp[_DONE] = warp[_C_READY]
                            if p[_P_DRAIN]:
                                warp[_DONE] += -(-words[i] // p[_P_DRAIN])
                            all_done = max(all_done, warp[_DONE])
                        else:
                            unfinished += 1
                            warp[_FETCH_AT] = now
                            warp[_NEXT] = _next_slab(
                                p, groups_a, groups_b, tile_m[i], tile_n[i], warp[_CURRENT] + 1
                            )
                            warp[_STEP], _ = _first_step(
                                p, groups_a, groups_b, tile_m[i], tile_n[i], warp[_CURRENT], 0
                            )
                    there[slot] = present[slot] - unfinished
                    if unfinished == 0:
                        retire_at[slot] = all_done
            for core in range(n_cores):
                if cores[core, _ACCOUNTED] <= now:
                    cores[core, _LOCAL] = min(cores[core, _LOCAL], now)
            total = now
            if cta_of.max() < 0:
                break
            continue

        place = _decide(
            p, cores, least, warps, free, drained, bank_of, out, ones_a, ones_b,
            groups_a, groups_b, slab_a, slab_b, bits_a, bits_b, scratch, near, class_a, class_b,
            most_a, most_b,
        )  # fmt: skip
        if place < 0 or (warps[least, place, _ARRIVED] < 0 and warps[least, place, _FINISHED] < 0):
            continue
        # A warp has come to a barrier or to its end: is its whole CTA there?
        slot = (place * n_cores + least) // cta_warps
        there[slot] += 1
        if there[slot] < present[slot]:
            continue
        waiting = 0
        stage = _NEVER
        last = np.int64(0)
        done = np.int64(0)
        for number in range(slot * cta_warps, (slot + 1) * cta_warps):
            core, w = number % n_cores, number // n_cores
            if warps[core, w, _AGE] < 0:
                continue
            if warps[core, w, _FINISHED] >= 0:
                last = max(last, warps[core, w, _FINISHED])
                done = max(done, warps[core, w, _DONE])
            else:
                waiting += 1
                last = max(last, warps[core, w, _ARRIVED])
                stage = min(stage, (warps[core, w, _CURRENT] + 1) // p[_P_STAGE])
        if waiting == 0:
            retire_at[slot] = done
            continue
        at = last + p[_P_BARRIER] + p[_P_BARRIER_WARP] * present[slot]
        for number in range(slot * cta_warps, (slot + 1) * cta_warps):
            core, w = number % n_cores, number // n_cores
            if (
                warps[core, w, _AGE] >= 0
                and warps[core, w, _ARRIVED] >= 0
                and (warps[core, w, _CURRENT] + 1) // p[_P_STAGE] == stage
            ):
                warps[core, w, _ARRIVED] = -1
                warps[core, w, _RELEASED] = at
                there[slot] -= 1
                if warps[core, w, _NEXT] >= 0:
                    warps[core, w, _FETCH_AT] = at
                cores[core, _LOCAL] = min(cores[core, _LOCAL], max(at, cores[core, _ACCOUNTED]))

    for core in range(n_cores):
        out[core, _CYCLES] = total


@jit
def _sms(
    p, bank_of, n_banks, cta_warps, offsets, first, end, warp_offsets, warp_index, tile_m, tile_n, words,
    ones_a, ones_b, groups_a, groups_b, slab_a, slab_b, bits_a, bits_b, class_a, class_b, most_a, most_b, out,
):  # fmt: skip
    for sm in range(first, end):
        _sm(
            p, bank_of, n_banks, cta_warps, offsets[sm], offsets[sm + 1], warp_offsets, warp_index, tile_m, tile_n,
            words, ones_a, ones_b, groups_a, groups_b, slab_a, slab_b, bits_a, bits_b,
            class_a, class_b, most_a, most_b, out[sm],
        )  # fmt: skip


def simulate(
    model: OuterModel, work: OuterWork, ones_a: np.ndarray, ones_b: np.ndarray, threads: int = 1
) -> IntArray:
    """Run every SM of `work` and return the counters; twin of `stcsim.machine.outer_reference.simulate`.

    Parameters
    ----------
    model : OuterModel
    work : OuterWork
    ones_a, ones_b : ndarray of uint8, shapes (tiles_m, k) and (tiles_n, k)
        Ones of each bitmap word.
    threads : int
        Threads over which the SMs are spread; the result does not depend on it.

    Returns
    -------
    counters : ndarray of int64, shape (n_sms, sub_cores, N_OUTER_COUNTERS)
    """
    n_sms = len(work.offsets) - 1
    out = np.zeros((n_sms, model.sub_cores, N_OUTER_COUNTERS), np.int64)
    p = np.array([int(getattr(model, name)) for name in _NAMES], np.int64)
    groups_a, groups_b = _groups(ones_a, model.m_inst), _groups(ones_b, model.n_inst)
    slab_a, slab_b = _per_slab(ones_a, model.k_slab), _per_slab(ones_b, model.k_slab)

    class_a, class_b = np.zeros((0, 0, 0, 0), np.uint8), np.zeros((0, 0, 0, 0, BANK_BLOCK), np.uint8)
    classes = bank_classes(model.bank_of)
    if (
        model.buffer == Buffer.BANKED
        and model.accesses_per_cycle == 1
        and classes is not None
        and _fits_32_bits(model)
    ):
        blocks = -(-(int(classes[1].max()) + 1) // BANK_BLOCK)
        class_a = _class_counts(
            work.bits_a, classes[0], model.m_inst, model.grid_a, int(classes[0].max()) + 1
        )
        class_b = _class_counts(work.bits_b, classes[1], model.n_inst, model.grid_b, blocks * BANK_BLOCK)
        class_b = class_b.reshape(*class_b.shape[:3], blocks, BANK_BLOCK)
    most_a, most_b = class_a.max(axis=3, initial=0), class_b.max(axis=(3, 4), initial=0)

    def run(first: int, end: int) -> None:
        _sms(
            p, model.bank_of, model.n_banks, work.warps, work.offsets, first, end, work.warp_offsets, work.warp_index,
            work.tile_m, work.tile_n, work.words, ones_a, ones_b, groups_a, groups_b, slab_a, slab_b,
            work.bits_a, work.bits_b, class_a, class_b, most_a, most_b, out,
        )  # fmt: skip

    if threads <= 1:
        run(0, n_sms)
        return out
    # Small pieces, so that threads whose SMs are light take more of them.
    bounds = np.linspace(0, n_sms, min(n_sms, 8 * threads) + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, bounds[:-1], bounds[1:]))
    return out


def _fits_32_bits(model: OuterModel) -> bool:
    """Say whether all that happens to the banks in one slab, and before it to those in use, is near enough."""
    products = model.m_inst * model.n_inst
    outer_products = model.grid_a * model.grid_b
    front_milli = model.step_milli + outer_products * model.skipped_milli
    step_cycles = outer_products * (products + 1) + -(-front_milli // MILLI)
    return model.k_slab * step_cycles + model.window * products < int(_FAR)


def bank_classes(bank_of: IntArray) -> tuple[IntArray, IntArray] | None:
    """Return the class of each row and of each column if banks are a grid of them, None if they are not.

    Then the sums of a row class and a column class share a bank, and no others do.
    """
    _, rows = np.unique(bank_of[:, 0], return_inverse=True)
    _, columns = np.unique(bank_of[0], return_inverse=True)
    named = rows[:, None] * (columns.max() + 1) + columns[None, :]
    pairs = np.unique(np.stack([bank_of.ravel(), named.ravel()]), axis=1)
    one_to_one = pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1]))
    return (rows.astype(np.int64), columns.astype(np.int64)) if one_to_one else None


@jit
def _count_classes(bits, classes, quantum, out):
    """For each word and each group of `quantum` of its ones, count the ones of each class."""
    one = np.uint64(1)
    for t in range(bits.shape[0]):
        for k in range(bits.shape[1]):
            n = 0
            for i in range(classes.shape[0]):
                if (bits[t, k] >> np.uint64(i)) & one:
                    out[t, k, n // quantum, classes[i]] += 1
                    n += 1


def _class_counts(
    bits: np.ndarray, classes: IntArray, quantum: int, groups: int, n_classes: int
) -> np.ndarray:
    out = np.zeros((*bits.shape, groups, n_classes), np.uint8)
    _count_classes(bits, classes, quantum, out)
    return out


def _groups(ones: np.ndarray, quantum: int) -> np.ndarray:
    return ((ones.astype(np.uint16) + (quantum - 1)) // quantum).astype(np.uint8)


def _per_slab(ones: np.ndarray, k_slab: int) -> IntArray:
    starts = np.arange(0, ones.shape[1], k_slab)
    if not len(starts) or not len(ones):
        return np.zeros((ones.shape[0], 0), np.int64)
    return np.add.reduceat(ones.astype(np.int64), starts, axis=1)
