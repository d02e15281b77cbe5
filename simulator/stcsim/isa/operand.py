"""The operands of an instruction: registers, predicates, immediates, addresses.

First module of the isa package: it knows how an operand is written in assembly
text, and nothing of the instruction that carries it.
"""

from __future__ import annotations

from dataclasses import dataclass

ZERO_REGISTER = 255
"""Index of RZ: reads as zero, ignores writes.  Source: every NVIDIA SASS listing since Kepler."""
TRUE_PREDICATE = 7
"""Index of PT: always true.  Source: as above; three bits name a predicate, P0..P6 are free."""
SPECIAL_REGISTERS = ("SR_LANEID",)
"""Read-only registers that S2R copies; the simulator's programs need the lane number alone."""


@dataclass(frozen=True, slots=True)
class Register:
    """A general register, or the first of several consecutive ones; 32 bits in each of 32 lanes.

    Parameters
    ----------
    index : int
        0..254, or 255 for RZ.
    """

    index: int

    def __str__(self) -> str:
        return "RZ" if self.index == ZERO_REGISTER else f"R{self.index}"


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate register: one truth value in each of 32 lanes.

    Parameters
    ----------
    index : int
        0..6, or 7 for PT.
    negated : bool
        Whether the instruction reads its negation (``!P0``).
    """

    index: int
    negated: bool = False

    def __str__(self) -> str:
        name = "PT" if self.index == TRUE_PREDICATE else f"P{self.index}"
        return f"!{name}" if self.negated else name


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number that stands in the instruction word."""

    value: int

    def __str__(self) -> str:
        return str(self.value) if -16 < self.value < 16 else hex(self.value)


@dataclass(frozen=True, slots=True)
class Address:
    """A byte address: an offset alone, or an offset from a register that each lane adds for itself.

    Parameters
    ----------
    register : Register or None
        The base, per lane; None for one address that all lanes use.
    offset : int, unit byte
    """

    register: Register | None
    offset: int = 0

    def __str__(self) -> str:
        if self.register is None:
            return f"[{hex(self.offset)}]"
        if self.offset == 0:
            return f"[{self.register}]"
        sign = "-" if self.offset < 0 else "+"
        return f"[{self.register} {sign} {hex(abs(self.offset))}]"


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One tile of the DSTC accumulator buffer (m_warp x n_warp sums), named by its index."""

    index: int

    def __str__(self) -> str:
        return f"ACC{self.index}"


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A read-only register of the machine, one of `SPECIAL_REGISTERS`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Target:
    """Where a branch goes: the index of an instruction of the same program."""

    index: int

    def __str__(self) -> str:
        return f"L{self.index}"


Operand = Register | Predicate | Immediate | Address | Accumulator | SpecialRegister | Target
