"""The outer products of one warp along one slab, by the model of the accumulator buffer: three loops, one rule.

Place in the data flow: `stcsim.machine.kernels.outer` chooses the warp and the loop.  `run_slab` does everything;
`run_slab_streaming` and `run_slab_banked` do the same sooner where nothing can come between two outer products.
"""

from __future__ import annotations

import numpy as np

from stcsim.machine.kernels._jit import borrowing, inlined
from stcsim.machine.kernels.banks import BANK_BLOCK, send_accesses
from stcsim.machine.kernels.outer_state import (
    ACCOUNTED,
    BANKED,
    BUFFER_CYCLE,
    BUFFER_WORD,
    BUSY,
    CONFLICT,
    CURRENT,
    FAR,
    FRONT_CYCLE,
    FRONT_MILLI,
    ISSUE,
    LOCAL,
    MILLI_CYCLES,
    OHMMA,
    ORIGIN,
    P_ACCESSES,
    P_BUFFER,
    P_GRID_A,
    P_GRID_B,
    P_INTERVAL,
    P_K,
    P_K_SLAB,
    P_M_INST,
    P_N_INST,
    P_SKIPPED,
    P_STEP,
    P_WINDOW,
    P_WORDS,
    PIPE,
    PRODUCTS,
    REPETITION,
    RING,
    STEP,
    TILE_M,
    TILE_N,
    WORDS,
)
from stcsim.machine.kernels.outer_warp import buffer_ready, charge, finish_slab, first_step


@borrowing
def _take(p, cores, c, free, drained, bank_of, bits_a, bits_b, i, j, products, cycle, scratch):
    """Send the products of group i of A by group j of B to the accumulator buffer."""
    if p[P_BUFFER] == WORDS:
        rate = p[P_WORDS]
        if cores[c, BUFFER_CYCLE] < cycle:
            cores[c, BUFFER_CYCLE] = cycle
            cores[c, BUFFER_WORD] = 0
        word = cores[c, BUFFER_WORD] + products
        while word >= rate:
            word -= rate
            cores[c, BUFFER_CYCLE] += 1
        cores[c, BUFFER_WORD] = word
    elif p[P_BUFFER] == BANKED:
        _take_banked(p, cores, c, free, drained, bank_of, bits_a, bits_b, i, j, cycle, scratch)


@borrowing
def _take_banked(p, cores, c, free, drained, bank_of, bits_a, bits_b, i, j, cycle, scratch):
    """Count the accesses of each bank, product by product, and move the banks on."""
    n_banks = free.shape[1]
    scratch[:] = 0
    one = np.uint64(1)
    row_from, row_to = i * p[P_M_INST], (i + 1) * p[P_M_INST]
    col_from, col_to = j * p[P_N_INST], (j + 1) * p[P_N_INST]
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
    ports = p[P_ACCESSES]
    for bank in range(n_banks):
        if scratch[bank]:
            free[c, bank] = max(free[c, bank], cycle) + (scratch[bank] + ports - 1) // ports
            last = max(last, free[c, bank])
    ring = cores[c, RING]
    previous = drained[c, ring - 1 if ring > 0 else p[P_WINDOW] - 1]
    drained[c, ring] = max(last, previous)
    cores[c, RING] = ring + 1 if ring + 1 < p[P_WINDOW] else 0


