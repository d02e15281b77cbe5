"""The two-level bitmap of the dual-side sparse tensor core.

An operand is cut into tiles of `outer_tile` x `k_tile` elements (32 x 16, the
operand of one warp instruction).  The *warp bitmap* has one bit per tile: does it
hold a non-zero?  The *element bitmap* holds, for each tile that does and each k,
one word whose bit i stands for the i-th row of A (column of B).  The values are
packed in the order of the bits: A column by column within a tile, B row by row.
So the address of a value is its tile's offset plus the number of ones before it.

>>> import numpy as np
>>> encoded = BitmapFormat().encode(np.array([[0, 5], [7, 6]]))
>>> words, values = encoded.tile(0, 0)
>>> words[:2], values
(array([2, 3], dtype=uint32), array([7, 5, 6]))

Source: DSTC, arXiv 2105.09564, Sec. III (two-level bitmap, packing order).  ASSUMED (the paper does not
say): tiles follow each other along K, then along the outer axis; each tile, empty or not, has an int32
offset of its first value; ragged edges are filled up with zeros in the bits and not in the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import FormatError, Problem, must
from stcsim.formats.format import Encoded, Format, Side, as_operand, whole_bytes
from stcsim.workload.pattern import Pattern

_WORD_DTYPES: dict[int, str] = {8: "<u1", 16: "<u2", 32: "<u4", 64: "<u8"}
OFFSET_BITS = 32
"""Bits of a tile's offset.  ASSUMED: the paper does not describe the table."""


