"""Branches, the end of a program, barriers."""

from __future__ import annotations

from stcsim.isa.semantics.registry import Active, Operands, semantic
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import WarpState


@semantic("branch")
def branch(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Go on at the target."""
    state.pc = operands[0].index


@semantic("exit")
def leave(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """End the program."""
    state.exited = True


@semantic("nothing")
def nothing(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Change no value: NOP, and the barrier, which orders warps and not values."""
