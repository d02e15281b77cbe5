"""n:m structured sparsity along K: 2:4, and 1:2 for tf32.

Of every m consecutive elements along K at most n are non-zero; n values and a
4-bit code are stored for each such group.  The code holds two 2-bit indices
i0 < i1, i0 in the low bits: of the two elements kept (2:4), or of the two halves
of the one element kept (1:2: 0b0100 for the first, 0b1110 for the second).  A
group with fewer non-zeros stores zeros for the lowest spare positions, so that
codes are always valid: (0, 1) for a group of zeros.

>>> import numpy as np
>>> encoded = NmFormat().encode(np.array([[0, 5, 0, 6, 0, 0, 0, 7]]))
>>> encoded.values[0], encoded.indices[0]
(array([[5, 6],
       [0, 7]]), array([[1, 3],
       [0, 3]], dtype=uint8))

A K that is no multiple of m is filled up with zeros (`NmEncoded.k_padded`).  The padding is stored.

Source: PTX ISA, mma.sp (2:4: strictly increasing index pairs; tf32: 1:2 with a 4-bit index of which only
0b0100 and 0b1110 are meaningful).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import FormatError, must
from stcsim.formats.format import Encoded, as_operand, whole_bytes
from stcsim.formats.group import GroupFormat
from stcsim.workload.pattern import Pattern

CODE_BITS = 4
"""Bits of metadata of one group, in 2:4 and in 1:2."""
_KEPT = {4: 2, 2: 1}


@dataclass(frozen=True, eq=False)
class NmEncoded(Encoded):
    """An operand with n of m elements kept.

    Parameters
    ----------
    shape : tuple of int
    values : ndarray, shape (outer, groups, n)
        Kept values by row of A (column of B), group along K, and place in the group.
    m : int
        Elements of a group.
    metadata : ndarray of uint8, shape (ceil(outer * groups / 2),)
        Codes in the order of `values`, two per byte, the first in the low bits.
    """

    m: int
    metadata: NDArray[np.uint8]

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the values and the metadata."""
        return {"values": self.values, "metadata": self.metadata}

    @property
    def k_padded(self) -> int:
        """K with its padding: a multiple of m."""
        return int(self.values.shape[1]) * self.m

    @property
    def codes(self) -> NDArray[np.uint8]:
        """The 4-bit codes: ndarray of uint8, shape (outer, groups)."""
        nibbles = np.empty((self.metadata.size, 2), dtype=np.uint8)
        nibbles[:, 0] = self.metadata & 0xF
        nibbles[:, 1] = self.metadata >> 4
        outer, groups, _ = self.values.shape
        return nibbles.reshape(-1)[: outer * groups].reshape(outer, groups)

    @property
    def indices(self) -> NDArray[np.uint8]:
        """Place of each kept value in its group: ndarray of uint8, the shape of `values`."""
        return _codebook(self.m)[1][self.codes]


@dataclass(frozen=True)
class NmFormat(GroupFormat[NmEncoded]):
    """At most n of every m consecutive elements along K, with their places.

    Parameters
    ----------
    side : {"a", "b"}
    n, m : int
        2:4, or 1:2.
    """

    name: ClassVar[str] = "nm"
    summary: ClassVar[str] = "2:4 (tf32: 1:2) along K: kept values and a 4-bit code per group"
    n: int = 2
    m: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if _KEPT.get(self.m) != self.n:
            raise FormatError(must("n:m sparsity must be 2:4 or 1:2", f"{self.n}:{self.m}"))

    def encode(self, values: ArrayLike) -> NmEncoded:
        """Keep n values of each group; see `Format.encode`."""
        operand = as_operand(values)
        grouped = self.grouped(operand)
        code_of_mask, places_of_code = _codebook(self.m)
        masks = np.zeros(grouped.shape[:2], dtype=np.uint8)
        for i in range(self.m):
            masks |= (grouped[:, :, i] != 0).astype(np.uint8) << np.uint8(i)
        codes = code_of_mask[masks]
        kept = np.take_along_axis(grouped, places_of_code[codes].astype(np.intp), axis=2)
        return NmEncoded((operand.shape[0], operand.shape[1]), kept, self.m, pack_codes(codes))

    def decode(self, encoded: NmEncoded) -> NDArray[Any]:
        """Put the kept values back to their places; see `Format.decode`."""
        outer, groups, _ = encoded.values.shape
        grouped = np.zeros((outer, groups, self.m), dtype=encoded.values.dtype)
        np.put_along_axis(grouped, encoded.indices.astype(np.intp), encoded.values, axis=2)
        return self.ungrouped(grouped, encoded.shape)

    def stored_bits(self, pattern: Pattern, element_bits: int) -> dict[str, int]:
        """Return values (stored zeros and padding included) and metadata; see `Format.stored_bits`."""
        n_groups = pattern.shape[1 - self.k_axis] * self.groups(pattern.shape[self.k_axis])
        return {"values": n_groups * self.n * element_bits, "metadata": whole_bytes(n_groups * CODE_BITS)}


def pack_codes(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return 4-bit codes, of any shape, two in a byte, the first in the low bits."""
    nibbles = np.zeros(codes.size + codes.size % 2, dtype=np.uint8)
    nibbles[: codes.size] = codes.reshape(-1)
    return nibbles[::2] | nibbles[1::2] << np.uint8(CODE_BITS)


@cache
def _codebook(m: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the codes of 2:4 (m = 4) or 1:2 (m = 2).

    Returns
    -------
    code_of_mask : ndarray of uint8, shape (2**m,)
        Code of a group whose non-zeros are the bits of the index; 0 where there are more than n.
    places_of_code : ndarray of uint8, shape (16, n)
        Places that a code keeps.
    """
    n = _KEPT[m]
    code_of_mask = np.zeros(1 << m, dtype=np.uint8)
    places_of_code = np.zeros((1 << CODE_BITS, n), dtype=np.uint8)
    for mask in range(1 << m):
        used = [place for place in range(m) if mask >> place & 1]
        spare = [place for place in range(m) if place not in used]
        if len(used) <= n:
            places = sorted(used + spare[: n - len(used)])
            low, high = (places[0], places[1]) if n == 2 else (2 * places[0], 2 * places[0] + 1)
            code_of_mask[mask] = low | high << 2
            places_of_code[low | high << 2] = places
    return code_of_mask, places_of_code
