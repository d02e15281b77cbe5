"""Loads, stores, matrix loads and asynchronous copies, lane by lane."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.errors import IsaError
from stcsim.isa import Address, Immediate, Instruction, Predicate, Register, WarpState, execute

LANE = np.arange(32, dtype=np.uint32)


@pytest.fixture
def state(rng: np.random.Generator) -> WarpState:
    shared, memory = (rng.integers(0, 256, 2048, dtype=np.uint8) for _ in range(2))
    return WarpState(shared, memory=memory)


def test_each_lane_loads_the_words_at_its_own_address(state: WarpState):
    state.registers[0] = 16 * (31 - LANE)
    execute(Instruction("LDS.128", (Register(4), Address(Register(0), 64))), state)
    words = state.shared.view("<u4").reshape(-1, 4)
    for lane in range(32):
        np.testing.assert_array_equal(state.registers[4:8, lane], words[4 + 31 - lane])


def test_an_address_without_a_register_is_the_same_for_all_lanes(state: WarpState):
    execute(Instruction("LDS", (Register(4), Address(None, 8))), state)
    assert (state.registers[4] == state.shared.view("<u4")[2]).all()


def test_guarded_off_lanes_neither_load_nor_need_a_valid_address(state: WarpState):
    state.registers[0] = np.where(LANE < 8, 4 * LANE, 0xFFFFFFFF)
    state.registers[4] = 77
    state.predicates[1] = LANE < 8
    execute(Instruction("LDS", (Register(4), Address(Register(0))), Predicate(1)), state)
    np.testing.assert_array_equal(state.registers[4, :8], state.shared.view("<u4")[:8])
    assert (state.registers[4, 8:] == 77).all()


def test_a_store_is_read_back_by_a_load(state: WarpState, rng: np.random.Generator):
    state.registers[8:10] = rng.integers(0, 2**32, (2, 32), dtype=np.uint32)
    state.registers[0] = 8 * rng.permutation(32)
    execute(Instruction("STG.64", (Address(Register(0), 128), Register(8))), state)
    execute(Instruction("LDG.64", (Register(12), Address(Register(0), 128))), state)
    np.testing.assert_array_equal(state.registers[12:14], state.registers[8:10])


def test_guarded_off_lanes_do_not_store(state: WarpState):
    before = state.shared.copy()
    state.registers[0], state.registers[8] = 4 * LANE, 0
    state.predicates[0] = LANE == 3
    execute(Instruction("STS", (Address(Register(0)), Register(8)), Predicate(0)), state)
    before[12:16] = 0
    np.testing.assert_array_equal(state.shared, before)


@pytest.mark.parametrize(
    ("mnemonic", "address", "message"),
    [
        ("LDS", 2, "lane 0: shared address must be a multiple of 4 below 0x800, not 0x2"),
        ("LDS.128", 8, "lane 0: shared address must be a multiple of 16 below 0x800, not 0x8"),
        ("LDS.64", 2048, "lane 0: shared address must be a multiple of 8 below 0x800, not 0x800"),
        ("LDG", 4096, "lane 0: global address must be a multiple of 4 below 0x800, not 0x1000"),
    ],
)
def test_a_misaligned_or_distant_access_is_refused(
    mnemonic: str, address: int, message: str, state: WarpState
):
    with pytest.raises(IsaError, match=f"^{message}$"):
        execute(Instruction(mnemonic, (Register(4), Address(None, address))), state)


def test_a_negative_address_is_refused(state: WarpState):
    with pytest.raises(
        IsaError, match=r"^lane 0: shared address must be a multiple of 4 below 0x800, not -0x4$"
    ):
        execute(Instruction("LDS", (Register(4), Address(Register(0), -4))), state)


@pytest.mark.parametrize("n_matrices", [1, 2, 4])
def test_ldsm_gives_each_lane_two_neighbours_of_a_row(
    n_matrices: int, state: WarpState, rng: np.random.Generator
):
    rows = 16 * rng.permutation(32).astype(np.uint32)  # byte addresses of the rows, in any order
    state.registers[0] = rows
    execute(Instruction(f"LDSM.X{n_matrices}", (Register(4), Address(Register(0), 256))), state)
    halves = state.shared.view("<u2")
    for matrix in range(n_matrices):
        for lane in range(32):
            first = (256 + int(rows[8 * matrix + lane // 4])) // 2 + 2 * (lane % 4)
            assert state.registers[4 + matrix, lane] == int(halves[first]) | int(halves[first + 1]) << 16
    assert not state.registers[4 + n_matrices].any()


def test_transposed_ldsm_gives_each_lane_two_neighbours_of_a_column(state: WarpState):
    matrices = state.shared[:512].view("<u2").reshape(4, 8, 8)
    state.registers[0] = 16 * LANE
    execute(Instruction("LDSM.X4.TRANS", (Register(4), Address(Register(0)))), state)
    for matrix in range(4):
        for lane in range(32):
            row, column = 2 * (lane % 4), lane // 4
            expected = int(matrices[matrix, row, column]) | int(matrices[matrix, row + 1, column]) << 16
            assert state.registers[4 + matrix, lane] == expected


def test_an_asynchronous_copy_lands_when_its_group_has_been_waited_for(state: WarpState):
    before, source = state.shared.copy(), state.memory.copy()
    state.registers[0] = 16 * LANE
    copy = [
        Instruction("LDGSTS.128", (Address(Register(0), target), Address(Register(0), origin)))
        for target, origin in [(0, 512), (1024, 0)]
    ]
    close, wait = Instruction("LDGDEPBAR"), [Instruction("DEPBAR", (Immediate(n),)) for n in range(2)]
    for instruction in (copy[0], close, copy[1], close):
        execute(instruction, state)
    np.testing.assert_array_equal(state.shared, before)
    execute(wait[1], state)
    np.testing.assert_array_equal(state.shared[:512], source[512:1024])
    np.testing.assert_array_equal(state.shared[512:], before[512:])
    execute(wait[0], state)
    np.testing.assert_array_equal(state.shared[1024:1536], source[:512])


def test_guarded_off_lanes_copy_nothing(state: WarpState):
    before = state.shared.copy()
    state.registers[0] = 4 * LANE
    state.predicates[0] = LANE == 1
    execute(Instruction("LDGSTS", (Address(Register(0)), Address(Register(0), 64)), Predicate(0)), state)
    execute(Instruction("LDGDEPBAR"), state)
    execute(Instruction("DEPBAR", (Immediate(0),)), state)
    before[4:8] = state.memory[68:72]
    np.testing.assert_array_equal(state.shared, before)
