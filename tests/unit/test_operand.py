"""Operands: values that any block, transpose or process sees alike, and that sum exactly in fp32."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest

from stcsim.errors import WorkloadError
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern


def make(shape=(40, 70), density=0.4, seed=5, role="weight"):
    mask = np.random.default_rng(0).random(shape) < density
    return Operand(MaskPattern(mask), role, seed, "test")


def whole(operand):
    return operand.values(0, operand.shape[0], 0, operand.shape[1])


def test_values_are_non_zero_exactly_where_the_pattern_is():
    operand = make()
    np.testing.assert_array_equal(whole(operand) != 0, operand.pattern.mask())


def test_any_block_shows_the_values_of_the_whole():
    operand = make()
    values = whole(operand)
    assert values.dtype == np.int8
    for r0, r1, c0, c1 in ((0, 32, 0, 16), (32, 64, 64, 80), (7, 8, 3, 60), (39, 40, 69, 70), (40, 72, 0, 5)):
        np.testing.assert_array_equal(operand.values(r0, r1, c0, c1), values[r0:r1, c0:c1])


def test_transposing_exchanges_values_with_their_positions():
    operand = make()
    flipped = operand.transpose()
    assert flipped.shape == (70, 40)
    np.testing.assert_array_equal(whole(flipped), whole(operand).T)
    np.testing.assert_array_equal(flipped.values(16, 33, 5, 40), whole(operand)[5:40, 16:33].T)
    np.testing.assert_array_equal(whole(flipped.transpose()), whole(operand))


def test_values_take_every_magnitude_and_both_signs_about_equally_often():
    values = Operand(DensePattern((512, 512)), "activation", 1, "test").values(0, 512, 0, 512)
    found, counts = np.unique(values, return_counts=True)
    assert found.tolist() == [-7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 6, 7]
    mean = 512 * 512 / 14
    assert np.all(np.abs(counts - mean) < 6 * math.sqrt(mean))


def test_neighbouring_values_are_not_correlated():
    values = Operand(DensePattern((512, 512)), "activation", 1, "test").values(0, 512, 0, 512).astype(float)
    for other in (np.roll(values, 1, 0), np.roll(values, 1, 1), values.T, np.roll(values, (1, 1), (0, 1))):
        assert abs(np.corrcoef(values.ravel(), other.ravel())[0, 1]) < 6 / 512


def test_seeds_give_unlike_values_and_the_pattern_or_role_does_not():
    dense = Operand(DensePattern((64, 64)), "weight", 1, "test")
    masked = Operand(make((64, 64)).pattern, "activation", 1, "elsewhere")
    np.testing.assert_array_equal(whole(masked), whole(dense) * masked.pattern.mask())
    for seed in (0, 2, 1 << 32, (1 << 64) - 1):
        other = Operand(DensePattern((64, 64)), "weight", seed, "test")
        assert 0.03 < np.mean(whole(other) == whole(dense)) < 0.12


def test_another_process_sees_the_same_values():
    script = (
        "from stcsim.workload.operand import Operand; from stcsim.workload.pattern import DensePattern;"
        "print(Operand(DensePattern((9, 9)), 'weight', 3, '').values(2, 5, 4, 9).tolist())"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == str(Operand(DensePattern((9, 9)), "weight", 3, "").values(2, 5, 4, 9).tolist())


def test_values_are_pinned():
    """A change here changes every value check's data: bump the model version if it is meant."""
    assert Operand(DensePattern((3, 4)), "weight", 0, "").values(0, 3, 0, 4).tolist() == [
        [6, -2, 3, 1],
        [-1, 6, 3, -3],
        [-2, -6, 2, -2],
    ]


@pytest.mark.parametrize("longest", [1, 4096, 1 << 18, 342_391, 342_392, 10**6, 1 << 23, (1 << 24) - 1])
def test_the_longest_possible_sum_stays_exact_in_fp32(longest):
    operand = Operand(DensePattern((1, longest)), "weight", 0, "test")
    assert 1 <= operand.magnitude <= 7
    assert longest * operand.magnitude**2 < 2**24


def test_the_magnitude_bound_holds_for_operands_of_unlike_length():
    a, b = (
        Operand(DensePattern((2_000_000, 64)), "weight", 0, ""),
        Operand(DensePattern((64, 8)), "weight", 0, ""),
    )
    assert (a.magnitude, b.magnitude) == (2, 7)
    assert 64 * a.magnitude * b.magnitude < 2**24


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_an_operand_may_have_no_elements(shape):
    operand = Operand(DensePattern(shape), "weight", 0, "test")
    assert whole(operand).shape == shape
    assert operand.transpose().values(0, 9, 0, 9).shape == shape[::-1]


def test_an_unknown_role_is_refused_with_the_nearest_one():
    message = "the role of an operand must be weight or activation, not weigth (did you mean weight?)"
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        make(role="weigth")


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.0, True, "1", None])
def test_a_seed_that_is_not_a_64_bit_integer_is_refused(seed):
    message = f"a seed must be an integer from 0 to 2**64 - 1, not {seed}"
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        make(seed=seed)
