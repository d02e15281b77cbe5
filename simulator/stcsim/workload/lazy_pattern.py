"""Patterns that are stored elsewhere and asked for block by block, and such a one transposed.

Between `stcsim.workload.pattern` and the views of it (`stcsim.workload.im2col`) and bitmaps
(`stcsim.workload.packed_pattern`).  Knows neither geometry nor files.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stcsim.workload.pattern import BoolArray, Pattern, UintArray

_CHUNK_ELEMENTS = 1 << 25
"""Elements hashed at a time."""


class LazyPattern(Pattern):
    """A pattern that is stored elsewhere: its bits are asked for block by block."""

    def packed_pieces(self) -> Iterator[bytes]:
        """Yield the bits of all elements; see `Pattern.packed_pieces`."""
        rows = max(8, _CHUNK_ELEMENTS // max(1, self.shape[1]) // 8 * 8)
        for r0 in range(0, self.shape[0], rows):
            yield np.packbits(self.block(r0, r0 + rows, 0, self.shape[1])).tobytes()


class TransposedPattern(LazyPattern):
    """A lazy pattern with rows and columns exchanged.

    Parameters
    ----------
    base : LazyPattern
    """

    def __init__(self, base: LazyPattern) -> None:
        self.base = base
        self.shape = (base.shape[1], base.shape[0])

    @property
    def nnz(self) -> int:
        """Number of non-zero elements."""
        return self.base.nnz

    @property
    def n_stored(self) -> int:
        """Elements that dense storage of the base holds."""
        return self.base.n_stored

    @property
    def n_unique(self) -> int:
        """Elements that the base stores once."""
        return self.base.n_unique

    def block(self, r0: int, r1: int, c0: int, c1: int) -> BoolArray:
        """Return a block; see `Pattern.block`."""
        return self.base.block(c0, c1, r0, r1).T

    def transpose(self) -> LazyPattern:
        """Return the pattern as it was."""
        return self.base

    def group_counts(self, axis: int, length: int) -> UintArray:
        """Count the ones of every run; see `Pattern.group_counts`."""
        return np.ascontiguousarray(self.base.group_counts(1 - axis, length).T)

    def _counts_along(self, axis: int) -> NDArray[np.int64]:
        return self.base._counts_along(1 - axis)
