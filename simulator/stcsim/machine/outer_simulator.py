"""Time a GEMM on outer-product tensor cores: bind it to the machine, give CTAs to SMs, run an engine.

Place in the data flow: beside `stcsim.machine.simulator`, which hands over to it
for lowered problems of the outer-product datapath.  Knows no files, no YAML and
no networks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stcsim.config.machine import ELEMENT_BITS, InstructionTiming, Machine
from stcsim.lowering.lowered import Grid, Lowered, OuterSteps
from stcsim.machine.datapaths.outer_product import OuterProduct
from stcsim.machine.occupancy import resident_ctas
from stcsim.machine.outer_record import (
    FIRST_CAUSE,
    LAST_CAUSE,
    MILLI,
    Buffer,
    IntArray,
    OuterCounter,
    OuterModel,
    OuterWork,
)
from stcsim.machine.timing import EngineName, Timing

WAVEFRONT_BYTES = 128
"""Bytes that shared memory moves at a time: 32 banks of 4 B (CUDA programming guide)."""
WORD_BYTES = 4
"""Bytes of a bitmap word's 32 bits and of an offset (`stcsim.formats.bitmap`)."""
POPC_WIDTH = 32
"""Lanes of a warp-wide POPC."""

LABEL = (
    "SMs with outer-product cores: tensor pipe, accumulator buffer, front end, operand fetch from shared memory, "
    "stage barriers, drain; CTAs round robin over SMs; no L2 or DRAM time"
)
"""How results name what the cycles cover."""