@dataclass(frozen=True, eq=False)
class BitmapEncoded(Encoded):
    """An operand as bitmaps and packed values.

    Parameters
    ----------
    shape : tuple of int
    values : ndarray, shape (nnz,)
        The non-zeros, tile after tile, within a tile by k and then by the outer index.
    side : {"a", "b"}
    grid : tuple of int
        Tiles along the outer axis and along K.
    element_bitmap : ndarray of unsigned, shape (non-empty tiles, k_tile)
        Words of `outer_tile` bits; the least significant bit stands for the tile's first row of A
        (column of B).
    warp_bitmap : ndarray of uint8, shape (ceil(tiles / 8),)
        One bit per tile, tiles in row-major order of `grid`, least significant bit first.
    offsets : ndarray of int32, shape (tiles,)
        Index of each tile's first value.
    """

    side: Side
    grid: tuple[int, int]
    element_bitmap: NDArray[np.unsignedinteger[Any]]
    warp_bitmap: NDArray[np.uint8]
    offsets: NDArray[np.int32]

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the values, both bitmaps and the offsets."""
        return {
            "values": self.values,
            "element_bitmap": self.element_bitmap,
            "warp_bitmap": self.warp_bitmap,
            "offsets": self.offsets,
        }

    @cached_property
    def occupied(self) -> NDArray[np.bool_]:
        """Which tiles hold a non-zero: ndarray of bool, shape `grid`."""
        n_tiles = self.grid[0] * self.grid[1]
        bits = np.unpackbits(self.warp_bitmap, count=n_tiles, bitorder="little")
        return bits.view(np.bool_).reshape(self.grid)

    @cached_property
    def _ranks(self) -> NDArray[np.int64]:
        """Row of the element bitmap of each tile: how many occupied tiles come before it."""
        flat = self.occupied.reshape(-1)
        return np.cumsum(flat, dtype=np.int64) - flat

    def tile(self, i: int, j: int) -> tuple[NDArray[np.unsignedinteger[Any]], NDArray[Any]]:
        """Return one tile.

        Parameters
        ----------
        i, j : int
            Its place along the outer axis and along K.

        Returns
        -------
        words : ndarray of unsigned, shape (k_tile,)
            Its bits, one word per k; zeros for an empty tile.
        values : ndarray, shape (ones in `words`,)
            Its values, in the order of the bits.
        """
        if not (0 <= i < self.grid[0] and 0 <= j < self.grid[1]):
            message = f"tile ({i}, {j}) is outside the grid of {self.grid[0]} x {self.grid[1]} tiles"
            raise IndexError(message)
        number = i * self.grid[1] + j
        if not self.occupied[i, j]:
            return np.zeros(self.element_bitmap.shape[1], self.element_bitmap.dtype), self.values[:0]
        is_last = number + 1 == self.offsets.size
        end = self.values.size if is_last else int(self.offsets[number + 1])
        return self.element_bitmap[self._ranks[number]], self.values[self.offsets[number] : end]


@dataclass(frozen=True)
class BitmapFormat(Format[BitmapEncoded]):
    """Two-level bitmap and packed values.

    Parameters
    ----------
    side : {"a", "b"}
    outer_tile : {8, 16, 32, 64}
        Rows of A (columns of B) of a tile, which are the bits of a word.
    k_tile : int
        K of a tile.
    """

    name: ClassVar[str] = "bitmap"
    summary: ClassVar[str] = "two-level bitmap: a bit per warp tile, a bit per element, packed values"
    outer_tile: int = 32
    k_tile: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.outer_tile not in _WORD_DTYPES:
            raise FormatError(must("outer_tile of the bitmap must be 8, 16, 32 or 64", self.outer_tile))
        if self.k_tile < 1:
            raise FormatError(must("k_tile of the bitmap must be at least 1", self.k_tile))

    def grid(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Return the number of tiles along the outer axis and along K of an operand."""
        return -(-shape[1 - self.k_axis] // self.outer_tile), -(-shape[self.k_axis] // self.k_tile)

    def encode(self, values: ArrayLike) -> BitmapEncoded:
        """Pack the non-zeros; see `Format.encode`."""
        operand = as_operand(values)
        by_outer = operand if self.side == "a" else operand.T
        shape = (operand.shape[0], operand.shape[1])
        grid = self.grid(shape)
        padded = np.zeros((grid[0] * self.outer_tile, grid[1] * self.k_tile), dtype=operand.dtype)
        padded[: by_outer.shape[0], : by_outer.shape[1]] = by_outer
        tiles = padded.reshape(grid[0], self.outer_tile, grid[1], self.k_tile).transpose(0, 2, 3, 1)
        ordered = np.ascontiguousarray(tiles).reshape(-1, self.k_tile, self.outer_tile)
        ones = ordered != 0
        counts = np.count_nonzero(ones, axis=(1, 2))
        nnz = int(counts.sum())
        if nnz >= 1 << OFFSET_BITS - 1:
            raise FormatError(_too_many(nnz))
        bits = np.packbits(ones[counts > 0], axis=2, bitorder="little")
        return BitmapEncoded(
            shape=shape,
            values=ordered[ones],
            side=self.side,
            grid=grid,
            element_bitmap=bits.view(_WORD_DTYPES[self.outer_tile])[:, :, 0],
            warp_bitmap=np.packbits(counts > 0, bitorder="little"),
            offsets=(np.cumsum(counts) - counts).astype(np.int32),
        )

    def decode(self, encoded: BitmapEncoded) -> NDArray[Any]:
        """Put the values back to where the bits are; see `Format.decode`."""
        grid = encoded.grid
        ones = np.zeros((grid[0] * grid[1], self.k_tile, self.outer_tile), dtype=np.bool_)
        bits = encoded.element_bitmap[:, :, None].view(np.uint8)
        ones[encoded.occupied.reshape(-1)] = np.unpackbits(bits, axis=2, bitorder="little")
        ordered = np.zeros(ones.shape, dtype=encoded.values.dtype)
        ordered[ones] = encoded.values
        tiles = ordered.reshape(*grid, self.k_tile, self.outer_tile).transpose(0, 3, 1, 2)
        padded = tiles.reshape(grid[0] * self.outer_tile, grid[1] * self.k_tile)
        outer, k = encoded.shape[1 - self.k_axis], encoded.shape[self.k_axis]
        by_outer = padded[:outer, :k]
        return np.ascontiguousarray(by_outer if self.side == "a" else by_outer.T)

    def stored_bits(self, pattern: Pattern, element_bits: int) -> dict[str, int]:
        """Return values, element_bitmap, warp_bitmap and offsets; see `Format.stored_bits`."""
        n_outer, n_k = self.grid(pattern.shape)
        return {
            "values": pattern.nnz * element_bits,
            "element_bitmap": self._occupied_tiles(pattern) * self.outer_tile * self.k_tile,
            "warp_bitmap": whole_bytes(n_outer * n_k),
            "offsets": n_outer * n_k * OFFSET_BITS,
        }

    def accepts(self, pattern: Pattern) -> Problem | None:
        """Refuse operands with more non-zeros than offsets can tell apart."""
        return Problem(_too_many(pattern.nnz)) if pattern.nnz >= 1 << OFFSET_BITS - 1 else None

    def _occupied_tiles(self, pattern: Pattern) -> int:
        """Count the tiles that hold a non-zero."""
        counts = pattern.group_counts(1 - self.k_axis, self.outer_tile)
        if not counts.size:
            return 0
        occupied = counts > 0
        starts = np.arange(0, pattern.shape[self.k_axis], self.k_tile)
        return int(np.count_nonzero(np.logical_or.reduceat(occupied, starts, axis=self.k_axis)))


def _too_many(nnz: int) -> str:
    return must(f"must have fewer than 2**{OFFSET_BITS - 1} non-zeros, since tile offsets are int32", nnz)
