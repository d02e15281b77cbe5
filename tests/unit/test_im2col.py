"""The lazy im2col answers as the matrix would that it never makes."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from convolution import conv_shapes
from stcsim.errors import WorkloadError
from stcsim.workload import im2col
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.im2col import Im2colPattern
from stcsim.workload.pattern import MaskPattern


def lowered(mask: NDArray[np.bool_], shape: ConvShape, group: int) -> NDArray[np.bool_]:
    """Return the lowered matrix, element by element from the definition."""
    images = mask.reshape(shape.n, shape.c, shape.h, shape.w)
    out = np.zeros((shape.n, shape.p, shape.q, shape.c_group, shape.r, shape.s), bool)
    for n, p, q, c, r, s in np.ndindex(out.shape):
        y = p * shape.stride[0] - shape.padding[0] + r * shape.dilation[0]
        x = q * shape.stride[1] - shape.padding[1] + s * shape.dilation[1]
        if 0 <= y < shape.h and 0 <= x < shape.w:
            out[n, p, q, c, r, s] = images[n, group * shape.c_group + c, y, x]
    return out.reshape(shape.pixels, shape.taps)


@given(
    conv_shapes(largest=6), st.floats(0, 1), st.integers(0, 99), st.sampled_from([1, 50, 1 << 25]), st.data()
)
def test_every_answer_is_that_of_the_matrix(
    shape: ConvShape, density: float, seed: int, chunk: int, data: st.DataObject
) -> None:
    feature_map = MaskPattern(np.random.default_rng(seed).random(shape.input_shape) < density)
    group = data.draw(st.integers(0, shape.groups - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(im2col, "_CHUNK_ELEMENTS", chunk)
        view = Im2colPattern(feature_map, shape, group)
        matrix = MaskPattern(lowered(feature_map.mask(), shape, group))
        for mine, theirs in ((view, matrix), (view.transpose(), matrix.transpose())):
            assert mine.shape == theirs.shape
            assert mine.nnz == theirs.nnz
            np.testing.assert_array_equal(mine.mask(), theirs.mask())
            np.testing.assert_array_equal(mine.block(1, 4, 2, 40), theirs.block(1, 4, 2, 40))
            np.testing.assert_array_equal(mine.counts_per_row(), theirs.counts_per_row())
            np.testing.assert_array_equal(mine.counts_per_col(), theirs.counts_per_col())
            for axis in (0, 1):
                for length in (1, 4, 32):
                    counts, expected = mine.group_counts(axis, length), theirs.group_counts(axis, length)
                    np.testing.assert_array_equal(counts, expected)
                    assert counts.dtype == expected.dtype
                    assert counts.flags.c_contiguous
            assert mine.digest == theirs.digest
            assert mine == theirs


def test_padding_is_neither_stored_nor_sparsity() -> None:
    shape = ConvShape(n=2, c=3, h=4, w=5, k=1, r=3, s=3, padding=(1, 1))
    view = Im2colPattern(MaskPattern(np.ones(shape.input_shape, bool)), shape)
    assert view.size == 2 * 20 * 27
    # Of each axis' taps, 4 * 3 - 2 rows and 5 * 3 - 2 columns lie on the map.
    assert view.nnz == view.n_stored == view.transpose().n_stored == 2 * 3 * 10 * 13
    assert view.density == view.transpose().density == 1.0


def test_the_transpose_of_the_transpose_is_the_view_itself() -> None:
    shape = ConvShape(n=1, c=1, h=3, w=3, k=1, r=2, s=2)
    view = Im2colPattern(MaskPattern(np.ones((1, 9), bool)), shape)
    assert view.transpose().transpose() is view


def test_a_map_of_another_shape_is_refused() -> None:
    shape = ConvShape(n=2, c=3, h=4, w=5, k=1, r=3, s=3)
    message = (
        "a feature map of 2 x 3 x 4 x 5 must be given as 6 rows (images x channels) of 20 columns, not 3 x 20"
    )
    with pytest.raises(WorkloadError, match=f"^{re.escape(message)}$"):
        Im2colPattern(MaskPattern(np.ones((3, 20), bool)), shape)


def test_memory_does_not_grow_with_the_lowered_matrix() -> None:
    """A 1080 x 1920 map of 8 channels is lowered to 149 million elements; what is held is a chunk of them."""
    shape = ConvShape(n=1, c=8, h=1080, w=1920, k=1, r=3, s=3, padding=(1, 1))
    feature_map = MaskPattern.adopt(np.ones(shape.input_shape, bool))
    tracemalloc.start()
    counts = Im2colPattern(feature_map, shape).group_counts(0, 32)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.shape == (1080 * 1920 // 32, 72)
    assert int(counts.sum(dtype=np.int64)) == 8 * (1080 * 3 - 2) * (1920 * 3 - 2)
    assert peak < 100 * 2**20
