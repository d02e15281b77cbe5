"""Convolutions: output sizes, MACs, operands, and the inputs that broke other people's tools."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convolution import conv_shapes, convolve, make_conv, values_of
from stcsim.errors import WorkloadError
from stcsim.workload.conv2d import Conv2d
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern


def shape(**sizes: Any) -> ConvShape:
    return ConvShape(**{"n": 1, "c": 1, "k": 1, **sizes})


def test_depthwise_with_explicit_groups_keeps_its_channels_apart() -> None:
    """ARM-software/SCALE-Sim#38, #45, NVlabs/timeloop#22, #251: 12544 x 1 x 9, 32 times."""
    conv = shape(c=32, h=112, w=112, k=32, r=3, s=3, padding=(1, 1), groups=32)
    assert (conv.pixels, conv.k_group, conv.taps, conv.groups) == (12544, 1, 9, 32)
    assert (conv.k, conv.p, conv.q) == (32, 112, 112)
    assert conv.macs_total == 3_612_672


def test_one_filter_over_all_channels_is_not_a_depthwise_convolution() -> None:
    """The reading "C = 32, K = 1" has one output channel; as a depthwise layer it is refused."""
    plain = shape(c=32, h=112, w=112, k=1, r=3, s=3)
    assert (plain.k, plain.pixels, plain.macs_total) == (1, 12100, 3_484_800)
    with pytest.raises(WorkloadError, match=r"^k: must be a multiple of groups \(32\), not 1$"):
        shape(c=32, h=112, w=112, k=1, r=3, s=3, groups=32)


def test_a_layer_called_dpn1_is_one_layer() -> None:
    """A name that holds "DP" was taken for a depthwise layer: 10,368 MACs, one product."""
    sizes = shape(c=4, h=8, w=8, k=8, r=3, s=3)
    convs = [make_conv(sizes, 0.5, 0.5, seed=1, name=name) for name in ("DPN1", "conv")]
    assert [conv.macs_total for conv in convs] == [10_368, 10_368]
    first, second = (conv.gemms() for conv in convs)
    assert len(first) == len(second) == 1
    assert (first[0].a.pattern, first[0].b.pattern) == (second[0].a.pattern, second[0].b.pattern)


def test_stride_is_given_for_each_axis() -> None:
    """ARM-software/SCALE-Sim#40."""
    conv = shape(c=16, h=32, w=64, k=32, r=3, s=3, stride=(1, 2), padding=(1, 1))
    assert (conv.p, conv.q, conv.macs_total) == (32, 32, 4_718_592)


@pytest.mark.parametrize(
    ("sizes", "out", "macs"),
    [
        ({"h": 8, "w": 8, "k": 8, "r": 3, "s": 3, "stride": (3, 3)}, (2, 2), 288),
        ({"h": 7, "w": 10, "k": 8, "r": 3, "s": 3, "stride": (2, 2)}, (3, 4), 864),
    ],
)
def test_windows_that_would_hang_over_the_edge_are_not_counted(
    sizes: dict[str, Any], out: tuple[int, int], macs: int
) -> None:
    conv = shape(**sizes)
    assert ((conv.p, conv.q), conv.macs_total) == (out, macs)


def test_a_one_dimensional_convolution_is_a_map_of_one_row() -> None:
    """NVlabs/timeloop#241."""
    conv = shape(h=1, w=3600, k=8, r=1, s=7, stride=(1, 2), padding=(0, 5))
    assert (conv.p, conv.q, conv.macs_total) == (1, 1802, 100_912)


def test_stride_zero_is_refused() -> None:
    message = "stride: must be two whole numbers (rows, columns), each 1 or more, not (0, 2)"
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        shape(h=1, w=3600, k=8, r=1, s=7, stride=(0, 2), padding=(0, 5))


def test_every_size_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(WorkloadError) as caught:
        ConvShape(n=-1, c=0, h=4, w=4, k=4, r=3, s=3, padding=(-1, 0), groups=2)
    assert [problem.path for problem in caught.value.problems] == ["n", "c", "padding"]
    assert str(caught.value.problems[0]) == "n: must be 0 or more, not -1"


def test_channels_that_groups_do_not_divide_are_refused_on_both_sides() -> None:
    with pytest.raises(WorkloadError) as caught:
        shape(c=6, h=4, w=4, k=9, r=1, s=1, groups=4)
    assert str(caught.value) == (
        "c: must be a multiple of groups (4), not 6\nk: must be a multiple of groups (4), not 9"
    )


def test_a_filter_may_be_larger_than_the_map_but_not_than_the_padded_map() -> None:
    assert shape(h=2, w=2, r=4, s=4, padding=(1, 1)).macs_total == 16
    message = "r: must leave a filter that fits into the padded map's 4 rows, not 3 (it spans 5)"
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        shape(h=2, w=2, r=3, s=3, padding=(1, 2), dilation=(2, 2))


