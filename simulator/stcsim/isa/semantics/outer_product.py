"""DSTC: outer products of condensed columns and rows, scattered into an accumulator tile.

Where the condensed values lie (isa/README.md; ASSUMED, ours): the non-zeros of A's tile column by
column, those of B's row by row, two fp16 to a register, packed value p in register p // 64, lane
p % 64 // 2, half p % 2: what plain 32-bit loads of the packed array leave.  Word k of a bitmap register
is lane k; bit i of it is row i (A) or column i (B).  Where one register is named for both operands, A's
words are its lanes 0..15 and B's its lanes 16..31.  So the value of an element is found from the
bitmaps alone: its number is the count of ones before it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stcsim.isa.operand import Register
from stcsim.isa.semantics.registry import Active, Operands, semantic
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import LANES, WarpState

STEPS = 16
"""Outer-product steps (values of k) in one SpWMMA or OWMMA.  Source: DSTC, ISCA 2021."""
VALUES_PER_REGISTER = 2 * LANES
_BITS = np.arange(LANES, dtype=np.uint32)


class Group(NamedTuple):
    """A group of consecutive condensed values of one column or row.

    Parameters
    ----------
    first, last : int
        Numbers of its first value and of the one after its last, in the packed array.
    offsets : ndarray of intp, shape (last - first,)
        What the place of each value (its row in A, its column in B) adds to the index of a sum in the
        flattened tile.
    """

    first: int
    last: int
    offsets: NDArray[np.intp]


def bitmap_words(registers: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Spread bitmap words into truth values.

    Parameters
    ----------
    registers : ndarray of uint32, shape (n, n_words)
        Word k of each register; register r holds bits 32 r to 32 r + 31.

    Returns
    -------
    bits : ndarray of bool, shape (n_words, 32 n)
    """
    spread = registers[:, :, None] >> _BITS & np.uint32(1)
    return spread.transpose(1, 0, 2).reshape(registers.shape[1], -1).astype(np.bool_)


@lru_cache(maxsize=4096)
def condensed_groups(
    words: bytes, n_registers: int, first_lane: int, size: int, pitch: int
) -> tuple[tuple[Group, ...], ...]:
    """Divide the condensed values of one operand into the groups that OHMMAs take.

    Parameters
    ----------
    words : bytes
        The bitmap registers as they stand, so that equal bitmaps are divided once.
    n_registers : int
    first_lane : int
        Lane of the word for k = 0.
    size : int
        Values in a full group: m_inst for A, n_inst for B.
    pitch : int
        What one row (for A: n_warp) or one column (for B: 1) adds to the index of a sum.

    Returns
    -------
    groups : tuple over k of tuples of Group
        ``ceil(ones / size)`` groups for each k.
    """
    registers = np.frombuffer(words, dtype=np.uint32).reshape(n_registers, LANES)
    bits = bitmap_words(registers[:, first_lane : first_lane + STEPS])
    packed = 0
    steps = []
    for row in bits:
        offsets = np.flatnonzero(row) * pitch
        n = offsets.size
        steps.append(
            tuple(
                Group(packed + first, packed + min(first + size, n), offsets[first : first + size])
                for first in range(0, n, size)
            )
        )
        packed += n
    return tuple(steps)


def guard_lane(k: int, j: int) -> int:
    """Return the lane whose predicate guards the outer products (k, j): k, plus 16 for odd j.

    One predicate register so holds a group i of A's side against two groups of B's, for all 16 steps:
    four of them are the table of 128 truth values of a 32 x 32 x 16 SpWMMA.  ASSUMED: ours.
    """
    return k + STEPS * (j % 2)


def _lanes_of_pair(a: Register, b: Register) -> tuple[int, int]:
    """Return the first lanes of A's and of B's words."""
    return 0, STEPS if a == b else 0


