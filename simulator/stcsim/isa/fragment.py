"""Where each element of an operand tile lies: which register, which lane, which part of the word.

Between a numpy tile and the registers of a warp, in both directions.  Knows shapes and dtypes;
knows neither what an instruction computes nor how 2:4 metadata chooses elements (`metadata`).

With g = lane // 4 and t = lane % 4, and e elements of one operand in a 32-bit word, every mma.sync
shape follows one rule (v0 the place within the word, registers counted from the operand's first):

====================  ================  ===========================  ===================
operand               row               column                       register
====================  ================  ===========================  ===================
A (m x k)             m = g + 8 v1      k = e t + v0 + 4 e v2        v1 + (m/8) v2
B (k x n)             k = e t + v0 + 4 e v1   n = g                  v1
C, D (m x n), 32 bit  m = g + 8 v1      n = 2 t + v0                 v0 + 2 v1
C, D (m x n), 16 bit  m = g + 8 v1      n = 2 t + v0                 v1, half v0
====================  ================  ===========================  ===================

Source: CuTe's mma_traits_sm80 (NVIDIA/cutlass), decoded; every shape agreed with an H200, see `metadata`.
HMMA.884 has its own: see `octet_layout`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import IsaError, must
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import LANES

Role = Literal["a", "b", "c"]

PER_WORD = {
    "fp16": 2, "bf16": 2, "tf32": 1, "fp32": 1, "int8": 4, "uint8": 4, "int4": 8, "uint4": 8, "int32": 1,
}  # fmt: skip
"""Elements of a dtype in one 32-bit register."""
_FRAGMENTED = ("mma", "mma_sparse", "mma_octet", "mma_octet_gather")
_INTEGERS = {
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int4": (-8, 7),
    "uint4": (0, 15),
    "int32": (-(1 << 31), (1 << 31) - 1),
}


@dataclass(frozen=True, eq=False)
class FragmentLayout:
    """How one operand tile is spread over registers and lanes.

    Parameters
    ----------
    shape : tuple of int
        (rows, columns) of the tile.
    dtype : str
        Of its elements, a key of `PER_WORD`.
    n_registers : int
        Registers per thread.
    element : ndarray of intp, shape (rows, columns)
        Number of the slot that holds an element; a slot is ``(32 register + lane) * per_word + place``.
        Where several slots hold it (HMMA.884), the lowest.
    tile : ndarray of intp, shape (n_registers * 32 * per_word,)
        The element (row * columns + column) that a slot holds.
    """

    shape: tuple[int, int]
    dtype: str
    n_registers: int
    element: NDArray[np.intp]
    tile: NDArray[np.intp]

    def pack(self, tile: ArrayLike) -> NDArray[np.uint32]:
        """Return the registers that hold `tile`.

        Parameters
        ----------
        tile : array_like, shape (rows, columns)
            Numbers; floats are rounded to the dtype (to nearest), integers must fit it.

        Returns
        -------
        registers : ndarray of uint32, shape (n_registers, 32)

        Raises
        ------
        IsaError
            If the shape differs, or an integer does not fit.
        """
        values = np.asarray(tile)
        if values.shape != self.shape:
            want = " x ".join(map(str, self.shape))
            raise IsaError(must(f"tile must be {want}", " x ".join(map(str, values.shape))))
        return encode(values.reshape(-1)[self.tile], self.dtype).reshape(self.n_registers, LANES)

    def unpack(self, registers: NDArray[np.uint32]) -> NDArray[Any]:
        """Return the tile that `registers` hold.

        Parameters
        ----------
        registers : ndarray of uint32, size (n_registers * 32)

        Returns
        -------
        tile : ndarray, shape (rows, columns)
            int32 for int32; float32 for all else, in which each value of the dtype is exact.
        """
        return decode(registers.reshape(-1), self.dtype, self.element)


def decode(words: NDArray[np.uint32], dtype: str, slots: NDArray[np.intp]) -> NDArray[Any]:
    """Read elements of `dtype` out of a run of words.

    Parameters
    ----------
    words : ndarray of uint32, shape (n,), contiguous
    dtype : str
    slots : ndarray of intp
        Which elements: ``word * per_word + place``.

    Returns
    -------
    values : ndarray, the shape of `slots`
        int32 for int32, else float32 (each value is exact in it).
    """
    if dtype == "fp16":
        return words.view(np.float16).take(slots).astype(np.float32)
    if dtype == "bf16":
        return (words.view(np.uint16).take(slots).astype(np.uint32) << 16).view(np.float32)
    if dtype == "tf32":
        # The tensor core ignores the 13 low bits of the mantissa.
        return (words.take(slots) & np.uint32(0xFFFFE000)).view(np.float32)
    if dtype == "fp32":
        return words.view(np.float32).take(slots)
    if dtype == "int32":
        return words.view(np.int32).take(slots)
    if dtype in ("int8", "uint8"):
        return words.view(dtype).take(slots).astype(np.float32)
    nibbles = words.view(np.uint8).take(slots >> 1) >> ((slots & 1) << 2).astype(np.uint8) & 15
    if dtype == "int4":
        return ((nibbles ^ 8).astype(np.int8) - 8).astype(np.float32)
    return nibbles.astype(np.float32)


def encode(values: NDArray[Any], dtype: str) -> NDArray[np.uint32]:
    """Pack a run of numbers into words, the first into the lowest bits.

    Parameters
    ----------
    values : ndarray, shape (n,)
        n a multiple of the dtype's elements per word.
    dtype : str

    Returns
    -------
    words : ndarray of uint32, shape (n / per_word,)

    Raises
    ------
    IsaError
        If an integer does not fit the dtype.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _encoded(values, dtype)


