"""An operand: a pattern, its role in the network, and reproducible values on it.

Made by the study or the command line from a generated or loaded pattern; read by
formats, lowerings and the value check.  It knows nothing of encodings or of the
kernel that will read it.

Values are small non-zero integers drawn by a counter-based hash of (seed, row,
column): any block can be had without the rest, a transposed operand shows the same
values, and sums of products stay exact in fp32 (see `Operand.magnitude`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import WorkloadError, must
from stcsim.workload.pattern import Pattern

Role = Literal["weight", "activation"]

EXACT_FP32 = 1 << 24
"""Integers below this magnitude are exact in fp32 (24 significand bits, IEEE 754)."""

LARGEST_VALUE = 7
"""Bound on the magnitude of a value: exact in every dtype of stcsim, int4 (-8..7) included."""

_SEED_STEP = np.uint64(0x9E37_79B9_7F4A_7C15)
_MIX_1 = np.uint64(0xBF58_476D_1CE4_E5B9)
_MIX_2 = np.uint64(0x94D0_49BB_1331_11EB)
"""Increment and multipliers of splitmix64 (Steele, Lea and Flood, OOPSLA 2014)."""


@dataclass(frozen=True)
class Operand:
    """One operand of a GEMM.

    Parameters
    ----------
    pattern : Pattern
        Which elements are non-zero; its shape is the operand's.
    role : {"weight", "activation"}
        What the operand is in the network.
    seed : int, 0 or more
        Seed of the values.  Values have nothing to do with any name.
    source : str
        Where the pattern came from, for reports: a file with its key, or a generator with its options.
    is_transposed : bool
        Whether rows and columns have been exchanged since the operand was made.

    Raises
    ------
    WorkloadError
        If the role or the seed is not valid.
    """

    pattern: Pattern
    role: Role
    seed: int
    source: str
    is_transposed: bool = False

    def __post_init__(self) -> None:
        if self.role not in ("weight", "activation"):
            roles = ("weight", "activation")
            raise WorkloadError(
                must("the role of an operand must be weight or activation", self.role, near=roles)
            )
        check_seed(self.seed)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def magnitude(self) -> int:
        """Largest magnitude of a value, 1 to 7.

        Notes
        -----
        A sum of K products of operands with magnitudes p and q is exact in fp32 if K*p*q < 2**24.
        With p and q each at most sqrt((2**24 - 1) / longest side) that holds whichever axis is K,
        since K is an axis of both; `Gemm` refuses the operands (2**24 and longer) for which it cannot.
        """
        longest = max(1, *self.shape)
        return max(1, min(LARGEST_VALUE, math.isqrt((EXACT_FP32 - 1) // longest)))

    def values(self, r0: int, r1: int, c0: int, c1: int) -> NDArray[np.int8]:
        """Return the values of rows r0..r1-1 and columns c0..c1-1, cut off at the operand's edges.

        Parameters
        ----------
        r0, r1, c0, c1 : int, 0 or more
            Half-open ranges.

        Returns
        -------
        values : ndarray of int8, shape (<= r1 - r0, <= c1 - c0)
            Integers of magnitude 1 to `magnitude` where the pattern is one, 0 elsewhere.
        """
        mask = self.pattern.block(r0, r1, c0, c1)
        rows = np.arange(r0, r0 + mask.shape[0], dtype=np.uint64)
        cols = np.arange(c0, c0 + mask.shape[1], dtype=np.uint64)
        values = self.draw(rows[:, None], cols)
        values *= mask
        return values

    def draw(self, rows: NDArray[np.uint64], cols: NDArray[np.uint64]) -> NDArray[np.int8]:
        """Return what the elements at (rows, cols) hold, or would hold if the pattern were one there.

        Parameters
        ----------
        rows, cols : ndarray of uint64
            Indices of any shapes that broadcast against each other.

        Returns
        -------
        values : ndarray of int8, of the common shape
            Integers of magnitude 1 to `magnitude`.
        """
        row_axis = int(self.is_transposed)
        draws = _keys(self.seed, row_axis, rows) ^ _keys(self.seed, 1 - row_axis, cols)
        # Two rounds of a 32-bit mixer leave the upper half uniform: draw 0..2p-1 from it, then step over 0.
        draws *= np.uint32(0x7FEB_352D)
        draws ^= draws >> np.uint32(15)
        draws *= np.uint32(0x846C_A68B)
        draws >>= np.uint32(16)
        draws *= np.uint32(2 * self.magnitude)
        draws >>= np.uint32(16)
        values = draws.astype(np.int8)
        values -= np.int8(self.magnitude)
        values += values >= 0
        return values

    def transpose(self) -> Operand:
        """Return the operand with rows and columns exchanged; every element keeps its value."""
        return replace(self, pattern=self.pattern.transpose(), is_transposed=not self.is_transposed)


def check_seed(seed: int) -> int:
    """Return `seed`.

    Raises
    ------
    WorkloadError
        If it is not an integer of 0 to 2**64 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 1 << 64:
        raise WorkloadError(must("a seed must be an integer from 0 to 2**64 - 1", seed))
    return int(seed)


def _keys(seed: int, axis: int, indices: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Hash (seed, axis, index) for each index with splitmix64, upper 32 bits."""
    state = _mix(indices + _mix(np.array([2 * seed + axis & (1 << 64) - 1], dtype=np.uint64)))
    return (state >> np.uint64(32)).astype(np.uint32)


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Advance and scramble each state: the output function of splitmix64."""
    state = state + _SEED_STEP
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))
