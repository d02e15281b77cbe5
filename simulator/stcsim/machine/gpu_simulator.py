"""Time a lowered problem on the whole GPU: slabs from the SM engines, operands through L2 and DRAM, waves, launch.

Place in the data flow: `stcsim.machine.simulator` hands over to it for machines with a section ``gpu``.  Knows no
files and no networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from stcsim.config.gpu import Gpu, SustainedClock
from stcsim.config.kernel import Kernel
from stcsim.config.machine import Machine
from stcsim.errors import LoweringError, Problem
from stcsim.lowering.bitmap_output import PER_WORD, WORD
from stcsim.lowering.instruction_mix import IntegerRates
from stcsim.lowering.lowered import Lowered
from stcsim.lowering.raster import raster
from stcsim.machine.gpu_record import MILLI, TICKS, GpuModel, GpuRun, GpuWork, IntArray, L2State, SmTime
from stcsim.machine.outer_simulator import OuterCtas
from stcsim.machine.sm_binding import leading
from stcsim.machine.sm_slab import SLABS_OF_CAUSES, SlabTiming
from stcsim.machine.timing import CtaCycles, EngineName, Timing

LABEL = "whole GPU: slabs from the SM engine; L2, DRAM, CTA starts, waves, epilogue and launch"
"""How results name this model of the chip."""

EVENTS = 2**19
"""Slabs of all CTAs that are told apart; of larger problems, several successive ones count as one."""
SECTOR_BYTES = 32
"""What L2 is written in (CUDA programming guide)."""
SUM_BYTES = 4
"""Of a partial sum that split-K leaves in memory."""

_LAUNCH, _REDUCTION = "launch", "split_k"
_CAUSE_OF = {
    SmTime.PROLOGUE: "prologue", SmTime.L2: "l2", SmTime.DRAM: "dram", SmTime.EPILOGUE: "epilogue", SmTime.TAIL: "tail",
}  # fmt: skip


@dataclass(frozen=True)
class CtaTiming:
    """Time of an SM for the CTAs of a problem, without memory.

    Parameters
    ----------
    slab_ticks : ndarray of int64, shape (n_tiles,) or (1,)
        Of one slab of each CTA tile, row after row, where it is alone on its SM; one number: of all alike.
    shared_milli : ndarray of int64, shape (resident_ctas + 1,)
        Of one slab by resident CTAs, in 1/1024 of that.
    causes : tuple of dict of str to int
        Sub-core cycles by cause while so many CTAs are resident, in proportion.
    before_cycles, after_cycles : int
        Of a CTA, around its slabs.
    busy_cycles : int
        Sub-core cycles in which tensor pipes are occupied, of the whole problem: counted, not apportioned.
    instructions : dict of str to int
        Issued by the whole problem.
    products : int
    """

    slab_ticks: IntArray
    shared_milli: IntArray
    causes: tuple[Mapping[str, int], ...]
    before_cycles: int
    after_cycles: int
    busy_cycles: int
    instructions: dict[str, int]
    products: int


def of_slabs(lowered: Lowered, slab: SlabTiming) -> CtaTiming:
    """Return the timing of a kernel whose CTAs are all alike."""
    grid, program = lowered.grid, lowered.program
    ctas, slabs = grid.ctas_m * grid.ctas_n, slabs_along_k(lowered)
    # A stage is run whole, as by the SM engine, also where K ends within it.
    rounds = ctas * grid.tile.warps * slabs * max(1, grid.tile.k_cta // program.k_step)
    instructions: dict[str, int] = {}
    for op in program.body if rounds else ():
        name = op.instruction.mnemonic
        instructions[name] = instructions.get(name, 0) + rounds
    alone = max(1, int(slab.ticks[1]))
    return CtaTiming(
        slab_ticks=slab.ticks[1:2],
        shared_milli=slab.ticks * MILLI // alone,
        causes=slab.causes,
        before_cycles=slab.before_cycles,
        after_cycles=slab.after_cycles,
        busy_cycles=ctas * slabs * slab.causes[1].get("tensor_busy", 0) // SLABS_OF_CAUSES,
        instructions=instructions,
        products=0,
    )


def of_outer(ctas: OuterCtas, lowered: Lowered, machine: Machine) -> CtaTiming:
    """Return the timing of an outer-product kernel, whose CTAs differ with their operands.

    Few resident CTAs run beside each other without disturbing (ASSUMED), until they take the time of all.
    A CTA that encodes its tile does so after its last slab, beside the other CTAs' products (ASSUMED).
    """
    slabs, tile = slabs_along_k(lowered), lowered.grid.tile
    encoding = lowered.encodes_output and min(lowered.kernel.grid.split_k, max(1, slabs)) == 1
    residents = np.arange(1, ctas.resident_ctas + 1)
    together = np.maximum(MILLI // residents, ctas.together_milli * MILLI // 1000)
    return CtaTiming(
        slab_ticks=-(-ctas.cycles * TICKS // max(1, slabs)),
        shared_milli=np.concatenate(([0], together)),
        causes=(ctas.causes,) * (ctas.resident_ctas + 1),
        before_cycles=0,
        after_cycles=_encoding_cycles(tile.m_cta * tile.n_cta, machine.sub_cores_per_sm) if encoding else 0,
        busy_cycles=ctas.causes["tensor_busy"],
        instructions=ctas.instructions,
        products=ctas.products,
    )


def _encoding_cycles(elements: int, sub_cores: int) -> int:
    """Return the cycles in which integer pipes encode elements of C, spread over sub-cores."""
    return (PER_WORD * -(-elements // WORD)).cycles(IntegerRates(), sub_cores)


def slabs_along_k(lowered: Lowered) -> int:
    """Return the K-slabs of a product, of the K that its loop runs over; without a K there is none."""
    k = lowered.program.iterations * lowered.program.k_step if lowered.steps is None else lowered.gemm.k
    return -(-k // lowered.grid.tile.k_cta)


def _split(total: int, weights: IntArray) -> IntArray:
    """Divide `total` in proportion to `weights`, to the last unit."""
    up_to = np.concatenate(([0], np.cumsum(weights)))
    whole = int(up_to[-1])
    if whole == 0:
        return np.zeros(len(weights), np.int64)
    if total % whole == 0:
        return weights * (total // whole)
    # Python's integers: a product of both may not fit 64 bits.
    bounds = np.array([total * int(part) // whole for part in up_to], np.int64)
    return np.diff(bounds)


def _rows(size: int, tile: int) -> IntArray:
    """Return how many rows (or columns) of C each row (or column) of CTA tiles holds."""
    count = -(-size // tile)
    return np.minimum(tile, size - tile * np.arange(count, dtype=np.int64))


def _panels(lowered: Lowered) -> tuple[IntArray, IntArray]:
    """Return the bytes of every panel of A and of B over the whole K, as stored.

    Bitmap operands: what is non-zero of each panel, its bitmap in proportion to its size.
    """
    grid, tile, steps = lowered.grid, lowered.grid.tile, lowered.steps
    n_parts = len(lowered.products)
    of_part = _rows(grid.n, tile.n_cta)
    weights = [_rows(grid.m, tile.m_cta), np.concatenate([of_part] * n_parts)]
    totals = [
        lowered.traffic_bytes["operand_a"] // max(1, grid.ctas_n),
        lowered.traffic_bytes["operand_b"] * n_parts // max(1, grid.ctas_m),
    ]
    if steps is None or steps.dense or n_parts > 1:
        return _split(totals[0], weights[0]), _split(totals[1], weights[1])
    panels = []
    for total, weight, ones, warps in (
        (totals[0], weights[0], steps.ones_a, tile.warps_m),
        (totals[1], weights[1], steps.ones_b, tile.warps_n),
    ):
        of_tile = ones.sum(axis=1, dtype=np.int64)
        nnz = np.add.reduceat(of_tile, np.arange(0, len(of_tile), warps)) if len(of_tile) else weight
        values = nnz * SECTOR_BYTES // 16  # two bytes a value: bitmap operands are fp16 (isa/dstc.yaml)
        panels.append(values + _split(max(0, total - int(values.sum())), weight))
    return panels[0], panels[1]


def _fresh(lowered: Lowered) -> tuple[int, int]:
    """Return the share of each operand's elements that is not also part of another slab, in 1/1024."""
    shares = []
    for operands in ([part.gemm.a for part in lowered.products], [part.gemm.b for part in lowered.products]):
        stored = sum(operand.pattern.n_stored for operand in operands)
        unique = sum(operand.pattern.n_unique for operand in operands)
        shares.append(-(-unique * MILLI // stored) if stored else MILLI)
    return shares[0], shares[1]


def bind(lowered: Lowered, machine: Machine, ctas: CtaTiming, clock_hz: float) -> tuple[GpuModel, GpuWork]:
    """Join kernel, machine and problem in the records that the engines read."""
    gpu = _gpu(machine)
    kernel, grid = lowered.kernel, lowered.grid
    tile, order = grid.tile, lowered.kernel.grid
    slabs = slabs_along_k(lowered)
    split = min(order.split_k, max(1, slabs))
    tiles = grid.ctas_m * grid.ctas_n
    # Successive slabs that count as one, where there are very many.
    together = max(1, -(-tiles * slabs // EVENTS))
    stages = kernel.stages
    if together > 1:
        together, stages = max(together, stages - 1), 2
    steps = -(-slabs // together)
    bounds = np.array([steps * i // split for i in range(split + 1)], np.int64)
    rows, columns = raster(grid.ctas_m, grid.ctas_n, order.raster_group)
    part = rows // max(1, grid.ctas_m // len(lowered.products)) if len(lowered.products) > 1 else 0 * rows
    panels = _panels(lowered)
    heights, widths = _rows(grid.m, tile.m_cta), _rows(grid.n, tile.n_cta)
    area = heights[rows] * widths[columns]
    bytes_c = np.tile(area * SUM_BYTES if split > 1 else _split(lowered.traffic_bytes["output"], area), split)
    row_bytes = min(kernel.store_bytes, SECTOR_BYTES)
    sectors = -(-bytes_c // row_bytes)
    sector_cycles = (
        gpu.stores.full_sector_cycles if row_bytes == SECTOR_BYTES else gpu.stores.partial_sector_cycles
    )
    own = np.broadcast_to(ctas.slab_ticks, tiles) if len(ctas.slab_ticks) == 1 else ctas.slab_ticks
    slab_ticks = np.tile(own[rows * grid.ctas_n + columns], split)
    work = GpuWork(
        panel_a=np.tile(rows, split),
        panel_b=np.tile(part * grid.ctas_n + columns, split),
        tile_c=np.arange(split * tiles, dtype=np.int64),
        first=np.repeat(bounds[:-1], tiles),
        slabs=np.repeat(np.diff(bounds), tiles),
        slab_ticks=slab_ticks * slabs // max(1, steps),
        shared_milli=ctas.shared_milli.astype(np.int64),
        store_ticks=np.round(
            np.maximum(0, sectors - gpu.stores.buffered_sectors) * sector_cycles * TICKS
        ).astype(np.int64),
        bytes_a=panels[0] // max(1, steps),
        bytes_b=panels[1] // max(1, steps),
        bytes_c=bytes_c.astype(np.int64),
        written=(sectors * SECTOR_BYTES).astype(np.int64),
        fresh_milli=_fresh(lowered),
    )

    def rate(bytes_per_cycle: float) -> int:
        return max(1, round(bytes_per_cycle * MILLI / TICKS))

    model = GpuModel(
        sms=machine.sms,
        resident_ctas=len(ctas.shared_milli) - 1,
        stages=stages,
        start_ticks=gpu.cta.start_cycles * TICKS,
        head_ticks=ctas.before_cycles * TICKS,
        store_latency_ticks=(ctas.after_cycles + gpu.stores.latency_cycles) * TICKS,
        dispatch_ticks=round(gpu.cta.dispatch_cycles * TICKS),
        l2_rate=rate(gpu.l2.read_bandwidth),
        sm_rate=rate(gpu.l2.sm_bandwidth),
        dram_rate=rate(gpu.dram.bandwidth * gpu.dram.sustained_fraction / clock_hz),
        write_rate=rate(gpu.l2.write_bandwidth),
        l2_latency_ticks=gpu.l2.latency_cycles * TICKS,
        dram_latency_ticks=gpu.dram.latency_cycles * TICKS,
        capacity_bytes=gpu.l2.capacity,
        edge_milli=round(gpu.l2.edge_fraction * MILLI),
        persistent=int(order.persistent),
        lead_milli=MILLI * (together - 1) // together,
        outstanding_bytes=gpu.l2.cta_outstanding,
    )
    return model, work


def _gpu(machine: Machine) -> Gpu:
    if machine.gpu is None:
        message = "must be given: L2, DRAM and launch are timed by it"
        raise LoweringError(Problem(message, path=f"machine {machine.name}: gpu"))
    return machine.gpu


def _engine(engine: EngineName, model: GpuModel, work: GpuWork, *, repeated: bool) -> GpuRun:
    """Run a grid, a second time where L2 may hold something of the first one."""
    if engine == "reference":
        from stcsim.machine.gpu import simulate  # each engine is loaded only where it runs
    else:
        from stcsim.machine.kernels.gpu import simulate  # numba takes most of a second to import
    l2 = L2State.cold(work)
    run = simulate(model, work, l2)
    footprint = int(work.bytes_a.sum() + work.bytes_b.sum()) * work.n_slabs + int(work.bytes_c.sum())
    if repeated and footprint < 4 * model.capacity_bytes:
        run = simulate(model, work, l2)
    return run


def _activity(lowered: Lowered, machine: Machine, ctas: CtaTiming, cycles: int) -> float:
    """Return the share of time in which tensor pipes work, weighted by the power of what they execute."""
    known = machine.tensor_core.instructions
    occupied = 0.0
    for mnemonic, count in ctas.instructions.items():
        timing = leading(known, mnemonic)
        if timing is not None:
            occupied += count * timing.interval_cycles * timing.relative_power
    return occupied / max(1, cycles * machine.sms * machine.sub_cores_per_sm)


def sustained_hz(clock_hz: float, law: SustainedClock | None, activity: float) -> float:
    """Return the clock that a board sustains at an activity; see `stcsim.config.gpu.SustainedClock`."""
    if law is None or activity <= law.onset_fraction:
        return clock_hz
    return clock_hz * float((law.onset_fraction / activity) ** law.exponent)


def _reduction_cycles(lowered: Lowered, gpu: Gpu, kernel: Kernel, clock_hz: float, sub_cores: int) -> int:
    """Return what the second kernel of split-K takes: its launch, all parts read, C encoded if it is, and written."""
    split = min(kernel.grid.split_k, max(1, slabs_along_k(lowered)))
    if split == 1 or not lowered.grid.n_tiles:
        return 0
    moved = split * lowered.grid.m * lowered.grid.n * SUM_BYTES + lowered.traffic_bytes["output"]
    rate = gpu.l2.write_bandwidth
    if moved > gpu.l2.capacity:
        rate = min(rate, gpu.dram.bandwidth * gpu.dram.sustained_fraction / clock_hz)
    launch = gpu.launch.time if gpu.launch.dependent is None else gpu.launch.dependent
    launch_cycles = round((launch + kernel.launch_overhead) * clock_hz)
    encoding = _encoding_cycles(lowered.grid.m * lowered.grid.n, sub_cores) if lowered.encodes_output else 0
    return launch_cycles + gpu.cta.start_cycles + gpu.l2.latency_cycles + round(moved / rate) + encoding


def simulate(lowered: Lowered, machine: Machine, ctas: CtaTiming, engine: EngineName) -> Timing:
    """Count the cycles of a lowered problem on the whole GPU.

    Parameters
    ----------
    lowered : Lowered
    machine : Machine
        With a section ``gpu``.
    ctas : CtaTiming
        Time of an SM for each CTA.
    engine : "numba" or "reference"

    Returns
    -------
    timing : Timing
    """
    gpu = _gpu(machine)
    clock_hz = machine.clock
    # Without an element of C there is nothing to launch.
    launch_time = (gpu.launch.time + lowered.kernel.launch_overhead) if lowered.grid.n_tiles else 0.0
    model, work = bind(lowered, machine, ctas, clock_hz)
    run = _engine(engine, model, work, repeated=gpu.launch.repeated)
    launch_cycles = round(launch_time * clock_hz)
    cycles = -(-run.ticks // TICKS) + launch_cycles
    activity = _activity(lowered, machine, ctas, cycles)
    clock_hz = sustained_hz(machine.clock, gpu.sustained_clock, activity)
    if clock_hz < machine.clock and run.sm_ticks[:, SmTime.DRAM].sum() * 100 > run.sm_ticks.sum():
        # DRAM keeps its clock: more of its bytes come in a cycle of the slower SMs.
        model, work = bind(lowered, machine, ctas, clock_hz)
        run = _engine(engine, model, work, repeated=gpu.launch.repeated)
        activity = _activity(lowered, machine, ctas, -(-run.ticks // TICKS) + launch_cycles)
        clock_hz = sustained_hz(machine.clock, gpu.sustained_clock, activity)
    launch_cycles = round(launch_time * clock_hz)
    grid_cycles = -(-run.ticks // TICKS)
    sub_cores = machine.sms * machine.sub_cores_per_sm
    reduction = _reduction_cycles(lowered, gpu, lowered.kernel, clock_hz, sub_cores)
    stalls = _stalls(run, ctas, grid_cycles * sub_cores)
    for cause, taken in ((_LAUNCH, launch_cycles), (_REDUCTION, reduction)):
        if taken:
            stalls[cause] = taken * sub_cores
    n_warps = lowered.grid.tile.warps * model.resident_ctas
    return Timing(
        cycles=grid_cycles + launch_cycles + reduction,
        sub_cores=sub_cores,
        stalls=stalls,
        instructions=ctas.instructions,
        products=ctas.products,
        resident_warps=max(1, n_warps // machine.sub_cores_per_sm),
        model=LABEL,
        clock_hz=clock_hz,
        dram_bytes=run.dram_read_bytes + run.dram_write_bytes,
        cta=_cta_cycles(run, work, slabs_along_k(lowered)),
        memory_bytes_per_second={
            "l2": min(gpu.l2.read_bandwidth, gpu.l2.sm_bandwidth * machine.sms) * clock_hz,
            "dram": gpu.dram.bandwidth * gpu.dram.sustained_fraction,
        },
    )


def _cta_cycles(run: GpuRun, work: GpuWork, slabs: int) -> CtaCycles | None:
    """Return medians over the CTAs, per slab as told apart by the kernel and not by the engine."""
    if not len(run.cta_ticks):
        return None
    started, landed, computed, stored = run.cta_ticks.T / TICKS
    # Of several slabs that the engine counts as one, all but the last may have been computed when it landed.
    own = work.slabs * slabs / max(1, work.n_slabs)
    return CtaCycles(
        prologue_cycles=float(np.median(np.maximum(0, landed - started))),
        slab_cycles=float(np.median((computed - landed) / np.maximum(1, own))),
        epilogue_cycles=float(np.median(stored - computed)),
    )


def least_seconds(lowered: Lowered, machine: Machine, slab: SlabTiming) -> float:
    """Return a lower bound of the time of a kernel whose CTAs are all alike.

    Some SM has at least its share of the CTAs, each slab takes it at least the shortest time of any number of
    resident CTAs, and L2 and the ways into the SMs serve no faster than their rates.  With an exponent of at most 1,
    fewer cycles never take longer under `stcsim.config.gpu.SustainedClock`: the clock of the least cycles will do.
    """
    gpu, grid = _gpu(machine), lowered.grid
    slabs = slabs_along_k(lowered)
    split = min(lowered.kernel.grid.split_k, max(1, slabs))
    ctas = split * grid.ctas_m * grid.ctas_n
    computing = -(-ctas // machine.sms) * (slabs // split) * int(slab.ticks[1:].min()) / TICKS
    moved = lowered.traffic_bytes["operand_a"] + lowered.traffic_bytes["operand_b"]
    launch_cycles = round((gpu.launch.time + lowered.kernel.launch_overhead) * machine.clock)
    once = gpu.cta.start_cycles + gpu.l2.latency_cycles if ctas and slabs else 0
    in_flight = slab.resident_ctas * gpu.l2.cta_outstanding / max(1, gpu.l2.latency_cycles)
    into_sms = machine.sms * min(gpu.l2.sm_bandwidth, in_flight)
    least = max(computing, moved / gpu.l2.read_bandwidth, moved / into_sms) + once + launch_cycles
    work = of_slabs(lowered, slab)
    clock_hz = sustained_hz(
        machine.clock, gpu.sustained_clock, _activity(lowered, machine, work, max(1, int(least)))
    )
    reduction = _reduction_cycles(
        lowered, gpu, lowered.kernel, machine.clock, machine.sms * machine.sub_cores_per_sm
    )
    return least / clock_hz + reduction / machine.clock


def _stalls(run: GpuRun, ctas: CtaTiming, total: int) -> dict[str, int]:
    """Divide `total` sub-core cycles: tensor pipes busy as counted, the rest as the ticks of the run say."""
    busy = min(ctas.busy_cycles, total)
    shares: dict[str, Fraction] = {}
    for residents, ticks in enumerate(run.compute_ticks.tolist()):
        waiting = {cause: count for cause, count in ctas.causes[residents].items() if cause != "tensor_busy"}
        whole = sum(ctas.causes[residents].values())
        for cause, count in waiting.items():
            shares[cause] = shares.get(cause, Fraction(0)) + Fraction(ticks * count, max(1, whole))
    for column, cause in _CAUSE_OF.items():
        shares[cause] = shares.get(cause, Fraction(0)) + int(run.sm_ticks[:, column].sum())
    return {"tensor_busy": busy} | apportion(shares, total - busy)


def apportion(shares: Mapping[str, Fraction], total: int) -> dict[str, int]:
    """Divide `total` into whole parts in proportion to `shares`, the largest remainders rounded up.

    Returns
    -------
    parts : dict of str to int
        They sum to `total`; without any share all goes to ``tail``.
    """
    whole = sum(shares.values(), Fraction(0))
    if whole == 0:
        return {"tail": total} if total else {}
    exact = {cause: share * total / whole for cause, share in shares.items()}
    parts = {cause: int(value) for cause, value in exact.items()}
    left = total - sum(parts.values())
    for cause in sorted(exact, key=lambda cause: (parts[cause] - exact[cause], cause))[:left]:
        parts[cause] += 1
    return {cause: count for cause, count in parts.items() if count}
