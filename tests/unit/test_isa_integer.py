"""The integer pipe and predicates, against Python's own integers."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.errors import IsaError
from stcsim.isa import (
    Immediate,
    Instruction,
    Operand,
    Predicate,
    Register,
    SpecialRegister,
    WarpState,
    execute,
)

D, A, B, C = Register(10), Register(1), Register(2), Register(3)
MASK = 0xFFFFFFFF
EDGES = [0, 1, 2, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


@pytest.fixture
def state(rng: np.random.Generator) -> WarpState:
    state = WarpState(np.zeros(64, dtype=np.uint8))
    state.registers[1:4] = rng.integers(0, 2**32, (3, 32), dtype=np.uint32)
    state.registers[1, :8], state.registers[2, :8] = EDGES, EDGES[::-1]
    return state


def lanes(state: WarpState) -> list[tuple[int, int, int]]:
    return [(int(a), int(b), int(c)) for a, b, c in state.registers[1:4].T]


@pytest.mark.parametrize(
    ("mnemonic", "operands", "expected"),
    [
        ("MOV", (D, A), lambda a, b, c: a),
        ("MOV", (D, Immediate(0xDEADBEEF)), lambda a, b, c: 0xDEADBEEF),
        ("IADD3", (D, A, B, C), lambda a, b, c: a + b + c),
        ("IADD3", (D, A, Immediate(MASK), Register(255)), lambda a, b, c: a - 1),
        ("IMAD", (D, A, B, C), lambda a, b, c: a * b + c),
        ("POPC", (D, A), lambda a, b, c: a.bit_count()),
        ("SHL", (D, A, Immediate(5)), lambda a, b, c: a << 5),
        ("SHL", (D, A, B), lambda a, b, c: a << b if b < 32 else 0),
        ("SHR.U32", (D, A, B), lambda a, b, c: a >> min(b, 32)),
        ("SHR.S32", (D, A, B), lambda a, b, c: signed(a) >> min(b, 32)),
        ("SHF.L", (D, A, B, C), lambda a, b, c: (c << 32 | a) << b % 32 >> 32),
        ("SHF.R", (D, A, B, C), lambda a, b, c: (c << 32 | a) >> b % 32),
        ("LOP3", (D, A, B, C, Immediate(0xC0)), lambda a, b, c: a & b),
        ("LOP3", (D, A, B, C, Immediate(0xFC)), lambda a, b, c: a | b),
        ("LOP3", (D, A, B, C, Immediate(0x96)), lambda a, b, c: a ^ b ^ c),
        ("LOP3", (D, A, B, C, Immediate(0xE8)), lambda a, b, c: a & b | a & c | b & c),
        ("LOP3", (D, A, Immediate(0xFF), C, Immediate(0x30)), lambda a, b, c: a & ~0xFF),
    ],
)
def test_a_lane_computes_what_pythons_integers_do(
    mnemonic, operands: tuple[Operand, ...], expected, state: WarpState
):
    execute(Instruction(mnemonic, operands), state)
    assert state.registers[10].tolist() == [expected(a, b, c) & MASK for a, b, c in lanes(state)]


@pytest.mark.parametrize("compare", ["LT", "LE", "GT", "GE", "EQ", "NE"])
@pytest.mark.parametrize("sign", ["", ".U32"])
def test_comparisons_are_signed_unless_told_otherwise(compare: str, sign: str, state: WarpState):
    state.registers[2, 8:12] = state.registers[1, 8:12]
    execute(Instruction(f"ISETP.{compare}{sign}.AND", (Predicate(2), A, B, Predicate(7))), state)
    order = {
        "LT": int.__lt__,
        "LE": int.__le__,
        "GT": int.__gt__,
        "GE": int.__ge__,
        "EQ": int.__eq__,
        "NE": int.__ne__,
    }
    see = (lambda word: word) if sign else signed
    assert state.predicates[2].tolist() == [order[compare](see(a), see(b)) for a, b, _ in lanes(state)]


@pytest.mark.parametrize(("form", "combine"), [("AND", np.logical_and), ("OR", np.logical_or)])
def test_a_comparison_is_combined_with_a_predicate_that_may_be_negated(form: str, combine, state: WarpState):
    state.predicates[3] = other = np.arange(32) % 2 == 0
    execute(Instruction(f"ISETP.LT.U32.{form}", (Predicate(2), A, B, Predicate(3, negated=True))), state)
    np.testing.assert_array_equal(
        state.predicates[2], combine(state.registers[1] < state.registers[2], ~other)
    )


def test_a_guarded_comparison_leaves_the_other_lanes_as_they_were(state: WarpState):
    state.predicates[0] = np.arange(32) < 4
    state.predicates[2] = True
    operands = (Predicate(2), Register(255), Immediate(1), Predicate(7))
    execute(Instruction("ISETP.GT.AND", operands, Predicate(0)), state)
    assert state.predicates[2].tolist() == [False] * 4 + [True] * 28


def test_select_takes_the_first_source_where_the_predicate_holds(state: WarpState):
    state.predicates[0] = np.arange(32) % 3 == 0
    execute(Instruction("SEL", (D, A, B, Predicate(0, negated=True))), state)
    assert state.registers[10].tolist() == [
        b if i % 3 == 0 else a for i, (a, b, _) in enumerate(lanes(state))
    ]


def test_the_lane_number_is_a_special_register(state: WarpState):
    execute(Instruction("S2R", (D, SpecialRegister("SR_LANEID"))), state)
    assert state.registers[10].tolist() == list(range(32))


def test_a_guard_writes_only_where_it_holds(state: WarpState):
    state.predicates[1] = np.arange(32) < 16
    execute(Instruction("MOV", (D, Immediate(9)), Predicate(1, negated=True)), state)
    assert state.registers[10].tolist() == [0] * 16 + [9] * 16


def test_a_guard_that_holds_nowhere_skips_the_instruction(state: WarpState):
    assert not execute(Instruction("MOV", (D, Immediate(9)), Predicate(1)), state)
    assert execute(Instruction("MOV", (D, Immediate(9)), Predicate(1, negated=True)), state)
    assert (state.registers[10] == 9).all()


def test_a_warp_wide_instruction_wants_its_guard_alike_in_all_lanes(state: WarpState):
    state.predicates[1, 5] = True
    instruction = Instruction(
        "HMMA.16816.F32", (Register(12), Register(4), Register(8), Register(12)), Predicate(1)
    )
    with pytest.raises(IsaError, match=r"guard must be alike in all lanes, not true in 1 of 32$"):
        execute(instruction, state)


def test_writes_to_rz_are_lost(state: WarpState):
    before = state.registers.copy()
    execute(Instruction("MOV", (Register(255), Immediate(5))), state)
    np.testing.assert_array_equal(state.registers, before)
    execute(Instruction("MOV", (D, Register(255))), state)
    assert not state.registers[10].any()
