"""Operands are judged by their row when an instruction is built."""

from __future__ import annotations

import pickle
import re

import pytest

from stcsim.errors import IsaError
from stcsim.isa import Accumulator, Address, Immediate, Instruction, Predicate, Register, Target, load_isa

R = Register


@pytest.mark.parametrize(
    ("mnemonic", "operands", "message"),
    [
        ("POPC", (R(255), R(300)), "POPC: operand a: must be a register, R0 to R254 or RZ, not R300"),
        ("POPC", (R(1),), "POPC: must have 2 operands (d, a), not 1"),
        ("NOP", (R(1),), "NOP: must have 0 operands (none), not 1"),
        ("POPC", (R(1), Predicate(0)), "POPC: operand a: must be a register, not P0"),
        (
            "HMMA.16816.F32",
            (R(4), R(6), R(8), R(12)),
            "HMMA.16816.F32: operand a: must be the first of 4 registers, a multiple of 4, not R6",
        ),
        (
            "HMMA.16816.F32",
            (R(4), R(252), R(8), R(12)),
            "HMMA.16816.F32: operand a: must be the first of 4 registers, R0 to R251 or RZ, not R252",
        ),
        (
            "ISETP.LT.AND",
            (Predicate(7), R(0), R(1), Predicate(7)),
            "ISETP.LT.AND: operand p: must be a predicate that can be written, P0 to P6, not PT",
        ),
        (
            "ISETP.LT.AND",
            (Predicate(1, negated=True), R(0), R(1), Predicate(7)),
            "ISETP.LT.AND: operand p: must be a predicate that can be written, P0 to P6, not !P1",
        ),
        (
            "SEL",
            (R(0), R(1), R(2), Predicate(8)),
            "SEL: operand p: must be a predicate, P0 to P6 or PT, not P8",
        ),
        ("BAR.SYNC", (Immediate(16),), "BAR.SYNC: operand barrier: must be a number from 0 to 15, not 0x10"),
        ("MOV", (R(0), Immediate(-1)), "MOV: operand a: must be a number from 0 to 4294967295, not -1"),
        ("MOV", (R(0), Predicate(1)), "MOV: operand a: must be a register or a number, not P1"),
        (
            "ACC.CLEAR",
            (Accumulator(16),),
            "ACC.CLEAR: operand acc: must be an accumulator tile, ACC0 to ACC15, not ACC16",
        ),
        ("LDS", (R(0), R(1)), "LDS: operand address: must be an address such as [R4 + 0x40], not R1"),
        ("BRA", (Immediate(3),), "BRA: operand target: must be a label, not 3"),
        (
            "ACC.LOAD",
            (Accumulator(0), Immediate(25), R(8)),
            "ACC.LOAD: operand row: must be a number from 0 to 24, not 0x19",
        ),
        (
            "LDS",
            (R(0), Address(R(255), 0)),
            "LDS: operand address: must have a base register, R0 to R254, not [RZ]",
        ),
        (
            "LDS",
            (R(0), Address(R(1), 1 << 23)),
            "LDS: operand address: must have an offset within 24 signed bits (0 to 8388607 without a register), "
            "not [R1 + 0x800000]",
        ),
    ],
)
def test_an_operand_that_does_not_fit_is_refused(mnemonic, operands, message):
    with pytest.raises(IsaError, match=f"^{re.escape(message)}$"):
        Instruction(mnemonic, operands)


def test_all_faults_are_told_at_once():
    with pytest.raises(IsaError) as caught:
        Instruction("HMMA.16816.F32", (R(1), R(2), R(3), Predicate(0)))
    assert len(caught.value.problems) == 4


def test_an_unknown_mnemonic_is_told_with_the_nearest():
    with pytest.raises(IsaError, match=r"not OHMA\.8161 \(did you mean OHMMA\.8161\?\)$"):
        Instruction("OHMA.8161")


def test_an_instruction_that_cannot_be_predicated_refuses_a_guard():
    with pytest.raises(IsaError, match=r"must stand without a guard: NOP cannot be predicated, not @P0$"):
        Instruction("NOP", (), Predicate(0))


def test_a_guard_that_always_holds_is_no_guard():
    plain = Instruction("POPC", (R(1), R(2)))
    assert Instruction("POPC", (R(1), R(2)), Predicate(7)) == plain
    assert Instruction("POPC", (R(1), R(2)), Predicate(7, negated=True)) != plain


def test_instructions_are_values():
    one, other = (Instruction("POPC", (R(1), R(2)), Predicate(3)) for _ in range(2))
    assert one == other
    assert len({one, other}) == 1
    assert pickle.loads(pickle.dumps(one)) == one


def test_every_row_is_told_apart_by_its_opcode_and_has_a_source():
    isa = load_isa()
    assert len({spec.opcode for spec in isa.values()}) == len(isa)
    assert {spec.table for spec in isa.values()} == {"volta", "ampere", "dstc", "vector_wise"}
    for spec in isa.values():
        assert isa.by_opcode(spec.opcode) is spec
        assert spec.source
        assert spec.summary


def test_multiplier_slots_follow_from_the_shape_of_a_product():
    isa = load_isa()
    assert isa["OHMMA.8161"].macs == 8 * 16
    assert isa["OWMMA"].macs == 16**3
    assert isa["SpWMMA"].macs == 32 * 32 * 16
    assert isa["HMMA.16816.F32"].macs == 16 * 8 * 16
    assert isa["HMMA.SP.16832.F32"].macs == 16 * 8 * 16  # the stored half
    assert 4 * isa["HMMA.VW.884.F32.F32.STEP2"].macs == 16 * 16 * 4  # the stored quarter
    assert 16 * isa["HMMA.884.F32.F32.STEP2"].macs == 8 * isa["HMMA.884.F16.F16.STEP0"].macs == 16**3


@pytest.mark.parametrize(
    ("operand", "text"),
    [
        (Address(R(4), 64), "[R4 + 0x40]"),
        (Address(R(4), -64), "[R4 - 0x40]"),
        (Address(R(4)), "[R4]"),
        (Address(None, 64), "[0x40]"),
        (Immediate(15), "15"),
        (Immediate(4096), "0x1000"),
        (Target(3), "L3"),
    ],
)
def test_operands_are_written_as_the_assembler_reads_them(operand, text):
    assert str(operand) == text
