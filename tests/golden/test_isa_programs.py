"""Every program of isa/programs computes what its comment says, and what numpy says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from stcsim.isa import WarpState
from stcsim.isa.assembler import assemble_file
from stcsim.isa.binary import from_bytes, to_bytes
from stcsim.isa.directive import Matrix, Show, parse_directive
from stcsim.isa.interpreter import Step, run
from stcsim.isa.loading import elements, initial_state, shown
from stcsim.isa.program import Program

PROGRAMS = Path(__file__).parents[2] / "isa" / "programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.asm"))


def ran(name: str) -> tuple[Program, WarpState, list[Step]]:
    program = assemble_file(PROGRAMS / f"{name}.asm")
    state = initial_state(program)
    steps: list[Step] = []
    run(program, state, steps.append)
    return program, state, steps


def results(program: Program, state: WarpState) -> dict[str, np.ndarray]:
    return {show.name: shown(show, state) for show in program.data if isinstance(show, Show)}


def factors(program: Program) -> tuple[np.ndarray, np.ndarray]:
    found = {matrix.name: elements(matrix) for matrix in program.data if isinstance(matrix, Matrix)}
    return found["A"], found["B"]


def commented(name: str) -> str:
    """Return a program's comments as one line."""
    text = (PROGRAMS / f"{name}.asm").read_text(encoding="utf-8")
    return " ".join(line.partition("//")[2].strip() for line in text.splitlines() if line.startswith("//"))


def test_the_programs_are_those_that_are_tested_here():
    assert NAMES == [
        "mm_16x16x16_hmma16816",
        "mm_16x16x16_hmma884",
        "mm_16x16x16_owmma",
        "mma_sp_16832",
        "spwmma_step_by_step",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_survives_its_binary_and_computes_the_same_there(name: str):
    program, state, _ = ran(name)
    again = from_bytes(to_bytes(program))
    assert again == program
    other = initial_state(again)
    run(again, other)
    np.testing.assert_array_equal(other.registers, state.registers)
    np.testing.assert_array_equal(other.accumulators, state.accumulators)


@pytest.mark.parametrize(
    ("name", "shows"),
    [
        ("mm_16x16x16_hmma884", ["D"]),
        ("mm_16x16x16_owmma", ["D", "E"]),
        ("mma_sp_16832", ["D"]),
        ("spwmma_step_by_step", ["S1"]),
    ],
)
def test_the_result_is_numpys_product_and_the_one_in_the_comment(name: str, shows: list[str]):
    program, state, _ = ran(name)
    a, b = factors(program)
    found = results(program, state)
    first, total = re.search(
        r"irst row[^:]*?(?:is|:)\s+((?:-?\d+ )+)\s*and the sum of all \w+ elements is (-?\d+)",
        commented(name),
    ).groups()
    for show in shows:
        np.testing.assert_array_equal(found[show], a @ b)
        assert found[show][0].tolist() == [int(value) for value in first.split()]
        assert found[show].sum() == int(total)


def test_the_ampere_product_is_the_one_in_its_comment():
    program, state, _ = ran("mm_16x16x16_hmma16816")
    a, b = factors(program)
    found = np.hstack([results(program, state)[name] for name in ("D0", "D1")])
    np.testing.assert_array_equal(found, a @ b)
    row, column = np.arange(1, 16)[:, None], np.arange(16)
    np.testing.assert_array_equal(found[0], column - 100)
    np.testing.assert_array_equal(found[1:], 48 * row - 332 + 3 * column)


def test_volta_and_dstc_programs_multiply_the_same_matrices():
    (a, b), (c, d) = (factors(ran(name)[0]) for name in ("mm_16x16x16_hmma884", "mm_16x16x16_owmma"))
    np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(b, d)


def test_the_steps_of_the_sparse_program_skip_what_its_comment_says():
    program, state, steps = ran("spwmma_step_by_step")
    a, b = factors(program)
    np.testing.assert_array_equal(results(program, state)["S0"], a[:, :3] @ b[:3])
    ones_a, ones_b = (a[:, :3] != 0).sum(axis=0).tolist(), (b[:3] != 0).sum(axis=1).tolist()
    outer = [step for step in steps if step.instruction.mnemonic == "OHMMA.8161"]
    executed = sum(step.executed for step in outer)
    assert len(outer) == 24
    assert executed == sum(-(-na // 8) * -(-nb // 16) for na, nb in zip(ones_a, ones_b, strict=True))
    assert (
        f"Of the first three columns of A {', '.join(map(str, ones_a))}, of the first three rows of B "
        f"{', '.join(map(str, ones_b))} are non-zero: {executed} of the 24 OHMMAs execute."
    ) in commented("spwmma_step_by_step")


def test_the_position_bitmap_of_a_step_is_where_its_products_land():
    program, _, steps = ran("spwmma_step_by_step")
    state = initial_state(program)
    a, b = factors(program)
    stop = next(step.index for step in steps if step.instruction.mnemonic == "BOHMMA.32321") + 1
    run(Program(program.instructions[:stop]), state)
    bits = state.registers[24][:, None] >> np.arange(32, dtype=np.uint32) & 1
    np.testing.assert_array_equal(bits, np.outer(a[:, 0] != 0, b[0] != 0))


def splitmix64(position: int, seed: int) -> int:
    """Draw a number as the rules of .matrix say, in Python's own integers."""
    mask = (1 << 64) - 1
    x = (position + (seed + 1) * 0x9E3779B97F4A7C15) & mask
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
    x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
    return (x ^ x >> 31) >> 33


def test_matrices_given_by_a_rule_are_the_same_on_every_machine():
    matrix = parse_directive(".matrix A fp16 5x8 = integers(-4, 9, 60, 7)")
    assert isinstance(matrix, Matrix)
    expected = [
        -4 + splitmix64(i, 7) % 14 if splitmix64(i, 8) % 100 < 60 else 0 for i in range(40)
    ]  # fmt: skip
    assert elements(matrix).ravel().tolist() == expected


def test_a_two_of_four_matrix_keeps_at_most_two_of_each_four():
    matrix = parse_directive(".matrix A fp16 16x32 = two_of_four(1, 9, 7)")
    assert isinstance(matrix, Matrix)
    kept = (elements(matrix).reshape(16, 8, 4) != 0).sum(axis=2)
    assert (kept == 2).all()


def test_an_identity_matrix_is_given_by_its_name():
    matrix = parse_directive(".matrix I fp16 2x3 = identity()")
    assert isinstance(matrix, Matrix)
    assert elements(matrix).tolist() == [[1, 0, 0], [0, 1, 0]]