@borrowing
def run_slab(
    p, cores, c, warps, w, free, drained, bank_of, out, ones_a, ones_b, groups_a, groups_b, bits_a, bits_b,
    scratch, single,
):  # fmt: skip
    """Issue the warp's outer products from its local time on: to the end of its slab, or one of them."""
    cycle = cores[c, LOCAL]
    tile_m, tile_n, slab = warps[c, w, TILE_M], warps[c, w, TILE_N], warps[c, w, CURRENT]
    step, repetition = warps[c, w, STEP], warps[c, w, REPETITION]
    begin = slab * p[P_K_SLAB]
    m_inst, n_inst, interval = p[P_M_INST], p[P_N_INST], p[P_INTERVAL]
    grid = p[P_GRID_A] * p[P_GRID_B]
    while True:
        k = begin + step
        n_a, n_b = np.int64(ones_a[tile_m, k]), np.int64(ones_b[tile_n, k])
        g_a, g_b = np.int64(groups_a[tile_m, k]), np.int64(groups_b[tile_n, k])
        n = g_a * g_b
        i, j = repetition // g_b, repetition % g_b
        while repetition < n:
            # Blocked cycles before this issue: pipe, then buffer, then front end.
            buffer_at = buffer_ready(p, cores, c, drained)
            at = max(cycle, cores[c, PIPE], buffer_at, cores[c, FRONT_CYCLE])
            if at > cycle:
                busy_to = min(max(cores[c, PIPE], cycle), at)
                out[c, BUSY] += busy_to - cycle
                conflict_to = min(max(buffer_at, busy_to), at)
                out[c, CONFLICT] += conflict_to - busy_to
                out[c, ISSUE] += at - conflict_to
                cycle = at
            products = min(m_inst, n_a - i * m_inst) * min(n_inst, n_b - j * n_inst)
            _take(
                p, cores, c, free, drained, bank_of, bits_a[tile_m, k], bits_b[tile_n, k], i, j,
                products, cycle, scratch,
            )  # fmt: skip
            out[c, OHMMA] += 1
            out[c, PRODUCTS] += products
            cores[c, PIPE] = cycle + interval
            charge(cores, c, interval * MILLI_CYCLES, cycle)
            repetition += 1
            j += 1
            if j == g_b:
                j = 0
                i += 1
            out[c, BUSY] += 1
            cycle += 1
            if single and repetition < n:
                break
        if repetition < n:
            break
        # The step is done: the front end pays for it and for what it skips.
        repetition = 0
        cost = p[P_STEP] + (grid - n) * p[P_SKIPPED]
        following, length = first_step(p, groups_a, groups_b, tile_m, tile_n, slab, step + 1)
        for passed in range(step + 1, following):
            executed = np.int64(groups_a[tile_m, begin + passed]) * np.int64(groups_b[tile_n, begin + passed])
            cost += (grid - executed) * p[P_SKIPPED]
        charge(cores, c, cost, cycle - 1)
        step = following
        if step == length:
            warps[c, w, STEP] = step
            finish_slab(p, cores, c, warps, w, groups_a, groups_b, cycle)
            cores[c, LOCAL] = cycle
            cores[c, ACCOUNTED] = cycle
            return
        if single:
            break
    warps[c, w, STEP] = step
    warps[c, w, REPETITION] = repetition
    cores[c, LOCAL] = cycle
    cores[c, ACCOUNTED] = cycle


@inlined
def _end_slab(
    p, cores, c, warps, w, out, groups_a, groups_b, start, cycle, conflict, issue, issued, made, front_cycle,
    front_milli,
):  # fmt: skip
    """Write down a slab that ran from `start` to `cycle` without a pause but for buffer and front end."""
    out[c, CONFLICT] += conflict
    out[c, ISSUE] += issue
    out[c, BUSY] += cycle - start - conflict - issue
    out[c, OHMMA] += issued
    out[c, PRODUCTS] += made
    cores[c, PIPE] = cycle
    cores[c, FRONT_CYCLE] = front_cycle
    cores[c, FRONT_MILLI] = front_milli
    cores[c, LOCAL] = cycle
    cores[c, ACCOUNTED] = cycle
    warps[c, w, REPETITION] = 0
    finish_slab(p, cores, c, warps, w, groups_a, groups_b, cycle)


