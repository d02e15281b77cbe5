"""Time a lowered problem on a machine.

Place in the data flow: takes a `Lowered` and a `Machine`, binds the program to
the machine's intervals and latencies, spreads the warp tiles, runs an engine
and sums its counters.  Knows no files, no YAML and no networks.
"""

from __future__ import annotations

import numpy as np

from stcsim.config.kernel import Kernel
from stcsim.config.machine import InstructionTiming, Machine
from stcsim.errors import LoweringError, Problem, must, unknown
from stcsim.isa import Accumulator, Instruction, Register
from stcsim.lowering.lowered import Lowered
from stcsim.machine import analytic, outer_simulator, sm_simulator
from stcsim.machine.datapaths import DATAPATHS
from stcsim.machine.occupancy import resident_ctas
from stcsim.machine.record import (
    N_COUNTERS,
    Cause,
    Column,
    Counter,
    IntArray,
    Repeat,
    SubCoreModel,
    Work,
)
from stcsim.machine.spread import LABEL, distinct, spread
from stcsim.machine.timing import EngineName, Timing


def bind(lowered: Lowered, machine: Machine) -> SubCoreModel:
    """Give every instruction of the loop body its interval, latency and scoreboard slots.

    Raises
    ------
    LoweringError
        If the machine has no such datapath or instruction, or the datapath does not take it.
    """
    kernel = lowered.kernel
    datapath = DATAPATHS[kernel.datapath]
    slots = _accumulator_slots(lowered)
    mnemonics: dict[str, int] = {}
    rows = []
    for op in lowered.program.body:
        mnemonic = op.instruction.mnemonic
        timing = _timing(machine, kernel, mnemonic)
        _require_family(kernel, op.instruction)
        written, read = _accesses(op.instruction)
        # Sums of an outer product are read, added to and written in the accumulator buffer itself, in
        # order; only sums in registers make the next instruction on them wait.
        source = next((slots[operand] for operand in read if operand in slots), -1)
        in_registers = isinstance(written, Register)
        row = np.zeros(len(Column), np.int64)
        row[Column.OPCODE] = mnemonics.setdefault(mnemonic, len(mnemonics))
        row[Column.INTERVAL] = timing.interval_cycles
        row[Column.LATENCY] = timing.latency_cycles
        row[Column.DESTINATION] = slots[written]
        row[Column.SOURCE] = source if in_registers else -1
        row[Column.REPEAT] = Repeat.OUTER_GRID if op.repeats else Repeat.ONCE
        rows.append(row)
    ctas = resident_ctas(machine, kernel, lowered.dtype, datapath.accumulator_tiles(machine))
    steps = lowered.steps
    empty = np.zeros((0, 0), np.uint8)
    return SubCoreModel(
        micro_ops=np.array(rows, np.int64).reshape(len(rows), len(Column)),
        mnemonics=tuple(mnemonics),
        n_slots=len(slots),
        iterations=lowered.program.iterations,
        resident_warps=max(1, ctas * kernel.tile.warps // machine.sub_cores_per_sm),
        greedy=machine.scheduler == "gto",
        ones_a=np.ascontiguousarray(steps.ones_a) if steps else empty,
        ones_b=np.ascontiguousarray(steps.ones_b) if steps else empty,
        m_inst=steps.m_inst if steps else 1,
        n_inst=steps.n_inst if steps else 1,
    )


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


def _require_family(kernel: Kernel, instruction: Instruction) -> None:
    """Refuse an instruction that the kernel's datapath does not execute."""
    datapath = DATAPATHS[kernel.datapath]
    if instruction.spec.family not in datapath.families:
        families = ", ".join(sorted(datapath.families))
        message = must(
            f"must run instructions of family {families} on datapath {datapath.name}", instruction.mnemonic
        )
        raise LoweringError(Problem(message, path=f"kernel {kernel.name}: instructions"))


def _accesses(instruction: Instruction) -> tuple[Register | Accumulator, list[Register | Accumulator]]:
    """Return the sums that a tensor instruction writes, and all registers and sums that it reads."""
    pairs = [
        (operand_spec.access, operand)
        for operand_spec, operand in zip(instruction.spec.operands, instruction.operands, strict=True)
        if isinstance(operand, Register | Accumulator)
    ]
    written = next(operand for access, operand in pairs if access in ("write", "update"))
    return written, [operand for access, operand in pairs if access in ("read", "update")]


def _accumulator_slots(lowered: Lowered) -> dict[Register | Accumulator, int]:
    """Return a number for each of the sums that the loop body writes: the scoreboard slots of a warp."""
    written = dict.fromkeys(_accesses(op.instruction)[0] for op in lowered.program.body)
    return {operand: slot for slot, operand in enumerate(written)}


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
    if lowered.steps is not None:
        instruction = lowered.program.body[0].instruction
        _require_family(lowered.kernel, instruction)
        timing = _timing(machine, lowered.kernel, instruction.mnemonic)
        if engine == "analytic":
            return analytic.outer_product(lowered, machine, timing)
        return outer_simulator.simulate(lowered, machine, timing, engine, threads)
    if engine == "analytic":
        mnemonics = {op.instruction.mnemonic for op in lowered.program.body}
        intervals = {name: _timing(machine, lowered.kernel, name).interval_cycles for name in mnemonics}
        return analytic.inner_product(lowered, machine, intervals)
    if sm_simulator.takes(lowered, machine):
        return sm_simulator.simulate(lowered, machine, engine, threads)
    model = bind(lowered, machine)
    work = spread(lowered.grid, machine.sms, machine.sub_cores_per_sm)
    tiles = np.diff(work.offsets)
    run, which = (work, np.arange(len(tiles))) if lowered.steps else distinct(work)
    counters = _engine(engine, model, run, threads)[which]
    sub_cores = len(tiles)
    cycles = int(counters[:, Counter.CYCLES].max(initial=0))
    idle = cycles - counters[:, Counter.CYCLES]
    fewer = tiles < tiles.max(initial=0)
    stalls = {
        Cause.TENSOR_BUSY: int(counters[:, Counter.TENSOR_BUSY].sum()),
        Cause.DEPENDENCY: int(counters[:, Counter.DEPENDENCY].sum()),
        Cause.IMBALANCE: int(idle[~fewer].sum()),
        Cause.TAIL: int(idle[fewer].sum()),
    }
    if sum(stalls.values()) != cycles * sub_cores:
        message = (
            f"busy and stalls ({sum(stalls.values())}) do not tile {cycles} cycles of {sub_cores} sub-cores"
        )
        raise AssertionError(message)
    issued = counters[:, N_COUNTERS:].sum(axis=0)
    return Timing(
        cycles=cycles,
        sub_cores=sub_cores,
        stalls={cause.value: count for cause, count in stalls.items()},
        instructions={name: int(count) for name, count in zip(model.mnemonics, issued, strict=True)},
        products=int(counters[:, Counter.PRODUCTS].sum()),
        resident_warps=model.resident_warps,
        model=LABEL,
    )


def _engine(engine: EngineName, model: SubCoreModel, work: Work, threads: int) -> IntArray:
    if engine == "reference":
        from stcsim.machine import reference  # each engine is loaded only where it runs

        return reference.simulate(model, work)
    from stcsim.machine.kernels import sub_core  # numba takes most of a second to import

    return sub_core.simulate(model, work, threads)
