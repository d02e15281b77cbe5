"""One GEMM on one machine with one kernel: fit the operands, lower, time, check, account.

Stands above the packages; studies and the command line call `run_gemm`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stcsim import MODEL_VERSION, __version__, auto
from stcsim.catalog import AUTO, KernelEntry, MachineEntry, load_kernel
from stcsim.config.kernel import Kernel
from stcsim.config.machine import Dtype, Machine
from stcsim.config.study import Adapt, Engine, Level, SparseSide
from stcsim.errors import CheckError, LoweringError, Problem, must
from stcsim.lowering import LOWERINGS, batch
from stcsim.lowering.check import check_values
from stcsim.lowering.lowered import Lowered
from stcsim.machine import simulator
from stcsim.machine.datapaths import DATAPATHS
from stcsim.machine.timing import Timing
from stcsim.result.result import Check, Result
from stcsim.workload.batch import GemmBatch
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import MaskPattern

LARGEST_TILES = 2**26
"""Warp tiles of one problem: some 3 GiB of records, a 262,144 x 262,144 output of 32 x 32 tiles."""
LARGEST_STEPS = 2**31
"""Bytes of one table of popcounts, a byte for each step of a row or column of warp tiles."""

Gemms = Gemm | GemmBatch
"""What runs as one kernel."""


@dataclass(frozen=True)
class Settings:
    """How to run, apart from what to run; fields as in `stcsim.config.study.Study`."""

    dtype: Dtype = "fp16"
    adapt: Adapt = "error"
    sparse_side: SparseSide = "as_given"
    engine: Engine = "numba"
    check_tiles: int = 2
    threads: int = 2
    level: Level = "gpu"


def require_compatible(machine: Machine, kernel: Kernel, dtype: Dtype) -> None:
    """Refuse a kernel that cannot run on a machine, naming both sides and what is accepted.

    Raises
    ------
    LoweringError
        If the datapath, the operand formats or the operand type do not fit.
    """
    where = f"kernel {kernel.name} on {machine.name}"
    problems = []
    accepted = machine.tensor_core.datapaths
    if kernel.datapath not in accepted:
        message = must(
            f"datapath must be one that {machine.name} has ({', '.join(accepted)})", kernel.datapath
        )
        problems.append(Problem(message, path=where))
    lowering, datapath = LOWERINGS[kernel.lowering], DATAPATHS[kernel.datapath]
    if kernel.datapath not in lowering.datapaths:
        what = f"datapath of lowering {lowering.name} must be {' or '.join(sorted(lowering.datapaths))}"
        problems.append(Problem(must(what, kernel.datapath), path=where))
    for side, name, formats in (
        ("A", lowering.format_a, datapath.formats_a),
        ("B", lowering.format_b, datapath.formats_b),
    ):
        if name not in formats:
            message = must(
                f"operand {side} of datapath {datapath.name} must be stored as {', '.join(sorted(formats))}",
                f"{name} (lowering {lowering.name})",
            )
            problems.append(Problem(message, path=where))
    types = sorted(set(kernel.instructions) & set(machine.tensor_core.macs_per_cycle))
    if dtype not in types:
        message = must(f"operand type must be one of {', '.join(types) or 'none'}", dtype, near=types)
        problems.append(Problem(message, path=where))
    if problems:
        raise LoweringError(problems)


def require_fit(machine: Machine, kernel: Kernel, dtype: Dtype, engine: Engine) -> None:
    """Refuse a kernel that no problem could run with on a machine, before any problem is made.

    Raises
    ------
    LoweringError
        As `require_compatible`; also if the machine lacks an instruction of the kernel, multipliers, or
        what a CTA takes.
    """
    require_compatible(machine, kernel, dtype)
    one = MaskPattern(np.ones((1, 1), bool))
    gemm = Gemm("one", Operand(one, "weight", 0, "one"), Operand(one, "activation", 0, "one"))
    simulator.require_fit(LOWERINGS[kernel.lowering].lower(gemm, kernel, dtype, machine), machine, engine)


def run_gemm(
    gemm: Gemms, machine: MachineEntry, kernel: KernelEntry, settings: Settings, *, seed: int
) -> Result:
    """Simulate one GEMM, or one batch of them.

    Parameters
    ----------
    gemm : Gemm or GemmBatch
    machine : MachineEntry
    kernel : KernelEntry
    settings : Settings
    seed : int
        Of the sample of tiles that are checked for values; recorded in the result.

    Returns
    -------
    result : Result

    Raises
    ------
    StcsimError
        If the operands do not fit the kernel.
    CheckError
        If the program computes a wrong value.
    """
    machine = _at_level(machine, settings)
    best: tuple[Timing, Lowered, KernelEntry] | None = None
    if kernel.kernel.name == AUTO:
        best = _fastest(gemm, machine, settings)
    else:
        require_compatible(machine.machine, kernel.kernel, settings.dtype)
        _require_size(gemm, kernel.kernel)
        for candidate, notes in _sides(gemm, kernel.kernel, settings.sparse_side):
            lowered, used = _lowered(candidate, notes, machine, kernel, settings)
            timing = simulator.simulate(lowered, machine.machine, settings.engine, settings.threads)
            if best is None or timing.cycles < best[0].cycles:
                best = (timing, lowered, used)
    if best is None:
        message = "no side of the problem was run"
        raise AssertionError(message)
    timing, lowered, used = best
    check = _checked(lowered, settings.check_tiles, seed)
    return _account(gemm, machine, used, settings, seed, timing, lowered, check)


def _at_level(machine: MachineEntry, settings: Settings) -> MachineEntry:
    """Return the machine, without its section ``gpu`` where SMs alone are timed."""
    if settings.level == "gpu":
        return machine
    return replace(machine, machine=machine.machine.model_copy(update={"gpu": None}))


def try_kernels(
    gemm: Gemms, machine: MachineEntry, settings: Settings, *, every: bool = False
) -> list[auto.Tried]:
    """Time the kernels that a machine lists on a problem, the fastest first.

    Parameters
    ----------
    gemm : Gemm or GemmBatch
    machine : MachineEntry
    settings : Settings
        ``sparse_side: auto`` counts as weight here: each kernel runs the problem one way round.
    every : bool
        Run also the kernels of which a lower bound shows that they cannot be the fastest.
    """
    machine = _at_level(machine, settings)

    def lower(kernel: KernelEntry) -> Lowered:
        require_compatible(machine.machine, kernel.kernel, settings.dtype)
        _require_size(gemm, kernel.kernel)
        side = "weight" if settings.sparse_side == "auto" else settings.sparse_side
        ((candidate, notes),) = _sides(gemm, kernel.kernel, side)
        problem = batch.misfit(LOWERINGS[kernel.kernel.lowering], candidate, kernel.kernel)
        if problem is not None and settings.adapt != "prune":
            raise LoweringError(problem)
        return _lowered(candidate, notes, machine, kernel, settings)[0]

    kernels = list(auto.listed(machine, settings.dtype))
    return auto.race(kernels, machine, lower, settings.engine, settings.threads, every=every)


def _fastest(gemm: Gemms, machine: MachineEntry, settings: Settings) -> tuple[Timing, Lowered, KernelEntry]:
    tried = try_kernels(gemm, machine, settings)
    best = auto.fastest(tried, f"workload {gemm.name} on {machine.machine.name}")
    if best.timing is None or best.lowered is None:
        message = "the fastest kernel was run"
        raise AssertionError(message)
    fitting = sum(one.lowered is not None for one in tried)
    note = f"kernel auto: the fastest of {fitting} that fit"
    return best.timing, replace(best.lowered, notes=(note, *best.lowered.notes)), best.kernel


def _lowered(
    gemm: Gemms, notes: tuple[str, ...], machine: MachineEntry, kernel: KernelEntry, settings: Settings
) -> tuple[Lowered, KernelEntry]:
    """Fit the operands to a kernel, or a dense kernel to them, and lower."""
    fitted, used, more = _fit(gemm, machine, kernel, settings)
    lowered = batch.lower(
        LOWERINGS[used.kernel.lowering], fitted, used.kernel, settings.dtype, machine.machine
    )
    return replace(lowered, notes=(*notes, *more, *lowered.notes)), used


def _require_size(gemm: Gemms, kernel: Kernel) -> None:
    """Refuse a problem whose warp tiles or step tables would not fit in memory, before memory is spent."""
    tile = kernel.tile
    rows, columns = -(-gemm.m // tile.m_warp), -(-gemm.n // tile.n_warp)
    where = f"workload {gemm.name}"
    if rows * columns > LARGEST_TILES:
        message = must(f"must have at most {LARGEST_TILES:,} warp tiles", f"{rows * columns:,}")
        raise LoweringError(Problem(message, path=where))
    if (rows + columns) * gemm.k > LARGEST_STEPS:
        message = must(
            f"must have at most {LARGEST_STEPS:,} columns and rows of warp tiles along K",
            (rows + columns) * gemm.k,
        )
        raise LoweringError(Problem(message, path=where))


def _sides(gemm: Gemms, kernel: Kernel, side: SparseSide) -> list[tuple[Gemms, tuple[str, ...]]]:
    """Return the problem as given, transposed, or both, with a note for each."""
    as_given = (gemm, ())
    wants = LOWERINGS[kernel.lowering].sparse_side
    if wants is None or side in ("as_given", "a"):
        return [as_given]
    swapped = (gemm.transposed(), ("transposed: B stands on the sparse side (A)",))
    if side == "b":
        return [swapped]
    if side == "auto":
        return [as_given, swapped]
    if gemm.b.role == "weight" and gemm.a.role != "weight":
        return [(swapped[0], ("transposed: the weight stands on the sparse side (A)",))]
    return [as_given]


def _fit(
    gemm: Gemms, machine: MachineEntry, kernel: KernelEntry, settings: Settings
) -> tuple[Gemms, KernelEntry, tuple[str, ...]]:
    """Make the operands fit the kernel's formats as `settings.adapt` says."""
    lowering = LOWERINGS[kernel.kernel.lowering]
    problem = batch.misfit(lowering, gemm, kernel.kernel)
    if problem is None:
        return gemm, kernel, ()
    where = f"workload {gemm.name}: {problem.path or 'a'}"
    has_weight = "weight" in (gemm.a.role, gemm.b.role)
    if settings.adapt == "dense" or (settings.adapt == "prune" and not has_weight):
        dense = _dense_kernel(machine)
        why = problem.message if has_weight else "neither operand is a weight that could be pruned"
        return gemm, dense, (f"adapted: dense, run by {dense.kernel.name}: {why}",)
    if settings.adapt == "prune":
        if gemm.a.role != "weight":
            message = must("must be a weight to be pruned onto the kernel's pattern", f"an {gemm.a.role}")
            raise LoweringError(Problem(message, path=where))
        pruned, loss = batch.prune(lowering, gemm, kernel.kernel)
        return pruned, kernel, (f"adapted: prune, {loss:.1%} of the weight's non-zeros dropped",)
    raise LoweringError(Problem(f"{problem.message} (adapt: dense or adapt: prune would run it)", path=where))


