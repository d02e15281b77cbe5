"""Bitmap im2col: the bits and values of the dense lowering, and what it takes; and the other ways."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convolution import conv_shapes
from stcsim.lowering import im2col
from stcsim.lowering.bitmap_im2col import EncodedMap, column, is_contiguous, mix
from stcsim.lowering.instruction_mix import InstructionMix, IntegerRates
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.im2col import Im2colPattern
from stcsim.workload.pattern import MaskPattern


@given(conv_shapes(), st.floats(0, 1), st.integers(0, 99))
def test_columns_hold_the_bits_and_values_of_the_dense_lowering(
    shape: ConvShape, density: float, seed: int
) -> None:
    mask = np.random.default_rng(seed).random(shape.input_shape) < density
    encoded = EncodedMap.of(MaskPattern(mask), shape)
    # The packed values are numbered; the dense map holds each number where its value stands.
    numbers = np.full(mask.shape, -1)
    numbers[mask] = np.arange(np.count_nonzero(mask))
    total = InstructionMix()
    for group in range(shape.groups):
        view = Im2colPattern(MaskPattern(mask), shape, group)
        rows, cols = view.elements(0, shape.pixels, 0, shape.taps)
        lowered = view.mask()
        for tap in range(shape.taps):
            c, rs = divmod(tap, shape.r * shape.s)
            found = column(encoded, shape, group * shape.c_group + c, *divmod(rs, shape.s))
            bits = np.unpackbits(found.words.view(np.uint8), bitorder="little")[: shape.pixels].astype(bool)
            np.testing.assert_array_equal(bits, lowered[:, tap])
            np.testing.assert_array_equal(found.values, numbers[rows, cols][:, tap][lowered[:, tap]])
            if shape.stride[1] == 1:
                assert is_contiguous(found)
            total += found.mix
    assert total == mix(shape)


def test_a_row_of_seven_outputs_is_shifted_masked_counted_and_placed() -> None:
    """Row 1011010 (column 0 first), 3 taps, stride 1, padding 1: the middle tap is the row itself."""
    shape = ConvShape(n=1, c=1, h=1, w=7, k=1, r=1, s=3, padding=(0, 1))
    encoded = EncodedMap.of(MaskPattern(np.array([[1, 0, 1, 1, 0, 1, 0]], dtype=bool)), shape)
    left, middle, right = (column(encoded, shape, 0, 0, s) for s in range(3))
    assert [found.words.tolist() for found in (left, middle, right)] == [
        [0b1011010],
        [0b0101101],
        [0b0010110],
    ]
    # The left tap still begins at the first value, behind one bit of padding; the right one has lost it.
    assert [found.values.tolist() for found in (left, middle, right)] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [1, 2, 3],
    ]
    assert middle.mix == InstructionMix(SHF=2, LOP3=2, POPC=2, IADD3=1)
    assert mix(shape) == middle.mix * 3


def test_output_rows_of_whole_words_need_no_placing() -> None:
    shape = ConvShape(n=1, c=1, h=1, w=64, k=1, r=1, s=1)
    assert mix(shape) == InstructionMix(SHF=2, LOP3=2, POPC=4, IADD3=2)


def test_stride_two_is_compacted_and_selects_each_value() -> None:
    """16 outputs from 31 columns: one source word, one halving, 16 selections, one placing."""
    shape = ConvShape(n=1, c=1, h=1, w=31, k=1, r=1, s=1, stride=(1, 2))
    assert mix(shape) == InstructionMix(SHF=1 + 4 + 1, LOP3=1 + 5 + 16 + 1, POPC=2 + 16, IADD3=1 + 16)


def test_rows_of_padding_take_nothing() -> None:
    inside = ConvShape(n=1, c=1, h=4, w=32, k=1, r=1, s=1)
    padded = ConvShape(n=1, c=1, h=4, w=32, k=1, r=1, s=1, padding=(3, 0))
    assert mix(padded) == mix(inside)


def test_cycles_are_those_of_the_busier_pipe() -> None:
    assert InstructionMix(POPC=9, IADD3=160).cycles(IntegerRates()) == 10
    assert InstructionMix(POPC=41, IADD3=160).cycles(IntegerRates()) == 11
    assert InstructionMix(POPC=41, IADD3=160).cycles(IntegerRates(), sub_cores=2) == 6


def feature_map(shape: ConvShape, density: float) -> MaskPattern:
    return MaskPattern(np.random.default_rng(0).random(shape.input_shape) < density)


@pytest.mark.parametrize("density", [0.3, 0.5, 0.9])
def test_a_naive_sparse_im2col_is_ten_to_a_hundred_times_slower_than_the_dense_one(density: float) -> None:
    """The published claim (no table of it is at hand), on a 64 x 56 x 56 map with a 3 x 3 filter."""
    shape = ConvShape(n=1, c=64, h=56, w=56, k=64, r=3, s=3, padding=(1, 1))
    pattern = feature_map(shape, density)
    dense, csr = (
        im2col.mix(name, shape, pattern).cycles(IntegerRates()) for name in ("dense_implicit", "csr")
    )
    assert 10 < csr / dense < 100


def test_only_csr_depends_on_the_zeros() -> None:
    shape = ConvShape(n=2, c=16, h=14, w=14, k=300, r=3, s=3, padding=(1, 1))
    for name in im2col.METHODS:
        sparse, full = (im2col.mix(name, shape, feature_map(shape, density), 3) for density in (0.1, 0.9))
        assert (sparse == full) == (name != "csr")


def test_the_explicit_lowering_is_made_once_and_read_back() -> None:
    shape = ConvShape(n=1, c=16, h=8, w=8, k=300, r=3, s=3, padding=(1, 1))
    pattern = feature_map(shape, 0.5)
    once, thrice = (im2col.mix("dense_explicit", shape, pattern, passes) for passes in (1, 3))
    assert once == thrice
    assert im2col.extra_bytes("dense_explicit", shape, 2) == 2 * 64 * 144 * 2
    assert im2col.extra_bytes("bitmap", shape, 2) == 0
    implicit = im2col.mix("dense_implicit", shape, pattern, 3)
    assert implicit == im2col.mix("dense_implicit", shape, pattern) * 3


def test_the_search_of_a_row_takes_the_logarithm_of_its_non_zeros() -> None:
    """One row of 7 ones, 8 columns, one tap: 8 searches of 3 steps; 7 scanned in all, and one behind each."""
    shape = ConvShape(n=1, c=1, h=1, w=8, k=1, r=1, s=1)
    pattern = MaskPattern(np.arange(8)[None] < 7)
    assert im2col.mix("csr", shape, pattern) == InstructionMix(IADD3=24 + 15, ISETP=24 + 15, SEL=24, LOP3=15)
