"""Bitmap implicit im2col: columns of the lowered feature map by shift, mask and popcount (DSTC).

An outer product takes a *column* of the lowered matrix: one tap (channel, filter row, filter
column) over consecutive output pixels.  Those are consecutive bits of rows of the feature
map's bitmap, so a column is cut out of it: per output row, shift the source row's bits to
the tap, mask what lies beyond the output row, and put the piece behind the one before it.

* Stride 1 along a row (any dilation): the piece's values are one contiguous slice of the packed row,
  from popcount(bits before the piece) on, popcount(piece) long.  No search, no select.
* Stride 2 and more: only every stride-th bit counts.  Bits are compacted, by halving where the stride is a
  power of two (mask, then four steps of shift and merge a word), bit by bit otherwise; values are
  selected one by one, each at popcount(bits before it).  ASSUMED: the paper's way is not known.
* Padding is where no bit is shifted in: it costs no load and is in no popcount.

Operations are counted as they are done, one lane for each 32-bit word (ASSUMED: lane i builds word i).
Per word of a piece: SHF (from two source words), LOP3 (mask), two POPC (ones before it, ones in it),
IADD3 (address of the values); and SHF and LOP3 to put it into the column, unless output rows are whole
words.  `column` builds one column and counts; `mix` gives the count of all of them in closed form.

Source: reading notes of Wang et al., ISCA 2021 (arXiv 2105.09564), Sec. on SpCONV: columns in
sliding-window order, shift, mask, popcount on the integer cores; the instructions are our reconstruction.

Knows the geometry and the bits; nothing of cycles.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stcsim.lowering.instruction_mix import InstructionMix
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.pattern import Pattern

WORD = 32
"""Bits of a register."""

_PER_WORD = InstructionMix(SHF=1, LOP3=1, POPC=2, IADD3=1)
_PLACE = InstructionMix(SHF=1, LOP3=1)
_HALVE = InstructionMix(SHF=4, LOP3=5)
"""Drop every other bit of a word: one mask, then shift and merge by 1, 2, 4 and 8."""
_PICK = InstructionMix(SHF=1, LOP3=1)
"""Move one bit to its place in the compacted word."""
_SELECT = InstructionMix(LOP3=1, POPC=1, IADD3=1)
"""Address of the value of one output pixel: ones before its bit."""


@dataclass(frozen=True)
class EncodedMap:
    """A feature map as bitmap rows and packed values.

    Parameters
    ----------
    rows : tuple of int
        Bits of each row of each channel image, least significant bit = column 0.
    offsets : ndarray of int64, shape (rows + 1,)
        Index of each row's first packed value.
    height : int
        Rows of one channel image.
    """

    rows: tuple[int, ...]
    offsets: NDArray[np.int64]
    height: int

    @staticmethod
    def of(feature_map: Pattern, conv: ConvShape) -> EncodedMap:
        """Encode a feature map of shape (N * C, H * W)."""
        bits = feature_map.mask().reshape(-1, conv.w)
        packed = np.packbits(bits, axis=1, bitorder="little")
        counts = np.count_nonzero(bits, axis=1)
        return EncodedMap(
            tuple(int.from_bytes(row.tobytes(), "little") for row in packed),
            np.concatenate(([0], np.cumsum(counts, dtype=np.int64))),
            conv.h,
        )


@dataclass(frozen=True)
class Column:
    """One column of the lowered matrix.

    Parameters
    ----------
    words : ndarray of uint32, shape (ceil(m / 32),)
        Bit i of word j stands for output pixel 32 j + i.
    values : ndarray of int64, shape (ones,)
        Indices of the column's values among the packed values of the map, in the order of the bits.
    n_slices : int
        Contiguous runs in which they are read: one for each output row at stride 1, else one each.
    mix : InstructionMix
        What it took.
    """

    words: NDArray[np.uint32]
    values: NDArray[np.int64]
    n_slices: int
    mix: InstructionMix


def column(encoded: EncodedMap, conv: ConvShape, channel: int, r: int, s: int) -> Column:
    """Build the column of one tap.

    Parameters
    ----------
    encoded : EncodedMap
    conv : ConvShape
    channel : int
        Among all channels of the input.
    r, s : int
        Filter row and column.
    """
    stride = conv.stride[1]
    first = s * conv.dilation[1] - conv.padding[1]
    total, length = 0, 0
    mix = InstructionMix()
    values: list[NDArray[np.int64]] = []
    n_slices = 0
    for image in range(conv.n):
        for p in range(conv.p):
            y = p * conv.stride[0] - conv.padding[0] + r * conv.dilation[0]
            if 0 <= y < conv.h:
                row = (image * conv.c + channel) * encoded.height + y
                bits, at = encoded.rows[row], int(encoded.offsets[row])
                window = bits >> first if first >= 0 else bits << -first
                window &= (1 << (conv.q - 1) * stride + 1) - 1
                if stride == 1:
                    piece = window
                    start = at + (bits & (1 << max(first, 0)) - 1).bit_count()
                    values.append(np.arange(start, start + piece.bit_count()))
                    n_slices += 1
                else:
                    piece = sum((window >> q * stride & 1) << q for q in range(conv.q))
                    ones = [q for q in range(conv.q) if piece >> q & 1]
                    before = [(bits & (1 << first + q * stride) - 1).bit_count() for q in ones]
                    values.append(at + np.array(before, np.int64))
                    n_slices += len(ones)
                total |= piece << length
                mix += _of_piece(conv)
            length += conv.q
    n_words = -(-length // WORD)
    words = np.frombuffer(total.to_bytes(4 * n_words, "little"), "<u4").astype(np.uint32)
    return Column(words, np.concatenate([np.zeros(0, np.int64), *values]), n_slices, mix)


def _of_piece(conv: ConvShape) -> InstructionMix:
    """Return the operations of one output row of one column; they do not depend on the bits."""
    stride = conv.stride[1]
    words = -(-conv.q // WORD)
    placed = _PLACE * words if conv.q % WORD else InstructionMix()
    if stride == 1:
        return _PER_WORD * words + placed
    source = -(-((conv.q - 1) * stride + 1) // WORD)
    if stride & (stride - 1) == 0:
        # Each halving leaves half the words to halve again.
        halved = sum(-(-source // (1 << i)) for i in range(stride.bit_length() - 1))
        compaction = _HALVE * halved
    else:
        compaction = _PICK * conv.q
    return _PER_WORD * source + compaction + _SELECT * conv.q + placed


def mix(conv: ConvShape) -> InstructionMix:
    """Return the operations of building every column of every group once; independent of the bits."""
    rows = 0
    for r in range(conv.r):
        y = np.arange(conv.p) * conv.stride[0] - conv.padding[0] + r * conv.dilation[0]
        rows += int(np.count_nonzero((y >= 0) & (y < conv.h)))
    return _of_piece(conv) * (rows * conv.n * conv.c * conv.s)


def is_contiguous(found: Column) -> bool:
    """Tell whether the values of a column stand one behind the other within each slice."""
    jumps = sum(b != a + 1 for a, b in pairwise(found.values.tolist()))
    return bool(jumps < max(1, found.n_slices))
