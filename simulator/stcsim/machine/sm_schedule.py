"""Give code of ours its stall counts and scoreboard counters, as a compiler does.

Place in the data flow: `stcsim.lowering.warp_code` in, `stcsim.machine.sm_record` out.  One mechanism for every
machine, whether its own compilers publish control codes or not:

* order is kept; each instruction issues as early as the latencies of what it reads and the interval of its pipe
  allow, and the instruction before it gets the difference as its stall count;
* at the end of a stretch of code (before the loop, the body) the last stall count lets all such results
  arrive: ptxas does so at every loop of data/h200/src/instr.cu (last mma to target: exactly the latency);
* a wait longer than the largest stall count takes a NOP more;
* results of unknown latency (loads, copies to registers) hold a counter, that of their batch; the last counter
  protects registers that a memory instruction still reads from being written;
* a reader, and a writer of the same register, waits for the counter.

Knows no cycle of any run: waits that the machine adds (busy pipes, full queues) are the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stcsim.config.machine import Machine
from stcsim.isa import load_isa
from stcsim.isa.spec import StepSequence
from stcsim.lowering.warp_code import CodeOp, WarpCode
from stcsim.machine.sm_binding import bind_sm, sm_section, write_row
from stcsim.machine.sm_record import N_BARRIERS, NONE, Column, IntArray, Kind, SmModel

_PROTECTING = N_BARRIERS - 1
"""The counter that protects what memory instructions still read; the others hold results."""


@dataclass
class _Scheduler:
    """Schedules stretches of code one after the other; registers keep their counters between them."""

    machine: Machine
    mnemonics: dict[str, int] = field(default_factory=dict)
    rows: list[IntArray] = field(default_factory=list)
    held_by: dict[int, int] = field(default_factory=dict)
    being_read: set[int] = field(default_factory=set)

    def stretch(self, ops: Sequence[CodeOp], *, branch_to: int | None = None, final: bool = False) -> None:
        """Append the rows of a stretch; `branch_to`: it is a loop's body; `final`: nothing follows."""
        sm = sm_section(self.machine)
        ready: dict[int, int] = {}
        forwarded: dict[int, int] = {}
        pipe_free: dict[int, int] = {}
        written_later = {register for op in ops for register in op.writes}
        now, last, end, free_from = -1, None, 0, 0
        for op in ops:
            row, kind = self.row(op)
            earliest = max(now + 1, free_from) if last is not None else 0
            waits = 0
            for register in {*op.reads, *op.writes}:
                known = (
                    forwarded
                    if kind == Kind.MMA and register in op.writes and register in forwarded
                    else ready
                )
                earliest = max(earliest, known.get(register, 0))
                if register in self.held_by:
                    waits |= 1 << self.held_by[register]
            if self.being_read.intersection(op.writes):
                waits |= 1 << _PROTECTING
            pipe = -2 if kind == Kind.MMA else int(row[Column.PIPE])
            if pipe != NONE:
                earliest = max(earliest, pipe_free.get(pipe, 0))
                pipe_free[pipe] = earliest + int(row[Column.INTERVAL])
            if last is not None:
                self.stall(last, earliest - now)
            row[Column.WAIT_MASK] |= waits
            self.clear(waits)
            now, last = earliest, row
            free_from = now + op.wait_cycles
            if kind in (Kind.LOAD, Kind.COPY) and op.writes:
                row[Column.WRITE_BARRIER] = counter = op.batch % _PROTECTING
                self.held_by |= dict.fromkeys(op.writes, counter)
            elif kind in (Kind.MMA, Kind.INTEGER):
                done = now + int(row[Column.LATENCY])
                ready |= dict.fromkeys(op.writes, done)
                for register in op.writes:
                    forwarded.pop(register, None)
                sequence = self.sequence(op)
                if sequence is not None:
                    forwarded |= dict.fromkeys(op.writes, now + sequence.forward_cycles[op.set_])
                end = max(end, done)
            if kind in (Kind.LOAD, Kind.STORE, Kind.COPY) and written_later.intersection(op.reads):
                row[Column.READ_BARRIER] = _PROTECTING
                self.being_read |= set(op.reads)
            self.rows.append(row)
        if branch_to is not None:
            branch, _ = self.row(CodeOp("BRA"))
            branch[Column.TARGET] = branch_to
            longest = max(sm.branch_cycles, min(end - now - 1, sm.control.largest_stall))
            if last is not None:
                self.stall(last, max(1, end - now - longest))
            self.rows.append(branch)
            branch[Column.STALL] = max(1, min(end - now - 1, sm.control.largest_stall))
        elif last is not None and not final:
            self.stall(last, max(1, end - now))

    def row(self, op: CodeOp) -> tuple[IntArray, Kind]:
        """Return a row with what the machine says of an instruction."""
        row = np.zeros(len(Column), np.int64)
        kind = write_row(
            row, self.machine, op.mnemonic, wavefronts=op.wavefronts, lines=op.lines, pending=op.pending
        )
        row[Column.OPCODE] = self.mnemonics.setdefault(op.mnemonic, len(self.mnemonics))
        row[Column.BANK] = self.conflict(op)
        sequence = self.sequence(op)
        if sequence is not None:
            row[Column.LATENCY] = sequence.latency(op.set_, op.step)
        return row, kind

    def sequence(self, op: CodeOp) -> StepSequence | None:
        """Return the step timing of an instruction that is a step of a product (HMMA.884), else None."""
        spec = load_isa().get(op.mnemonic)
        return None if spec is None else spec.sequence

    def conflict(self, op: CodeOp) -> int:
        """Further cycles for operands that lie in one bank of the register file."""
        registers = sm_section(self.machine).registers
        if registers.reads_per_bank == 0 or not op.reads:
            return 0
        banks = np.bincount([register % registers.banks for register in dict.fromkeys(op.reads)])
        return int(-(-banks.max() // registers.reads_per_bank)) - 1

    def clear(self, mask: int) -> None:
        """Forget what was held by the counters of `mask`."""
        self.held_by = {register: c for register, c in self.held_by.items() if not mask >> c & 1}
        if mask >> _PROTECTING & 1:
            self.being_read.clear()

    def stall(self, row: IntArray, cycles: int) -> None:
        """Give a row a stall count, with NOPs behind it for what is too long."""
        control = sm_section(self.machine).control
        while cycles > control.largest_stall:
            row[Column.STALL] = control.largest_stall
            cycles = max(cycles - control.largest_stall, control.least_yielding_stall)
            row, _ = self.row(CodeOp("NOP"))
            self.rows.append(row)
        row[Column.STALL] = cycles


def _repeat(scheduler: _Scheduler, body: Sequence[CodeOp]) -> None:
    """Append a loop: its waits are those of the first iteration and those for what an iteration leaves held."""
    target = len(scheduler.rows)
    scheduler.stretch(body, branch_to=target)
    first = scheduler.rows
    scheduler.rows = []
    scheduler.stretch(body, branch_to=target)
    for row, repeated in zip(first[target:], scheduler.rows, strict=True):
        row[Column.WAIT_MASK] |= repeated[Column.WAIT_MASK]
    scheduler.rows = first


def schedule(code: WarpCode, machine: Machine, *, warps_per_cta: int, resident_ctas: int) -> SmModel:
    """Schedule the code of a warp for a machine.

    Parameters
    ----------
    code : WarpCode
    machine : Machine
    warps_per_cta, resident_ctas : int

    Returns
    -------
    model : SmModel

    Raises
    ------
    LoweringError
        If the machine lacks an instruction or a section ``sm``.
    """
    scheduler = _Scheduler(machine)
    scheduler.stretch(code.before)
    if code.body:
        _repeat(scheduler, code.body)
    scheduler.stretch(code.after, final=True)
    program = np.array(scheduler.rows, np.int64).reshape(len(scheduler.rows), len(Column))
    return SmModel(
        program=program,
        mnemonics=tuple(scheduler.mnemonics),
        machine=bind_sm(machine),
        iterations=code.iterations,
        warps_per_cta=warps_per_cta,
        resident_ctas=resident_ctas,
    )
