"""``stcsim isa``: what it prints, and how it ends when the input is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from stcsim.isa import load_isa

PROGRAMS = Path(__file__).parents[2] / "isa" / "programs"


def test_list_names_every_instruction_and_a_family_only_its_own(stcsim):
    ended = stcsim("isa", "list")
    names = [line.split()[0] for line in ended.out.splitlines()[1:]]
    assert names == list(load_isa())
    ended = stcsim("isa", "list", "--family", "hmma884")
    assert [line.split()[0] for line in ended.out.splitlines()[1:]] == [
        *(f"HMMA.884.F32.F32.STEP{s}" for s in range(4)),
        *(f"HMMA.884.F16.F16.STEP{s}" for s in range(2)),
    ]


def test_an_unknown_family_is_told_with_the_known_ones(stcsim):
    ended = stcsim("isa", "list", "--family", "outer")
    assert ended.status == 2
    assert ended.err.startswith("must be a known family (accumulator, async_copy, ")


def test_show_prints_operands_and_encoding(stcsim):
    ended = stcsim("isa", "show", "OHMMA.8161")
    assert ended.status == 0
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0] == "OHMMA.8161"
    assert "syntax [@P] OHMMA.8161 acc, a, b, bits_a, bits_b, k, i, j" in lines
    assert "shape 8 x 16 x 1" in lines
    assert "multiplier slots 128" in lines
    assert "opcode bits 0..11 0x810" in lines
    assert "bits_a bits 64..71" in lines


def test_show_of_an_unknown_instruction_names_the_nearest(stcsim):
    ended = stcsim("isa", "show", "OHMA.8161")
    assert ended.status == 2
    assert ended.err == "instruction must be one of the tables', not OHMA.8161 (did you mean OHMMA.8161?)\n"


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.asm")), ids=lambda path: path.stem)
def test_a_program_assembles_disassembles_to_the_same_bytes_and_runs(path: Path, tmp_path: Path, stcsim):
    first, text, second = tmp_path / "x.bin", tmp_path / "x.asm", tmp_path / "y.bin"
    assert stcsim("isa", "asm", path, "-o", first).status == 0
    ended = stcsim("isa", "disasm", first)
    assert ended.status == 0
    text.write_text(ended.out)
    assert stcsim("isa", "asm", text, "-o", second).status == 0
    assert first.read_bytes() == second.read_bytes()
    from_text, from_binary = stcsim("isa", "exec", path), stcsim("isa", "exec", first)
    assert from_text.status == 0
    assert from_text.out == from_binary.out


def test_asm_without_an_output_prints_words_beside_instructions(tmp_path: Path, stcsim):
    path = tmp_path / "x.asm"
    path.write_text("POPC R5, R7\n")
    assert stcsim("isa", "asm", path).out == "   0  0000000000000000000000000705724b  POPC R5, R7\n"


def test_exec_traces_one_line_for_each_instruction(stcsim):
    plain = stcsim("isa", "exec", PROGRAMS / "spwmma_step_by_step.asm").out.splitlines()
    traced = stcsim("isa", "exec", PROGRAMS / "spwmma_step_by_step.asm", "--trace").out.splitlines()
    n_instructions = int(plain[0].split()[0])
    assert traced[n_instructions:] == plain
    assert [int(line.split()[0]) for line in traced[:n_instructions]] == list(range(n_instructions))
    assert sum(line.endswith(" skipped") for line in traced) == 24 - 9


def test_faults_of_assembly_are_told_all_at_once_with_status_2(tmp_path: Path, stcsim):
    path = tmp_path / "bad.asm"
    path.write_text("POPC R5\n  PPOC R5, R6\n")
    ended = stcsim("isa", "asm", path, "-o", tmp_path / "x.bin")
    assert ended.status == 2
    assert ended.err.splitlines() == [
        f"{path}:1: column 8: end of line: must have 2 operands (d, a), not 1",
        f"{path}:2: column 3: PPOC: must be an instruction of the tables, not PPOC (did you mean POPC?)",
    ]
    assert not (tmp_path / "x.bin").exists()


@pytest.mark.parametrize("command", ["disasm", "exec"])
def test_junk_and_truncated_binaries_end_with_one_line_and_status_2(
    command: str, tmp_path: Path, stcsim, rng
):
    whole = tmp_path / "x.bin"
    assert stcsim("isa", "asm", PROGRAMS / "mma_sp_16832.asm", "-o", whole).status == 0
    for content in (rng.bytes(64), whole.read_bytes()[:-1], whole.read_bytes()[:20]):
        path = tmp_path / "junk"
        path.write_bytes(content)
        ended = stcsim("isa", command, path)
        assert ended.status == 2
        assert len(ended.err.splitlines()) == 1
        assert ended.err.startswith(f"{path}")


@pytest.mark.parametrize("first", [b"XTCSIM\r\n", b"STCSIM\n\n", bytes(8), b""], ids=repr)
@pytest.mark.parametrize("command", ["disasm", "exec"])
def test_a_binary_without_its_magic_is_refused_as_a_binary(
    command: str, first: bytes, tmp_path: Path, stcsim
):
    path = tmp_path / "x.bin"
    assert stcsim("isa", "asm", PROGRAMS / "mma_sp_16832.asm", "-o", path).status == 0
    path.write_bytes(first + path.read_bytes()[8:])
    found = path.read_bytes()[:8]
    ended = stcsim("isa", command, path)
    message = f"must be a program that stcsim assembled (begin with STCSIM), not {found!r}"
    assert (ended.status, ended.out, ended.err) == (2, "", f"{path}: {message}\n")


def test_a_binary_is_not_assembled(tmp_path: Path, stcsim):
    path = tmp_path / "x.bin"
    assert stcsim("isa", "asm", PROGRAMS / "mma_sp_16832.asm", "-o", path).status == 0
    ended = stcsim("isa", "asm", path, "-o", tmp_path / "y.bin")
    assert (ended.status, ended.err) == (2, f"{path}: must be assembly text in UTF-8, not byte 0x1\n")
    assert not (tmp_path / "y.bin").exists()


def test_a_missing_file_ends_with_status_2(tmp_path: Path, stcsim):
    assert stcsim("isa", "exec", tmp_path / "none.asm").status == 2


def test_an_output_that_cannot_be_written_ends_with_status_2(tmp_path: Path, stcsim):
    ended = stcsim("isa", "asm", PROGRAMS / "mma_sp_16832.asm", "-o", tmp_path / "no" / "x.bin")
    assert ended.status == 2
    assert "x.bin" in ended.err
