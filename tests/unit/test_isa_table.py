"""Tables are data: an architect adds a row, and every fault of a table is told with its place."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from stcsim.errors import IsaError
from stcsim.isa import Register, WarpState, execute, load_isa, semantic
from stcsim.isa.assembler import assemble
from stcsim.isa.binary import from_bytes, to_bytes
from stcsim.isa.manual import describe, instruction_tables
from stcsim.isa.semantics import SEMANTICS

ROW = """\
table: mine
instructions:
  - mnemonic: BREV
    opcode: 0xF00
    family: integer
    unit: integer
    guard: lane
    semantics: reverse_bits
    operands:
      - {name: d, kind: register, access: write, at: 16, holds: the bits of a in reverse order}
      - {name: a, kind: register, at: 24, holds: any word}
    summary: D = bits of A in reverse order
    source: PTX ISA, brev
"""


@pytest.fixture
def reverse_bits():
    @semantic("reverse_bits")
    def reverse(spec, operands, state, active):
        bits = np.unpackbits(state.words(operands[1]).view(np.uint8), bitorder="little").reshape(32, 32)
        state.write(
            operands[0], np.packbits(bits[:, ::-1], axis=1, bitorder="little").view(np.uint32), active
        )

    yield
    del SEMANTICS["reverse_bits"]
    load_isa.cache_clear()


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.usefixtures("reverse_bits")
def test_an_instruction_is_added_by_one_row_and_one_function(tmp_path: Path):
    isa = load_isa(write(tmp_path, ROW))
    program = assemble("@!P0 BREV R5, R4", isa=isa)
    assert from_bytes(to_bytes(program), isa=isa) == program
    assert program.disassemble() == "    @!P0 BREV R5, R4\n"
    state = WarpState(np.zeros(16, dtype=np.uint8))
    state.registers[4] = 0b1101
    execute(program.instructions[0], state)
    assert (state.words(Register(5)) == 0b1011 << 28).all()
    assert "D = bits of A in reverse order" in describe(isa["BREV"])
    assert "`BREV`" in instruction_tables(isa)
    assert "BREV" not in load_isa()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("reverse_bits", "revers", "3: BREV: must be a known semantics ("),
        ("0xF00", "0x24B", "3: BREV: opcode must be unique, not 0x24b of POPC again"),
        ("BREV", "POPC", "3: POPC: mnemonic must be unique, not POPC again"),
        ("at: 24", "at: 20", "3: BREV: operands: the field of a must not reach bit 20 of d"),
        ("at: 24", "at: 125", "3: BREV: operands: the field of a must not reach the end of the word (128)"),
        (
            "guard: lane",
            "guard: thread",
            "3: BREV.guard: must be 'lane', 'warp', 'step' or 'none', not thread",
        ),
        ("    unit: integer\n", "", "3: BREV.unit: key must be given, not missing"),
        ("family:", "famly:", "3: BREV.famly: key must be a known one, not famly (did you mean family?)"),
        (
            "    unit: integer\n",
            "    unit: integer\n    unit: lsu\n",
            "7: key must be given once, not unit twice",
        ),
        (
            "at: 24,",
            "at: 24, bits: 8,",
            "3: BREV.operands.1: bits: must be given for an immediate, and for nothing else",
        ),
        ("table: mine\n", "", "1: table: key must be given, not missing"),
    ],
)
@pytest.mark.usefixtures("reverse_bits")
def test_a_faulty_table_is_told_with_its_place(old: str, new: str, message: str, tmp_path: Path):
    path = write(tmp_path, ROW.replace(old, new))
    with pytest.raises(IsaError) as caught:
        load_isa(path)
    assert any(str(problem).startswith(f"{path}:{message}") for problem in caught.value.problems), (
        caught.value
    )


def test_a_table_that_is_not_there_is_told(tmp_path: Path):
    path = tmp_path / "none.yaml"
    with pytest.raises(
        IsaError, match=f"^{re.escape(str(path))}: must be a readable instruction table, not No such"
    ):
        load_isa(path)


@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "a: [", "table: x\ninstructions: 3\n", "table: x\ninstructions: [3]\n"]
)
def test_a_file_that_is_no_table_is_an_error_of_the_input(text: str, tmp_path: Path):
    with pytest.raises(IsaError):
        load_isa(write(tmp_path, text))


def test_a_name_of_semantics_is_given_once():
    with pytest.raises(ValueError, match=r"^semantics 'mma' are registered already$"):
        semantic("mma")(lambda spec, operands, state, active: None)


def test_the_tables_in_the_readme_are_those_of_the_instructions(root: Path):
    text = (root / "isa" / "README.md").read_text(encoding="utf-8")
    shown = text.partition("<!-- tables: begin -->\n")[2].partition("<!-- tables: end -->")[0]
    assert shown == instruction_tables(load_isa()), "put the output of: stcsim isa list --markdown"
