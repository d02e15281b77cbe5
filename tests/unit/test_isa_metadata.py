"""2:4 compression and metadata words, against the layouts that were confirmed on an H200."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.errors import IsaError
from stcsim.isa import load_isa, metadata

ISA = load_isa()
F16 = ISA["HMMA.SP.16832.F32"]
S8 = ISA["IMMA.SP.16864.S8"]


@pytest.mark.parametrize("selector", [0, 1])
def test_fp16_m16n8k32_metadata_lie_as_measured(selector: int, rng: np.random.Generator):
    codes = rng.choice(np.array(metadata.CODES, dtype=np.uint8), (16, 8))
    word = metadata.pack(F16, codes, selector)
    for lane in range(32):
        g, j = lane // 4, lane % 4
        expected = 0
        if j // 2 == selector:  # lanes j in {2F, 2F + 1}: k 16 jj .. 16 jj + 15 is four groups from 4 jj
            for i in range(4):
                expected |= int(codes[g, 4 * (j & 1) + i]) << 4 * i
                expected |= int(codes[g + 8, 4 * (j & 1) + i]) << 16 + 4 * i
        assert word[lane] == expected


def test_int8_m16n8k64_metadata_lie_as_measured(rng: np.random.Generator):
    codes = rng.choice(np.array(metadata.CODES, dtype=np.uint8), (16, 16))
    word = metadata.pack(S8, codes)
    for lane in range(32):
        g, j = lane // 4, lane % 4
        groups = codes[g + 8 * (j & 1), 8 * (j >> 1) : 8 * (j >> 1) + 8]  # 32 columns are 8 groups
        assert word[lane] == sum(int(code) << 4 * i for i, code in enumerate(groups))


@pytest.mark.parametrize("mnemonic", ["IMMA.SP.16832.S8", "IMMA.SP.16864.U4"])
@pytest.mark.parametrize("selector", [0, 1])
def test_integer_metadata_of_32_bits_a_row_give_each_lane_one_row(
    mnemonic: str, selector: int, rng: np.random.Generator
):
    codes = rng.choice(np.array(metadata.CODES, dtype=np.uint8), (16, 8))
    word = metadata.pack(ISA[mnemonic], codes, selector)
    for lane in range(32):
        g, j = lane // 4, lane % 4
        row = codes[g + 8 * (j & 1)]
        assert word[lane] == (sum(int(c) << 4 * i for i, c in enumerate(row)) if j // 2 == selector else 0)


@pytest.mark.parametrize(
    ("group", "values", "code"),
    [
        ([0, 0, 0, 0], [0, 0], 0b0100),
        ([0, 0, 7, 0], [0, 7], 0b1000),
        ([7, 0, 0, 0], [7, 0], 0b0100),
        ([0, 0, 0, 7], [0, 7], 0b1100),
        ([0, 5, 0, 6], [5, 6], 0b1101),
        ([0, 0, 5, 6], [5, 6], 0b1110),
        ([5, 6, 0, 0], [5, 6], 0b0100),
    ],
)
def test_a_group_with_up_to_two_non_zeros_is_stored_in_rising_order(group, values, code):
    tile = np.zeros((16, 32), dtype=int)
    tile[3, 8:12] = group
    stored, codes = metadata.compress(F16, tile)
    assert stored[3, 4:6].tolist() == values
    assert codes[3, 2] == code
    np.testing.assert_array_equal(metadata.decompress(F16, stored, codes), tile)


def test_a_group_with_three_non_zeros_is_an_error():
    tile = np.zeros((16, 32))
    tile[2, 4:7] = 1
    with pytest.raises(IsaError, match=r"^row 2, columns 4 to 7: must hold at most 2 non-zeros, not 3$"):
        metadata.compress(F16, tile)


def test_tf32_keeps_one_of_two_with_the_codes_of_its_halves():
    spec = ISA["HMMA.SP.1688.F32.TF32"]
    tile = np.zeros((16, 8))
    tile[0, 1] = tile[0, 2] = 3
    values, codes = metadata.compress(spec, tile)
    assert codes[0].tolist() == [0b1110, 0b0100, 0b0100, 0b0100]
    assert values[0].tolist() == [3, 3, 0, 0]


def test_int4_keeps_pairs_of_neighbours():
    spec = ISA["IMMA.SP.16864.S4"]
    tile = np.zeros((16, 64), dtype=int)
    tile[0, 2:4], tile[0, 6] = (1, 2), 3  # pairs 1 and 3 of the first group of eight
    values, codes = metadata.compress(spec, tile)
    assert codes[0, 0] == 0b1101
    assert values[0, :4].tolist() == [1, 2, 3, 0]
    tile[0, 0] = 1
    with pytest.raises(IsaError, match=r"columns 0 to 7: must hold at most 2 non-zero pairs, not 3$"):
        metadata.compress(spec, tile)


@pytest.mark.parametrize("code", [0b0000, 0b0001, 0b0110, 0b1111])
def test_metadata_that_do_not_rise_are_refused(code: int):
    codes = np.full((16, 8), 0b0100, dtype=np.uint8)
    codes[9, 1] = code
    with pytest.raises(
        IsaError, match=rf"^metadata of row 9, group 1: must be two rising indices, not {code:04b}$"
    ):
        metadata.stored_columns(F16, codes)


def test_a_selector_that_the_shape_does_not_have_is_refused():
    with pytest.raises(IsaError, match=r"^metadata selector must be from 0 to 1, not 2$"):
        metadata.pack(F16, np.full((16, 8), 4, dtype=np.uint8), 2)


def test_a_dense_instruction_has_no_metadata():
    with pytest.raises(IsaError, match=r"^instruction must take 2:4 metadata, not HMMA\.16816\.F32$"):
        metadata.compress(ISA["HMMA.16816.F32"], np.zeros((16, 16)))
