"""Give an SM engine the numbers of a machine file: parameters of the SM, and a row for each instruction.

Place in the data flow: between configuration (`stcsim.config.machine`, section ``sm``) and the flat records of
`stcsim.machine.sm_record`; used by `sm_listing` (measured code) and `sm_schedule` (code of ours).  Knows nothing of
kernels and no cycle of any run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from stcsim.config.machine import InstructionTiming, Machine
from stcsim.config.sm import Sm
from stcsim.errors import LoweringError, Problem, unknown
from stcsim.machine.occupancy import WARP_SIZE
from stcsim.machine.sm_record import NONE, POLICIES, Column, IntArray, Kind, SmMachine

T = TypeVar("T")

_KINDS = {
    "LDSM": Kind.LOAD, "LDS": Kind.LOAD, "STS": Kind.STORE, "LDGSTS": Kind.COPY, "LDG": Kind.COPY,
    "LDGDEPBAR": Kind.COMMIT, "DEPBAR": Kind.WAIT_GROUPS, "BAR": Kind.BARRIER, "BRA": Kind.BRANCH,
    "STG": Kind.ISSUE_ONLY, "NOP": Kind.ISSUE_ONLY,
}  # fmt: skip
"""Kinds by the first part of a mnemonic; SASS names as of sm_70 to sm_90.  Names that start with U run on the
uniform datapath, which takes an issue slot and no integer pipe; a global store does as much, until there is an L2."""


def sm_section(machine: Machine) -> Sm:
    """Return the section ``sm`` of a machine.

    Raises
    ------
    LoweringError
        If it has none.
    """
    if machine.sm is None:
        message = "must have a section sm to run instruction by instruction on an SM"
        raise LoweringError(Problem(message, path=f"machine {machine.name}"))
    return machine.sm


def leading(table: Mapping[str, T], mnemonic: str) -> T | None:
    """Look a mnemonic up by itself or by the longest leading part of it that the table has."""
    parts = mnemonic.split(".")
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in table:
            return table[".".join(parts[:n])]
    return None


def pipes(sm: Sm) -> tuple[str, ...]:
    """Return the names of the pipes beside the tensor pipe, in the order of the file."""
    return tuple(dict.fromkeys(operation.pipe for operation in sm.integer.operations.values()))


def bind_sm(machine: Machine) -> SmMachine:
    """Return the parameters of a machine's SM; arguments and errors as `sm_section`."""
    sm = sm_section(machine)
    queue, port, copies = sm.memory_queue, sm.shared_port, sm.copies
    return SmMachine(
        sub_cores=machine.sub_cores_per_sm,
        policy=POLICIES[machine.scheduler],
        branch_cycles=sm.branch_cycles,
        integer_delay_period=sm.integer.delay_period,
        integer_delay_cycles=sm.integer.delay_cycles,
        queue_depth=queue.depth,
        queue_latency=queue.latency_cycles,
        slot_gap=queue.slot_gap_cycles,
        slot_gap_fed=queue.slot_gap_fed_cycles,
        fed_window=queue.fed_window_cycles,
        store_gap=queue.store_gap_cycles,
        requests=port.requests,
        return_gap=port.return_gap_cycles,
        load_latency=port.load_latency_cycles,
        read_release=port.read_release_cycles,
        copy_to_tags=copies.to_tags_cycles,
        tag_queue=copies.tag_queue,
        copy_release=copies.release_cycles,
        copy_latency=copies.latency_cycles,
        commit_latency=copies.commit_cycles,
        barrier_base=sm.barrier.base_cycles,
        barrier_per_warp=sm.barrier.per_warp_cycles,
        n_pipes=len(pipes(sm)),
    )


def kind_of(machine: Machine, mnemonic: str) -> Kind:
    """Return what an instruction does to the SM.

    Raises
    ------
    LoweringError
        If the machine has no such instruction.
    """
    if leading(machine.tensor_core.instructions, mnemonic) is not None:
        return Kind.MMA
    first = mnemonic.split(".")[0]
    if first in _KINDS:
        return _KINDS[first]
    if leading(sm_section(machine).integer.operations, mnemonic) is not None:
        return Kind.INTEGER
    if first.startswith("U"):
        return Kind.ISSUE_ONLY
    known = [
        *machine.tensor_core.instructions, *_KINDS, *sm_section(machine).integer.operations,
    ]  # fmt: skip
    message = unknown(f"instruction of {machine.name}", mnemonic, known)
    raise LoweringError(Problem(message, path=f"machine {machine.name}: sm.integer.operations"))


def tensor_timing(machine: Machine, mnemonic: str) -> InstructionTiming:
    """Return interval and latency of a tensor instruction; errors as `kind_of`."""
    timing = leading(machine.tensor_core.instructions, mnemonic)
    if timing is None:
        message = unknown(f"tensor instruction of {machine.name}", mnemonic, machine.tensor_core.instructions)
        raise LoweringError(Problem(message, path=f"machine {machine.name}: tensor_core.instructions"))
    return timing


def write_row(
    row: IntArray, machine: Machine, mnemonic: str, *, wavefronts: int = 0, lines: int = 0, pending: int = 0
) -> Kind:
    """Fill in what a machine says of an instruction; control fields (stall, counters, waits) are left.

    Parameters
    ----------
    row : ndarray of int64, shape (len(Column),)
        Written.
    machine : Machine
    mnemonic : str
    wavefronts, lines, pending : int
        As in `stcsim.lowering.warp_code.CodeOp`.

    Returns
    -------
    kind : Kind

    Raises
    ------
    LoweringError
        If the machine has no such instruction.
    """
    sm = sm_section(machine)
    kind = kind_of(machine, mnemonic)
    row[Column.KIND] = kind
    row[[Column.WRITE_BARRIER, Column.READ_BARRIER, Column.PIPE]] = NONE
    row[[Column.STALL, Column.LATENCY, Column.SLOTS]] = 1
    if kind == Kind.MMA:
        timing = tensor_timing(machine, mnemonic)
        row[Column.INTERVAL], row[Column.LATENCY] = timing.interval_cycles, timing.latency_cycles
        row[Column.SLOT_COST] = timing.slot_cost_cycles
    elif kind == Kind.INTEGER:
        operation = leading(sm.integer.operations, mnemonic)
        if operation is not None:
            row[Column.INTERVAL] = -(-WARP_SIZE // operation.lanes_per_cycle)
            row[Column.LATENCY] = operation.latency_cycles
            row[Column.PIPE] = pipes(sm).index(operation.pipe)
    elif kind in (Kind.LOAD, Kind.STORE):
        row[Column.PORT] = wavefronts
        row[Column.SLOTS] = sm.memory_queue.load_slots if kind == Kind.LOAD else sm.memory_queue.store_slots
    elif kind == Kind.COPY:
        row[Column.PORT] = sm.copies.tag_base_cycles + -(-lines // sm.copies.lines_per_tag_cycle)
        row[Column.SLOTS] = sm.memory_queue.copy_slots
    row[Column.PENDING] = pending
    return kind
