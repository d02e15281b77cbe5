"""Time a lowered problem on a machine.

Place in the data flow: takes a `Lowered` and a `Machine`, looks up the timing of
its tensor instructions, and hands over to the engine of its datapath: the
outer-product SM, the SM engine, or closed forms.  Knows no files, no YAML and no
networks.
"""

from __future__ import annotations

from stcsim.config.kernel import Kernel
from stcsim.config.machine import InstructionTiming, Machine
from stcsim.errors import LoweringError, Problem, must, unknown
from stcsim.isa import Instruction
from stcsim.lowering.lowered import Lowered
from stcsim.lowering.main_loop import MainLoop
from stcsim.machine import analytic, gpu_simulator, outer_simulator, sm_simulator
from stcsim.machine.datapaths import DATAPATHS
from stcsim.machine.occupancy import resident_ctas
from stcsim.machine.sm_slab import SlabTiming, time_slab
from stcsim.machine.timing import EngineName, Timing


def _timing(machine: Machine, kernel: Kernel, mnemonic: str) -> InstructionTiming:
    """Look an instruction up in the machine file: by its name, or by the longest leading part of it.

    So the steps of HMMA.884 share a row, and OHMMA stands for outer products of every shape.
    """
    known = machine.tensor_core.instructions
    parts = mnemonic.split(".")
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in known:
            return known[".".join(parts[:n])]
    message = unknown(f"tensor instruction of {machine.name}", mnemonic, known)
    raise LoweringError(Problem(message, path=f"kernel {kernel.name}: instructions"))


def _require_multipliers(lowered: Lowered, machine: Machine) -> None:
    """Refuse a tensor core that has fewer multipliers than its instructions use in each cycle."""
    have = machine.tensor_core.macs_per_cycle[lowered.dtype]
    for mnemonic, slots in lowered.slots_per_instruction.items():
        interval = _timing(machine, lowered.kernel, mnemonic).interval_cycles
        need = -(-slots // interval)
        if have < need:
            what = f"must be at least {need}: {mnemonic} computes {slots} products in {interval} cycles"
            path = f"machine {machine.name}: tensor_core.macs_per_cycle.{lowered.dtype}"
            raise LoweringError(Problem(must(what, have), path=path))


def instruction_timing(lowered: Lowered, machine: Machine) -> InstructionTiming:
    """Return interval and latency of the first tensor instruction of a lowered problem.

    Raises
    ------
    LoweringError
        If the datapath does not execute it, or the machine file does not time it.
    """
    instruction = lowered.program.body[0].instruction
    _require_family(lowered.kernel, instruction)
    return _timing(machine, lowered.kernel, instruction.mnemonic)


def _require_family(kernel: Kernel, instruction: Instruction) -> None:
    """Refuse an instruction that the kernel's datapath does not execute."""
    datapath = DATAPATHS[kernel.datapath]
    if instruction.spec.family not in datapath.families:
        families = ", ".join(sorted(datapath.families))
        message = must(
            f"must run instructions of family {families} on datapath {datapath.name}", instruction.mnemonic
        )
        raise LoweringError(Problem(message, path=f"kernel {kernel.name}: instructions"))


def require_fit(lowered: Lowered, machine: Machine, engine: EngineName = "numba") -> None:
    """Refuse a kernel that no problem could run with on a machine; nothing is simulated.

    Parameters
    ----------
    lowered : Lowered
        Any problem of the kernel, the smaller the quicker.
    machine : Machine
    engine : "numba", "reference" or "analytic"

    Raises
    ------
    LoweringError
        If the machine lacks an instruction of the kernel, multipliers, or what a CTA takes.
    """
    _require_multipliers(lowered, machine)
    if engine == "analytic":
        return
    if lowered.steps is not None:
        instruction_timing(lowered, machine)
    else:
        _require_sm(lowered, machine)
    kernel, dtype = lowered.kernel, lowered.dtype
    limit = DATAPATHS[kernel.datapath].accumulator_tiles(machine)
    stage_bytes = MainLoop(kernel, dtype, kernel.tile).stage_bytes if lowered.steps is None else None
    resident_ctas(machine, kernel, dtype, limit, stage_bytes)


def _require_sm(lowered: Lowered, machine: Machine) -> None:
    """Refuse a kernel whose datapath does not execute its instructions, or a machine without an SM."""
    for op in lowered.program.body:
        _require_family(lowered.kernel, op.instruction)
    if machine.sm is None:
        message = f"must be given for kernel {lowered.kernel.name}: its instructions run on the SM engine"
        raise LoweringError(Problem(message, path=f"machine {machine.name}: sm"))


def simulate(lowered: Lowered, machine: Machine, engine: EngineName = "numba", threads: int = 1) -> Timing:
    """Count the cycles of a lowered problem.

    Parameters
    ----------
    lowered : Lowered
    machine : Machine
    engine : "numba", "reference" or "analytic"
        The fast engine, or the readable one that defines it: both give the same counts.  Or closed forms.
    threads : int
        Threads of the fast engine; the result does not depend on it.

    Returns
    -------
    timing : Timing

    Raises
    ------
    LoweringError
        If the kernel does not fit the machine.
    """
    _require_multipliers(lowered, machine)
    if lowered.encodes_output and (machine.gpu is None or engine == "analytic"):
        message = (
            "must not be given where SMs alone are timed: the whole GPU (level: gpu) encodes and writes C"
        )
        raise LoweringError(Problem(message, path=f"kernel {lowered.kernel.name}: options.output_density"))
    if lowered.steps is not None:
        timing = instruction_timing(lowered, machine)
        if engine == "analytic":
            return analytic.outer_product(lowered, machine, timing)
        if machine.gpu is None:
            return outer_simulator.simulate(lowered, machine, timing, engine, threads)
        ctas = outer_simulator.time_ctas(lowered, machine, timing, engine, threads)
        of_grid = gpu_simulator.of_outer(ctas, lowered, machine)
        return gpu_simulator.simulate(lowered, machine, of_grid, engine)
    if engine == "analytic":
        mnemonics = {op.instruction.mnemonic for op in lowered.program.body}
        intervals = {name: _timing(machine, lowered.kernel, name).interval_cycles for name in mnemonics}
        return analytic.inner_product(lowered, machine, intervals)
    if machine.gpu is not None:
        slab = slab_timing(lowered, machine, engine, threads)
        return gpu_simulator.simulate(lowered, machine, gpu_simulator.of_slabs(lowered, slab), engine)
    _require_sm(lowered, machine)
    return sm_simulator.simulate(lowered, machine, engine, threads)


def slab_timing(lowered: Lowered, machine: Machine, engine: EngineName, threads: int) -> SlabTiming:
    """Time the slabs of a dense or 2:4 kernel on the SM engine; arguments and errors as `simulate`."""
    _require_multipliers(lowered, machine)
    _require_sm(lowered, machine)
    return time_slab(lowered, machine, engine, threads)
