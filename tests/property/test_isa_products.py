"""Sparse and dense instructions give numpy's product of the original tiles, whatever the pattern."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stcsim.errors import IsaError
from stcsim.formats.vector_wise import VectorWiseFormat
from stcsim.isa import (
    Accumulator,
    Immediate,
    Instruction,
    Register,
    WarpState,
    execute,
    fragment,
    load_isa,
    metadata,
    offset,
)
from stcsim.isa.expansion import expand

ISA = load_isa()
R = Register
ACC = Accumulator(0)


def fresh() -> WarpState:
    return WarpState(np.zeros(16, dtype=np.uint8))


def packed(values: np.ndarray) -> np.ndarray:
    array = np.zeros(512, dtype=np.float16)
    array[: values.size] = values
    return array.view(np.uint32).reshape(8, 32)


def sparse_state(a: np.ndarray, b: np.ndarray) -> WarpState:
    """Return a state that holds ragged tiles, padded with zeros, condensed as isa/README.md says."""
    state = fresh()
    for k in range(a.shape[1]):
        state.registers[0, k] = sum(1 << int(i) for i in np.flatnonzero(a[:, k]))
        state.registers[1, k] = sum(1 << int(j) for j in np.flatnonzero(b[k]))
    state.registers[8:16], state.registers[16:24] = packed(a.T[a.T != 0]), packed(b[b != 0])
    return state


def small(rows: int, columns: int) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.int64, (rows, columns), elements=st.integers(-8, 8), fill=st.just(0))


@st.composite
def ragged_tiles(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw the corner tiles of a product whose edges are no multiples of 32, 32 and 16."""
    m, n, k = draw(st.integers(1, 32)), draw(st.integers(1, 32)), draw(st.integers(1, 16))
    return draw(small(m, k)), draw(small(k, n))


@given(ragged_tiles())
def test_spwmma_and_its_expansion_equal_the_dense_product(tiles: tuple[np.ndarray, np.ndarray]):
    a, b = tiles
    expected = np.zeros((32, 32))
    expected[: len(a), : b.shape[1]] = a @ b
    macro = Instruction("SpWMMA", (ACC, R(8), R(16), R(0), R(1), R(2), R(4)))
    whole, parts, issued = (sparse_state(a, b) for _ in range(3))
    execute(macro, whole)
    for step in expand(macro):
        execute(step, parts)
    bits_a, bits_b = issued.registers[0, :16].tolist(), issued.registers[1, :16].tolist()
    for step in expand(macro, bits_a=bits_a, bits_b=bits_b):
        assert execute(step, issued), f"{step} was skipped, though its bitmaps have work for it"
    for state in (whole, parts, issued):
        np.testing.assert_array_equal(state.accumulators[0], expected)


def by_owmma(a: np.ndarray, b: np.ndarray, *, expanded: bool) -> np.ndarray:
    state = fresh()
    state.registers[8:16], state.registers[16:24] = packed(a.T.ravel()), packed(b.ravel())
    macro = Instruction("OWMMA", (ACC, R(8), R(16), R(4)))
    for step in expand(macro) if expanded else [macro]:
        execute(step, state)
    return state.accumulators[0, :16, :16]


