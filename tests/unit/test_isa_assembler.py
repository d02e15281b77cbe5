"""Assembly text: what is read, and every fault told with line, column and token."""

from __future__ import annotations

from pathlib import Path

import pytest

from stcsim.errors import IsaError
from stcsim.isa import Address, Immediate, Instruction, Predicate, Register, Target
from stcsim.isa.assembler import assemble, assemble_file

R = Register


def faults(text: str) -> list[str]:
    with pytest.raises(IsaError) as caught:
        assemble(text, file="x.asm")
    return [str(problem) for problem in caught.value.problems]


def test_instructions_guards_labels_and_comments_are_read():
    program = assemble(
        """
        // counts up to zero
            MOV R0, -3              // two's complement
        loop: IADD3 R0, R0, 0x1, RZ
            ISETP.LT.AND P0,R0,0,PT
            @P0   BRA loop
            @!P1 LDS.64 R4, [ R2 - 0x10 ]
            BRA end
        end:
        """
    )
    assert program.instructions == (
        Instruction("MOV", (R(0), Immediate(0xFFFFFFFD))),
        Instruction("IADD3", (R(0), R(0), Immediate(1), R(255))),
        Instruction("ISETP.LT.AND", (Predicate(0), R(0), Immediate(0), Predicate(7))),
        Instruction("BRA", (Target(1),), Predicate(0)),
        Instruction("LDS.64", (R(4), Address(R(2), -16)), Predicate(1, negated=True)),
        Instruction("BRA", (Target(6),)),
    )


def test_disassembly_names_labels_after_their_instructions():
    program = assemble("a: NOP\nb: BRA b\n BRA done\ndone:")
    assert program.disassemble() == "    NOP\nL1:\n    BRA L1\n    BRA L3\nL3:\n"
    assert assemble(program.disassemble()) == program


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (
            "  OHMA.8161 ACC0",
            "column 3: OHMA.8161: must be an instruction of the tables, not OHMA.8161 (did you mean OHMMA.8161?)",
        ),
        (
            "popc R1, R2",
            "column 1: popc: must be an instruction of the tables, not popc (did you mean POPC?)",
        ),
        ("POPC R1, R255", "column 10: R255: must be a register, R0 to R254 or RZ, not R255"),
        ("POPC R1, R999", "column 10: R999: operand a: must be a register, R0 to R254 or RZ, not R999"),
        ("POPC R1", "column 8: end of line: must have 2 operands (d, a), not 1"),
        ("POPC R1, R2, R3", "column 14: R3: must have 2 operands (d, a), not 3"),
        (
            "ISETP.LT.AND PT, R0, 0, PT",
            "column 14: PT: operand p: must be a predicate that can be written, P0 to P6, not PT",
        ),
        (
            "ISETP.LT.AND P7, R0, 0, PT",
            "column 14: P7: must be a predicate, P0 to P6 or PT, not P7",
        ),
        ("@P7 POPC R1, R2", "column 1: @P7: guard must be @P0 to @P6, @PT, or one of them negated, not @P7"),
        ("@R1 POPC R1, R2", "column 1: @R1: guard must be @P0 to @P6, @PT, or one of them negated, not @R1"),
        ("@P9 POPC R1, R2", "column 1: @P9: guard must be P0 to P6 or PT, not P9"),
        ("@P0 NOP", "column 1: @P0: must stand without a guard: NOP cannot be predicated, not @P0"),
        ("MOV R1, P0", "column 9: P0: operand a: must be a register or a number, not P0"),
        ("BRA lop\nloop: NOP", "column 5: lop: must be a label of the program, not lop (did you mean loop?)"),
        ("R4: NOP", "column 1: R4: label must not be the name of a register, not R4"),
        ("a: NOP\na: NOP", "column 1: a: label must be unique, not a again"),
        ("  @P0", "column 6: end of line: must be an instruction, not missing"),
        (", R4", "column 1: , R4: must be an instruction, not missing"),
        (
            "LDS R1, [R2 * 4]",
            "column 9: [R2 * 4]: must be an address such as [R4], [R4 + 0x40] or [0x40], not [R2 * 4]",
        ),
        (
            "S2R R1, SR_LANEI",
            "column 9: SR_LANEI: operand a: must be one of SR_LANEID, not SR_LANEI (did you mean SR_LANEID?)",
        ),
        (
            "MOV R1, 12q",
            "column 9: 12q: must be an operand (R4, RZ, P0, !P0, ACC0, 12, 0x1F, [R4 + 0x40], a label), not 12q",
        ),
        (
            "MOV R1, 0x100000000",
            "column 9: 0x100000000: operand a: must be a number from 0 to 4294967295, not 0x100000000",
        ),
        (
            "OHMMA.8161 ACC0, R8, R16, R0, R1, 16, 0, 0",
            "column 35: 16: operand k: must be a number from 0 to 15, not 0x10",
        ),
    ],
)
def test_a_fault_is_told_with_line_column_and_token(line: str, fault: str):
    n_line = 2 if "again" in fault else 1
    assert faults(line) == [f"x.asm:{n_line}: {fault}"]


