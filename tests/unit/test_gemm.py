"""GEMMs: shapes that agree, and exact counts of work."""

import re

import numpy as np
import pytest

from stcsim.errors import WorkloadError
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern


def operand(pattern, role="weight", seed=0):
    if isinstance(pattern, tuple):
        pattern = DensePattern(pattern)
    elif not isinstance(pattern, DensePattern):
        pattern = MaskPattern(np.array(pattern, dtype=bool))
    return Operand(pattern, role, seed, "test")


def test_an_outer_product_of_three_by_three_non_zeros_has_nine_useful_macs_of_sixteen():
    """stonne-simulator/stonne#27: [3,0,1,2] x [0,2,2,3]."""
    gemm = Gemm("outer", operand([[1], [0], [1], [1]]), operand([[0, 1, 1, 1]]))
    assert (gemm.m, gemm.n, gemm.k) == (4, 4, 1)
    assert gemm.macs_total == 16
    assert gemm.macs_useful == 9


def test_useful_macs_are_the_products_of_two_non_zeros():
    rng = np.random.default_rng(4)
    for m, k, n in ((1, 1, 1), (33, 65, 7), (64, 32, 96), (5, 1, 5)):
        a, b = rng.random((m, k)) < 0.3, rng.random((k, n)) < 0.6
        expected = int((a[:, :, None] & b[None, :, :]).sum())
        gemm = Gemm("g", operand(a), operand(b))
        assert gemm.macs_useful == expected
        assert gemm.transposed().macs_useful == expected
        assert type(gemm.macs_useful) is int


def test_2_147_483_648_macs_of_a_thin_problem_are_counted_without_its_arrays():
    """NVIDIA/CUDALibrarySamples#124: m=32, n=k=8192."""
    gemm = Gemm("thin", operand((32, 8192)), operand((8192, 8192)))
    assert gemm.macs_total == gemm.macs_useful == 2_147_483_648


def test_counts_beyond_64_bits_are_exact():
    mask = np.zeros((1, 3), dtype=bool)
    mask[0, 1] = True
    long = 1 << 62
    gemm = Gemm("huge", operand((long, 1)), operand(mask))
    assert gemm.macs_total == 3 * long
    assert gemm.macs_useful == long
    assert Gemm("huger", operand((long, 5)), operand((5, 7))).macs_useful == 35 * long


@pytest.mark.parametrize(("m", "k", "n"), [(0, 4, 4), (4, 0, 4), (4, 4, 0), (0, 0, 0)])
def test_a_problem_of_size_zero_has_no_macs(m, k, n):
    gemm = Gemm("empty", operand((m, k)), operand((k, n)))
    assert (gemm.macs_total, gemm.macs_useful) == (0, 0)
    assert (gemm.transposed().m, gemm.transposed().n, gemm.transposed().k) == (n, m, k)


def test_transposing_the_problem_transposes_its_result():
    rng = np.random.default_rng(5)
    gemm = Gemm(
        "g", operand(rng.random((9, 17)) < 0.5, seed=1), operand(rng.random((17, 6)) < 0.5, "activation", 2)
    )
    flipped = gemm.transposed()
    assert (flipped.a.role, flipped.b.role, flipped.name) == ("activation", "weight", "g")

    def product(problem):
        a, b = problem.a.values(0, problem.m, 0, problem.k), problem.b.values(0, problem.k, 0, problem.n)
        return a.astype(int) @ b.astype(int)

    np.testing.assert_array_equal(product(flipped), product(gemm).T)


def test_inner_dimensions_that_disagree_are_refused_with_both_shapes():
    message = "fc1: columns of A and rows of B must agree: A is 4 x 5, B is 6 x 7"
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        Gemm("fc1", operand((4, 5)), operand((6, 7)))


def test_a_sum_too_long_for_fp32_is_refused():
    message = "K must be below 2**24, or sums are not exact in fp32, not 16777216"
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        Gemm("long", operand((1, 1 << 24)), operand((1 << 24, 1)))
    Gemm("as long as can be", operand((1, (1 << 24) - 1)), operand(((1 << 24) - 1, 1)))
