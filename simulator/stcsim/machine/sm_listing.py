"""Bind a measured listing to a machine: its own stall counts, counters and waits, instruction by instruction.

Place in the data flow: `stcsim.config.loop` in, `stcsim.machine.sm_record` out.  Knows nothing of files.
"""

from __future__ import annotations

import numpy as np

from stcsim.config.loop import ListedOp, Loop
from stcsim.config.machine import Machine
from stcsim.config.sm import Control
from stcsim.machine.sm_binding import bind_sm, sm_section, write_row
from stcsim.machine.sm_record import NONE, Column, Kind, SmModel


def counted_stall(op: ListedOp, control: Control) -> int:
    """Return the cycles that a listed stall count takes.

    Source: data/h200/mainloop/README.md, "Control field layout, verified": 16 NOPs with every stall and yield hint.
    """
    shortest = control.least_yielding_stall
    if op.stall == 0 or (op.stall == 1 and op.yields):
        return shortest
    from_top = control.largest_stall - op.stall
    if not op.yields and from_top < len(control.long_stalls):
        return control.long_stalls[len(control.long_stalls) - 1 - from_top]
    return op.stall


def bind_listing(
    loop: Loop, machine: Machine, *, iterations: int, resident_ctas: int | None = None
) -> SmModel:
    """Bind a listing.

    Parameters
    ----------
    loop : Loop
    machine : Machine
    iterations : int
        Iterations of the loop; it starts and ends with nothing around it.
    resident_ctas : int, optional
        CTAs on the SM at a time; None: as the loop says.

    Returns
    -------
    model : SmModel

    Raises
    ------
    LoweringError
        If the machine lacks an instruction of the listing or a section ``sm``.
    """
    control = sm_section(machine).control
    mnemonics: dict[str, int] = {}
    ops = loop.ops()
    program = np.zeros((len(ops), len(Column)), np.int64)
    for row, op in zip(program, ops, strict=True):
        if op.role == "off":
            write_row(row, machine, "NOP")
        else:
            kind = write_row(
                row, machine, op.opcode, wavefronts=loop.wavefronts_per_load, lines=loop.lines_per_copy,
                pending=op.pending,
            )  # fmt: skip
            # A commit counts on a counter of its own in the listing; the engine counts groups.
            holds = kind in (Kind.LOAD, Kind.STORE, Kind.COPY, Kind.INTEGER)
            row[Column.WRITE_BARRIER] = op.write if holds and op.write is not None else NONE
            row[Column.READ_BARRIER] = op.read if holds and op.read is not None else NONE
        row[Column.OPCODE] = mnemonics.setdefault(op.opcode, len(mnemonics))
        row[Column.STALL] = counted_stall(op, control)
        row[Column.WAIT_MASK] = op.wait_mask
    return SmModel(
        program=program,
        mnemonics=tuple(mnemonics),
        machine=bind_sm(machine),
        iterations=iterations,
        warps_per_cta=loop.warps_per_cta,
        resident_ctas=resident_ctas or loop.resident_ctas,
    )
