"""2:4 structured sparsity: which elements a group keeps, and the metadata words that say so.

Between a dense tile and the two parts that mma.sp reads: the stored half and the metadata
register.  Knows the layouts of the metadata; knows nothing of how the stored half lies in
registers (`fragment`).

A *group* stands for consecutive columns of one row of A and has a 4-bit code, two 2-bit indices
i0 < i1 of the parts that are kept, i0 in the low bits:

==============  ===========================  ==========================================
dtype           group                        a part is
==============  ===========================  ==========================================
fp16 bf16 int8  4 columns, 2 kept (2:4)      one element
int4            8 columns, 4 kept (4:8)      two neighbouring elements, kept together
tf32            2 columns, 1 kept (1:2)      half of an element: codes 0b0100 and 0b1110
==============  ===========================  ==========================================

A row of A has 16, 32 or 64 bits of codes, the first group in the lowest bits.  With g = lane // 4,
j = lane % 4, F the selector, the word of a lane holds, for

* floats, 16 bits a row: lanes j = F: row g in the low half, row g + 8 in the high half;
* floats, 32 bits a row: lanes j in {2F, 2F + 1}: bits 16 (j % 2) to +15 of row g in the low half, those of
  row g + 8 in the high half;
* integers, 32 bits a row: lanes j in {2F, 2F + 1}: all of row g + 8 (j % 2);
* integers, 64 bits a row: all lanes: bits 32 (j // 2) to +31 of row g + 8 (j % 2).

Source: measured.  Every shape, dtype and selector of the tables gave on an H200 (CUDA 13.0,
mma.sp::ordered_metadata, random whole numbers) the bits that `stcsim.isa` computes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import IsaError, must
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import LANES

CODES = (0x4, 0x8, 0xC, 0x9, 0xD, 0xE)
"""The six valid codes: i0 < i1."""
_HALF_ELEMENT_CODES = (0x4, 0xE)
_ROWS = 16


class Pattern(NamedTuple):
    """How a dtype's group is divided: columns of a group, and columns of one of its parts."""

    columns: int
    kept: int
    per_part: int


_PATTERNS = {
    "fp16": Pattern(4, 2, 1),
    "bf16": Pattern(4, 2, 1),
    "int8": Pattern(4, 2, 1),
    "uint8": Pattern(4, 2, 1),
    "int4": Pattern(8, 4, 2),
    "uint4": Pattern(8, 4, 2),
    "tf32": Pattern(2, 1, 1),
}


def pattern(spec: InstructionSpec) -> Pattern:
    """Return the pattern that a sparse instruction asks of A.

    Raises
    ------
    IsaError
        If the instruction takes no metadata.
    """
    if spec.semantics != "mma_sparse":
        raise IsaError(must("instruction must take 2:4 metadata", spec.mnemonic))
    return _PATTERNS[str(spec.parameters["a"])]


