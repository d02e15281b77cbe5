"""What befalls a warp of an outer-product SM between its outer products: fetches, waits, slabs, barriers, its end.

Place in the data flow: helpers of `stcsim.machine.kernels.outer_slab` and `stcsim.machine.kernels.outer`; the arrays
are laid out in `stcsim.machine.kernels.outer_state`.
"""

from __future__ import annotations

import numpy as np

from stcsim.machine.kernels._jit import inlined
from stcsim.machine.kernels.outer_state import (
    ACCOUNTED,
    AGE,
    ARRIVED,
    BANKED,
    BARRIER,
    BUFFER_CYCLE,
    BUSY,
    C_READY,
    CONFLICT,
    CURRENT,
    DEPENDENCY,
    DONE,
    DRAIN,
    EPILOGUE,
    FETCH_AT,
    FINISHED,
    FRONT_CYCLE,
    FRONT_MILLI,
    IMBALANCE,
    INTEGER,
    ISSUE,
    LATE,
    LOADS,
    MILLI_CYCLES,
    NEVER,
    NEXT,
    NEXT_LATE,
    NEXT_READY,
    P_BARRIER,
    P_BITMAP_LOADS,
    P_BITMAP_WAVEFRONTS,
    P_BUFFER,
    P_BYTES,
    P_DRAIN,
    P_K,
    P_K_SLAB,
    P_LATENCY,
    P_LOAD_LATENCY,
    P_POPC,
    P_POPC_LATENCY,
    P_POPC_N,
    P_SHARED_ISSUE,
    P_SLABS,
    P_STAGE,
    P_WAVEFRONT,
    PIPE,
    POPC,
    PORT,
    PROLOGUE,
    READY,
    RELEASED,
    REPETITION,
    RING,
    SHARED,
    SLABS,
    STEP,
    TILE_M,
    TILE_N,
    TILE_WORDS,
    WAVEFRONTS,
    WORDS,
)


@inlined
def next_slab(p, groups_a, groups_b, tile_m, tile_n, start):
    """Return the first slab from `start` on that has a step with ones of both operands, -1 for none."""
    for slab in range(start, p[P_SLABS]):
        for k in range(slab * p[P_K_SLAB], min((slab + 1) * p[P_K_SLAB], p[P_K])):
            if groups_a[tile_m, k] and groups_b[tile_n, k]:
                return slab
    return -1


@inlined
def first_step(p, groups_a, groups_b, tile_m, tile_n, slab, step):
    """Return the first step of a slab from `step` on with ones of both operands, and the slab's length."""
    begin = slab * p[P_K_SLAB]
    length = min(p[P_K_SLAB], p[P_K] - begin)
    while step < length and not (groups_a[tile_m, begin + step] and groups_b[tile_n, begin + step]):
        step += 1
    return step, length


@inlined
def charge(cores, c, milli, cycle):
    """Keep the front end busy for `milli` thousandths of a cycle, from `cycle` or from when it is free."""
    if cores[c, FRONT_CYCLE] < cycle:
        cores[c, FRONT_CYCLE] = cycle
        cores[c, FRONT_MILLI] = 0
    total = cores[c, FRONT_MILLI] + milli
    if total >= MILLI_CYCLES:
        cores[c, FRONT_CYCLE] += total // MILLI_CYCLES
        total %= MILLI_CYCLES
    cores[c, FRONT_MILLI] = total


