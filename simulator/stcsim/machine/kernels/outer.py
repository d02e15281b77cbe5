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

from stcsim.machine.kernels._jit import borrowing, jit
from stcsim.machine.kernels.banks import BANK_BLOCK
from stcsim.machine.kernels.outer_slab import run_slab, run_slab_banked, run_slab_streaming
from stcsim.machine.kernels.outer_state import (
    ACCOUNTED,
    AGE,
    ARRIVED,
    BANKED,
    C_READY,
    CURRENT,
    CYCLES,
    DONE,
    FETCH_AT,
    FILL,
    FINISHED,
    FRONT_CYCLE,
    LAST,
    LOCAL,
    N_SUB_CORE,
    N_WARP,
    NEVER,
    NEXT,
    NEXT_READY,
    P_BARRIER,
    P_BARRIER_WARP,
    P_BUFFER,
    P_DRAIN,
    P_GREEDY,
    P_INTERVAL,
    P_LOAD_C,
    P_RESIDENT,
    P_SHARED_ISSUE,
    P_STAGE,
    P_SUB_CORES,
    P_WINDOW,
    PARAMETERS,
    PIPE,
    READY,
    RELEASED,
    REPETITION,
    STARTED,
    STEP,
    TILE_M,
    TILE_N,
    TILE_WORDS,
)
from stcsim.machine.kernels.outer_tables import (
    bank_classes,
    class_counts,
    fits_32_bits,
    ones_per_slab,
    quanta,
)
from stcsim.machine.kernels.outer_warp import account, buffer_ready, first_step, next_slab, serve
from stcsim.machine.outer_record import N_OUTER_COUNTERS, Buffer, IntArray, OuterModel, OuterWork


