"""2:4 and 1:2 along K: groups, codes, misfits and pruning, by hand."""

import itertools
import re

import numpy as np
import pytest

from stcsim.errors import FormatError
from stcsim.formats.nm import NmFormat
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern

CODES = {
    # non-zero places -> the places kept: spare ones from the lowest
    (): (0, 1),
    (0,): (0, 1),
    (1,): (0, 1),
    (2,): (0, 2),
    (3,): (0, 3),
    (0, 1): (0, 1),
    (0, 2): (0, 2),
    (0, 3): (0, 3),
    (1, 2): (1, 2),
    (1, 3): (1, 3),
    (2, 3): (2, 3),
}


@pytest.mark.parametrize(("places", "kept"), CODES.items())
@pytest.mark.parametrize("side", ["a", "b"])
def test_groups_of_0_1_or_2_non_zeros_reconstruct_exactly(places, kept, side):
    """ROCm/composable_kernel PR#3759: groups with fewer than two non-zeros got phantom values."""
    group = np.zeros((1, 4), dtype=np.int8)
    for place in places:
        group[0, place] = place + 5
    form = NmFormat(side=side)
    values = group if side == "a" else group.T
    encoded = form.encode(values)
    assert encoded.indices.tolist() == [[list(kept)]]
    assert encoded.values.tolist() == [[[group[0, place] for place in kept]]]
    assert encoded.codes.tolist() == [[kept[0] + 4 * kept[1]]]
    np.testing.assert_array_equal(form.decode(encoded), values)


def test_codes_are_strictly_rising_index_pairs():
    """The six codes that the PTX ISA allows: 4, 8, 9, c, d, e."""
    masks = np.array([mask for mask in itertools.product((0, 1), repeat=4) if sum(mask) <= 2])
    assert set(NmFormat().encode(masks).codes[:, 0]) == {0x4, 0x8, 0x9, 0xC, 0xD, 0xE}


def test_one_of_two_has_the_codes_of_tf32():
    """PTX ISA: a 4-bit index of which 0b0100 (first) and 0b1110 (second) alone are meaningful."""
    form = NmFormat(n=1, m=2)
    encoded = form.encode(np.array([[3.0, 0, 0, 4, 0, 0]]))
    assert encoded.codes.tolist() == [[0b0100, 0b1110, 0b0100]]
    assert encoded.indices.tolist() == [[[0], [1], [0]]]
    assert encoded.values.tolist() == [[[3], [4], [0]]]
    assert form.decode(encoded).tolist() == [[3, 0, 0, 4, 0, 0]]
    assert form.stored_bits(MaskPattern(np.array([[True, False] * 3])), 32) == {"values": 96, "metadata": 16}


def test_metadata_packs_two_codes_in_a_byte_the_first_in_the_low_bits():
    encoded = NmFormat().encode(np.array([[1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 1]]))
    assert encoded.codes.tolist() == [[0x4, 0xE, 0xD]]
    assert encoded.metadata.tolist() == [0xE4, 0x0D]


def test_k_of_30_makes_8_groups_of_which_the_last_is_2_wide():
    """scalesim: K=30 was padded to 32 without a word."""
    form = NmFormat()
    pattern = MaskPattern(np.tile([True, True, False, False], (3, 8))[:, :30])
    assert form.accepts(pattern) is None
    encoded = form.encode(pattern.mask().astype(np.int8))
    assert encoded.values.shape == (3, 8, 2)
    assert encoded.k_padded == 32
    assert form.groups(30) == 8
    assert form.decode(encoded).shape == (3, 30)
    assert form.stored_bits(pattern, 16) == {"values": 3 * 16 * 16, "metadata": 3 * 8 * 4}


@pytest.mark.parametrize(("n", "m"), [(3, 4), (1, 4), (2, 2), (4, 8), (0, 4), (2, 3)])
def test_other_ratios_than_2_4_and_1_2_are_refused(n, m):
    with pytest.raises(FormatError, match=f"^n:m sparsity must be 2:4 or 1:2, not {n}:{m}$"):
        NmFormat(n=n, m=m)


def test_rows_of_1100_1100_are_2_4_along_rows_and_not_along_columns():
    """NVIDIA/CUDALibrarySamples#120: the checker looks along K only, and says which axis that is."""
    pattern = MaskPattern(np.tile(np.array([1, 1, 0, 0] * 2, dtype=bool), (8, 1)))
    assert NmFormat(side="a").accepts(pattern) is None
    assert NmFormat(side="b").accepts(pattern.transpose()) is None
    assert str(NmFormat(side="b").accepts(pattern)) == (
        "must have at most 2 non-zeros in every 4 consecutive elements along k (axis 0 of B), "
        "not 4 in column 0, rows 0 to 3 (8 of 16 groups have too many)"
    )
    assert str(NmFormat(side="a").accepts(pattern.transpose())) == (
        "must have at most 2 non-zeros in every 4 consecutive elements along k (axis 1 of A), "
        "not 4 in row 0, columns 0 to 3 (8 of 16 groups have too many)"
    )


