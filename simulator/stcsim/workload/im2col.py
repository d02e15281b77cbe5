"""The lowered feature map of a convolution, as a view: no im2col matrix is ever made.

Row m = (image, output row, output column) is a pixel of the output, column
k = (channel, filter row, filter column) a tap of the filter; element (m, k) is the
input element under that tap, or padding.  `Im2colPattern` answers what formats and
lowerings ask of a pattern from the bits of the feature map; temporary memory is that
of a chunk of columns (`_CHUNK_ELEMENTS`, or one column where that is longer).

Padding positions are zeros of the lowered matrix but are stored nowhere:
`density` and `n_stored` leave them out, `shape` and so `macs_total` do not.

It knows the geometry (`stcsim.workload.conv_shape`), and nothing of weights,
values, formats or machines.

>>> import numpy as np
>>> from stcsim.workload.pattern import MaskPattern
>>> shape = ConvShape(n=1, c=1, h=2, w=2, k=1, r=2, s=2, padding=(1, 0))
>>> feature_map = MaskPattern(np.array([[True, False, True, True]]))    # rows N*C, columns H*W
>>> Im2colPattern(feature_map, shape).mask().astype(int)
array([[0, 0, 1, 0],
       [1, 0, 1, 1],
       [1, 1, 0, 0]])
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import WorkloadError, must
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.lazy_pattern import LazyPattern, TransposedPattern
from stcsim.workload.pattern import BoolArray, MaskPattern, Pattern, UintArray, smallest_unsigned
from stcsim.workload.view import Indices

_CHUNK_ELEMENTS = 1 << 25
"""Elements of the lowered matrix that are looked at a time: 32 MiB of temporary bytes."""


class Im2colPattern(LazyPattern):
    """Which elements of one group's lowered feature map are non-zero.

    Parameters
    ----------
    feature_map : Pattern, shape (N * C, H * W)
        The whole input, a row for each channel of each image.
    conv : ConvShape
    group : int
        Which group's channels are lowered.

    Raises
    ------
    WorkloadError
        If the pattern's shape is not that of the input.
    """

    def __init__(self, feature_map: Pattern, conv: ConvShape, group: int = 0) -> None:
        if feature_map.shape != conv.input_shape:
            rows, cols = conv.input_shape
            raise WorkloadError(
                must(
                    f"a feature map of {conv.n} x {conv.c} x {conv.h} x {conv.w} must be "
                    f"given as {rows} rows (images x channels) of {cols} columns",
                    " x ".join(map(str, feature_map.shape)),
                )
            )
        self.feature_map = feature_map
        self.conv = conv
        self.first_channel = group * conv.c_group
        self.shape = (conv.pixels, conv.taps)

    @property
    def n_unique(self) -> int:
        """Elements of the group's feature map; a filter with stride or dilation may use fewer."""
        return min(self.n_stored, self.conv.n * self.conv.c_group * self.conv.h * self.conv.w)

    @property
    def n_stored(self) -> int:
        """Elements that stand in the feature map: all but padding."""
        return self.conv.inside * self.conv.c_group

    @cached_property
    def nnz(self) -> int:
        """Number of non-zero elements."""
        return int(self.counts_per_col().sum())

    def elements(self, r0: int, r1: int, c0: int, c1: int) -> Indices:
        """Return the elements of the feature map behind a block; see `stcsim.workload.view.Elements`."""
        rows, cols, _ = self._locate(r0, r1, c0, c1)
        return rows.astype(np.uint64), cols.astype(np.uint64)

    def _locate(
        self, r0: int, r1: int, c0: int, c1: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], BoolArray]:
        """Return row and column in the feature map of each element of a block, and whether it is inside.

        Columns of padding positions are those of the nearest element.
        """
        conv = self.conv
        image, pixel = np.divmod(np.arange(self.shape[0])[r0:r1, None], max(1, conv.p * conv.q))
        p, q = np.divmod(pixel, max(1, conv.q))
        channel, tap = np.divmod(np.arange(self.shape[1])[c0:c1], conv.r * conv.s)
        r, s = np.divmod(tap, conv.s)
        y = p * conv.stride[0] - conv.padding[0] + r * conv.dilation[0]
        x = q * conv.stride[1] - conv.padding[1] + s * conv.dilation[1]
        inside = (y >= 0) & (y < conv.h) & (x >= 0) & (x < conv.w)
        y, x = y.clip(0, conv.h - 1), x.clip(0, conv.w - 1)
        return image * conv.c + self.first_channel + channel, y * conv.w + x, inside

    def block(self, r0: int, r1: int, c0: int, c1: int) -> BoolArray:
        """Return a block; see `Pattern.block`."""
        rows, cols, inside = self._locate(r0, r1, c0, c1)
        bits: BoolArray = self.feature_map.mask()[rows, cols]
        bits &= inside
        bits.flags.writeable = False
        return bits

    def transpose(self) -> TransposedPattern:
        """Return the pattern with rows and columns exchanged, as lazy as this one."""
        return TransposedPattern(self)

    def group_counts(self, axis: int, length: int) -> UintArray:
        """Count the ones of every run, a chunk of columns at a time; see `Pattern.group_counts`."""
        m, k = self.shape
        dtype = smallest_unsigned(length)
        if axis == 0:
            counts: UintArray = np.zeros((-(-m // length), k), dtype)
            for first, columns in self.columns():
                of_chunk = MaskPattern.adopt(columns).group_counts(1, length)
                counts[:, first : first + len(columns)] = of_chunk.T
            return counts
        by_group: UintArray = np.zeros((-(-k // length), m), dtype)
        for first, columns in self.columns():
            for i, column in enumerate(columns.view(np.uint8)):
                by_group[(first + i) // length] += column
        return np.ascontiguousarray(by_group.T)

    def _counts_along(self, axis: int) -> NDArray[np.int64]:
        return self._counts[1 - axis].copy()

    @cached_property
    def _counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ones of each row and of each column."""
        of_rows, of_columns = (np.zeros(size, np.int64) for size in self.shape)
        for first, columns in self.columns():
            of_columns[first : first + len(columns)] = np.count_nonzero(columns, axis=1)
            of_rows += np.count_nonzero(columns, axis=0)
        return of_rows, of_columns

    def columns(self) -> Iterator[tuple[int, BoolArray]]:
        """Yield the columns of the lowered matrix in order, a chunk at a time.

        Yields
        ------
        first : int
            Index of the chunk's first column.
        columns : C-contiguous ndarray of bool, shape (columns of the chunk, m)
            Whole filters of one or more channels, or some taps of one channel.
        """
        conv = self.conv
        m, window = self.shape[0], conv.r * conv.s
        channels = max(1, _CHUNK_ELEMENTS // max(1, window * m))
        taps = window if window * m <= _CHUNK_ELEMENTS else max(1, _CHUNK_ELEMENTS // m)
        for c0 in range(0, conv.c_group, channels):
            c1 = min(c0 + channels, conv.c_group)
            padded = self._padded(self._channels(self.first_channel + c0, self.first_channel + c1))
            for t0 in range(0, window, taps):
                t1 = min(t0 + taps, window)
                chunk = np.empty((c1 - c0, t1 - t0, conv.n, conv.p, conv.q), np.bool_)
                for tap in range(t0, t1):
                    y, x = (tap // conv.s) * conv.dilation[0], (tap % conv.s) * conv.dilation[1]
                    rows = slice(y, y + (conv.p - 1) * conv.stride[0] + 1, conv.stride[0])
                    cols = slice(x, x + (conv.q - 1) * conv.stride[1] + 1, conv.stride[1])
                    chunk[:, tap - t0] = padded[:, :, rows, cols].swapaxes(0, 1)
                yield c0 * window + t0, chunk.reshape((c1 - c0) * (t1 - t0), m)

    def _channels(self, first: int, end: int) -> BoolArray:
        """Return channels of every image, shape (n, end - first, h, w)."""
        conv = self.conv
        maps = (
            self.feature_map.block(i * conv.c + first, i * conv.c + end, 0, conv.h * conv.w)
            for i in range(conv.n)
        )
        shape = (conv.n, end - first, conv.h, conv.w)
        stacked = np.empty(shape, np.bool_)
        for image, channels in zip(stacked, maps, strict=True):
            image[...] = channels.reshape(shape[1:])
        return stacked

    def _padded(self, images: BoolArray) -> BoolArray:
        """Return channels of every image with zeros around them."""
        top, left = self.conv.padding
        if not (top or left):
            return images
        return np.pad(images, ((0, 0), (0, 0), (top, top), (left, left)))