@borrowing
def _decide(
    p, cores, c, warps, free, drained, bank_of, out, ones_a, ones_b, groups_a, groups_b, slab_a, slab_b,
    bits_a, bits_b, scratch, near, class_a, class_b, most_a, most_b,
):  # fmt: skip
    """Go on from a sub-core's local time: issue, or find the next cycle in which something changes."""
    cycle = cores[c, LOCAL]
    account(p, cores, c, warps, drained, out, cycle)
    serve(p, cores, c, warps, out, slab_a, slab_b, cycle)
    n = warps.shape[1]
    buffer_at = buffer_ready(p, cores, c, drained)
    open_at = max(cores[c, PIPE], buffer_at, cores[c, FRONT_CYCLE])
    following = NEVER
    if cores[c, PIPE] > cycle:
        following = min(following, cores[c, PIPE])
    if buffer_at > cycle:
        following = min(following, buffer_at)
    if cores[c, FRONT_CYCLE] > cycle:
        following = min(following, cores[c, FRONT_CYCLE])
    chosen = -1
    w = cores[c, LAST] if p[P_GREEDY] else cores[c, LAST] + 1
    for _ in range(n):
        if w >= n:
            w = 0
        if warps[c, w, AGE] >= 0:
            if cycle < warps[c, w, FETCH_AT] < following:
                following = warps[c, w, FETCH_AT]
            if warps[c, w, FINISHED] >= 0:
                if cycle < warps[c, w, DONE] < following:
                    following = warps[c, w, DONE]
            elif warps[c, w, ARRIVED] < 0:
                at = max(warps[c, w, RELEASED], warps[c, w, C_READY])
                if cycle < warps[c, w, RELEASED] < following:
                    following = warps[c, w, RELEASED]
                if cycle < warps[c, w, C_READY] < following:
                    following = warps[c, w, C_READY]
                if cycle < warps[c, w, READY] < following:
                    following = warps[c, w, READY]
                if max(at, warps[c, w, READY]) <= cycle and open_at <= cycle:
                    if not p[P_GREEDY]:
                        if chosen < 0:
                            chosen = w
                    elif w == cores[c, LAST]:
                        chosen = w
                        break
                    elif chosen < 0 or warps[c, w, AGE] < warps[c, chosen, AGE]:
                        chosen = w
        w += 1
    if chosen < 0:
        cores[c, LOCAL] = following
        return -1
    cores[c, LAST] = chosen
    single = not p[P_GREEDY] or p[P_SHARED_ISSUE]
    if not single and p[P_BUFFER] == BANKED and p[P_INTERVAL] == 1 and class_a.shape[0] > 0:
        run_slab_banked(
            p, cores, c, warps, chosen, near, drained, class_a, class_b, most_a, most_b, out,
            ones_a, ones_b, groups_a, groups_b,
        )  # fmt: skip
        return chosen
    if not single and p[P_BUFFER] != BANKED and p[P_INTERVAL] == 1:
        run_slab_streaming(p, cores, c, warps, chosen, out, ones_a, ones_b, groups_a, groups_b)
        return chosen
    run_slab(
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
    n_cores = p[P_SUB_CORES]
    n_slots = p[P_RESIDENT]
    n_places = -(-n_slots * cta_warps // n_cores)
    warps = np.zeros((n_cores, n_places, N_WARP), np.int64)
    warps[:, :, AGE] = -1
    warps[:, :, FETCH_AT] = NEVER
    cores = np.zeros((n_cores, N_SUB_CORE), np.int64)
    cores[:, LOCAL] = NEVER
    free = np.zeros((n_cores, n_banks), np.int64)
    near = np.zeros((n_cores, class_b.shape[3], class_a.shape[3], BANK_BLOCK), np.int32)
    drained = np.zeros((n_cores, max(p[P_WINDOW], 1)), np.int64)
    scratch = np.zeros(n_banks, np.int64)
    cta_of = np.full(n_slots, -1, np.int64)
    retire_at = np.full(n_slots, NEVER, np.int64)
    present = np.zeros(n_slots, np.int64)  # warps of the CTA
    there = np.zeros(n_slots, np.int64)  # of them, those that wait at a barrier or have finished
    next_cta = first
    total = np.int64(0)
    for slot in range(n_slots):
        retire_at[slot] = 0
    while True:
        # The next thing that happens: a CTA that retires, or the sub-core that is least far.
        now = NEVER
        for slot in range(n_slots):
            now = min(now, retire_at[slot])
        least = 0
        for core in range(1, n_cores):
            if cores[core, LOCAL] < cores[least, LOCAL]:
                least = core
        if now <= cores[least, LOCAL]:
            for core in range(n_cores):
                account(p, cores, core, warps, drained, out, now)
            for slot in range(n_slots):
                while retire_at[slot] == now:
                    retire_at[slot] = NEVER
                    if cta_of[slot] >= 0:
                        for w in range(cta_warps):
                            number = slot * cta_warps + w
                            warps[number % n_cores, number // n_cores, AGE] = -1
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
                        warp[AGE] = i
                        warp[STARTED] = now
                        warp[TILE_M] = tile_m[i]
                        warp[TILE_N] = tile_n[i]
                        warp[TILE_WORDS] = words[i]
                        warp[REPETITION] = 0
                        warp[ARRIVED] = -1
                        warp[FINISHED] = -1
                        warp[DONE] = NEVER
                        warp[RELEASED] = now
                        warp[READY] = NEVER
                        warp[NEXT_READY] = NEVER
                        warp[FETCH_AT] = NEVER
                        warp[C_READY] = now
                        if p[P_LOAD_C]:
                            core[FILL] = max(now, core[FILL]) + -(-words[i] // p[P_LOAD_C])
                            warp[C_READY] = core[FILL]
                        warp[CURRENT] = next_slab(p, groups_a, groups_b, tile_m[i], tile_n[i], 0)
                        if warp[CURRENT] < 0:
                            warp[FINISHED] = warp[C_READY]
                            warp[DONE] = warp[C_READY]
                            if p[P_DRAIN]:
                                warp[DONE] += -(-words[i] // p[P_DRAIN])
                            all_done = max(all_done, warp[DONE])
                        else:
                            unfinished += 1
                            warp[FETCH_AT] = now
                            warp[NEXT] = next_slab(
                                p, groups_a, groups_b, tile_m[i], tile_n[i], warp[CURRENT] + 1
                            )
                            warp[STEP], _ = first_step(
                                p, groups_a, groups_b, tile_m[i], tile_n[i], warp[CURRENT], 0
                            )
                    there[slot] = present[slot] - unfinished
                    if unfinished == 0:
                        retire_at[slot] = all_done
            for core in range(n_cores):
                if cores[core, ACCOUNTED] <= now:
                    cores[core, LOCAL] = min(cores[core, LOCAL], now)
            total = now
            if cta_of.max() < 0:
                break
            continue

        place = _decide(
            p, cores, least, warps, free, drained, bank_of, out, ones_a, ones_b,
            groups_a, groups_b, slab_a, slab_b, bits_a, bits_b, scratch, near, class_a, class_b,
            most_a, most_b,
        )  # fmt: skip
        if place < 0 or (warps[least, place, ARRIVED] < 0 and warps[least, place, FINISHED] < 0):
            continue
        # A warp has come to a barrier or to its end: is its whole CTA there?
        slot = (place * n_cores + least) // cta_warps
        there[slot] += 1
        if there[slot] < present[slot]:
            continue
        waiting = 0
        stage = NEVER
        last = np.int64(0)
        done = np.int64(0)
        for number in range(slot * cta_warps, (slot + 1) * cta_warps):
            core, w = number % n_cores, number // n_cores
            if warps[core, w, AGE] < 0:
                continue
            if warps[core, w, FINISHED] >= 0:
                last = max(last, warps[core, w, FINISHED])
                done = max(done, warps[core, w, DONE])
            else:
                waiting += 1
                last = max(last, warps[core, w, ARRIVED])
                stage = min(stage, (warps[core, w, CURRENT] + 1) // p[P_STAGE])
        if waiting == 0:
            retire_at[slot] = done
            continue
        at = last + p[P_BARRIER] + p[P_BARRIER_WARP] * present[slot]
        for number in range(slot * cta_warps, (slot + 1) * cta_warps):
            core, w = number % n_cores, number // n_cores
            if (
                warps[core, w, AGE] >= 0
                and warps[core, w, ARRIVED] >= 0
                and (warps[core, w, CURRENT] + 1) // p[P_STAGE] == stage
            ):
                warps[core, w, ARRIVED] = -1
                warps[core, w, RELEASED] = at
                there[slot] -= 1
                if warps[core, w, NEXT] >= 0:
                    warps[core, w, FETCH_AT] = at
                cores[core, LOCAL] = min(cores[core, LOCAL], max(at, cores[core, ACCOUNTED]))

    for core in range(n_cores):
        out[core, CYCLES] = total


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
    p = np.array([int(getattr(model, name)) for name in PARAMETERS], np.int64)
    groups_a, groups_b = quanta(ones_a, model.m_inst), quanta(ones_b, model.n_inst)
    slab_a, slab_b = ones_per_slab(ones_a, model.k_slab), ones_per_slab(ones_b, model.k_slab)

    class_a, class_b = np.zeros((0, 0, 0, 0), np.uint8), np.zeros((0, 0, 0, 0, BANK_BLOCK), np.uint8)
    classes = bank_classes(model.bank_of)
    if (
        model.buffer == Buffer.BANKED
        and model.accesses_per_cycle == 1
        and classes is not None
        and fits_32_bits(model)
    ):
        blocks = -(-(int(classes[1].max()) + 1) // BANK_BLOCK)
        class_a = class_counts(work.bits_a, classes[0], model.m_inst, model.grid_a, int(classes[0].max()) + 1)
        class_b = class_counts(work.bits_b, classes[1], model.n_inst, model.grid_b, blocks * BANK_BLOCK)
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
