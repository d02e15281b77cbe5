"""(2N-2):2N as overlapping 2:4 windows: windows, codes, the lift, misfits, by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stcsim.errors import FormatError
from stcsim.formats.k_expanded import KExpandedFormat
from stcsim.formats.nm import NmFormat
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern

PATTERNS = [(4, 6), (6, 8), (8, 10), (10, 12), (12, 14), (14, 16), (2, 2)]
FACTORS = [4 / 3, 1.5, 1.6, 5 / 3, 12 / 7, 1.75, 2]
"""K' / K as SlideSparse measured: 1.333, 1.5, 1.6, 1.667, 1.714, 1.75, and 2.0 for dense operands."""


def test_six_of_eight_lie_in_three_windows() -> None:
    #   places  0 1 2 3 4 5 6 7     windows 0..3, 2..5, 4..7; each takes the next two from the left
    row = [[0, 1, 2, 0, 3, 4, 5, 6]]
    encoded = KExpandedFormat().encode(np.array(row))
    assert encoded.values.tolist() == [[[1, 2], [3, 4], [5, 6]]]
    assert encoded.indices.tolist() == [[[1, 2], [2, 3], [2, 3]]]
    assert encoded.codes.tolist() == [[0b1001, 0b1110, 0b1110]]


def test_spare_places_are_stored_once_each() -> None:
    #   one non-zero, at 5: places 0 to 4 are kept beside it: windows 0 1, 2 3, 4 5.
    encoded = KExpandedFormat().encode(np.array([[0, 0, 0, 0, 0, 9, 0, 0]]))
    assert encoded.values.tolist() == [[[0, 0], [0, 0], [0, 9]]]
    assert encoded.indices.tolist() == [[[0, 1], [0, 1], [0, 1]]]


def test_the_lift_repeats_what_windows_share() -> None:
    assert KExpandedFormat(n=4, m=6).sources(6).tolist() == [0, 1, 2, 3, 2, 3, 4, 5]
    # K = 9 with 6:8: a second group of which only element 8 is there.
    assert KExpandedFormat().sources(9).tolist() == [0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 8, *[-1] * 11]
    assert KExpandedFormat(n=2, m=2).sources(3).tolist() == [0, 1, -1, -1, 2, -1, -1, -1]
    assert KExpandedFormat().sources(0).tolist() == []


@pytest.mark.parametrize(("pattern", "factor"), list(zip(PATTERNS, FACTORS, strict=True)))
def test_k_grows_by_the_measured_factors(pattern: tuple[int, int], factor: float) -> None:
    form = KExpandedFormat(n=pattern[0], m=pattern[1])
    k = 1680 * 4  # a multiple of every m
    assert form.expanded_k(k) == round(factor * k)
    assert form.stored_k(k) == k * pattern[0] // pattern[1]
    # Two values of 16 bits and a code for every window.
    windows = 5 * form.expanded_k(k) // 4
    mask = MaskPattern(np.zeros((5, k), bool))
    assert form.stored_bits(mask, 16) == {"values": windows * 32, "metadata": windows * 4}


@pytest.mark.parametrize(("n", "m"), [(2, 4), (3, 4), (5, 8), (16, 18), (7, 9), (8, 8), (4, 4)])
def test_other_patterns_are_refused(n: int, m: int) -> None:
    message = (
        f"^K-expanded sparsity must be 4:6, 6:8, 8:10, 10:12, 12:14, 14:16, or 2:2 for dense, not {n}:{m}$"
    )
    with pytest.raises(FormatError, match=message):
        KExpandedFormat(n=n, m=m)


@pytest.mark.parametrize(("n", "m"), PATTERNS)
def test_every_pattern_that_fits_makes_windows_of_2_4(n: int, m: int) -> None:
    # Every choice of the m - n places that are certainly empty.
    masks = np.array([
        [place not in empty for place in range(m)] for empty in itertools.combinations(range(m), m - n)
    ])  # fmt: skip
    form = KExpandedFormat(n=n, m=m)
    values = masks * np.arange(1, m + 1)
    encoded = form.encode(values)
    assert (encoded.indices[:, :, 0] < encoded.indices[:, :, 1]).all()
    np.testing.assert_array_equal(form.decode(encoded), values)
    # What the kernel sees is an ordinary 2:4 operand over K', on a B lifted by `sources`.
    expanded = NmFormat().decode(type(encoded)(
        (len(values), encoded.k_padded), encoded.values, 4, encoded.metadata
    ))  # fmt: skip
    b = np.append(np.arange(1, m + 1) ** 2, 0)
    np.testing.assert_array_equal(expanded @ b[form.sources(m)], values @ b[:-1])


@given(
    pattern=st.sampled_from(PATTERNS), shape=st.tuples(st.integers(0, 6), st.integers(0, 61)),
    seed=st.integers(0, 99), side=st.sampled_from("ab"),
)  # fmt: skip
def test_any_operand_is_pruned_stored_and_restored(
    pattern: tuple[int, int], shape: tuple[int, int], seed: int, side: str
) -> None:
    form = KExpandedFormat(side=side, n=pattern[0], m=pattern[1])
    values = np.random.default_rng(seed).integers(-9, 10, shape)
    kept = values * form.keep(values)
    np.testing.assert_array_equal(form.decode(form.encode(kept)), kept)
    np.testing.assert_array_equal(form.keep(kept), kept != 0)


def test_pruning_a_dense_operand_onto_6_8_drops_a_quarter_and_onto_2_2_nothing() -> None:
    dense = Operand(DensePattern((8, 64)), "weight", 0, "dense()")
    assert KExpandedFormat().project(dense)[1] == 0.25
    assert KExpandedFormat(n=2, m=2).project(dense)[1] == 0
