"""One row of an instruction table, checked: what an instruction is.

Knows the shape of a row and what a valid operand is; knows neither where rows
come from (`table`), nor what they compute (`semantics`), nor anything of time.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from stcsim.errors import must
from stcsim.isa.operand import (
    SPECIAL_REGISTERS,
    TRUE_PREDICATE,
    ZERO_REGISTER,
    Accumulator,
    Address,
    Immediate,
    Operand,
    Predicate,
    Register,
    SpecialRegister,
    Target,
)

OperandKind = Literal[
    "register",
    "register_or_immediate",
    "predicate",
    "immediate",
    "address",
    "accumulator",
    "special_register",
    "target",
]
Unit = Literal["tensor", "integer", "lsu", "async_copy", "barrier", "branch"]

FIELD_BITS: dict[str, int] = {
    "register": 8,
    "register_or_immediate": 33,
    "predicate": 4,
    "address": 32,
    "accumulator": 4,
    "special_register": 8,
    "target": 24,
}
"""Width of an operand's field; an immediate says its own.

A register or an immediate: 32 bits and a flag above them.  A predicate: three bits and one for its
negation.  An address: register 8, signed byte offset 24.
ASSUMED: NVIDIA publishes no encodings; the widths follow the operands' ranges.
"""
OFFSET_BITS = 24
WORD_BITS = 128
"""Bits of an instruction word, as on Volta and later."""
FIRST_OPERAND_BIT = 16
"""Bits 0..11 hold the opcode, 12..15 the guard; operands lie above."""


class Model(BaseModel):
    """Base of every checked record: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Shape(Model):
    """m x n x k of the product that one instruction of a warp computes."""

    m: int = Field(gt=0)
    n: int = Field(gt=0)
    k: int = Field(gt=0)


class StepSequence(Model):
    """When the steps of a product that takes several instructions issue and end.

    Parameters
    ----------
    step_cycles : int
        Issue to issue of consecutive steps.
    complete_cycles : tuple of tuple of int
        Per set and step, from the first issue of the product: when its sums can be read.
    forward_cycles : tuple of int
        Per set: issue to issue of the step that adds to the same sums.
    """

    step_cycles: int = Field(ge=1)
    complete_cycles: tuple[tuple[int, ...], ...]
    forward_cycles: tuple[int, ...]

    def latency(self, set_: int, step: int) -> int:
        """Return the cycles from the issue of a step to the cycle in which its sums can be read."""
        issued = self.step_cycles * (set_ * len(self.complete_cycles[0]) + step)
        return self.complete_cycles[set_][step] - issued


class OperandSpec(Model):
    """One operand of an instruction: its kind, its size, and its field in the instruction word.

    Parameters
    ----------
    name : str
        What the operand is called in messages and tables.
    kind : str
        One of `OperandKind`.
    at : int, unit bit
        Lowest bit of its field in the 128-bit word.
    access : "read", "write" or "update"
    count : int
        Registers per thread that the operand spans, consecutive.
    bits : int, optional
        Width of an immediate's field.
    signed : bool
        Whether an immediate may be negative.
    maximum : int, optional
        Largest immediate, where that is less than its field could hold.
    holds : str
        What the operand carries: tile shape and dtype, or its meaning in words.
    """

    name: str
    kind: OperandKind
    at: int = Field(ge=FIRST_OPERAND_BIT, lt=WORD_BITS)
    access: Literal["read", "write", "update"] = "read"
    count: int = Field(default=1, ge=1)
    bits: int | None = Field(default=None, ge=1, le=32)
    signed: bool = False
    maximum: int | None = None
    holds: str = ""

    @property
    def width(self) -> int:
        """Bits of the operand's field."""
        return FIELD_BITS[self.kind] if self.bits is None else self.bits

    @property
    def align(self) -> int:
        """First registers must be multiples of it: 1, 2 or 4, the least that is >= count (at most 4)."""
        return 1 if self.count == 1 else 2 if self.count == 2 else 4

    @property
    def limits(self) -> tuple[int, int]:
        """Least and largest value of an immediate."""
        bits = 32 if self.kind == "register_or_immediate" else self.width
        if self.signed:
            return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        return 0, (1 << bits) - 1 if self.maximum is None else self.maximum

    @model_validator(mode="after")
    def _bits_belong_to_immediates(self) -> OperandSpec:
        if (self.kind == "immediate") != (self.bits is not None):
            message = "bits: must be given for an immediate, and for nothing else"
            raise ValueError(message)
        return self

    def fault(self, operand: Operand) -> str | None:
        """Say why `operand` cannot stand here, or return None.

        Parameters
        ----------
        operand : Operand

        Returns
        -------
        sentence : str or None
            ``must be ..., not ...``; None for a valid operand.
        """
        return _FAULTS[self.kind](self, operand)

    def _register_fault(self, operand: Operand) -> str | None:
        what = "a register" if self.count == 1 else f"the first of {self.count} registers"
        if not isinstance(operand, Register):
            return must(f"must be {what}", operand)
        if operand.index == ZERO_REGISTER:
            return None
        last = ZERO_REGISTER - self.count
        if not 0 <= operand.index <= last:
            return must(f"must be {what}, R0 to R{last} or RZ", operand)
        if operand.index % self.align:
            return must(f"must be {what}, a multiple of {self.align}", operand)
        return None

    def _register_or_immediate_fault(self, operand: Operand) -> str | None:
        if isinstance(operand, Immediate):
            return self._immediate_fault(operand)
        if isinstance(operand, Register):
            return self._register_fault(operand)
        return must("must be a register or a number", operand)

    def _predicate_fault(self, operand: Operand) -> str | None:
        if not isinstance(operand, Predicate):
            return must("must be a predicate", operand)
        if not 0 <= operand.index <= TRUE_PREDICATE:
            return must(f"must be a predicate, P0 to P{TRUE_PREDICATE - 1} or PT", operand)
        if self.access != "read" and (operand.negated or operand.index == TRUE_PREDICATE):
            return must(f"must be a predicate that can be written, P0 to P{TRUE_PREDICATE - 1}", operand)
        return None

    def _immediate_fault(self, operand: Operand) -> str | None:
        least, largest = self.limits
        if not isinstance(operand, Immediate) or not least <= operand.value <= largest:
            return must(f"must be a number from {least} to {largest}", operand)
        return None

    def _address_fault(self, operand: Operand) -> str | None:
        if not isinstance(operand, Address):
            return must("must be an address such as [R4 + 0x40]", operand)
        largest = (1 << (OFFSET_BITS - 1)) - 1
        if not -largest - 1 <= operand.offset <= largest or (operand.register is None and operand.offset < 0):
            return must(
                f"must have an offset within 24 signed bits (0 to {largest} without a register)", operand
            )
        if operand.register is not None and not 0 <= operand.register.index < ZERO_REGISTER:
            return must(f"must have a base register, R0 to R{ZERO_REGISTER - 1}", operand)
        return None

    def _accumulator_fault(self, operand: Operand) -> str | None:
        if not isinstance(operand, Accumulator) or not 0 <= operand.index < 1 << self.width:
            return must(f"must be an accumulator tile, ACC0 to ACC{(1 << self.width) - 1}", operand)
        return None

    def _special_register_fault(self, operand: Operand) -> str | None:
        if not isinstance(operand, SpecialRegister) or operand.name not in SPECIAL_REGISTERS:
            return must(f"must be one of {', '.join(SPECIAL_REGISTERS)}", operand, near=SPECIAL_REGISTERS)
        return None

    def _target_fault(self, operand: Operand) -> str | None:
        if not isinstance(operand, Target) or not 0 <= operand.index < 1 << self.width:
            return must("must be a label", operand)
        return None


