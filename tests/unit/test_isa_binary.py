"""Binaries: what is not a whole one is refused with one sentence."""

from __future__ import annotations

import re
import struct
import zlib

import pytest

from stcsim.errors import IsaError
from stcsim.isa.assembler import assemble
from stcsim.isa.binary import MAGIC, from_bytes, to_bytes
from stcsim.isa.encoding import decode, encode

TEXT = ".register R4 = 0xff\n.show D ACC0 4x4\n    POPC R5, R4\n    @!P3 LDS R6, [R5 - 0x8]\n    EXIT\n"


def framed(words: bytes, data: bytes = b"", version: int = 1) -> bytes:
    """Return a binary with a valid frame around any content."""
    crc = zlib.crc32(words + data)
    return struct.pack("<8sIIII", MAGIC, version, len(words) // 16, len(data), crc) + words + data


def test_a_binary_carries_its_data_and_gives_the_text_back():
    content = to_bytes(assemble(TEXT))
    assert from_bytes(content).disassemble() == TEXT
    assert to_bytes(assemble(from_bytes(content).disassemble())) == content


def test_every_truncation_is_refused():
    content = to_bytes(assemble(TEXT))
    for n in range(len(content)):
        with pytest.raises(IsaError):
            from_bytes(content[:n])
    with pytest.raises(IsaError):
        from_bytes(content + b"\0")


def test_every_flipped_bit_is_refused():
    content = bytearray(to_bytes(assemble(TEXT)))
    for bit in range(8 * len(content)):
        content[bit // 8] ^= 1 << bit % 8
        with pytest.raises(IsaError):
            from_bytes(bytes(content))
        content[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.bin: must be a program that stcsim assembled (begin with STCSIM), not b''"),
        (MAGIC + b"\1\0", "x.bin: must have a header of 24 bytes, not 10"),
        (framed(b"", version=9), "x.bin: must be of format version 1, not 9"),
        (framed(bytes(16))[:-1], "x.bin: must have 40 bytes, not 39"),
        (
            framed(b"\xff\x0f" + bytes(14)),
            "x.bin: instruction 0: opcode must be one of the tables', not 0xfff",
        ),
        (framed(b"", b"\xff"), "x.bin: data section must be text, not bytes that are no UTF-8"),
        (framed(b"", b".sharde 16\n"), "x.bin: must be a known directive ("),
        (
            framed((0x7225 | 1 << 100).to_bytes(16, "little")),
            "x.bin: instruction 0: EXIT: bits outside its fields must be 0, not 0x10000000000000000000000000",
        ),
        (
            framed((0x7224 | 5 << 32).to_bytes(16, "little")),
            "branch must go to one of 1 instructions, or their end, not 5",
        ),
    ],
)
def test_what_is_not_a_program_is_told_in_one_sentence(content: bytes, message: str):
    with pytest.raises(IsaError, match=re.escape(message)) as caught:
        from_bytes(content, file="x.bin")
    assert len(caught.value.problems) == 1


def test_a_corrupted_binary_is_told_by_its_checksum():
    content = bytearray(framed(bytes(16)))
    content[-1] ^= 1
    with pytest.raises(IsaError, match=r"^must have checksum [0-9a-f]{8}, not [0-9a-f]{8}$"):
        from_bytes(bytes(content))


def test_the_fields_of_a_word_are_where_the_row_says():
    (instruction,) = assemble("@!P3 POPC R5, R7").instructions
    # Opcode 0x24B, guard 3 negated (0b1011), destination at bit 16, source at bit 24.
    assert encode(instruction) == 0x24B | 0b1011 << 12 | 5 << 16 | 7 << 24
    assert decode(encode(instruction)) == instruction


def test_an_operand_that_no_assembler_accepts_is_refused_in_a_word():
    word = encode(assemble("HMMA.16816.F32 R4, R8, R12, R4").instructions[0])
    with pytest.raises(
        IsaError, match=r"operand d: must be the first of 4 registers, a multiple of 4, not R5$"
    ):
        decode(word | 1 << 16)
    special = encode(assemble("S2R R4, SR_LANEID").instructions[0])
    with pytest.raises(IsaError, match=r"must be one of SR_LANEID, not SR_9"):
        decode(special | 9 << 24)
