"""Patterns: the two kinds behave as one, and their counts are those of plain Python."""

import hashlib
import re

import numpy as np
import pytest

from stcsim.errors import WorkloadError
from stcsim.workload.pattern import DensePattern, MaskPattern


def make(mask):
    return MaskPattern(np.array(mask, dtype=bool))


def test_counts_of_a_hand_written_mask():
    pattern = make([[1, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 1]])
    assert pattern.shape == (3, 4)
    assert pattern.nnz == 6
    assert type(pattern.nnz) is int
    assert pattern.density == 0.5
    assert pattern.counts_per_row().tolist() == [3, 1, 2]
    assert pattern.counts_per_col().tolist() == [2, 0, 1, 3]
    assert pattern.group_counts(axis=0, length=2).tolist() == [[1, 0, 1, 2], [1, 0, 0, 1]]
    assert pattern.group_counts(axis=1, length=3).tolist() == [[2, 1], [0, 1], [1, 1]]


def test_group_counts_have_the_narrowest_unsigned_type_and_row_major_order():
    mask = np.ones((600, 600), dtype=bool)
    for pattern in (MaskPattern(mask), MaskPattern(mask).transpose(), DensePattern((600, 600))):
        for axis in (0, 1):
            for length, dtype in ((32, np.uint8), (255, np.uint8), (256, np.uint16), (600, np.uint16)):
                counts = pattern.group_counts(axis, length)
                assert counts.dtype == dtype
                assert counts.flags.c_contiguous
                assert counts.max() == length


@pytest.mark.parametrize("length", [1, 2, 4, 8, 16, 32, 62, 63, 64, 124, 126, 128, 248, 249, 256, 300])
@pytest.mark.parametrize("cols", [256, 300, 301])
def test_every_run_length_counts_like_a_loop(length, cols):
    mask = np.random.default_rng(1).random((5, cols)) < 0.7
    mask[0] = True
    expected = [[int(sum(row[c : c + length])) for c in range(0, cols, length)] for row in mask.tolist()]
    assert MaskPattern(mask).group_counts(1, length).tolist() == expected
    assert MaskPattern(mask.T).group_counts(0, length).T.tolist() == expected
    assert MaskPattern(mask).transpose().group_counts(0, length).T.tolist() == expected


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (33, 65), (0, 4), (4, 0), (0, 0)])
def test_a_dense_pattern_equals_the_mask_of_ones(shape):
    dense, ones = DensePattern(shape), MaskPattern(np.ones(shape, dtype=bool))
    assert dense == ones
    assert hash(dense) == hash(ones)
    assert dense.nnz == ones.nnz == shape[0] * shape[1]
    assert dense.density == ones.density == (1.0 if dense.nnz else 0.0)
    for axis in (0, 1):
        for length in (1, 4, 32, 100):
            counts = dense.group_counts(axis, length)
            np.testing.assert_array_equal(counts, ones.group_counts(axis, length))
            assert counts.dtype == ones.group_counts(axis, length).dtype
    assert dense.counts_per_row().tolist() == ones.counts_per_row().tolist() == [shape[1]] * shape[0]
    assert dense.counts_per_col().tolist() == ones.counts_per_col().tolist() == [shape[0]] * shape[1]
    np.testing.assert_array_equal(dense.block(0, 2, 1, 40), ones.block(0, 2, 1, 40))
    assert dense.transpose() == ones.transpose()


def test_a_dense_pattern_of_any_size_takes_no_storage():
    dense = DensePattern((1 << 40, 1 << 40))
    assert dense.nnz == 1 << 80
    assert dense.block(1 << 39, (1 << 39) + 2, 0, 3).tolist() == [[True] * 3] * 2


def test_blocks_are_cut_off_at_the_edges_and_not_padded():
    pattern = make([[1, 0, 1], [0, 1, 0]])
    assert pattern.block(1, 33, 1, 33).tolist() == [[True, False]]
    assert pattern.block(2, 9, 0, 9).shape == (0, 3)
    assert DensePattern((2, 3)).block(1, 33, 1, 33).shape == (1, 2)
    assert DensePattern((2, 3)).block(2, 9, 0, 9).shape == (0, 3)


def test_a_pattern_cannot_be_changed_through_what_it_returns_or_was_made_from():
    mask = np.zeros((2, 2), dtype=bool)
    pattern = MaskPattern(mask)
    mask[0, 0] = True
    assert pattern.nnz == 0
    for view in (pattern.mask(), pattern.transpose().mask(), DensePattern((2, 2)).mask()):
        with pytest.raises(ValueError, match="read-only"):
            view[0, 0] = True


def test_an_adopted_mask_is_not_copied():
    mask = np.zeros((4, 4), dtype=bool)
    assert np.shares_memory(MaskPattern.adopt(mask).mask(), mask)
    assert np.shares_memory(MaskPattern.adopt(mask).transpose().mask(), mask)


def test_digest_is_sha256_over_shape_and_row_major_bits():
    mask = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1], [0, 0, 1]], dtype=bool)
    # 101 010 111 001 -> 10101011 1001(0000)
    expected = hashlib.sha256(b"4x3:" + bytes([0b10101011, 0b10010000])).hexdigest()
    assert MaskPattern(mask).digest == expected


def test_digest_does_not_depend_on_storage_and_tells_shapes_apart():
    mask = np.random.default_rng(2).random((40, 72)) < 0.3
    assert MaskPattern(mask.T).transpose().digest == MaskPattern(mask).digest
    assert MaskPattern(np.zeros((2, 8), dtype=bool)) != MaskPattern(np.zeros((4, 4), dtype=bool))
    assert MaskPattern(mask) != MaskPattern(~mask)
    assert MaskPattern(mask) != "mask"


def test_digest_of_a_mask_larger_than_one_packed_piece_equals_the_whole(monkeypatch):
    monkeypatch.setattr("stcsim.workload.pattern._PACK_ELEMENTS", 64)
    for shape in ((37, 5), (3, 200), (9, 8), (70, 1)):
        mask = np.random.default_rng(3).random(shape) < 0.5
        whole = f"{shape[0]}x{shape[1]}:".encode() + np.packbits(mask).tobytes()
        assert MaskPattern(mask).digest == hashlib.sha256(whole).hexdigest()
        assert DensePattern(shape) == MaskPattern(np.ones(shape, dtype=bool))


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (np.zeros(3, dtype=bool), "a pattern must have two dimensions, not 1"),
        (np.zeros((2, 2, 2), dtype=bool), "a pattern must have two dimensions, not 3"),
        (np.zeros((2, 2)), "a pattern must be an array of bool, not float64"),
    ],
)
def test_what_is_not_a_mask_is_refused(mask, message):
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        MaskPattern(mask)


@pytest.mark.parametrize("shape", [(-1, 2), (2, 2.0), (True, 2), (1, 2, 3)])
def test_a_shape_that_is_not_two_sizes_is_refused(shape):
    with pytest.raises(
        WorkloadError, match=r"^the shape of an operand must be two sizes, each 0 or more, not \("
    ):
        DensePattern(shape)


def test_a_pattern_shows_its_shape_and_density():
    assert repr(make([[1, 0, 0, 0]])) == "MaskPattern(1 x 4, density 0.25)"
    assert repr(DensePattern((2, 3))) == "DensePattern(2 x 3, density 1)"
