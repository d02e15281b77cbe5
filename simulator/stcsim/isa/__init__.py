"""Instruction tables, programs and what each instruction computes; knows nothing of timing.

Leftmost package: it imports the base layer alone.  Rows of isa/*.yaml (`table`, `spec`) say what an
instruction is; `semantics` say what it computes on a `WarpState`; `assembler`, `encoding` and `binary`
derive text and bits from the same rows.

Examples
--------
>>> import numpy as np
>>> from stcsim.isa import Instruction, Immediate, Register, WarpState, execute
>>> state = WarpState(np.zeros(64, dtype=np.uint8))
>>> execute(Instruction("MOV", (Register(4), Immediate(0xF0F0))), state)
True
>>> execute(Instruction("POPC", (Register(5), Register(4))), state)
True
>>> int(state.registers[5, 0])
8
"""

from __future__ import annotations

from stcsim.isa.assembler import assemble
from stcsim.isa.expansion import expand, outer_product_rows
from stcsim.isa.instruction import Instruction, execute
from stcsim.isa.operand import (
    Accumulator,
    Address,
    Immediate,
    Operand,
    Predicate,
    Register,
    SpecialRegister,
    Target,
)
from stcsim.isa.program import Program
from stcsim.isa.semantics import semantic
from stcsim.isa.spec import InstructionSpec, OperandSpec, Shape
from stcsim.isa.state import WarpState
from stcsim.isa.table import Isa, load_isa

__all__ = [
    "Accumulator",
    "Address",
    "Immediate",
    "Instruction",
    "InstructionSpec",
    "Isa",
    "Operand",
    "OperandSpec",
    "Predicate",
    "Program",
    "Register",
    "Shape",
    "SpecialRegister",
    "Target",
    "WarpState",
    "assemble",
    "execute",
    "expand",
    "load_isa",
    "outer_product_rows",
    "semantic",
]
