"""DSTC's instructions: outer products, position bitmaps, predicates, warp-level products."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.isa import Accumulator, Immediate, Instruction, Predicate, Register, WarpState, execute
from stcsim.isa.semantics.outer_product import guard_lane

A, B, BITS_A, BITS_B, COUNTS = Register(8), Register(16), Register(0), Register(1), Register(2)
ACC = Accumulator(0)


@pytest.fixture
def state() -> WarpState:
    return WarpState(np.zeros(64, dtype=np.uint8))


def bits(flags: np.ndarray) -> int:
    return sum(1 << i for i, flag in enumerate(flags) if flag)


def packed(values: np.ndarray) -> np.ndarray:
    """Return eight registers that hold `values` one after the other, as plain loads would leave them."""
    array = np.zeros(512, dtype=np.float16)
    array[: values.size] = values
    return array.view(np.uint32).reshape(8, 32)


def load_tile(state: WarpState, a: np.ndarray, b: np.ndarray) -> None:
    """Condense a 32 x 16 tile of A column by column and a 16 x 32 tile of B row by row."""
    state.registers[0, :16] = [bits(a[:, k] != 0) for k in range(16)]
    state.registers[1, :16] = [bits(b[k] != 0) for k in range(16)]
    state.registers[8:16] = packed(a.T[a.T != 0])
    state.registers[16:24] = packed(b[b != 0])


def sparse(rng: np.random.Generator, shape: tuple[int, int], density: float) -> np.ndarray:
    return rng.integers(1, 9, shape) * (rng.random(shape) < density)


def ohmma(k: int, i: int, j: int, guard: Predicate | None = None) -> Instruction:
    tail = (Immediate(k), Immediate(i), Immediate(j))
    return Instruction("OHMMA.8161", (ACC, A, B, BITS_A, BITS_B, *tail), guard)


def test_one_outer_product_lands_where_the_bitmaps_say(state: WarpState):
    a, b = np.zeros((32, 16)), np.zeros((16, 32))
    a[[3, 17, 30], 0] = [9, 9, 9]  # step 0: three values of A come before those of step 1
    a[[1, 5, 6, 8, 10, 11, 20, 21, 25], 1] = range(1, 10)
    b[1, [0, 2, 31]] = [10, 20, 30]
    load_tile(state, a, b)
    execute(ohmma(1, 0, 0), state)
    expected = np.zeros((32, 32))
    for row, value in zip([1, 5, 6, 8, 10, 11, 20, 21], range(1, 9), strict=True):
        expected[row, [0, 2, 31]] = [10 * value, 20 * value, 30 * value]
    np.testing.assert_array_equal(state.accumulators[0], expected)
    execute(ohmma(1, 1, 0), state)  # the ninth value alone
    expected[25, [0, 2, 31]] = [90, 180, 270]
    np.testing.assert_array_equal(state.accumulators[0], expected)
    assert not state.accumulators[1:].any()


def test_a_group_beyond_the_last_value_does_nothing(state: WarpState):
    load_tile(state, np.ones((32, 16)), np.pad(np.ones((16, 16)), ((0, 0), (0, 16))))
    execute(ohmma(0, 0, 1), state)
    assert not state.accumulators.any()


def test_the_guard_of_an_outer_product_is_read_in_the_lane_of_its_step(state: WarpState):
    load_tile(state, np.ones((32, 16)), np.ones((16, 32)))
    state.predicates[2, guard_lane(5, 1)] = True
    assert guard_lane(5, 1) == 21
    assert not execute(ohmma(5, 0, 0, Predicate(2)), state)
    assert not execute(ohmma(4, 0, 1, Predicate(2)), state)
    assert not execute(ohmma(5, 0, 1, Predicate(2, negated=True)), state)
    assert not state.accumulators.any()
    assert execute(ohmma(5, 0, 1, Predicate(2)), state)
    assert state.accumulators[0, :8, 16:].sum() == state.accumulators[0].sum() == 128


def test_predicates_are_true_where_an_outer_product_has_work(state: WarpState):
    ones_a = np.array([0, 1, 8, 9, 16, 17, 24, 25, 32, 5, 5, 5, 5, 5, 5, 5], dtype=np.uint32)
    ones_b = np.array([32, 0, 17, 16, 32, 1, 32, 32, 32, 0, 1, 15, 16, 17, 31, 32], dtype=np.uint32)
    state.registers[2, :16], state.registers[3, :16] = ones_a, ones_b
    for i in range(4):
        operands = (Predicate(i), Register(2), Register(3), Immediate(i), Immediate(0))
        execute(Instruction("OSETP.8161", operands), state)
    for k in range(16):
        for i in range(4):
            for j in range(2):
                work = i < -(-int(ones_a[k]) // 8) and j < -(-int(ones_b[k]) // 16)
                assert state.predicates[i, guard_lane(k, j)] == work


def test_one_register_may_hold_the_words_of_both_operands(state: WarpState, rng: np.random.Generator):
    a, b = sparse(rng, (32, 16), 0.5), sparse(rng, (16, 32), 0.5)
    load_tile(state, a, b)
    state.registers[30, :16], state.registers[30, 16:] = state.registers[0, :16], state.registers[1, :16]
    both, scratch = Register(30), (COUNTS, Register(4))
    execute(Instruction("SpWMMA", (ACC, A, B, both, both, *scratch)), state)
    np.testing.assert_array_equal(state.accumulators[0], a @ b)


def test_position_bitmap_is_the_product_of_column_and_row_bits(state: WarpState):
    state.registers[0, 7], state.registers[1, 7] = 0x80000005, 0xF0F0
    operands = (Register(40), BITS_A, BITS_B, Immediate(7))
    execute(Instruction("BOHMMA.32321", operands), state)
    expected = np.zeros(32, dtype=np.uint32)
    expected[[0, 2, 31]] = 0xF0F0
    np.testing.assert_array_equal(state.registers[40], expected)


@pytest.mark.parametrize(("density_a", "density_b"), [(0.0, 0.5), (0.1, 0.1), (0.5, 0.3), (1.0, 1.0)])
def test_spwmma_adds_the_product_of_the_original_tiles(
    density_a: float, density_b: float, state: WarpState, rng: np.random.Generator
):
    a, b = sparse(rng, (32, 16), density_a), sparse(rng, (16, 32), density_b)
    load_tile(state, a, b)
    state.accumulators[0] = start = rng.integers(-9, 9, (32, 32))
    execute(Instruction("SpWMMA", (ACC, A, B, BITS_A, BITS_B, COUNTS, Register(4))), state)
    np.testing.assert_array_equal(state.accumulators[0], start + a @ b)


def test_owmma_adds_a_dense_product_to_the_top_left_quarter(state: WarpState, rng: np.random.Generator):
    a, b = rng.integers(-9, 10, (16, 16)), rng.integers(-9, 10, (16, 16))
    state.registers[8:16], state.registers[16:24] = packed(a.T.ravel()), packed(b.ravel())
    execute(Instruction("OWMMA", (ACC, A, B, Register(4))), state)
    np.testing.assert_array_equal(state.accumulators[0, :16, :16], a @ b)
    assert not state.accumulators[0, 16:].any()
    assert not state.accumulators[0, :, 16:].any()


def test_a_tile_is_loaded_drained_and_cleared_row_by_row(state: WarpState, rng: np.random.Generator):
    rows = rng.standard_normal((8, 32)).astype(np.float32)
    state.registers[8:16] = rows.view(np.uint32)
    execute(Instruction("ACC.LOAD", (Accumulator(2), Immediate(16), Register(8))), state)
    np.testing.assert_array_equal(state.accumulators[2, 16:24], rows)
    execute(Instruction("ACC.DRAIN", (Register(24), Accumulator(2), Immediate(16))), state)
    np.testing.assert_array_equal(state.registers[24:32].view(np.float32), rows)
    execute(Instruction("ACC.CLEAR", (Accumulator(2),)), state)
    assert not state.accumulators.any()