def _encoded(values: NDArray[Any], dtype: str) -> NDArray[np.uint32]:
    """Do what `encode` says; too large floats become infinities."""
    if dtype == "fp16":
        return np.ascontiguousarray(values, dtype=np.float16).view(np.uint32)
    if dtype == "fp32":
        return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    if dtype in ("bf16", "tf32"):
        kept = 16 if dtype == "bf16" else 13
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        # To nearest, ties to even; infinities and NaN have no digits to round.
        odd = bits >> np.uint32(kept) & np.uint32(1)
        finite = bits & np.uint32(0x7F800000) != np.uint32(0x7F800000)
        rounded = np.where(finite, bits + np.uint32((1 << (kept - 1)) - 1) + odd, bits) >> np.uint32(kept)
        if dtype == "tf32":
            return rounded << np.uint32(kept)
        return rounded.astype(np.uint16).view(np.uint32)
    least, largest = _INTEGERS[dtype]
    whole = np.asarray(values).astype(np.int64)
    wrong = (whole != values) | (whole < least) | (whole > largest)
    if wrong.any():
        raise IsaError(
            must(f"{dtype} element must be a whole number from {least} to {largest}", values[wrong][0])
        )
    if dtype == "int32":
        return whole.astype(np.int32).view(np.uint32)
    if dtype in ("int8", "uint8"):
        return whole.astype(dtype).view(np.uint32)
    nibbles = (whole & 15).astype(np.uint8)
    return (nibbles[0::2] | nibbles[1::2] << 4).view(np.uint32)


def _layout(
    shape: tuple[int, int], dtype: str, n_registers: int, row: ArrayLike, column: ArrayLike
) -> FragmentLayout:
    """Build a layout from the row and the column of each slot, in slot order."""
    tile = (np.asarray(row, dtype=np.intp) * shape[1] + np.asarray(column, dtype=np.intp)).reshape(-1)
    element = np.empty(shape[0] * shape[1], dtype=np.intp)
    element[tile[::-1]] = np.arange(tile.size)[::-1]
    return FragmentLayout(shape, dtype, n_registers, element.reshape(shape), tile)


def _grid(n_registers: int, per_word: int) -> tuple[NDArray[np.intp], ...]:
    """Return register, g, t, lane and place of every slot, each of shape (n_registers, 32, per_word)."""
    register, lane, place = np.indices((n_registers, LANES, per_word), dtype=np.intp)
    return register, lane // 4, lane % 4, lane, place


