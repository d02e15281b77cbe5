"""Closed forms instead of cycles: for first looks, and as an oracle of the engines.

Place in the data flow: beside `stcsim.machine.simulator` (``engine: analytic``).
A warp tile takes as long as its tensor instructions occupy the pipe, or as its
products occupy the accumulator buffer, whichever is longer; nothing waits for
anything else.  Counts are exact, from the operands' bitmaps.  `expected_fraction`
knows densities alone.  Results are labelled; docs/dstc.md says how far off they are.
"""

from __future__ import annotations

import math

import numpy as np

from stcsim.config.machine import InstructionTiming, Machine
from stcsim.lowering.lowered import Lowered
from stcsim.machine.datapaths.outer_product import OuterProduct
from stcsim.machine.spread import spread
from stcsim.machine.timing import Timing

LABEL = "analytic: occupancy of tensor pipe and accumulator bandwidth from exact counts; no stalls, no memory time"


def outer_product(lowered: Lowered, machine: Machine, timing: InstructionTiming) -> Timing:
    """Count a problem on outer-product cores.

    Parameters
    ----------
    lowered : Lowered
        With steps.
    machine : Machine
    timing : InstructionTiming
        Of the outer product.

    Returns
    -------
    timing : Timing
        ``tensor_busy`` is the occupied pipe, ``accumulator_conflict`` what products take beyond it.
    """
    steps = lowered.steps
    if steps is None:
        message = "a problem for outer-product cores must have steps"
        raise AssertionError(message)
    accumulator = OuterProduct.of(machine).accumulator
    issued = _pair_sums(
        -(-steps.ones_a.astype(np.int64) // steps.m_inst), -(-steps.ones_b.astype(np.int64) // steps.n_inst)
    )
    products = _pair_sums(steps.ones_a, steps.ones_b)
    busy = issued * timing.interval_cycles
    cycles = busy
    if accumulator.words_per_cycle is not None:
        cycles = np.maximum(busy, -(-products // accumulator.words_per_cycle))
    mnemonic = lowered.program.body[0].instruction.mnemonic
    return _spread(lowered, machine, busy, cycles, {mnemonic: int(issued.sum())}, int(products.sum()))


def inner_product(lowered: Lowered, machine: Machine, intervals: dict[str, int]) -> Timing:
    """Count a problem whose warp tiles all run the same loop.

    Parameters
    ----------
    lowered : Lowered
    machine : Machine
    intervals : dict of str to int
        Cycles for which each instruction of the loop body occupies the tensor pipe.
    """
    program, grid = lowered.program, lowered.grid
    per_tile = program.iterations * sum(intervals[op.instruction.mnemonic] for op in program.body)
    tiles = np.full((grid.tiles_m, grid.tiles_n), per_tile, np.int64)
    counts: dict[str, int] = dict.fromkeys((op.instruction.mnemonic for op in program.body), 0)
    for op in program.body:
        counts[op.instruction.mnemonic] += program.iterations * grid.n_tiles
    return _spread(lowered, machine, tiles, tiles, counts, 0)


def expected_fraction(density: float, edge: int, quantum: int) -> float:
    """Return the expected share of a side's quanta that execute, for independent ones of one density.

    Parameters
    ----------
    density : float, 0 to 1
    edge : int
        Elements of a column (row) within a warp tile.
    quantum : int
        Elements that one outer product takes.

    Returns
    -------
    fraction : float
        E[ceil(Bin(edge, density) / quantum)] / ceil(edge / quantum).  For independent operands the share of
        outer products that execute is the product of both sides' fractions.
    """
    total = sum(
        math.comb(edge, n) * density**n * (1 - density) ** (edge - n) * -(-n // quantum)
        for n in range(edge + 1)
    )
    return total / -(-edge // quantum)


def _pair_sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the sum over k of a[i, k] * b[j, k] for every warp tile (i, j); exact below 2**53."""
    return np.rint(a.astype(np.float64) @ b.astype(np.float64).T).astype(np.int64)


def _spread(
    lowered: Lowered,
    machine: Machine,
    busy: np.ndarray,
    cycles: np.ndarray,
    instructions: dict[str, int],
    products: int,
) -> Timing:
    """Add up the warp tiles of each sub-core; the busiest one decides."""
    work = spread(lowered.grid, machine.sms, machine.sub_cores_per_sm)
    sub_cores = len(work.offsets) - 1
    owner = np.repeat(np.arange(sub_cores), np.diff(work.offsets))
    per_core = np.zeros(sub_cores, np.int64)
    np.add.at(per_core, owner, cycles[work.tile_m, work.tile_n])
    total, occupied = int(per_core.max(initial=0)), int(busy.sum())
    return Timing(
        cycles=total,
        sub_cores=sub_cores,
        stalls={
            "tensor_busy": occupied,
            "accumulator_conflict": int(per_core.sum()) - occupied,
            "imbalance": total * sub_cores - int(per_core.sum()),
        },
        instructions=instructions,
        products=products,
        resident_warps=1,
        model=LABEL,
    )
