"""A pattern of one bit an element: what traces are read as.

Counts are taken a few rows at a time, so that a pattern of 2**30 elements is looked through in
some hundred MiB; `PackedPattern.unpacked` gives the one byte an element that simulation reads.
Knows nothing of files or layers.

>>> pattern = PackedPattern((2, 3), np.packbits([[1, 0, 1], [0, 1, 0]]))
>>> pattern.nnz, pattern.counts_per_col().tolist()
(3, [1, 1, 1])
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import WorkloadError, must
from stcsim.workload.lazy_pattern import LazyPattern, TransposedPattern
from stcsim.workload.pattern import BoolArray, MaskPattern, UintArray, check_shape, smallest_unsigned

_CHUNK_ELEMENTS = 1 << 24
"""Elements unpacked at a time."""
_ONES_OF_BYTE = np.array([byte.bit_count() for byte in range(256)], dtype=np.int64)


class PackedPattern(LazyPattern):
    """A pattern stored as bits.

    Parameters
    ----------
    shape : tuple of int
        (rows, columns).
    bits : ndarray of uint8, shape (ceil(rows * columns / 8),)
        Elements in row-major order, most significant bit first, zeros after the last one; not copied.

    Raises
    ------
    WorkloadError
        If there are not as many bytes as the shape needs.
    """

    def __init__(self, shape: tuple[int, int], bits: NDArray[np.uint8]) -> None:
        self.shape = check_shape(shape)
        n_bytes = -(-self.size // 8)
        if bits.shape != (n_bytes,) or bits.dtype != np.uint8:
            raise WorkloadError(must(f"packed bits must be {n_bytes} bytes", f"{bits.size} of {bits.dtype}"))
        self.bits = bits.view()
        self.bits.flags.writeable = False

    @cached_property
    def nnz(self) -> int:
        """Number of non-zero elements."""
        step = _CHUNK_ELEMENTS // 8
        pieces = (self.bits[i : i + step] for i in range(0, self.bits.size, step))
        return sum(int(np.bincount(piece, minlength=256) @ _ONES_OF_BYTE) for piece in pieces)

    def block(self, r0: int, r1: int, c0: int, c1: int) -> BoolArray:
        """Return a block, unpacked; see `Pattern.block`."""
        rows, cols = range(self.shape[0])[r0:r1], self.shape[1]
        first, count = rows.start * cols, len(rows) * cols
        skipped = first % 8
        bits = self.bits[first // 8 : -(-(first + count) // 8)]
        block = np.unpackbits(bits, count=skipped + count)[skipped:].view(np.bool_)
        block.flags.writeable = False
        return block.reshape(len(rows), cols)[:, c0:c1]

    def unpacked(self) -> MaskPattern:
        """Return the same pattern with one byte an element."""
        return MaskPattern.adopt(self.mask())

    def transpose(self) -> TransposedPattern:
        """Return the pattern with rows and columns exchanged, as lazy as this one."""
        return TransposedPattern(self)

    def group_counts(self, axis: int, length: int) -> UintArray:
        """Count the ones of every run; see `Pattern.group_counts`."""
        multiple = length if axis == 0 else 1
        counts = [chunk.group_counts(axis, length) for chunk in self._chunks(multiple)]
        empty = MaskPattern(np.zeros((0, self.shape[1]), np.bool_)).group_counts(axis, length)
        return np.concatenate([empty, *counts], dtype=smallest_unsigned(length))

    def _chunks(self, multiple: int = 1) -> Iterator[MaskPattern]:
        """Yield the rows in order, some at a time: a multiple of `multiple`, but for the last ones."""
        rows = max(1, _CHUNK_ELEMENTS // max(1, self.shape[1]) // multiple) * multiple
        for r0 in range(0, self.shape[0], rows):
            yield MaskPattern.adopt(self.block(r0, r0 + rows, 0, self.shape[1]))

    def _counts_along(self, axis: int) -> NDArray[np.int64]:
        if axis == 1:
            parts = [chunk.counts_per_row() for chunk in self._chunks()]
            return np.concatenate([np.zeros(0, np.int64), *parts])
        total = np.zeros(self.shape[1], np.int64)
        for chunk in self._chunks():
            total += chunk.counts_per_col()
        return total

    def packed_pieces(self) -> Iterator[bytes]:
        """Yield the bits of all elements; see `Pattern.packed_pieces`."""
        yield self.bits.tobytes()
