"""Which elements of a 2-D operand are non-zero.

Everything that stcsim counts follows from patterns: generators, files and traces
make them, `stcsim.workload.operand` puts values on them, formats and lowerings
read their blocks and popcounts.  This module knows nothing of values, formats,
tiles or datapaths.

>>> import numpy as np
>>> pattern = MaskPattern(np.eye(3, 4, dtype=bool))
>>> pattern.nnz, pattern.density
(3, 0.25)
>>> pattern.group_counts(axis=0, length=2)
array([[1, 1, 0, 0],
       [0, 0, 1, 0]], dtype=uint8)
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import WorkloadError, must

BoolArray = NDArray[np.bool_]
UintArray = NDArray[np.unsignedinteger[Any]]

_PACK_ELEMENTS = 1 << 23
"""Elements packed at a time while hashing; a multiple of 8, so that pieces join without a gap."""


def smallest_unsigned(largest: int) -> np.dtype[np.unsignedinteger[Any]]:
    """Return the narrowest unsigned dtype that holds `largest`."""
    return np.dtype(np.min_scalar_type(largest))


def check_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Return `shape` as two Python integers.

    Raises
    ------
    WorkloadError
        If it is not two non-negative integers.
    """
    whole = all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in shape)
    if len(shape) != 2 or not whole or min(shape) < 0:
        raise WorkloadError(must("the shape of an operand must be two sizes, each 0 or more", tuple(shape)))
    return int(shape[0]), int(shape[1])


class Pattern(ABC):
    """Which elements of an operand with `shape` (rows, columns) are non-zero; never changes.

    Two patterns are equal when shape and elements are, however they are stored.
    """

    shape: tuple[int, int]

    @property
    @abstractmethod
    def nnz(self) -> int:
        """Number of non-zero elements."""

    @property
    def size(self) -> int:
        """Number of elements, zeros included."""
        return self.shape[0] * self.shape[1]

    @property
    def n_stored(self) -> int:
        """Elements that dense storage holds: all, but for the padding of a convolution."""
        return self.size

    @property
    def n_unique(self) -> int:
        """Elements that are stored once: fewer than `n_stored` where windows of one feature map overlap."""
        return self.n_stored

    @property
    def density(self) -> float:
        """Share of stored elements that are non-zero, in [0, 1]; 0 for an operand without elements."""
        return self.nnz / self.n_stored if self.n_stored else 0.0

    @abstractmethod
    def block(self, r0: int, r1: int, c0: int, c1: int) -> BoolArray:
        """Return rows r0..r1-1 and columns c0..c1-1, cut off at the operand's edges, read-only.

        Parameters
        ----------
        r0, r1, c0, c1 : int, 0 or more
            Half-open ranges; what lies beyond the edge is left out, not padded.

        Returns
        -------
        block : ndarray of bool, shape (<= r1 - r0, <= c1 - c0)
            A view where there is storage.
        """

    def mask(self) -> BoolArray:
        """Return the whole pattern, read-only: ndarray of bool, shape `shape`."""
        return self.block(0, self.shape[0], 0, self.shape[1])

    @abstractmethod
    def transpose(self) -> Pattern:
        """Return the pattern with rows and columns exchanged (no copy)."""

    @abstractmethod
    def group_counts(self, axis: int, length: int) -> UintArray:
        """Count the ones in every run of `length` consecutive elements along `axis`.

        Parameters
        ----------
        axis : {0, 1}
            0: runs go down a column; 1: along a row.
        length : int, 1 or more
            Elements per run; the last run is shorter where `length` does not divide the size.

        Returns
        -------
        counts : C-contiguous ndarray of the narrowest unsigned dtype that holds `length`
            Shape (ceil(rows / length), columns) for axis 0, (rows, ceil(columns / length)) for axis 1.
        """

    def counts_per_row(self) -> NDArray[np.int64]:
        """Return the number of ones of each row: ndarray of int64, shape (rows,)."""
        return self._counts_along(1)

    def counts_per_col(self) -> NDArray[np.int64]:
        """Return the number of ones of each column: ndarray of int64, shape (columns,)."""
        return self._counts_along(0)

    @abstractmethod
    def _counts_along(self, axis: int) -> NDArray[np.int64]: ...

    @abstractmethod
    def packed_pieces(self) -> Iterator[bytes]:
        """Yield the bits of all elements in row-major order, most significant bit first."""

    @cached_property
    def digest(self) -> str:
        """Hash of the content: sha256 over the shape and the packed bits, 64 hex digits."""
        content = hashlib.sha256(f"{self.shape[0]}x{self.shape[1]}:".encode())
        for piece in self.packed_pieces():
            content.update(piece)
        return content.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        return self.shape == other.shape and self.nnz == other.nnz and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]} x {self.shape[1]}, density {self.density:.4g})"


