"""Dense and 2:4 products of every shape and dtype, against numpy on the original tiles."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.errors import IsaError
from stcsim.isa import (
    Immediate,
    Instruction,
    InstructionSpec,
    Register,
    WarpState,
    execute,
    fragment,
    load_isa,
    metadata,
)

ISA = load_isa()
DENSE = [m for m, spec in ISA.items() if spec.semantics == "mma"]
SPARSE = [m for m, spec in ISA.items() if spec.semantics == "mma_sparse"]
D, A, B, C, E = Register(40), Register(8), Register(16), Register(24), Register(32)


@pytest.fixture
def state() -> WarpState:
    return WarpState(np.zeros(64, dtype=np.uint8))


def whole_numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    least, largest = {"uint8": (0, 256), "uint4": (0, 16), "int4": (-8, 8)}.get(dtype, (-100, 101))
    return rng.integers(least, largest, shape)


def put(state: WarpState, register: Register, words: np.ndarray) -> None:
    state.registers[register.index : register.index + len(words)] = words


def run_dense(
    state: WarpState, spec: InstructionSpec, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> np.ndarray:
    put(state, A, fragment.pack_a(spec, a))
    put(state, B, fragment.pack_b(spec, b))
    put(state, C, fragment.pack_c(spec, c))
    execute(Instruction(spec.mnemonic, (D, A, B, C)), state)
    return fragment.unpack_c(spec, state.words(D, fragment.operand_layout(spec, "c").n_registers))


def keep_pattern(rng: np.random.Generator, spec: InstructionSpec, tile: np.ndarray) -> np.ndarray:
    """Return `tile` with all but at most the allowed parts of each group set to zero, at random."""
    columns, kept, per_part = metadata.pattern(spec)
    parts = tile.copy().reshape(len(tile), -1, columns // per_part, per_part)
    order = rng.permuted(np.broadcast_to(np.arange(columns // per_part), parts.shape[:3]), axis=2)
    parts[order >= rng.integers(0, kept // per_part + 1, (*parts.shape[:2], 1))] = 0
    return parts.reshape(tile.shape)


@pytest.mark.parametrize("mnemonic", DENSE)
def test_dense_product_of_whole_numbers_is_exact(mnemonic: str, state: WarpState, rng: np.random.Generator):
    spec = ISA[mnemonic]
    shape = spec.product
    a = whole_numbers(rng, str(spec.parameters["a"]), (shape.m, shape.k))
    b = whole_numbers(rng, str(spec.parameters["b"]), (shape.k, shape.n))
    if spec.parameters["c"] == "fp16":
        a, b = a % 5, b % 5  # sums stay below 2048, exact in fp16
    c = rng.integers(-50, 51, (shape.m, shape.n))
    np.testing.assert_array_equal(run_dense(state, spec, a, b, c), a @ b + c)


@pytest.mark.parametrize("mnemonic", SPARSE)
def test_sparse_product_equals_the_dense_one_of_the_original_tile(
    mnemonic: str, state: WarpState, rng: np.random.Generator
):
    spec = ISA[mnemonic]
    shape = spec.product
    a = keep_pattern(rng, spec, whole_numbers(rng, str(spec.parameters["a"]), (shape.m, shape.k)))
    b = whole_numbers(rng, str(spec.parameters["b"]), (shape.k, shape.n))
    if spec.parameters["c"] == "fp16":
        a, b = np.sign(a), b % 5
    c = rng.integers(-50, 51, (shape.m, shape.n))
    values, codes = metadata.compress(spec, a)
    for selector in range(spec.operands[5].limits[1] + 1):
        put(state, A, fragment.pack_a(spec, values))
        put(state, B, fragment.pack_b(spec, b))
        put(state, C, fragment.pack_c(spec, c))
        put(state, E, metadata.pack(spec, codes, selector)[None])
        execute(Instruction(mnemonic, (D, A, B, C, E, Immediate(selector))), state)
        n_registers = fragment.operand_layout(spec, "c").n_registers
        np.testing.assert_array_equal(fragment.unpack_c(spec, state.words(D, n_registers)), a @ b + c)


@pytest.mark.parametrize("mnemonic", ["HMMA.16816.F32", "HMMA.16816.F32.BF16", "HMMA.1688.F32.TF32"])
def test_random_floats_stay_within_the_rounding_bound_of_fp32_sums(
    mnemonic: str, state: WarpState, rng: np.random.Generator
):
    spec = ISA[mnemonic]
    shape = spec.product
    a = fragment.unpack_a(spec, fragment.pack_a(spec, rng.standard_normal((shape.m, shape.k))))
    b = fragment.unpack_b(spec, fragment.pack_b(spec, rng.standard_normal((shape.k, shape.n))))
    c = rng.standard_normal((shape.m, shape.n)).astype(np.float32)
    exact = a.astype(np.float64) @ b + c
    # k + 1 roundings to nearest, each at most 2**-24 of a partial sum of magnitudes.
    bound = (shape.k + 1) * 2.0**-24 * (np.abs(a.astype(np.float64)) @ np.abs(b) + np.abs(c))
    assert (np.abs(run_dense(state, spec, a, b, c) - exact) <= bound).all()


def test_saturating_integer_product_clips_and_the_plain_one_wraps(state: WarpState):
    a, b = np.full((16, 32), 127), np.full((32, 8), 127)
    c = np.full((16, 8), 2**31 - 1)
    assert (run_dense(state, ISA["IMMA.16832.S8.SAT"], a, b, c) == 2**31 - 1).all()
    assert (run_dense(state, ISA["IMMA.16832.S8"], a, b, c) == 32 * 127 * 127 - 2**31 - 1).all()
    assert (run_dense(state, ISA["IMMA.16832.S8.SAT"], -a, b, -c) == -(2**31)).all()


def test_fp16_sums_are_rounded_once_an_instruction(state: WarpState):
    a, b = np.zeros((16, 16)), np.zeros((16, 8))
    a[0, 0], b[0, 0] = 1.0, 1.0
    c = np.full((16, 8), 2048.0)  # fp16 holds no odd number there: 2049 lies between 2048 and 2050
    assert run_dense(state, ISA["HMMA.16816.F16"], a, b, c)[0, 0] == 2048
    a[0, 1], b[1, 0] = 1.0, 1.0  # 2050 is exact, though 2048 + 1 + 1 in fp16 steps is not
    assert run_dense(state, ISA["HMMA.16816.F16"], a, b, c)[0, 0] == 2050


def test_tf32_ignores_the_low_mantissa_bits_of_a_register(state: WarpState):
    spec = ISA["HMMA.1688.F32.TF32"]
    put(state, A, fragment.pack_a(spec, np.eye(16, 8)) | np.uint32(0x1FFF))
    put(state, B, fragment.pack_b(spec, np.eye(8)) & np.uint32(0xFFFFE000))
    put(state, C, np.zeros((4, 32), dtype=np.uint32))
    execute(Instruction(spec.mnemonic, (D, A, B, C)), state)
    np.testing.assert_array_equal(fragment.unpack_c(spec, state.words(D, 4)), np.eye(16, 8))


def test_an_infinity_that_no_stored_element_meets_does_no_harm(state: WarpState):
    spec = ISA["HMMA.SP.16832.F32"]
    a = np.zeros((16, 32))
    a[:, 0] = a[:, 1] = 1.0
    b = np.ones((32, 8))
    b[2] = np.inf
    values, codes = metadata.compress(spec, a)
    put(state, A, fragment.pack_a(spec, values))
    put(state, B, fragment.pack_b(spec, b))
    put(state, E, metadata.pack(spec, codes)[None])
    execute(Instruction(spec.mnemonic, (D, A, B, Register(255), E, Immediate(0))), state)
    assert (fragment.unpack_c(spec, state.words(D, 4)) == 2).all()


def test_steps_of_hmma884_each_write_their_own_register_pair(state: WarpState):
    spec = ISA["HMMA.884.F32.F32.STEP0"]
    put(state, A, fragment.pack_a(spec, np.ones((16, 4))))
    put(state, B, fragment.pack_b(spec, np.ones((4, 16))))
    for step, rows, columns in [(0, (0, 1), 0), (1, (2, 3), 0), (2, (0, 1), 4), (3, (2, 3), 4)]:
        put(state, D, np.zeros((8, 32), dtype=np.uint32))
        pair = Register(D.index + 2 * step)
        execute(Instruction(f"HMMA.884.F32.F32.STEP{step}", (pair, A, B, pair)), state)
        expected = np.zeros((16, 16))
        for octet_row in range(0, 16, 4):
            for octet_column in (0, 8):
                for row in rows:
                    expected[octet_row + row, octet_column + columns : octet_column + columns + 4] = 4
        np.testing.assert_array_equal(fragment.unpack_c(spec, state.words(D, 8)), expected)


@pytest.mark.parametrize(("form", "n_steps", "per_step"), [("F32.F32", 4, 2), ("F16.F16", 2, 2)])
def test_sets_and_steps_of_hmma884_make_a_16x16x16_product(
    form: str, n_steps: int, per_step: int, state: WarpState, rng: np.random.Generator
):
    spec = ISA[f"HMMA.884.{form}.STEP0"]
    a, b, c = (rng.integers(-5, 6, (16, 16)) for _ in range(3))
    put(state, D, fragment.pack_c(spec, c))
    for k in range(0, 16, 4):
        put(state, A, fragment.pack_a(spec, a[:, k : k + 4]))
        put(state, B, fragment.pack_b(spec, b[k : k + 4]))
        for step in range(n_steps):
            pair = Register(D.index + per_step * step)
            execute(Instruction(f"HMMA.884.{form}.STEP{step}", (pair, A, B, pair)), state)
    np.testing.assert_array_equal(fragment.unpack_c(spec, state.words(D, n_steps * per_step)), a @ b + c)


def test_a_register_beyond_the_state_is_refused():
    small = WarpState(np.zeros(64, dtype=np.uint8), n_registers=16)
    with pytest.raises(IsaError, match=r"^register must be below R16, not R19$"):
        execute(Instruction("HMMA.16816.F32", (D, Register(16), Register(4), Register(8))), small)
