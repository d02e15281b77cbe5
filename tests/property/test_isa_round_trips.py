"""Text, words and binaries come back as they were; what is none of them is an error of the input."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stcsim.errors import IsaError
from stcsim.isa import (
    Accumulator,
    Address,
    Immediate,
    Instruction,
    InstructionSpec,
    Operand,
    OperandSpec,
    Predicate,
    Register,
    SpecialRegister,
    Target,
    load_isa,
)
from stcsim.isa.assembler import assemble
from stcsim.isa.binary import MAGIC, from_bytes, to_bytes
from stcsim.isa.directive import (
    FORMS,
    GENERATORS,
    ROLES,
    Directive,
    Matrix,
    Memory,
    Place,
    Show,
    Words,
    parse_directive,
)
from stcsim.isa.encoding import decode, encode
from stcsim.isa.fragment import PER_WORD
from stcsim.isa.program import Program

ISA = load_isa()
OFFSETS = (-(1 << 23), (1 << 23) - 1)


def registers(spec: OperandSpec) -> st.SearchStrategy[Register]:
    last = (255 - spec.count) // spec.align
    return st.builds(lambda i: Register(spec.align * i), st.integers(0, last)) | st.just(Register(255))


def operands(spec: OperandSpec) -> st.SearchStrategy[Operand]:
    """Return every operand that the spec of one admits."""
    match spec.kind:
        case "register":
            return registers(spec)
        case "immediate":
            return st.builds(Immediate, st.integers(*spec.limits))
        case "register_or_immediate":
            return registers(spec) | st.builds(Immediate, st.integers(0, (1 << 32) - 1))
        case "predicate":
            if spec.access != "read":
                return st.builds(Predicate, st.integers(0, 6))
            return st.builds(Predicate, st.integers(0, 7), st.booleans())
        case "address":
            based = st.builds(Address, st.builds(Register, st.integers(0, 254)), st.integers(*OFFSETS))
            return based | st.builds(Address, st.none(), st.integers(0, OFFSETS[1]))
        case "accumulator":
            return st.builds(Accumulator, st.integers(0, 15))
        case "special_register":
            return st.just(SpecialRegister("SR_LANEID"))
        case "target":
            return st.builds(Target, st.integers(0, 3))


def instructions(spec: InstructionSpec) -> st.SearchStrategy[Instruction]:
    guards = st.none() | st.builds(Predicate, st.integers(0, 7), st.booleans())
    return st.builds(
        Instruction,
        st.just(spec.mnemonic),
        st.tuples(*(operands(operand) for operand in spec.operands)),
        st.none() if spec.guard == "none" else guards,
    )


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
PLAIN_REGISTERS = st.builds(Register, st.integers(0, 254))
DTYPES = st.sampled_from(sorted(PER_WORD))
WHOLE = st.integers(-1000, 1000)


@st.composite
def matrices(draw: st.DrawFn) -> Matrix:
    rows, columns = draw(st.integers(1, 4)), draw(st.sampled_from([4, 8]))
    name, dtype = draw(NAMES), draw(DTYPES)
    rule = draw(st.sampled_from(["", *GENERATORS]))
    if not rule:
        elements = draw(
            st.lists(WHOLE.map(str) | st.just("-0.5"), min_size=rows * columns, max_size=rows * columns)
        )
        return Matrix(name, dtype, rows, columns, tuple(elements))
    values = {
        "least": -7,
        "largest": draw(st.integers(-7, 50)),
        "percent": draw(st.integers(0, 100)),
        "seed": draw(WHOLE),
    }
    arguments = tuple(values[argument] for argument in GENERATORS[rule])
    return Matrix(name, dtype, rows, columns, generator=rule, arguments=arguments)


DIRECTIVES: st.SearchStrategy[Directive] = st.one_of(
    st.builds(Memory, st.sampled_from(["shared", "global"]), st.integers(1, 1 << 20).map(lambda n: 16 * n)),
    st.builds(Words, PLAIN_REGISTERS, st.integers(0, (1 << 32) - 1).map(lambda word: (word,))),
    st.builds(Words, PLAIN_REGISTERS, st.just(tuple(range(32)))),
    matrices(),
    st.builds(Place, NAMES, PLAIN_REGISTERS, st.sampled_from(FORMS)),
    st.builds(Place, NAMES, PLAIN_REGISTERS, st.sampled_from(ROLES), st.sampled_from(sorted(ISA))),
    st.builds(
        Place,
        NAMES,
        st.tuples(st.sampled_from(["shared", "global"]), st.integers(0, 4096).map(lambda n: 4 * n)),
        st.sampled_from(FORMS),
    ),
    st.builds(Show, NAMES, PLAIN_REGISTERS, st.sampled_from(ROLES), st.sampled_from(sorted(ISA))),
    st.builds(Show, NAMES, st.builds(Accumulator, st.integers(0, 99)), st.just("16x16")),
)


@pytest.mark.parametrize("family", ISA.families())
@given(data=st.data())
def test_an_instruction_comes_back_from_its_word_and_from_its_text(family: str, data: st.DataObject):
    rows = [spec for spec in ISA.values() if spec.family == family]
    instruction = data.draw(st.sampled_from(rows).flatmap(instructions))
    word = encode(instruction)
    assert 0 <= word < 1 << 128
    assert decode(word) == instruction
    program = Program((*[Instruction("NOP")] * 2, instruction))
    assert assemble(program.disassemble()) == program


@pytest.mark.parametrize("mnemonic", list(ISA))
def test_the_extremes_of_every_operand_come_back(mnemonic: str):
    spec = ISA[mnemonic]
    for last in (False, True):
        chosen = []
        for operand in spec.operands:
            match operand.kind:
                case "register":
                    largest = (255 - operand.count) // operand.align * operand.align
                    chosen.append(Register(largest if last else 0))
                case "register_or_immediate":
                    chosen.append(Immediate(0xFFFFFFFF) if last else Register(254))
                case "predicate":
                    readable = operand.access == "read"
                    chosen.append(Predicate(7 if readable else 6, negated=readable) if last else Predicate(0))
                case "immediate":
                    chosen.append(Immediate(operand.limits[last]))
                case "address":
                    chosen.append(Address(Register(254), OFFSETS[0]) if last else Address(None, OFFSETS[1]))
                case "accumulator":
                    chosen.append(Accumulator(15 if last else 0))
                case "special_register":
                    chosen.append(SpecialRegister("SR_LANEID"))
                case "target":
                    chosen.append(Target((1 << 24) - 1 if last else 0))
        guard = Predicate(6, negated=True) if last and spec.guard != "none" else None
        instruction = Instruction(mnemonic, tuple(chosen), guard)
        assert decode(encode(instruction)) == instruction


@given(
    st.lists(DIRECTIVES, max_size=5),
    st.lists(st.sampled_from(list(ISA.values())).flatmap(instructions), max_size=5),
)
def test_a_program_comes_back_from_its_binary_and_from_its_text(
    data: list[Directive], body: list[Instruction]
):
    program = Program((*body, *[Instruction("NOP")] * 3), tuple(data))
    content = to_bytes(program)
    assert from_bytes(content) == program
    assert to_bytes(assemble(program.disassemble())) == content


@given(DIRECTIVES)
def test_a_directive_comes_back_from_its_text(directive: Directive):
    assert parse_directive(str(directive)) == directive


@given(st.binary(max_size=200))
@example(MAGIC)
def test_random_bytes_are_an_error_of_the_input(content: bytes):
    with pytest.raises(IsaError):
        from_bytes(content)


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=3), st.binary(max_size=40))
def test_random_words_in_a_valid_frame_are_a_program_or_an_error_of_the_input(
    words: list[bytes], data: bytes
):
    body = b"".join(words) + data
    content = struct.pack("<8sIIII", MAGIC, 1, len(words), len(data), zlib.crc32(body)) + body
    try:
        program = from_bytes(content)
    except IsaError:
        return
    assert from_bytes(to_bytes(program)) == program


@given(st.integers(0, (1 << 128) - 1), st.sampled_from(list(ISA.values())))
def test_a_random_word_decodes_to_itself_or_is_refused(word: int, spec: InstructionSpec):
    word = word & ~0xFFF | (spec.opcode or 0)
    try:
        instruction = decode(word)
    except IsaError:
        return
    assert encode(instruction) == word


TOKENS = st.sampled_from(
    ["@P0", "@!P9", "@", "POPC", "OHMMA.8161", "BRA", "R4", "R999999", "RZ", "P7", "!PT", "[R4 + 0x8]", "[", "]", ",",
     ":", "a", "a:", ".place", ".matrix", ".show", ".register", "A", "fp16", "2x2", "=", "[1; 2]", "identity()",
     "shared[0]", "rows", "0x", "-", "-1", "9" * 30, "//", "\n", "\t", "é", "\x00", "ACC3", "SR_LANEID", "R4, R5"]
)  # fmt: skip


@given(st.lists(TOKENS, max_size=12).map(" ".join) | st.text(max_size=60))
def test_random_text_is_a_program_or_an_error_of_the_input(text: str):
    try:
        program = assemble(text)
    except IsaError:
        return
    assert to_bytes(assemble(program.disassemble())) == to_bytes(program)