@inlined
def _fetch(p, cores, c, out, n_a, n_b, cycle):
    """Load a slab of n_a and n_b non-zeros through the sub-core's share of the port and count its ones."""
    values = -(-n_a * p[P_BYTES] // 128) + -(-n_b * p[P_BYTES] // 128)
    bits_at = max(cycle, cores[c, PORT]) + p[P_BITMAP_WAVEFRONTS] * p[P_WAVEFRONT]
    cores[c, PORT] = bits_at + values * p[P_WAVEFRONT]
    values_at = cores[c, PORT] + p[P_LOAD_LATENCY]
    cores[c, INTEGER] = max(bits_at + p[P_LOAD_LATENCY], cores[c, INTEGER]) + p[P_POPC]
    counted_at = cores[c, INTEGER] + p[P_POPC_LATENCY]
    loads = p[P_BITMAP_LOADS] + values
    out[c, LOADS] += loads
    out[c, WAVEFRONTS] += p[P_BITMAP_WAVEFRONTS] + values
    out[c, POPC] += p[P_POPC_N]
    out[c, SLABS] += 1
    if p[P_SHARED_ISSUE]:
        charge(cores, c, (loads + p[P_POPC_N]) * MILLI_CYCLES, cycle)
    return max(values_at, counted_at), np.int64(counted_at > values_at)


@inlined
def serve(p, cores, c, warps, out, slab_a, slab_b, cycle):
    """Serve the fetches that are due up to `cycle`, by time and then by place."""
    while True:
        w = -1
        at = cycle + 1
        for place in range(warps.shape[1]):
            if warps[c, place, FETCH_AT] < at:
                w = place
                at = warps[c, place, FETCH_AT]
        if w < 0:
            return
        warps[c, w, FETCH_AT] = NEVER
        tile_m, tile_n = warps[c, w, TILE_M], warps[c, w, TILE_N]
        if warps[c, w, READY] == NEVER:
            slab = warps[c, w, CURRENT]
            ready, late = _fetch(p, cores, c, out, slab_a[tile_m, slab], slab_b[tile_n, slab], at)
            warps[c, w, READY] = ready
            warps[c, w, LATE] = late
        if warps[c, w, NEXT] >= 0 and warps[c, w, NEXT_READY] == NEVER:
            slab = warps[c, w, NEXT]
            ready, late = _fetch(p, cores, c, out, slab_a[tile_m, slab], slab_b[tile_n, slab], at)
            warps[c, w, NEXT_READY] = ready
            warps[c, w, NEXT_LATE] = late


@inlined
def buffer_ready(p, cores, c, drained):
    """Cycle from which the accumulator buffer takes another outer product."""
    if p[P_BUFFER] == WORDS:
        return cores[c, BUFFER_CYCLE]
    if p[P_BUFFER] == BANKED:
        return drained[c, cores[c, RING]]
    return np.int64(0)


@inlined
def _reason(warps, c, w, cycle, conflict, issue):
    """Say what a warp waits for in `cycle`; `conflict` and `issue` say so of buffer and front end."""
    if warps[c, w, FINISHED] >= 0:
        return EPILOGUE if warps[c, w, DONE] > cycle else IMBALANCE
    if warps[c, w, ARRIVED] >= 0 or warps[c, w, RELEASED] > cycle:
        return BARRIER
    if warps[c, w, C_READY] > cycle:
        return PROLOGUE
    if warps[c, w, READY] > cycle:
        return DEPENDENCY if warps[c, w, READY] != NEVER and warps[c, w, LATE] else SHARED
    if conflict:
        return CONFLICT
    return ISSUE if issue else IMBALANCE


@inlined
def account(p, cores, c, warps, drained, out, until):
    """Say what the cycles since the last look went to; nothing has changed in between."""
    cycle = cores[c, ACCOUNTED]
    if cycle >= until:
        return
    cores[c, ACCOUNTED] = until
    if cores[c, PIPE] > cycle:
        out[c, BUSY] += until - cycle
        return
    conflict = buffer_ready(p, cores, c, drained) > cycle
    issue = cores[c, FRONT_CYCLE] > cycle
    cause = IMBALANCE
    for place in range(warps.shape[1]):
        if warps[c, place, AGE] >= 0:
            cause = min(cause, _reason(warps, c, place, cycle, conflict, issue))
    out[c, cause] += until - cycle


@inlined
def finish_slab(p, cores, c, warps, w, groups_a, groups_b, cycle):
    """Begin the warp's next slab, or meet the CTA where a stage ends, or drain; `cycle` is the first one after."""
    stage = (warps[c, w, CURRENT] + 1) // p[P_STAGE]
    warps[c, w, REPETITION] = 0
    if warps[c, w, NEXT] < 0:
        warps[c, w, FINISHED] = cycle
        last_sum = cycle - 1 + p[P_LATENCY]
        if p[P_DRAIN]:
            cores[c, DRAIN] = max(last_sum, cores[c, DRAIN]) + -(-warps[c, w, TILE_WORDS] // p[P_DRAIN])
            warps[c, w, DONE] = cores[c, DRAIN]
        else:
            warps[c, w, DONE] = last_sum
        return
    slab, tile_m, tile_n = warps[c, w, NEXT], warps[c, w, TILE_M], warps[c, w, TILE_N]
    warps[c, w, CURRENT] = slab
    warps[c, w, READY] = warps[c, w, NEXT_READY]
    warps[c, w, LATE] = warps[c, w, NEXT_LATE]
    warps[c, w, NEXT] = next_slab(p, groups_a, groups_b, tile_m, tile_n, slab + 1)
    warps[c, w, NEXT_READY] = NEVER
    warps[c, w, STEP], _ = first_step(p, groups_a, groups_b, tile_m, tile_n, slab, 0)
    if p[P_BARRIER] >= 0 and (slab + 1) // p[P_STAGE] > stage:
        warps[c, w, ARRIVED] = cycle
    elif warps[c, w, NEXT] >= 0:
        warps[c, w, FETCH_AT] = cycle