def _dense_kernel(machine: MachineEntry) -> KernelEntry:
    for name in machine.machine.kernels:
        entry, _ = load_kernel(name)
        if LOWERINGS[entry.kernel.lowering].takes_any_pattern:
            return entry
    message = must("must list a dense kernel to run a misfit as dense", ", ".join(machine.machine.kernels))
    raise LoweringError(Problem(message, path=f"machine {machine.machine.name}: kernels"))


def _checked(lowered: Lowered, tiles: int, seed: int) -> Check:
    if tiles == 0:
        return Check(0.0, None)
    verdict = check_values(lowered, tiles, seed)
    if verdict.fault is not None:
        raise CheckError(
            Problem(verdict.fault, path=f"value check of {lowered.gemm.name} by {lowered.kernel.name}")
        )
    return Check(verdict.share, True)


def _account(
    gemm: Gemms,
    machine: MachineEntry,
    kernel: KernelEntry,
    settings: Settings,
    seed: int,
    timing: Timing,
    lowered: Lowered,
    check: Check,
) -> Result:
    """Join timing, work and check in a `Result`; useful MACs are those of the problem as it ran."""
    slots = sum(
        count * lowered.slots_per_instruction.get(mnemonic, 0)
        for mnemonic, count in timing.instructions.items()
    )
    useful = lowered.macs_useful
    if lowered.steps is not None and not lowered.steps.dense and timing.products != useful:
        message = f"the engine multiplied {timing.products} pairs of non-zeros, the operands hold {useful}"
        raise AssertionError(message)
    return Result(
        workload=gemm.name,
        machine=machine.machine.name,
        kernel=kernel.kernel.name,
        dtype=settings.dtype,
        engine=settings.engine,
        model=timing.model,
        m=gemm.m,
        n=gemm.n,
        k=gemm.k,
        density_a=gemm.density_a,
        density_b=gemm.density_b,
        cycles=timing.cycles,
        clock_hz=timing.clock_hz or machine.machine.clock,
        dram_bytes=timing.dram_bytes,
        memory_bytes_per_second=timing.memory_bytes_per_second,
        sub_cores=timing.sub_cores,
        resident_warps=timing.resident_warps,
        macs_total=gemm.macs_total,
        macs_executed=lowered.macs_executed,
        macs_useful=useful,
        mac_slots=slots,
        multipliers=machine.machine.tensor_core.macs_per_cycle[settings.dtype] * timing.sub_cores,
        instructions=timing.instructions,
        outer_products=_outer_products(timing, lowered),
        stalls=timing.stalls,
        traffic_bytes=lowered.traffic_bytes,
        check=check,
        seed=seed,
        version=__version__,
        model_version=MODEL_VERSION,
        notes=lowered.notes,
        assumed=tuple(item.to_json() for item in (*machine.assumed, *kernel.assumed)),
    )


def _outer_products(timing: Timing, lowered: Lowered) -> dict[str, int]:
    """Return what ragged edges and zeros leave of the outer products, empty where nothing is skipped."""
    found = lowered.outer_products
    if found:
        found["executed"] = sum(timing.instructions.get(name, 0) for name in lowered.slots_per_instruction)
    return found
