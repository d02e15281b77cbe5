"""A program of one warp: instructions and data, and its assembly text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stcsim.errors import IsaError, must
from stcsim.isa.directive import Directive
from stcsim.isa.instruction import Instruction
from stcsim.isa.operand import Target

COMMENT = "//"
"""Begins a comment that runs to the end of its line."""
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1f]")
"""A byte that no assembly text has; every binary has some, in its header."""


@dataclass(frozen=True)
class Program:
    """Instructions in order, and the data that they start from.

    Parameters
    ----------
    instructions : tuple of Instruction
    data : tuple of Directive

    Raises
    ------
    IsaError
        If a branch leaves the program.
    """

    instructions: tuple[Instruction, ...]
    data: tuple[Directive, ...] = ()

    def __post_init__(self) -> None:
        for target in self._targets():
            if target > len(self.instructions):
                what = f"branch must go to one of {len(self.instructions)} instructions, or their end"
                raise IsaError(must(what, target))

    def disassemble(self) -> str:
        """Return the program as assembly text, which assembles to the same program.

        Labels are named after the index of their instruction; comments of an original are lost.
        """
        lines = [str(directive) for directive in self.data]
        targets = self._targets()
        for i, instruction in enumerate(self.instructions):
            if i in targets:
                lines.append(f"{Target(i)}:")
            lines.append(f"    {instruction}")
        if len(self.instructions) in targets:
            lines.append(f"{Target(len(self.instructions))}:")
        return "\n".join([*lines, ""])

    def _targets(self) -> set[int]:
        return {
            operand.index
            for instruction in self.instructions
            for operand in instruction.operands
            if isinstance(operand, Target)
        }
