"""A pattern of bits says of itself what the same pattern of bytes says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stcsim.errors import WorkloadError
from stcsim.workload import packed_pattern
from stcsim.workload.conv2d import Conv2d
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.operand import Operand
from stcsim.workload.packed_pattern import PackedPattern
from stcsim.workload.pattern import MaskPattern


def both(mask: np.ndarray) -> tuple[PackedPattern, MaskPattern]:
    return PackedPattern(mask.shape, np.packbits(mask)), MaskPattern(mask)


@given(
    rows=st.integers(0, 13),
    cols=st.integers(0, 13),
    length=st.integers(1, 9),
    seed=st.integers(0, 99),
    chunk=st.integers(8, 60),
)
def test_bits_and_bytes_agree(rows: int, cols: int, length: int, seed: int, chunk: int) -> None:
    packed, plain = both(np.random.default_rng(seed).random((rows, cols)) < 0.4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_pattern, "_CHUNK_ELEMENTS", chunk)
        assert packed == plain
        assert packed.nnz == plain.nnz
        for one, other in ((packed, plain), (packed.transpose(), plain.transpose())):
            np.testing.assert_array_equal(one.mask(), other.mask())
            np.testing.assert_array_equal(one.block(1, 5, 2, 9), other.block(1, 5, 2, 9))
            np.testing.assert_array_equal(one.counts_per_row(), other.counts_per_row())
            np.testing.assert_array_equal(one.counts_per_col(), other.counts_per_col())
            for axis in (0, 1):
                found, want = one.group_counts(axis, length), other.group_counts(axis, length)
                np.testing.assert_array_equal(found, want)
                assert found.dtype == want.dtype
        assert packed.unpacked() == plain
        assert packed.transpose().transpose() is packed


def test_a_convolution_counts_the_same_useful_macs_from_bits(rng: np.random.Generator) -> None:
    shape = ConvShape(n=2, c=6, h=9, w=7, k=4, r=3, s=2, stride=(2, 1), padding=(1, 1), groups=2)
    maps = both(rng.random(shape.input_shape) < 0.5)
    filters = both(rng.random(shape.weight_shape) < 0.3)
    useful = {
        Conv2d("layer", shape, Operand(a, "activation", 0, ""), Operand(b, "weight", 0, "")).macs_useful
        for a, b in zip(maps, filters, strict=True)
    }
    assert len(useful) == 1


def test_bits_that_do_not_fit_the_shape_are_refused() -> None:
    with pytest.raises(WorkloadError, match="packed bits must be 2 bytes, not 1 of uint8"):
        PackedPattern((3, 3), np.zeros(1, np.uint8))
