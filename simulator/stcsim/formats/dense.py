"""Dense storage: every element, zeros included, and no metadata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike, NDArray

from stcsim.formats.format import Encoded, Format, as_operand
from stcsim.workload.pattern import Pattern


@dataclass(frozen=True, eq=False)
class DenseEncoded(Encoded):
    """A dense operand: `values` has its shape."""

    def parts(self) -> dict[str, NDArray[Any]]:
        """Return the values."""
        return {"values": self.values}


@dataclass(frozen=True)
class DenseFormat(Format[DenseEncoded]):
    """Every element is stored."""

    name: ClassVar[str] = "dense"
    summary: ClassVar[str] = "every element, zeros included"

    def encode(self, values: ArrayLike) -> DenseEncoded:
        """Copy the operand; see `Format.encode`."""
        array = as_operand(values).copy()
        return DenseEncoded((array.shape[0], array.shape[1]), array)

    def decode(self, encoded: DenseEncoded) -> NDArray[Any]:
        """Return the values; see `Format.decode`."""
        return encoded.values.copy()

    def stored_bits(self, pattern: Pattern, element_bits: int) -> dict[str, int]:
        """Return ``values``; see `Format.stored_bits`."""
        return {"values": pattern.size * element_bits}