def by_hmma884(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    spec, state = ISA["HMMA.884.F32.F32.STEP0"], fresh()
    for k in range(0, 16, 4):
        state.registers[4:6] = fragment.pack_a(spec, a[:, k : k + 4])
        state.registers[6:8] = fragment.pack_b(spec, b[k : k + 4])
        for step in range(4):
            pair = R(8 + 2 * step)
            execute(Instruction(f"HMMA.884.F32.F32.STEP{step}", (pair, R(4), R(6), pair)), state)
    return fragment.unpack_c(spec, state.words(R(8), 8))


def by_hmma16816(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    spec, state = ISA["HMMA.16816.F32"], fresh()
    state.registers[4:8] = fragment.pack_a(spec, a)
    halves = []
    for n in (0, 8):
        state.registers[8:10] = fragment.pack_b(spec, b[:, n : n + 8])
        execute(Instruction(spec.mnemonic, (R(12), R(4), R(8), R(255))), state)
        halves.append(fragment.unpack_c(spec, state.words(R(12), 4)))
    return np.hstack(halves)


@given(small(16, 16), small(16, 16))
def test_four_ways_to_a_16x16x16_product_agree_exactly_on_small_integers(a: np.ndarray, b: np.ndarray):
    expected = (a @ b).astype(np.float32)
    for result in (
        by_owmma(a, b, expanded=False),
        by_owmma(a, b, expanded=True),
        by_hmma884(a, b),
        by_hmma16816(a, b),
    ):
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, expected)


HALVES = arrays(np.float16, (16, 16), elements=st.floats(-100, 100, width=16))


@given(HALVES, HALVES)
def test_random_fp16_stays_within_the_rounding_bound_of_fp32_sums(a: np.ndarray, b: np.ndarray):
    exact = a.astype(np.float64) @ b.astype(np.float64)
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    # 16 additions, each off by at most 2**-24 of the magnitudes summed so far; products are exact.
    bound = 16 * 2.0**-24 * magnitude
    for result in (by_owmma(a, b, expanded=True), by_hmma884(a, b), by_hmma16816(a, b)):
        assert (np.abs(result - exact) <= bound).all()


GROUPS = st.lists(st.integers(-9, 9), min_size=4, max_size=4)


@pytest.mark.parametrize("mnemonic", ["HMMA.SP.16832.F32", "HMMA.SP.16816.F32", "IMMA.SP.16864.S8"])
@given(data=st.data())
def test_groups_of_up_to_two_non_zeros_come_back_and_fuller_ones_are_an_error(
    mnemonic: str, data: st.DataObject
):
    spec = ISA[mnemonic]
    tile = np.zeros((16, spec.product.k), dtype=np.int64)
    for _ in range(data.draw(st.integers(1, 6))):
        row = data.draw(st.integers(0, 15))
        group = data.draw(st.integers(0, spec.product.k // 4 - 1))
        tile[row, 4 * group : 4 * group + 4] = data.draw(GROUPS)
    fullest = (tile.reshape(16, -1, 4) != 0).sum(axis=2).max()
    if fullest > 2:
        with pytest.raises(IsaError, match=r"must hold at most 2 non-zeros, not [34]$"):
            metadata.compress(spec, tile)
        return
    values, codes = metadata.compress(spec, tile)
    np.testing.assert_array_equal(metadata.decompress(spec, values, codes), tile)
    for selector in range(spec.operands[5].limits[1] + 1):
        np.testing.assert_array_equal(
            metadata.unpack(spec, metadata.pack(spec, codes, selector), selector), codes
        )


@given(st.integers(0, 999), st.integers(0, 4))
def test_a_gathering_product_equals_the_dense_one_and_reads_no_other_row(seed: int, kept: int) -> None:
    """16 x 16 x 64 in four sets: A with up to 4 of 16, rows of B that no element of A needs infinite."""
    rng = np.random.default_rng(seed)
    form, spec = VectorWiseFormat(), ISA["HMMA.VW.884.F32.F32.STEP0"]
    a = rng.integers(-8, 9, (16, 64))
    a *= form.keep(rng.integers(1, 99, (16, 64))) & (rng.integers(0, 4, (16, 64)) < kept)
    b = rng.integers(-8, 9, (64, 16)).astype(float)
    state = fresh()
    for s in range(4):
        encoded = form.encode(a[:, 16 * s : 16 * s + 16])
        offsets = encoded.offsets.reshape(16, 4)
        poisoned = b[16 * s : 16 * s + 16].copy()
        poisoned[np.setdiff1d(np.arange(16), offsets)] = np.inf
        state.registers[4:6] = fragment.pack_a(spec, encoded.values.reshape(16, 4))
        state.registers[16:24] = fragment.pack_b(spec, poisoned)
        state.registers[6] = offset.pack(offsets, s % 2)
        for step in range(4):
            pair, name = R(8 + 2 * step), f"HMMA.VW.884.F32.F32.STEP{step}"
            execute(Instruction(name, (pair, R(4), R(16), pair, R(6), Immediate(s % 2))), state)
    np.testing.assert_array_equal(fragment.unpack_c(spec, state.words(R(8), 8)), a @ b)
