"""An instruction as a 128-bit word and back, both from the fields of its row.

Bits 0..11 opcode, 12..14 guard predicate, 15 its negation (PT when there is no guard), operands where
their rows say.  Every other bit is zero, so that a word decodes to one instruction and back to itself.
ASSUMED: numbers and places are ours; see the heads of isa/*.yaml.
"""

from __future__ import annotations

from stcsim.errors import IsaError, must
from stcsim.isa.instruction import Instruction
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
from stcsim.isa.spec import OFFSET_BITS, WORD_BITS, OperandSpec
from stcsim.isa.table import Isa, load_isa

WORD_BYTES = WORD_BITS // 8
_OPCODE_BITS = 12
_NEGATION = 8
_PAYLOAD_BITS = 32


def encode(instruction: Instruction) -> int:
    """Return the 128-bit word of an instruction.

    Parameters
    ----------
    instruction : Instruction

    Returns
    -------
    word : int, 0 to 2**128 - 1

    Raises
    ------
    IsaError
        If its row is a derived one, which has no opcode.
    """
    if instruction.spec.opcode is None:
        raise IsaError(must(f"{instruction.mnemonic}: must stand in a table to be encoded", "derived"))
    guard = TRUE_PREDICATE if instruction.guard is None else _predicate_field(instruction.guard)
    word = instruction.spec.opcode | guard << _OPCODE_BITS
    for spec, operand in zip(instruction.spec.operands, instruction.operands, strict=True):
        word |= _field(spec, operand) << spec.at
    return word


def decode(word: int, isa: Isa | None = None) -> Instruction:
    """Return the instruction of a 128-bit word; the inverse of `encode`.

    Parameters
    ----------
    word : int, 0 to 2**128 - 1
    isa : Isa, optional
        The shipped one by default.

    Returns
    -------
    instruction : Instruction

    Raises
    ------
    IsaError
        If no instruction has the opcode, a field holds no valid operand, or an unused bit is set.
    """
    opcode = word & (1 << _OPCODE_BITS) - 1
    spec = (load_isa() if isa is None else isa).by_opcode(opcode)
    if spec is None:
        raise IsaError(must("opcode must be one of the tables'", hex(opcode)))
    guard = _predicate(word >> _OPCODE_BITS & 15)
    operands = tuple(
        _operand(operand, word >> operand.at & (1 << operand.width) - 1) for operand in spec.operands
    )
    instruction = Instruction(
        spec.mnemonic, operands, None if guard == Predicate(TRUE_PREDICATE) else guard, spec
    )
    if encode(instruction) != word:
        what = f"{spec.mnemonic}: bits outside its fields must be 0"
        raise IsaError(must(what, hex(encode(instruction) ^ word)))
    return instruction


def _predicate_field(predicate: Predicate) -> int:
    return predicate.index | (_NEGATION if predicate.negated else 0)


def _predicate(field: int) -> Predicate:
    return Predicate(field & TRUE_PREDICATE, bool(field & _NEGATION))


def _field(spec: OperandSpec, operand: Operand) -> int:
    """Return what stands in an operand's field."""
    match operand:
        case Register(index):
            return index
        case Immediate(value):
            flag = 1 << _PAYLOAD_BITS if spec.kind == "register_or_immediate" else 0
            return value & (1 << min(spec.width, _PAYLOAD_BITS)) - 1 | flag
        case Predicate():
            return _predicate_field(operand)
        case Address(register, offset):
            index = ZERO_REGISTER if register is None else register.index
            return index | (offset & (1 << OFFSET_BITS) - 1) << (spec.width - OFFSET_BITS)
        case SpecialRegister(name):
            return SPECIAL_REGISTERS.index(name)
        case Accumulator(index) | Target(index):
            return index


def _operand(spec: OperandSpec, field: int) -> Operand:
    """Return the operand that a field stands for; the instruction checks it."""
    match spec.kind:
        case "register":
            return Register(field)
        case "immediate":
            return Immediate(_signed(field, spec.width) if spec.signed else field)
        case "register_or_immediate":
            if field >> _PAYLOAD_BITS:
                return Immediate(field & (1 << _PAYLOAD_BITS) - 1)
            return Register(field)
        case "predicate":
            return _predicate(field)
        case "address":
            index = field & ZERO_REGISTER
            offset = _signed(field >> (spec.width - OFFSET_BITS), OFFSET_BITS)
            return Address(None if index == ZERO_REGISTER else Register(index), offset)
        case "accumulator":
            return Accumulator(field)
        case "special_register":
            names = dict(enumerate(SPECIAL_REGISTERS))
            return SpecialRegister(names.get(field, f"SR_{field}"))
        case "target":
            return Target(field)


def _signed(field: int, bits: int) -> int:
    return field - (1 << bits) if field >> (bits - 1) else field