def test_all_macs_of_a_vgg_layer_are_accounted_for() -> None:
    """NVlabs/timeloop#187: a mapping dropped the filter's rows and columns, 1/9 of the work."""
    conv = make_conv(shape(c=64, h=56, w=56, k=64, r=3, s=3, padding=(1, 1)), 1.0, 1.0, seed=0)
    (gemm,) = conv.gemms()
    assert conv.macs_total == gemm.macs_total == 115_605_504
    # 54 * 3 + 2 * 2 of the 56 * 3 taps along each axis lie on the map.
    assert conv.macs_useful == 64 * 64 * (54 * 3 + 2 * 2) ** 2


def test_an_empty_batch_has_no_macs() -> None:
    conv = make_conv(ConvShape(n=0, c=2, h=4, w=4, k=2, r=3, s=3), 0.5, 0.5, seed=0)
    assert (conv.macs_total, conv.macs_useful, conv.gemms()[0].m) == (0, 0, 0)


def test_operands_of_the_wrong_shape_are_refused_together() -> None:
    sizes = shape(c=2, h=4, w=4, k=3, r=2, s=2)
    operand = Operand(DensePattern((3, 3)), "weight", 0, "test")
    with pytest.raises(WorkloadError) as caught:
        Conv2d("layer", sizes, operand, operand)
    assert str(caught.value) == (
        "input: must be 2 x 16 (N*C rows of H*W elements), not 3 x 3\n"
        "weight: must be 3 x 8 (K rows of C/groups*R*S taps), not 3 x 3"
    )


def test_a_filter_too_long_for_exact_sums_is_refused() -> None:
    sizes = shape(h=1, w=1, r=1, s=400_000, padding=(0, 200_000))
    with pytest.raises(WorkloadError, match=r"^shape: must be at most \d+ taps .* not 400000$"):
        make_conv(sizes, 1.0, 1.0, seed=0)


@given(conv_shapes(), st.floats(0, 1), st.floats(0, 1), st.integers(0, 99))
def test_the_products_of_all_groups_are_the_convolution(
    sizes: ConvShape, density_in: float, density_weight: float, seed: int
) -> None:
    conv = make_conv(sizes, density_in, density_weight, seed)
    products = [
        gemm.a.values(0, gemm.m, 0, gemm.k).astype(np.int64) @ gemm.b.values(0, gemm.k, 0, gemm.n)
        for gemm in conv.gemms()
    ]
    pixels_first = np.concatenate(products, axis=1).reshape(sizes.n, sizes.p, sizes.q, sizes.k)
    np.testing.assert_array_equal(pixels_first.transpose(0, 3, 1, 2), convolve(*values_of(conv), sizes))


@given(conv_shapes(), st.floats(0, 1), st.integers(0, 99))
def test_useful_macs_are_the_convolution_of_the_two_masks(
    sizes: ConvShape, density: float, seed: int
) -> None:
    conv = make_conv(sizes, density, 1 - density, seed)
    feature_map, weight = (values != 0 for values in values_of(conv))
    assert conv.macs_useful == int(convolve(feature_map.astype(int), weight.astype(int), sizes).sum())
    assert conv.macs_total == sum(gemm.macs_total for gemm in conv.gemms())


@given(conv_shapes())
@settings(max_examples=20)
def test_values_do_not_depend_on_how_the_product_is_turned(sizes: ConvShape) -> None:
    for gemm in make_conv(sizes, 0.6, 0.6, seed=3).gemms():
        turned = gemm.transposed()
        np.testing.assert_array_equal(
            turned.b.values(0, gemm.k, 0, gemm.m), gemm.a.values(0, gemm.m, 0, gemm.k).T
        )
        np.testing.assert_array_equal(
            turned.a.values(0, gemm.n, 0, gemm.k), gemm.b.values(0, gemm.k, 0, gemm.n).T
        )
        np.testing.assert_array_equal(
            turned.b.values(1, 3, 2, 5), gemm.a.values(0, gemm.m, 0, gemm.k).T[1:3, 2:5]
        )


def test_pruning_a_view_keeps_the_values_that_are_left() -> None:
    conv = make_conv(shape(c=4, h=5, w=5, k=6, r=3, s=3, groups=2), 0.7, 1.0, seed=2)
    filters = conv.gemms()[1].b
    values = filters.values(0, 18, 0, 3)
    np.testing.assert_array_equal(values, conv.weight.values(3, 6, 0, 18).T)
    half = np.arange(18 * 3).reshape(18, 3) % 2 == 0
    pruned = type(filters)(
        pattern=MaskPattern(half), role="weight", seed=filters.seed, source="pruned",
        is_transposed=True, base=filters.base, index=filters.index,
    )  # fmt: skip
    np.testing.assert_array_equal(pruned.values(0, 18, 0, 3), values * half)


def test_padding_beyond_all_reason_is_one_error_and_no_memory() -> None:
    with pytest.raises(
        WorkloadError, match=r"padding: must leave at most 16,777,216 output rows, not 2,000,"
    ):
        shape(h=5, w=5, r=3, s=3, padding=(10**12, 0))