@lru_cache(maxsize=256)
def mma_layout(role: Role, rows: int, columns: int, dtype: str) -> FragmentLayout:
    """Return the layout of one operand of an mma.sync instruction.

    Parameters
    ----------
    role : "a", "b" or "c"
        C and D lie alike.
    rows, columns : int
        Of the tile as stored: A's columns are halved in a 2:4 instruction.
    dtype : str

    Returns
    -------
    layout : FragmentLayout
    """
    per_word = PER_WORD[dtype]
    n_registers = rows * columns // (LANES * per_word)
    register, g, t, _, place = _grid(n_registers, per_word)
    if role == "a":
        blocks = rows // 8
        row = g + 8 * (register % blocks)
        column = per_word * t + place + 4 * per_word * (register // blocks)
    elif role == "b":
        row = per_word * t + place + 4 * per_word * register
        column = g
    elif per_word == 1:
        row = g + 8 * (register // 2)
        column = 2 * t + register % 2
    else:
        row = g + 8 * register
        column = 2 * t + place
    return _layout((rows, columns), dtype, n_registers, row, column)


@lru_cache(maxsize=16)
def octet_layout(role: Role, dtype: str, *, split: bool, slices: int = 1) -> FragmentLayout:
    """Return the layout of an operand of HMMA.884: 16 x 16 x 4 by four octets of 8 x 8 x 4.

    Octet x is lanes 4x..4x+3 and 16+4x..16+4x+3.  It computes rows 8 (x % 2) and columns 8 (x // 2)
    onward of the 16 x 16 product, from its own copy of 8 x 4 of A and 4 x 8 of B, so that each element
    of A and of B is loaded by two octets.  With r = lane % 4, and u = 4 for lanes 16 and above, else 0:
    A row r + u, k = slot 0..3; B k = slot 0..3, column r + u; C in fp16: row r + u, column = slot 0..7;
    C in fp32: register i has row (r & 1) + (i & 2) + u and column (i & 4) + (r & 2) + (i & 1).

    Source: PTX ISA, "Matrix fragments for mma.m8n8k4 with .f16" (row-major A, column-major B); octets
    and their tiles: Raihan et al., ISPASS 2019.

    Parameters
    ----------
    role : "a", "b" or "c"
    dtype : str
    split : bool
        True for each octet's own copy: tiles of shape (32, 4), (4, 32) and (32, 8), octet by octet;
        False for the 16 x 4, 4 x 16 and 16 x 16 tiles of the warp.
    slices : int
        k-slices of 4 that B holds, one behind the other in consecutive registers: 4 where B is gathered from.

    Returns
    -------
    layout : FragmentLayout
    """
    per_word = PER_WORD[dtype]
    n_registers = {"a": 2, "b": 2 * slices, "c": 8 // per_word}[role]
    register, _, _, lane, place = _grid(n_registers, per_word)
    slot = register * per_word + place
    octet = lane % 16 // 4
    quarter = lane % 4
    upper = lane // 16 * 4
    top, left = (8 * octet, 8 * octet) if split else (8 * (octet % 2), 8 * (octet // 2))
    if role == "a":
        return _layout((32 if split else 16, 4), dtype, n_registers, top + quarter + upper, slot)
    if role == "b":
        return _layout((4 * slices, 32 if split else 16), dtype, n_registers, slot, left + quarter + upper)
    if per_word == 1:
        row = (quarter & 1) + (slot & 2) + upper
        column = (slot & 4) + (quarter & 2) + (slot & 1)
    else:
        row = quarter + upper
        column = slot
    if split:
        return _layout((32, 8), dtype, n_registers, top + row, column)
    return _layout((16, 16), dtype, n_registers, top + row, left + column)


@lru_cache(maxsize=1024)
def operand_layout(spec: InstructionSpec, role: Role) -> FragmentLayout:
    """Return the layout of an operand of an instruction that multiplies matrices.

    Parameters
    ----------
    spec : InstructionSpec
        With a shape and the dtypes ``a``, ``b``, ``c`` among its parameters.
    role : "a", "b" or "c"

    Returns
    -------
    layout : FragmentLayout
        For a 2:4 instruction A's tile is the stored half, m x k/2; for one that gathers, m x 4.

    Raises
    ------
    IsaError
        If the instruction has no fragments.
    """
    dtype = spec.parameters.get(role)
    if spec.semantics not in _FRAGMENTED or not isinstance(dtype, str):
        raise IsaError(must("instruction must multiply register fragments", spec.mnemonic))
    m, n, k = spec.product.m, spec.product.n, spec.product.k
    if spec.semantics == "mma_octet":
        return octet_layout(role, dtype, split=False)
    if spec.semantics == "mma_octet_gather":
        return octet_layout(role, dtype, split=False, slices=k // 4)
    if role == "a":
        return mma_layout("a", m, k // 2 if spec.semantics == "mma_sparse" else k, dtype)
    if role == "b":
        return mma_layout("b", k, n, dtype)
    return mma_layout("c", m, n, dtype)


def pack_a(spec: InstructionSpec, tile: ArrayLike) -> NDArray[np.uint32]:
    """Return the registers of operand A (m x k, stored as m x k/2 if 2:4); see `FragmentLayout.pack`."""
    return operand_layout(spec, "a").pack(tile)


def pack_b(spec: InstructionSpec, tile: ArrayLike) -> NDArray[np.uint32]:
    """Return the registers of operand B (k x n); see `FragmentLayout.pack`."""
    return operand_layout(spec, "b").pack(tile)


def pack_c(spec: InstructionSpec, tile: ArrayLike) -> NDArray[np.uint32]:
    """Return the registers of operand C or D (m x n); see `FragmentLayout.pack`."""
    return operand_layout(spec, "c").pack(tile)


def unpack_a(spec: InstructionSpec, registers: NDArray[np.uint32]) -> NDArray[Any]:
    """Return the tile that registers of operand A hold; see `FragmentLayout.unpack`."""
    return operand_layout(spec, "a").unpack(registers)


def unpack_b(spec: InstructionSpec, registers: NDArray[np.uint32]) -> NDArray[Any]:
    """Return the tile that registers of operand B hold; see `FragmentLayout.unpack`."""
    return operand_layout(spec, "b").unpack(registers)


def unpack_c(spec: InstructionSpec, registers: NDArray[np.uint32]) -> NDArray[Any]:
    """Return the tile that registers of operand C or D hold; see `FragmentLayout.unpack`."""
    return operand_layout(spec, "c").unpack(registers)