def test_every_fault_of_a_text_is_told_in_the_order_of_its_lines():
    text = "POPC R1, PT\nNOPE\n.matrx A\nMOV R300, P1\n@P9 MOV R1, 2"
    assert [fault.split(": ")[0] for fault in faults(text)] == [
        "x.asm:1",
        "x.asm:2",
        "x.asm:3",
        "x.asm:4",
        "x.asm:4",
        "x.asm:5",
    ]


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    path = tmp_path / "x.asm"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(IsaError, match=r"x\.asm: must be assembly text in UTF-8, not byte 0xff$"):
        assemble_file(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (".shared 100", "size must be a multiple of 16 up to 16777216 bytes, not 100"),
        (".shared big", "directive must have the form .shared BYTES | .global BYTES, not big"),
        (".register R255 = 1", "must be a register, R0 to R254, not R255"),
        (".register R4 = 1 2", "register must be given 1 word or 32, not 2"),
        (".register R4 = 0x1FFFFFFFF", "word must fit 32 bits, not 8589934591"),
        (".matrix A fp16 2x2 = [1 2; 3]", "matrix must be given 2 rows of 2 elements, not 2 rows of 1/2"),
        (".matrix A fp16 1x1 = [one]", "element must be a number, not one"),
        (".matrix A fp16 0x4 = []", "matrix must have 1 to 16777216 elements, not 0"),
        (
            ".matrix A fp16 2x2 = integers(1, 2)",
            "integers must be given 4 numbers (least, largest, percent, seed), not 2",
        ),
        (".matrix A fp16 2x2 = integers(1, 2, x, 4)", "integers must be given whole numbers, not x"),
        (".matrix A fp16 2x2 = integers(3, 2, 50, 4)", "largest must be at least least, not 2"),
        (
            ".matrix A fp16 2x2 = integers(1, 2, 101, 4)",
            "percent of non-zeros must be from 0 to 100, not 101",
        ),
        (
            ".matrix A fp16 2x2 = integers(1, 9999999999, 50, 4)",
            "integers must be given numbers up to 2147483647, not 9999999999",
        ),
        (".matrix A fp16 2x6 = two_of_four(1, 2, 3)", "two_of_four must have a multiple of 4 columns, not 6"),
        (".place A R4 z HMMA.16816.F32", "must be a known role (a, b, c, e), not z"),
        (".place A shared[2] rows", "address must be a multiple of 4, not 2"),
        (".place A shared[0] a HMMA.16816.F32", "a fragment must be placed in registers, not in memory"),
        (
            ".show D R4",
            "directive must have the form .show NAME Rn ROLE MNEMONIC | .show NAME ACCn MxN, not D R4",
        ),
    ],
)
def test_a_faulty_directive_is_told(line: str, message: str):
    assert faults(line) == [f"x.asm:1: column 1: {line.split()[0]}: {message}"]


@pytest.mark.parametrize(
    ("line", "kind", "name", "near"),
    [
        (".matrx A", "directive", ".matrx", ".matrix"),
        (".matrix A fp17 1x1 = [1]", "dtype", "fp17", "fp16"),
        (".matrix A fp16 2x2 = integer(1, 2, 3, 4)", "rule", "integer", "integers"),
        (".place A R4 row", "form", "row", "rows"),
    ],
)
def test_an_unknown_name_in_a_directive_is_told_with_the_nearest(line: str, kind: str, name: str, near: str):
    (fault,) = faults(line)
    assert fault.startswith(f"x.asm:1: column 1: {line.split()[0]}: must be a known {kind} (")
    assert fault.endswith(f", not {name} (did you mean {near}?)")
