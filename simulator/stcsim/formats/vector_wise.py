"""Vector-wise sparsity along K: of every vector of m consecutive elements n are stored, with their offsets.

4 of 16 is the fixed 75 % of the vector-wise sparse tensor core.  Values stand vector by vector, offsets (the
place of a value in its vector, as many bits as m needs) in the same order, the first in the lowest bits.  A
vector with fewer non-zeros stores zeros for the lowest spare places, so that offsets always rise.

>>> import numpy as np
>>> encoded = VectorWiseFormat(n=1, m=4).encode(np.array([[0, 5, 0, 0, 0, 0, 0, 7]]))
>>> encoded.values[0].tolist(), encoded.offsets[0].tolist(), encoded.packed.tolist()
([[5], [7]], [[1], [3]], [13])

Source: Zhu et al., MICRO 2019 (vector-wise pruning: a fixed number in every vector); 75 %: the comparison of the
DSTC paper.  ASSUMED: vectors of 16 along K, as others implement it (clevercool/TileSparsity, pattern VW); offsets
of 4 bits, packed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import FormatError, must
from stcsim.formats.format import Encoded, as_operand, whole_bytes
from stcsim.formats.group import GroupFormat
from stcsim.workload.pattern import Pattern

LARGEST_VECTOR = 256
"""Elements of a vector whose offsets fit a byte."""


@dataclass(frozen=True, eq=False)
class VectorWiseEncoded(Encoded):
    """An operand with n elements of every vector kept.

    Parameters
    ----------
    shape : tuple of int
    values : ndarray, shape (outer, vectors, n)
        Kept values by row of A (column of B), vector along K, and place.
    offset_bits : int
    packed : ndarray of uint8
        Offsets in the order of `values`, `offset_bits` each, the first in the lowest bits.
    """

    offset_bits: int
    packed: NDArray[np.uint8]

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the values and the offsets."""
        return {"values": self.values, "offsets": self.packed}

    @property
    def offsets(self) -> NDArray[np.uint8]:
        """Place of each kept value in its vector: ndarray of uint8, the shape of `values`."""
        bits = np.unpackbits(self.packed, bitorder="little")[: self.values.size * self.offset_bits]
        whole = np.packbits(bits.reshape(-1, self.offset_bits), axis=1, bitorder="little")
        return whole.reshape(self.values.shape)


@dataclass(frozen=True)
class VectorWiseFormat(GroupFormat[VectorWiseEncoded]):
    """At most n of every m consecutive elements along K, with their offsets.

    Parameters
    ----------
    side : {"a", "b"}
    n, m : int
        Elements kept of a vector, and elements of a vector (2 to 256).
    """

    name: ClassVar[str] = "vector_wise"
    summary: ClassVar[str] = "n of every vector of m along K (4 of 16): kept values and their offsets"
    n: int = 4
    m: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.n < self.m <= LARGEST_VECTOR:
            what = f"a vector must keep at least 1 of 2 to {LARGEST_VECTOR} elements, and not all"
            raise FormatError(must(what, f"{self.n} of {self.m}"))

    @property
    def offset_bits(self) -> int:
        """Bits of one offset."""
        return (self.m - 1).bit_length()

    def encode(self, values: ArrayLike) -> VectorWiseEncoded:
        """Keep n values of each vector; see `Format.encode`."""
        operand = as_operand(values)
        grouped = self.grouped(operand)
        places = self.places(grouped)
        bits = np.unpackbits(places.astype(np.uint8)[..., None], axis=-1, bitorder="little")
        return VectorWiseEncoded(
            shape=(operand.shape[0], operand.shape[1]),
            values=np.take_along_axis(grouped, places, axis=2),
            offset_bits=self.offset_bits,
            packed=np.packbits(bits[..., : self.offset_bits], bitorder="little"),
        )

    def decode(self, encoded: VectorWiseEncoded) -> NDArray[Any]:
        """Put the kept values back to their places; see `Format.decode`."""
        outer, vectors, _ = encoded.values.shape
        grouped = np.zeros((outer, vectors, self.m), dtype=encoded.values.dtype)
        np.put_along_axis(grouped, encoded.offsets.astype(np.intp), encoded.values, axis=2)
        return self.ungrouped(grouped, encoded.shape)

    def stored_bits(self, pattern: Pattern, element_bits: int) -> dict[str, int]:
        """Return values (stored zeros and padding included) and offsets; see `Format.stored_bits`."""
        kept = pattern.shape[1 - self.k_axis] * self.groups(pattern.shape[self.k_axis]) * self.n
        return {"values": kept * element_bits, "offsets": whole_bytes(kept * self.offset_bits)}