@borrowing
def run_slab_streaming(p, cores, c, warps, w, out, ones_a, ones_b, groups_a, groups_b):
    """Do what `run_slab` does, to the end of the slab, for an interval of 1 and a buffer that is not banked.

    Kept in registers: `backlog`, the words that the buffer still has to add at `cycle`.  Within a step only
    the buffer can delay an outer product: the pipe is free a cycle after each, the front end asks for its
    time between steps.
    """
    cycle = cores[c, LOCAL]
    front_cycle, front_milli = cores[c, FRONT_CYCLE], cores[c, FRONT_MILLI]
    rate = p[P_WORDS] if p[P_BUFFER] == WORDS else np.int64(2**40)
    backlog = max((cores[c, BUFFER_CYCLE] - cycle) * rate + cores[c, BUFFER_WORD], 0)
    m_inst, n_inst = p[P_M_INST], p[P_N_INST]
    step_milli, skipped_milli = p[P_STEP], p[P_SKIPPED]
    grid = p[P_GRID_A] * p[P_GRID_B]
    tile_m, tile_n = warps[c, w, TILE_M], warps[c, w, TILE_N]
    begin = warps[c, w, CURRENT] * p[P_K_SLAB]
    end = min(begin + p[P_K_SLAB], p[P_K])
    start = cycle
    conflict = issue = issued = made = np.int64(0)
    for k in range(begin + warps[c, w, STEP], end):
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
            if front_milli >= MILLI_CYCLES:
                front_cycle += front_milli // MILLI_CYCLES
                front_milli %= MILLI_CYCLES
    cores[c, BUFFER_CYCLE] = cycle + backlog // rate
    cores[c, BUFFER_WORD] = backlog % rate
    _end_slab(
        p, cores, c, warps, w, out, groups_a, groups_b, start, cycle, conflict, issue, issued, made,
        front_cycle, front_milli,
    )  # fmt: skip


@borrowing
def run_slab_banked(p, cores, c, warps, w, near, drained, class_a, class_b, most_a, most_b, out,
                     ones_a, ones_b, groups_a, groups_b):  # fmt: skip
    """Do what `run_slab` does, to the end of the slab, for an interval of 1 and banks that are a grid.

    A bank is (class of the row, class of the column), so that a group of rows and a group of columns send
    class_a[...] x class_b[...] accesses to each.  Where all banks are idle and none gets two, they need not be
    looked at: whatever issues later finds them idle again.  Elsewhere all of them are, without a branch: a bank
    that gets nothing is not free later than `last`, which never goes back, and to be free at `cycle` or before
    it is the same to all that issue later.

    `near` has when each bank is free, in cycles past the first of the slab that was run last: as 32 bits (see
    `fits_32_bits`), which is twice as many banks an instruction as whole cycles are.
    """
    cycle = cores[c, LOCAL]
    front_cycle, front_milli = cores[c, FRONT_CYCLE], cores[c, FRONT_MILLI]
    ring, window = cores[c, RING], p[P_WINDOW]
    grid = p[P_GRID_A] * p[P_GRID_B]
    tile_m, tile_n = warps[c, w, TILE_M], warps[c, w, TILE_N]
    begin = warps[c, w, CURRENT] * p[P_K_SLAB]
    end = min(begin + p[P_K_SLAB], p[P_K])
    n_blocks, n_rows = near.shape[1], near.shape[2]
    last = drained[c, ring - 1 if ring > 0 else window - 1]
    start = cycle
    past = min(start - cores[c, ORIGIN], FAR)
    for block in range(n_blocks):
        for row in range(n_rows):
            for lane in range(BANK_BLOCK):
                near[c, block, row, lane] = max(near[c, block, row, lane] - past, 0)
    cores[c, ORIGIN] = start
    conflict = issue = issued = made = np.int64(0)
    for k in range(begin + warps[c, w, STEP], end):
        g_a, g_b = np.int64(groups_a[tile_m, k]), np.int64(groups_b[tile_n, k])
        n = g_a * g_b
        cost = (grid - n) * p[P_SKIPPED]
        if n > 0:
            cost += p[P_STEP]
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
            if front_milli >= MILLI_CYCLES:
                front_cycle += front_milli // MILLI_CYCLES
                front_milli %= MILLI_CYCLES
    cores[c, RING] = ring
    _end_slab(
        p, cores, c, warps, w, out, groups_a, groups_b, start, cycle, conflict, issue, issued, made,
        front_cycle, front_milli,
    )  # fmt: skip