def test_the_first_crowded_group_is_named_with_its_count():
    mask = np.zeros((6, 10), dtype=bool)
    mask[4, 4:7] = mask[5, 0:4] = True
    message = (
        "must have at most 2 non-zeros in every 4 consecutive elements along k (axis 1 of A), "
        "not 3 in row 4, columns 4 to 7 (2 of 18 groups have too many)"
    )
    assert str(NmFormat().accepts(MaskPattern(mask))) == message
    with pytest.raises(FormatError, match=f"^{re.escape(message)}$"):
        NmFormat().encode(mask.astype(np.float32))
    assert NmFormat(side="b").accepts(MaskPattern(mask.T)).message == (
        message.replace("axis 1 of A", "axis 0 of B").replace("row 4, columns", "column 4, rows")
    )


def test_a_crowded_last_group_is_named_with_its_true_end():
    problem = NmFormat().accepts(DensePattern((1, 7)))
    assert "not 4 in row 0, columns 0 to 3 (2 of 2 groups" in str(problem)
    mask = np.zeros((1, 7), dtype=bool)
    mask[0, 4:] = True
    assert "not 3 in row 0, columns 4 to 6 (1 of 2 groups" in str(NmFormat().accepts(MaskPattern(mask)))


def test_the_size_does_not_depend_on_how_many_of_the_kept_are_zero():
    empty = MaskPattern(np.zeros((16, 32), dtype=bool))
    assert NmFormat().stored_bits(empty, 16) == {"values": 16 * 16 * 16, "metadata": 16 * 8 * 4}


def test_pruning_keeps_the_two_largest_magnitudes_and_the_lowest_index_of_equals():
    values = np.array(
        [[1, -5, 3, 2], [4, 4, -4, 4], [0, 0, 7, 0], [0, 0, 0, 0], [-128, 127, 126, -127]], np.int8
    )
    kept = NmFormat().keep(values)
    assert kept.astype(int).tolist() == [[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 1, 0, 0]]
    np.testing.assert_array_equal(NmFormat(side="b").keep(values.T), kept.T)
    assert NmFormat(n=1, m=2).keep(values).astype(int).tolist()[:2] == [[0, 1, 1, 0], [1, 0, 1, 0]]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int16, np.int64, np.float16, np.float64])
def test_pruning_agrees_with_a_sort_of_each_group(dtype):
    rng = np.random.default_rng(3)
    values = (rng.integers(-9, 10, (7, 30)) * (rng.random((7, 30)) < 0.8)).astype(dtype)
    expected = np.zeros(values.shape, dtype=bool)
    for i, row in enumerate(values.tolist()):
        for k0 in range(0, 30, 4):
            group = [k for k in range(k0, min(k0 + 4, 30)) if row[k]]
            for k in sorted(group, key=lambda k: (-abs(row[k]), k))[:2]:
                expected[i, k] = True
    np.testing.assert_array_equal(NmFormat().keep(values), expected)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_has_no_magnitude_to_prune_by(value):
    with pytest.raises(FormatError, match=r"^an operand must be finite to be pruned by magnitude$"):
        NmFormat().keep(np.array([[1.0, value]]))


@pytest.mark.parametrize("side", ["a", "b"])
def test_a_projected_operand_fits_keeps_its_values_and_reports_the_loss(side, monkeypatch):
    monkeypatch.setattr("stcsim.formats.group._CHUNK_ELEMENTS", 300)
    mask = np.random.default_rng(1).random((50, 60)) < 0.6
    form = NmFormat(side=side)
    for operand in (
        Operand(MaskPattern(mask), "weight", 3, "uniform(density=0.6)"),
        Operand(MaskPattern(mask.T), "weight", 3, "uniform(density=0.6)").transpose(),
    ):
        pruned, loss = form.project(operand)
        assert form.accepts(pruned.pattern) is None
        assert pruned.source == "uniform(density=0.6), pruned to 2:4 by magnitude"
        before, after = operand.values(0, 50, 0, 60), pruned.values(0, 50, 0, 60)
        np.testing.assert_array_equal(after, before * form.keep(before))
        assert loss == np.count_nonzero(before[after == 0]) / np.count_nonzero(before)
        assert 0.1 < loss < 0.4


def test_projecting_a_dense_operand_drops_half_and_a_fitting_or_empty_one_nothing():
    dense = Operand(DensePattern((8, 32)), "weight", 0, "dense()")
    pruned, loss = NmFormat().project(dense)
    assert loss == 0.5
    again, loss = NmFormat().project(pruned)
    assert loss == 0
    assert again.pattern == pruned.pattern
    for shape in ((0, 4), (4, 0)):
        assert NmFormat().project(Operand(DensePattern(shape), "weight", 0, "dense()"))[1] == 0