def bank_map(accumulator_mapping: str, banks: int, m_warp: int, n_warp: int) -> IntArray:
    """Return the bank of every sum of a warp tile.

    Parameters
    ----------
    accumulator_mapping : str
        See `stcsim.machine.datapaths.outer_product.Accumulator.mapping`.
    banks : int
        A power of two.
    m_warp, n_warp : int

    Returns
    -------
    bank_of : ndarray of int64, shape (m_warp, n_warp)
    """
    row = np.arange(m_warp, dtype=np.int64)[:, None]
    column = np.arange(n_warp, dtype=np.int64)[None, :]
    if accumulator_mapping == "linear":
        return np.ascontiguousarray((row * n_warp + column) % banks)
    rows = 1 << ((banks.bit_length() - 1) // 2)
    columns = banks // rows
    if accumulator_mapping == "xor":
        row, column = row ^ (column // columns), column ^ (row // rows)
    return np.ascontiguousarray((row % rows) * columns + column % columns)


def bind(lowered: Lowered, machine: Machine, timing: InstructionTiming, steps: OuterSteps) -> OuterModel:
    """Join kernel, machine and problem in the record that the engines read."""
    options = OuterProduct.of(machine)
    # The grid's tile, which is the kernel's but for a batch of small products.
    tile = lowered.grid.tile
    kernel = lowered.kernel.model_copy(update={"tile": tile})
    accumulator, front, fetch = options.accumulator, options.front_end, options.operand_fetch
    k_slab = steps.k_slab
    edges = (tile.m_warp, tile.n_warp)
    bitmap_bytes = sum(-(-edge // 32) * k_slab * WORD_BYTES + WORD_BYTES for edge in edges)
    popc_words = k_slab * sum(-(-edge // 32) for edge in edges)
    popc = 0 if steps.dense else -(-popc_words // POPC_WIDTH) if front.popc == "per_spwmma" else 2 * k_slab
    bitmap_wavefronts = 0 if steps.dense else -(-bitmap_bytes // WAVEFRONT_BYTES)
    barrier = options.stage_barrier
    return OuterModel(
        sub_cores=machine.sub_cores_per_sm,
        resident_ctas=resident_ctas(machine, kernel, lowered.dtype, accumulator.tiles),
        greedy=machine.scheduler == "gto",
        m_warp=tile.m_warp,
        n_warp=tile.n_warp,
        m_inst=steps.m_inst,
        n_inst=steps.n_inst,
        k=steps.ones_a.shape[1],
        k_slab=k_slab,
        slabs_per_stage=max(1, tile.k_cta // k_slab),
        interval_cycles=timing.interval_cycles,
        latency_cycles=timing.latency_cycles,
        buffer={"unlimited": Buffer.UNLIMITED, "words_per_cycle": Buffer.WORDS, "banked": Buffer.BANKED}[
            accumulator.model
        ],
        words_per_cycle=accumulator.words_per_cycle or 1,
        bank_of=bank_map(accumulator.mapping, accumulator.banks, *edges),
        n_banks=accumulator.banks,
        accesses_per_cycle=accumulator.accesses_per_cycle,
        window=accumulator.window,
        step_milli=round((front.cycles_per_step + front.bohmma_cycles) * MILLI),
        skipped_milli=round(front.predicated_off_cycles * MILLI),
        popc_cycles=popc * POPC_WIDTH // front.popc_lanes_per_cycle,
        popc_latency_cycles=front.popc_latency_cycles,
        popc_instructions=popc,
        shared_issue=front.issue == "shared",
        load_wavefront_cycles=-(-WAVEFRONT_BYTES // int(fetch.bandwidth)),
        load_latency_cycles=fetch.latency_cycles,
        bitmap_wavefronts=bitmap_wavefronts,
        bitmap_loads=bitmap_wavefronts,
        element_bytes=ELEMENT_BITS[lowered.dtype] // 8,
        load_c_words_per_cycle=accumulator.load_c_words_per_cycle,
        drain_words_per_cycle=accumulator.drain_words_per_cycle,
        barrier_base_cycles=barrier.base_cycles if barrier else -1,
        barrier_warp_cycles=barrier.cycles_per_warp if barrier else 0,
    )


def give_out(grid: Grid, sms: int, steps: OuterSteps, words: tuple[npt.NDArray[np.uint64], ...]) -> OuterWork:
    """Give the CTAs of `grid` to the SMs, in raster order and round robin.

    Parameters
    ----------
    grid : Grid
    sms : int
    steps : OuterSteps
    words : (ndarray of uint64, ndarray of uint64)
        Bitmap words of both operands.

    Returns
    -------
    work : OuterWork
        Warps that hold no element of C are left out.
    """
    tile = grid.tile
    n_ctas = grid.ctas_m * grid.ctas_n
    cta = np.arange(n_ctas, dtype=np.int64)
    order = np.argsort(cta % sms, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(cta % sms, minlength=sms))))
    warp = np.arange(tile.warps, dtype=np.int64)
    tile_m = (order // max(grid.ctas_n, 1))[:, None] * tile.warps_m + warp // tile.warps_n
    tile_n = (order % max(grid.ctas_n, 1))[:, None] * tile.warps_n + warp % tile.warps_n
    inside = (tile_m < grid.tiles_m) & (tile_n < grid.tiles_n)
    rows = np.minimum(grid.m - tile_m * tile.m_warp, tile.m_warp)
    columns = np.minimum(grid.n - tile_n * tile.n_warp, tile.n_warp)
    return OuterWork(
        offsets=offsets.astype(np.int64),
        warp_offsets=np.concatenate(([0], np.cumsum(inside.sum(axis=1)))).astype(np.int64),
        warp_index=np.broadcast_to(warp, inside.shape)[inside].astype(np.int64),
        tile_m=tile_m[inside].astype(np.int64),
        tile_n=tile_n[inside].astype(np.int64),
        words=(rows * columns)[inside].astype(np.int64),
        warps=tile.warps,
        bits_a=words[0],
        bits_b=words[1],
    )


def some_words(ones: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return words with the given numbers of ones: enough where only their numbers matter."""
    counts = ones.astype(np.uint64)
    full = counts == 64
    shifted = np.left_shift(np.uint64(1), np.where(full, np.uint64(0), counts)) - np.uint64(1)
    return np.where(full, np.uint64(2**64 - 1), shifted)


def one_of_each(work: OuterWork, steps: OuterSteps) -> tuple[OuterWork, IntArray]:
    """Keep one SM of each number of CTAs where all warp tiles are alike: the others do the same.

    Returns
    -------
    work : OuterWork
    which : ndarray of int64, shape (n_sms,)
        The SM of the returned work that stands for each original one.
    """
    n_sms = len(work.offsets) - 1
    counts = np.diff(work.offsets)
    whole = np.diff(work.warp_offsets) == work.warps
    alike = all(
        array.size == 0 or array.min() == array.max() for array in (steps.ones_a, steps.ones_b, work.words)
    )
    if not (alike and whole.all()):
        return work, np.arange(n_sms)
    _, first, which = np.unique(counts, return_index=True, return_inverse=True)
    ctas = [np.arange(work.offsets[sm], work.offsets[sm + 1]) for sm in first]
    kept = np.concatenate(ctas) if ctas else np.zeros(0, np.int64)
    warps = (kept[:, None] * work.warps + np.arange(work.warps)).ravel()
    chosen = OuterWork(
        offsets=np.concatenate(([0], np.cumsum([len(part) for part in ctas]))).astype(np.int64),
        warp_offsets=np.arange(len(kept) + 1, dtype=np.int64) * work.warps,
        warp_index=work.warp_index[warps],
        tile_m=work.tile_m[warps],
        tile_n=work.tile_n[warps],
        words=work.words[warps],
        warps=work.warps,
        bits_a=work.bits_a,
        bits_b=work.bits_b,
    )
    return chosen, which


def simulate(
    lowered: Lowered, machine: Machine, timing: InstructionTiming, engine: EngineName, threads: int
) -> Timing:
    """Count the cycles of a lowered problem on outer-product tensor cores.

    Parameters
    ----------
    lowered : Lowered
        With `Lowered.steps`.
    machine : Machine
        Whose tensor core has the datapath's options.
    timing : InstructionTiming
        Of the outer product.
    engine : "numba" or "reference"
    threads : int
        Of the fast engine; the result does not depend on it.

    Returns
    -------
    timing : Timing
    """
    steps = _steps(lowered)
    model = bind(lowered, machine, timing, steps)
    counters, ctas = _run(lowered, model, steps, machine.sms, engine, threads)
    return _summed(counters, ctas, lowered, model)


@dataclass(frozen=True)
class OuterCtas:
    """What the CTAs of an outer-product kernel take of an SM: for the GPU level.

    Parameters
    ----------
    cycles : ndarray of int64, shape (n_tiles,)
        Of each CTA tile, row after row, alone on an SM.
    resident_ctas : int
        CTAs that an SM holds.
    together_milli : int
        Time of an SM for them beside each other, over that of one after the other, in 1/1000.
    causes : dict of str to int
        Sub-core cycles by cause of all of them, in proportion.
    instructions : dict of str to int
    products : int
    """

    cycles: IntArray
    resident_ctas: int
    together_milli: int
    causes: dict[str, int]
    instructions: dict[str, int]
    products: int


def time_ctas(
    lowered: Lowered, machine: Machine, timing: InstructionTiming, engine: EngineName, threads: int
) -> OuterCtas:
    """Time every CTA of a lowered problem by itself; arguments as `simulate`."""
    steps = _steps(lowered)
    model = bind(lowered, machine, timing, steps)
    n_ctas = lowered.grid.ctas_m * lowered.grid.ctas_n
    counters, _ = _run(lowered, model, steps, n_ctas, engine, threads)
    cycles = counters[..., OuterCounter.CYCLES].max(axis=1, initial=0)
    together_milli = MILLI
    if model.resident_ctas > 1 and n_ctas > 1:
        beside, _ = _run(lowered, model, steps, machine.sms, engine, threads)
        taken = int(beside[..., OuterCounter.CYCLES].max(axis=1, initial=0).sum())
        together_milli = min(MILLI, max(1, taken * MILLI // max(1, int(cycles.sum()))))
        counters = beside
    whole = counters[..., OuterCounter.CYCLES].max(axis=1, initial=0)
    causes = _causes(counters)
    causes["imbalance"] += int((whole[:, None] - counters[..., OuterCounter.CYCLES]).sum())
    return OuterCtas(
        cycles, model.resident_ctas, together_milli, causes, _instructions(counters, lowered),
        int(counters[..., OuterCounter.PRODUCTS].sum()),
    )  # fmt: skip


def _steps(lowered: Lowered) -> OuterSteps:
    if lowered.steps is None:
        message = "a problem for outer-product cores must have steps"
        raise AssertionError(message)
    return lowered.steps


def _run(
    lowered: Lowered, model: OuterModel, steps: OuterSteps, sms: int, engine: EngineName, threads: int
) -> tuple[IntArray, IntArray]:
    """Run the CTAs, round robin on so many SMs; return the counters of every sub-core and the CTAs of every SM."""
    if model.buffer == Buffer.BANKED:
        words = steps.words()
    elif engine == "reference":
        words = (some_words(steps.ones_a), some_words(steps.ones_b))
    else:
        # Only numbers of ones matter, and the fast engine has them: words of no steps will do.
        words = (np.zeros((len(steps.ones_a), 1), np.uint64), np.zeros((len(steps.ones_b), 1), np.uint64))
    work = give_out(lowered.grid, sms, steps, words)
    run, which = one_of_each(work, steps)
    if engine == "reference":
        from stcsim.machine import outer_reference

        counters = outer_reference.simulate(model, run)[which]
    else:
        from stcsim.machine.kernels import outer  # numba takes most of a second to import

        counters = outer.simulate(model, run, steps.ones_a, steps.ones_b, threads)[which]
    return counters, np.diff(work.offsets)


def _causes(counters: IntArray) -> dict[str, int]:
    return {
        cause.name.lower(): int(counters[..., cause].sum())
        for cause in OuterCounter
        if FIRST_CAUSE <= cause <= LAST_CAUSE
    }


def _instructions(counters: IntArray, lowered: Lowered) -> dict[str, int]:
    columns = {
        lowered.program.body[0].instruction.mnemonic: OuterCounter.OHMMA,
        "LDS": OuterCounter.LOADS,
        "POPC": OuterCounter.POPC,
    }
    return {name: int(counters[..., column].sum()) for name, column in columns.items()}


def _summed(counters: IntArray, ctas: IntArray, lowered: Lowered, model: OuterModel) -> Timing:
    """Sum the counters of all sub-cores; SMs that are done before the last one idle."""
    sub_cores = counters.shape[0] * counters.shape[1]
    cycles = int(counters[..., OuterCounter.CYCLES].max(initial=0))
    stalls = _causes(counters)
    idle = cycles - counters[..., OuterCounter.CYCLES]
    fewer = ctas < ctas.max(initial=0)
    stalls["imbalance"] += int(idle[~fewer].sum())
    stalls["tail"] = int(idle[fewer].sum())
    if sum(stalls.values()) != cycles * sub_cores:
        message = (
            f"busy and stalls ({sum(stalls.values())}) do not tile {cycles} cycles of {sub_cores} sub-cores"
        )
        raise AssertionError(message)
    return Timing(
        cycles=cycles,
        sub_cores=sub_cores,
        stalls=stalls,
        instructions=_instructions(counters, lowered),
        products=int(counters[..., OuterCounter.PRODUCTS].sum()),
        resident_warps=max(1, model.resident_ctas * lowered.grid.tile.warps // model.sub_cores),
        model=LABEL,
    )
