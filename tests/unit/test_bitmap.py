"""The two-level bitmap: bits, order and offsets written out by hand."""

import re

import numpy as np
import pytest

from stcsim.errors import FormatError
from stcsim.formats.bitmap import BitmapFormat
from stcsim.workload.pattern import DensePattern, MaskPattern


def test_a_is_packed_column_by_column_and_b_row_by_row_within_a_tile():
    values = np.array([[0, 1, 2], [3, 0, 4], [0, 0, 5]])
    a = BitmapFormat(side="a").encode(values)
    assert a.values.tolist() == [3, 1, 2, 4, 5]
    # Word k has bit i for row i of column k: column 0 holds row 1, column 1 row 0, column 2 rows 0 to 2.
    assert a.element_bitmap.tolist() == [[0b010, 0b001, 0b111] + [0] * 13]
    b = BitmapFormat(side="b").encode(values)
    assert b.values.tolist() == [1, 2, 3, 4, 5]
    # Word k has bit j for column j of row k.
    assert b.element_bitmap.tolist() == [[0b110, 0b101, 0b100] + [0] * 13]


def test_words_hold_32_rows_with_the_first_in_the_lowest_bit():
    values = np.zeros((32, 16), dtype=np.int8)
    values[31, 2] = values[0, 15] = 1
    encoded = BitmapFormat().encode(values)
    assert encoded.element_bitmap.dtype == np.uint32
    assert encoded.element_bitmap[0, 2] == 1 << 31
    assert encoded.element_bitmap[0, 15] == 1


@pytest.mark.parametrize(
    ("outer_tile", "dtype"), [(8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64)]
)
def test_words_are_as_wide_as_the_tile(outer_tile, dtype):
    values = np.zeros((outer_tile, 3), dtype=np.int8)
    values[-1, 1] = 5
    words, packed = BitmapFormat(outer_tile=outer_tile, k_tile=2).encode(values).tile(0, 0)
    assert words.dtype == dtype
    assert words.tolist() == [0, 1 << outer_tile - 1]
    assert packed.tolist() == [5]


def test_tiles_follow_each_other_along_k_and_empty_ones_store_no_bits():
    """A 5 x 6 operand in tiles of 8 x 2 ... three tiles along K, the middle one empty."""
    values = np.zeros((5, 6), dtype=np.int8)
    values[4, 0], values[0, 5], values[2, 5] = 1, 2, 3
    encoded = BitmapFormat(outer_tile=8, k_tile=2).encode(values)
    assert encoded.grid == (1, 3)
    assert encoded.occupied.tolist() == [[True, False, True]]
    assert encoded.warp_bitmap.tolist() == [0b101]
    assert encoded.element_bitmap.tolist() == [[0b10000, 0], [0, 0b00101]]
    assert encoded.values.tolist() == [1, 2, 3]
    assert encoded.offsets.tolist() == [0, 1, 1]
    assert encoded.offsets.dtype == np.int32


def test_any_tile_can_be_had_without_the_others():
    rng = np.random.default_rng(0)
    values = rng.integers(-7, 8, (75, 50)) * (rng.random((75, 50)) < 0.3)
    values[32:64, 16:32] = 0
    for side in ("a", "b"):
        encoded = BitmapFormat(side=side).encode(values if side == "a" else values.T)
        for i in range(3):
            for j in range(4):
                tile = np.zeros((32, 16), dtype=values.dtype)
                block = values[32 * i : 32 * i + 32, 16 * j : 16 * j + 16]
                tile[: block.shape[0], : block.shape[1]] = block
                words, packed = encoded.tile(i, j)
                assert words.tolist() == [sum(1 << r for r in range(32) if tile[r, k]) for k in range(16)]
                assert packed.tolist() == [tile[r, k] for k in range(16) for r in range(32) if tile[r, k]]
        with pytest.raises(IndexError, match=re.escape("tile (3, 0) is outside the grid of 3 x 4 tiles")):
            encoded.tile(3, 0)
        with pytest.raises(IndexError):
            encoded.tile(0, -1)


def test_the_element_bitmap_of_a_warp_tile_costs_a_sixteenth_of_dense_fp16():
    """Facts of the paper's encoding: 512 bits for 32 x 16; 2*M*K*d + M*K/8 bytes beside the offsets."""
    bits = BitmapFormat().stored_bits(DensePattern((32, 16)), 16)
    assert bits == {"values": 8192, "element_bitmap": 512, "warp_bitmap": 8, "offsets": 32}
    mask = np.random.default_rng(1).random((256, 128)) < 0.3
    bits = BitmapFormat().stored_bits(MaskPattern(mask), 16)
    assert (bits["values"] + bits["element_bitmap"]) // 8 == 2 * mask.sum() + 256 * 128 // 8
    assert bits["offsets"] == 8 * 8 * 32
    assert bits["warp_bitmap"] == 8 * 8


def test_break_even_with_dense_fp16_is_at_a_density_of_15_16():
    for ones, is_smaller in ((15, True), (16, False)):
        mask = np.zeros((64, 64), dtype=bool)
        mask[:, np.arange(64) % 16 < ones] = True
        bits = BitmapFormat().stored_bits(MaskPattern(mask), 16)
        assert (bits["values"] + bits["element_bitmap"] <= 64 * 64 * 16) is is_smaller


def test_a_float_tile_keeps_its_values_and_drops_negative_zeros():
    values = np.array([[-0.0, 1.5], [np.inf, -2.25]], dtype=np.float32)
    encoded = BitmapFormat().encode(values)
    assert encoded.values.tolist() == [np.inf, 1.5, -2.25]
    assert encoded.values.dtype == np.float32
    assert not np.signbit(BitmapFormat().decode(encoded)[0, 0])


def test_more_non_zeros_than_an_int32_offset_reaches_are_refused():
    message = "must have fewer than 2**31 non-zeros, since tile offsets are int32, not 4294967296"
    problem = BitmapFormat().accepts(DensePattern((1 << 16, 1 << 16)))
    assert str(problem) == message
    assert BitmapFormat().accepts(DensePattern((1 << 16, (1 << 15) - 1))) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outer_tile": 48}, "outer_tile of the bitmap must be 8, 16, 32 or 64, not 48"),
        ({"k_tile": 0}, "k_tile of the bitmap must be at least 1, not 0"),
    ],
)
def test_tiles_that_make_no_words_are_refused(options, message):
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        BitmapFormat(**options)