def compress(spec: InstructionSpec, tile: ArrayLike) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Split a tile that keeps the pattern into its stored half and its codes.

    A group with fewer non-zeros than it may keep stores zeros beside them; kept positions always rise.

    Parameters
    ----------
    spec : InstructionSpec
        A sparse one.
    tile : array_like, shape (m, k)

    Returns
    -------
    values : ndarray, shape (m, k // 2)
        The dtype of `tile`.
    codes : ndarray of uint8, shape (m, n_groups)

    Raises
    ------
    IsaError
        If the shape differs, or a group holds more non-zeros than it may keep.
    """
    columns, kept, per_part = pattern(spec)
    shape = spec.product
    dense = np.asarray(tile)
    if dense.shape != (shape.m, shape.k):
        raise IsaError(must(f"tile must be {shape.m} x {shape.k}", " x ".join(map(str, dense.shape))))
    n_groups = shape.k // columns
    parts = dense.reshape(shape.m, n_groups, columns // per_part, per_part)
    needed = (parts != 0).any(axis=3)
    n_kept = kept // per_part
    crowded = needed.sum(axis=2) > n_kept
    if crowded.any():
        row, group = (int(i) for i in np.argwhere(crowded)[0])
        first = group * columns
        noun = "non-zeros" if per_part == 1 else "non-zero pairs"
        what = f"row {row}, columns {first} to {first + columns - 1}: must hold at most {n_kept} {noun}"
        raise IsaError(must(what, int(needed[row, group].sum())))
    # A stable sort of "not needed" puts the needed parts first, then the spare ones from the left.
    chosen = np.sort(np.argsort(~needed, axis=2, kind="stable")[:, :, :n_kept], axis=2)
    values = np.take_along_axis(parts, chosen[..., None], axis=2).reshape(shape.m, shape.k // 2)
    if n_kept == 1:
        codes = np.asarray(_HALF_ELEMENT_CODES, dtype=np.uint8)[chosen[:, :, 0]]
    else:
        codes = (chosen[:, :, 0] | chosen[:, :, 1] << 2).astype(np.uint8)
    return values, codes


def stored_columns(spec: InstructionSpec, codes: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return the column of A that each stored element comes from.

    Parameters
    ----------
    spec : InstructionSpec
    codes : ndarray of uint8, shape (m, n_groups)

    Returns
    -------
    columns : ndarray of intp, shape (m, k // 2)

    Raises
    ------
    IsaError
        If a code is not one of the valid ones.
    """
    columns, kept, per_part = pattern(spec)
    table = _column_table(columns, kept, per_part)[codes]
    if table[..., 0].min() < 0:
        row, group = (int(i) for i in np.argwhere(table[..., 0] < 0)[0])
        what = f"metadata of row {row}, group {group}: must be two rising indices"
        raise IsaError(must(what, f"{int(codes[row, group]):04b}"))
    m, n_groups = codes.shape
    base = (np.arange(n_groups, dtype=np.intp) * columns)[:, None]
    return (table + base).reshape(m, n_groups * kept)


def decompress(spec: InstructionSpec, values: ArrayLike, codes: NDArray[np.uint8]) -> NDArray[Any]:
    """Put the stored half back into a dense tile; the inverse of `compress`.

    Parameters
    ----------
    spec : InstructionSpec
    values : array_like, shape (m, k // 2)
    codes : ndarray of uint8, shape (m, n_groups)

    Returns
    -------
    tile : ndarray, shape (m, k)
    """
    stored = np.asarray(values)
    tile = np.zeros((stored.shape[0], 2 * stored.shape[1]), dtype=stored.dtype)
    np.put_along_axis(tile, stored_columns(spec, codes), stored, axis=1)
    return tile


def pack(spec: InstructionSpec, codes: NDArray[np.uint8], selector: int = 0) -> NDArray[np.uint32]:
    """Return the metadata register: the words of the lanes that `selector` names, zeros elsewhere.

    Registers for different selectors can be or-ed into one.

    Parameters
    ----------
    spec : InstructionSpec
    codes : ndarray of uint8, shape (m, n_groups)
    selector : int

    Returns
    -------
    word : ndarray of uint32, shape (32,)

    Raises
    ------
    IsaError
        If the instruction has no such selector.
    """
    lane, shift = _places(codes.shape[1], selector, _is_float(spec))
    word = np.zeros(LANES, dtype=np.uint32)
    np.bitwise_or.at(word, lane, codes.astype(np.uint32) << shift)
    return word


def unpack(spec: InstructionSpec, word: NDArray[np.uint32], selector: int = 0) -> NDArray[np.uint8]:
    """Return the codes that a metadata register holds for `selector`; the inverse of `pack`.

    Parameters
    ----------
    spec : InstructionSpec
    word : ndarray of uint32, shape (32,)
    selector : int

    Returns
    -------
    codes : ndarray of uint8, shape (m, n_groups)

    Raises
    ------
    IsaError
        If the instruction has no such selector.
    """
    lane, shift = _places(spec.product.k // pattern(spec).columns, selector, _is_float(spec))
    return (word.take(lane) >> shift & np.uint32(15)).astype(np.uint8)


@lru_cache(maxsize=8)
def _column_table(columns: int, kept: int, per_part: int) -> NDArray[np.intp]:
    """Return, for each 4-bit code, the columns of a group that it keeps; -1 for an invalid code."""
    table = np.full((16, kept), -1, dtype=np.intp)
    if kept == 1:
        table[list(_HALF_ELEMENT_CODES), 0] = np.arange(columns)
        return table
    for code in CODES:
        first, second = code & 3, code >> 2
        table[code] = [part * per_part + i for part in (first, second) for i in range(per_part)]
    return table


def _is_float(spec: InstructionSpec) -> bool:
    return "int" not in str(spec.parameters["a"])


@lru_cache(maxsize=16)
def _places(n_groups: int, selector: int, is_float: bool) -> tuple[NDArray[np.intp], NDArray[np.uint32]]:
    """Return the lane and the bit of each group's code, both of shape (16, n_groups)."""
    row_bits = 4 * n_groups
    n_selectors = 64 // row_bits
    if not 0 <= selector < n_selectors:
        raise IsaError(must(f"metadata selector must be from 0 to {n_selectors - 1}", selector))
    row, group = np.indices((_ROWS, n_groups), dtype=np.intp)
    bit = 4 * group
    first = 4 * (row % 8) + selector * (4 // n_selectors)
    if is_float:
        return first + bit // 16, (bit % 16 + 16 * (row // 8)).astype(np.uint32)
    return first + row // 8 + 2 * (bit // 32), (bit % 32).astype(np.uint32)