_FAULTS = {
    "register": OperandSpec._register_fault,
    "register_or_immediate": OperandSpec._register_or_immediate_fault,
    "predicate": OperandSpec._predicate_fault,
    "immediate": OperandSpec._immediate_fault,
    "address": OperandSpec._address_fault,
    "accumulator": OperandSpec._accumulator_fault,
    "special_register": OperandSpec._special_register_fault,
    "target": OperandSpec._target_fault,
}


class InstructionSpec(Model):
    """What one instruction is: the checked form of a table row.

    Parameters
    ----------
    mnemonic : str
        Its name in assembly text, such as ``HMMA.16816.F32``.
    table : str
        The table that holds it: volta, ampere, dstc, or an extra one's own name.
    family : str
        Group for listings, such as ``mma`` or ``outer_product``.
    unit : str
        The unit that executes it, one of `Unit`.
    opcode : int
        12 bits, unique over all tables; None for a derived row, which has no encoding.  ASSUMED: ours.
    operands : tuple of OperandSpec
        In the order of the assembly text.
    semantics : str
        Name of the function that computes it.
    parameters : dict
        What that function needs to know of this row: dtypes, a comparison, a step.
    shape : Shape, optional
        m x n x k of a product.
    macs : int
        Multiplier slots of one issue, idle lanes included.
    sequence : StepSequence, optional
        Timing within a product that takes several instructions.
    guard : "lane", "warp", "step" or "none"
        How a guard predicate acts: lane by lane; for the whole warp at once, all lanes alike; through
        the one lane that stands for the instruction's (k, j) (see isa/README.md); or no guard may be given.
    macro : bool
        A warp-level instruction that stands for a sequence of machine instructions.
    summary, source : str
        What it does in words, and who says so.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mnemonic: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9.]*$")
    table: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    family: str
    unit: Unit
    opcode: int | None = Field(default=None, ge=0, lt=1 << 12)
    operands: tuple[OperandSpec, ...] = ()
    semantics: str
    parameters: dict[str, str | int | bool] = Field(default_factory=dict)
    shape: Shape | None = None
    macs: int = Field(default=0, ge=0)
    sequence: StepSequence | None = None
    guard: Literal["lane", "warp", "step", "none"]
    macro: bool = False
    summary: str
    source: str

    def __hash__(self) -> int:
        return hash(self.mnemonic)

    @property
    def product(self) -> Shape:
        """The shape of the product; asking an instruction that has none is a programming error."""
        if self.shape is None:
            message = f"{self.mnemonic} has no shape"
            raise TypeError(message)
        return self.shape

    @model_validator(mode="after")
    def _fields_do_not_overlap(self) -> InstructionSpec:
        taken: dict[int, str] = {}
        for operand in self.operands:
            for bit in range(operand.at, operand.at + operand.width):
                if bit >= WORD_BITS or bit in taken:
                    other = (
                        f"bit {bit} of {taken[bit]}" if bit in taken else f"the end of the word ({WORD_BITS})"
                    )
                    message = f"operands: the field of {operand.name} must not reach {other}"
                    raise ValueError(message)
                taken[bit] = operand.name
        return self