class DensePattern(Pattern):
    """A pattern without zeros; takes no storage, whatever its shape.

    Parameters
    ----------
    shape : tuple of int
        (rows, columns).

    Raises
    ------
    WorkloadError
        If the shape is not two non-negative integers.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = check_shape(shape)

    @property
    def nnz(self) -> int:
        """Number of non-zero elements: all."""
        return self.size

    def block(self, r0: int, r1: int, c0: int, c1: int) -> BoolArray:
        """Return a block of ones; see `Pattern.block`."""
        rows = range(self.shape[0])[r0:r1]
        cols = range(self.shape[1])[c0:c1]
        return np.broadcast_to(np.True_, (len(rows), len(cols)))

    def transpose(self) -> DensePattern:
        """Return the dense pattern with rows and columns exchanged."""
        return DensePattern((self.shape[1], self.shape[0]))

    def group_counts(self, axis: int, length: int) -> UintArray:
        """Return the length of every run; see `Pattern.group_counts`."""
        size = self.shape[axis]
        counts = np.full(-(-size // length), length, dtype=smallest_unsigned(length))
        if size % length:
            counts[-1] = size % length
        shape = (counts.size, self.shape[1]) if axis == 0 else (self.shape[0], counts.size)
        return np.array(np.broadcast_to(counts[:, None] if axis == 0 else counts, shape), order="C")

    def _counts_along(self, axis: int) -> NDArray[np.int64]:
        return np.full(self.shape[1 - axis], self.shape[axis], dtype=np.int64)

    def packed_pieces(self) -> Iterator[bytes]:
        """Yield the bits of all elements; see `Pattern.packed_pieces`."""
        ones = bytes([0xFF]) * min(self.size // 8, _PACK_ELEMENTS // 8)
        left = self.size // 8
        while left:
            yield ones[:left]
            left -= len(ones[:left])
        if self.size % 8:
            yield bytes([(0xFF00 >> self.size % 8) & 0xFF])


class MaskPattern(Pattern):
    """A pattern stored as one byte per element.

    Parameters
    ----------
    mask : ndarray of bool, shape (rows, columns)
        True where the operand is non-zero; copied.

    Raises
    ------
    WorkloadError
        If the mask is not two-dimensional or not boolean.
    """

    def __init__(self, mask: ArrayLike) -> None:
        given = np.array(mask)
        if given.ndim != 2:
            raise WorkloadError(must("a pattern must have two dimensions", given.ndim))
        if given.dtype != np.bool_:
            raise WorkloadError(must("a pattern must be an array of bool", given.dtype))
        self._take(given)

    @classmethod
    def adopt(cls, mask: BoolArray) -> MaskPattern:
        """Return the pattern of a two-dimensional mask that nobody else will change, without a copy."""
        pattern = cls.__new__(cls)
        pattern._take(mask)
        return pattern

    def _take(self, mask: BoolArray) -> None:
        self._mask = mask.view()
        self._mask.flags.writeable = False
        self.shape = (int(mask.shape[0]), int(mask.shape[1]))

    @cached_property
    def nnz(self) -> int:
        """Number of non-zero elements."""
        return int(np.count_nonzero(self._mask))

    def block(self, r0: int, r1: int, c0: int, c1: int) -> BoolArray:
        """Return a view of a block; see `Pattern.block`."""
        return self._mask[r0:r1, c0:c1]

    def transpose(self) -> MaskPattern:
        """Return the pattern with rows and columns exchanged, on the same storage."""
        return MaskPattern.adopt(self._mask.T)

    def group_counts(self, axis: int, length: int) -> UintArray:
        """Count the ones of every run; see `Pattern.group_counts`."""
        if not self._mask.flags.c_contiguous:
            return np.ascontiguousarray(self.transpose().group_counts(1 - axis, length).T)
        size = self.shape[axis]
        whole = size // length
        shape = (-(-size // length), self.shape[1]) if axis == 0 else (self.shape[0], -(-size // length))
        counts: UintArray = np.zeros(shape, dtype=smallest_unsigned(length))
        elements = self._mask.view(np.uint8)
        if axis == 0:
            for i in range(shape[0]):
                np.add.reduce(
                    elements[i * length : (i + 1) * length], axis=0, dtype=counts.dtype, out=counts[i]
                )
            return counts
        word_bytes = math.gcd(8, length, self.shape[1])
        if word_bytes > 1 and length <= 31 * word_bytes:
            counts[:, :whole] = _popcounts_of_runs(elements, whole, length, word_bytes)
        else:
            runs = elements[:, : whole * length].reshape(self.shape[0], whole, length)
            np.add.reduce(runs, axis=2, dtype=counts.dtype, out=counts[:, :whole])
        if whole < shape[1]:
            np.add.reduce(elements[:, whole * length :], axis=1, dtype=counts.dtype, out=counts[:, whole])
        return counts

    def _counts_along(self, axis: int) -> NDArray[np.int64]:
        counts: NDArray[np.int64] = self.group_counts(axis, 128).sum(axis=axis, dtype=np.int64)
        return counts

    def packed_pieces(self) -> Iterator[bytes]:
        """Yield the bits of all elements; see `Pattern.packed_pieces`."""
        rows_per_piece = max(8, _PACK_ELEMENTS // max(1, self.shape[1]) // 8 * 8)
        for r0 in range(0, self.shape[0], rows_per_piece):
            yield np.packbits(self._mask[r0 : r0 + rows_per_piece]).tobytes()


def _popcounts_of_runs(elements: NDArray[np.uint8], whole: int, length: int, word_bytes: int) -> UintArray:
    """Sum bytes of 0 or 1 over `whole` runs of `length` bytes per row, a word of 2, 4 or 8 bytes at a time.

    Notes
    -----
    The words of a run are added lane by lane (a lane stays at or below length / word_bytes <= 31), then
    one multiplication sums the lanes into the topmost one (at most 248).
    """
    word = np.dtype(f"u{word_bytes}").type
    per_run = length // word_bytes
    words = elements.view(word)[:, : whole * per_run].reshape(len(elements), whole, per_run)
    lanes: UintArray = words[:, :, 0].copy()
    for i in range(1, per_run):
        lanes += words[:, :, i]
    lanes *= word(sum(1 << 8 * lane for lane in range(word_bytes)))
    lanes >>= word(8 * (word_bytes - 1))
    return lanes