@semantic("outer_product")
def outer_product(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Multiply group i of A's column k by group j of B's row k; gather, add, scatter.

    Operands: tile, values of A, values of B, bits of A, bits of B, k, i, j.  Product (p, q) is added at
    row (place of the p-th one of the group) and column (place of the q-th); each place occurs once.
    """
    tile, values_a, values_b, _, _, step, i, j = operands
    shape = spec.product
    columns, rows = _condensed(spec, operands, state, shape.m, shape.n)
    groups_a, groups_b = columns[step.value], rows[step.value]
    if i.value < len(groups_a) and j.value < len(groups_b):
        a = state.words(values_a, spec.operands[1].count).view(np.float16)
        b = state.words(values_b, spec.operands[2].count).view(np.float16)
        with np.errstate(over="ignore", invalid="ignore"):
            _scatter(state.sums(tile).reshape(-1), a, b, groups_a[i.value], groups_b[j.value])


def _condensed(
    spec: InstructionSpec, operands: Operands, state: WarpState, size_a: int, size_b: int
) -> tuple[tuple[tuple[Group, ...], ...], tuple[tuple[Group, ...], ...]]:
    """Return the groups of A's columns and of B's rows; the bitmaps are operands 3 and 4."""
    bits_a, bits_b = operands[3], operands[4]
    lane_a, lane_b = _lanes_of_pair(bits_a, bits_b)
    n_a, n_b = spec.operands[3].count, spec.operands[4].count
    pitch = state.accumulators.shape[2]
    return (
        condensed_groups(state.words(bits_a, n_a).tobytes(), n_a, lane_a, size_a, pitch),
        condensed_groups(state.words(bits_b, n_b).tobytes(), n_b, lane_b, size_b, 1),
    )


def _scatter(
    sums: NDArray[np.float32], a: NDArray[np.float16], b: NDArray[np.float16], group_a: Group, group_b: Group
) -> None:
    """Gather the sums that two groups meet at, add their products, put the sums back."""
    places = group_a.offsets[:, None] + group_b.offsets
    product = np.multiply(
        a[group_a.first : group_a.last, None], b[group_b.first : group_b.last], dtype=np.float32
    )
    product += sums[places]
    sums[places] = product


@semantic("outer_product_bits")
def outer_product_bits(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Multiply bitmap column k by bitmap row k: lane r of D becomes row r of the 32 x 32 position bitmap.

    Operands: D, bits of A, bits of B, k.
    """
    target, bits_a, bits_b, step = operands
    lane_a, lane_b = _lanes_of_pair(bits_a, bits_b)
    column = state.words(bits_a)[lane_a + step.value]
    row = state.words(bits_b)[lane_b + step.value]
    state.write(target, np.where(column >> _BITS & np.uint32(1), row, np.uint32(0)).astype(np.uint32))


@semantic("outer_product_predicates")
def outer_product_predicates(
    spec: InstructionSpec, operands: Operands, state: WarpState, active: Active
) -> None:
    """Set the predicate of group i against groups j and j + 1, all 16 steps at once.

    Operands: P, counts of A, counts of B, i, j.  Lane k (for j) and lane k + 16 (for j + 1) become true
    where A's column k has more than m i ones and B's row k more than n j: where the OHMMA has work.
    """
    target, counts_a, counts_b, i, j = operands
    lane_a, lane_b = _lanes_of_pair(counts_a, counts_b)
    shape = spec.product
    n_a = state.words(counts_a, spec.operands[1].count).reshape(-1, LANES).sum(axis=0)
    n_b = state.words(counts_b, spec.operands[2].count).reshape(-1, LANES).sum(axis=0)
    has_a = n_a[lane_a : lane_a + STEPS] > shape.m * i.value
    rows_b = n_b[lane_b : lane_b + STEPS]
    table = state.predicates[target.index]
    table[:STEPS] = has_a & (rows_b > shape.n * j.value)
    table[STEPS:] = has_a & (rows_b > shape.n * (j.value + 1))


@semantic("sparse_warp_product")
def sparse_warp_product(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Add A B to a tile, A and B condensed; step by step, each sum in the order of k.

    Operands: tile, values of A, values of B, bits of A, bits of B; then scratch (see the row).
    """
    tile, values_a, values_b = operands[:3]
    _, m_warp, n_warp = state.accumulators.shape
    columns, rows = _condensed(spec, operands, state, m_warp, n_warp)
    sums = state.sums(tile).reshape(-1)
    a = state.words(values_a, spec.operands[1].count).view(np.float16)
    b = state.words(values_b, spec.operands[2].count).view(np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        for column, row in zip(columns, rows, strict=True):
            if column and row:
                _scatter(sums, a, b, column[0], row[0])


@semantic("dense_warp_product")
def dense_warp_product(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Add A B to the top left 16 x 16 of a tile; A column by column, B row by row, all values stored.

    Operands: tile, values of A, values of B; then scratch (see the row).
    """
    tile, values_a, values_b = operands[:3]
    shape = spec.product
    m, n, k = shape.m, shape.n, shape.k
    a = state.words(values_a, spec.operands[1].count).view(np.float16).astype(np.float32).reshape(k, m)
    b = state.words(values_b, spec.operands[2].count).view(np.float16).astype(np.float32).reshape(k, n)
    sums = state.sums(tile)[:m, :n]
    with np.errstate(over="ignore", invalid="ignore"):
        for column, row in zip(a, b, strict=True):
            sums += column[:, None] * row


@semantic("load_accumulator")
def load_accumulator(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Put registers into rows of a tile: lane n of register r is column n of row (first row + r)."""
    tile, first, values = operands
    n_rows = spec.operands[2].count
    rows = state.words(values, n_rows).view(np.float32).reshape(n_rows, LANES)
    state.sums(tile)[first.value : first.value + n_rows] = rows


@semantic("drain_accumulator")
def drain_accumulator(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Put rows of a tile into registers; the inverse of loading them."""
    target, tile, first = operands
    n_rows = spec.operands[0].count
    state.write(target, state.sums(tile)[first.value : first.value + n_rows].view(np.uint32))


@semantic("clear_accumulator")
def clear_accumulator(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Set every sum of a tile to zero."""
    state.sums(operands[0])[:] = 0.0
