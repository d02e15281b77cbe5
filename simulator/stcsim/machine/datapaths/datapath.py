"""What every datapath plug-in states about itself."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from stcsim.config.machine import Machine, Section


class Datapath(ABC):
    """A kind of tensor core.

    Attributes
    ----------
    name : str
        Equals the file's name and the value in machine and kernel files.
    families : frozenset of str
        Instruction families (column ``family`` of the ISA tables) that it executes.
    formats_a, formats_b : frozenset of str
        Formats of operand A and of operand B that it takes.
    options : type or None
        Model of its own keys under a machine's ``tensor_core``; None: it has none.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    families: ClassVar[frozenset[str]]
    formats_a: ClassVar[frozenset[str]]
    formats_b: ClassVar[frozenset[str]]
    options: ClassVar[type[Section] | None] = None

    @classmethod
    def accumulator_tiles(cls, machine: Machine) -> int | None:
        """Return the warp tiles that one sub-core's accumulators hold beside its registers; None: no limit."""
        del machine
        return None
