"""What every operand format states and does.

Between operands and lowerings: a format says how an operand is stored, how many
bits that takes, and which patterns it can store.  It knows nothing of
instructions, machines or time.

Formats think of an operand as *outer* x k: the rows of A (m, k), the columns of
B (k, n).  `side` says which of the two an operand is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import FormatError, Problem, must
from stcsim.workload.pattern import Pattern

Side = Literal["a", "b"]


@dataclass(frozen=True, eq=False)
class Encoded(ABC):
    """One encoded operand.

    Parameters
    ----------
    shape : tuple of int
        (rows, columns) of the operand.
    values : ndarray
        The stored values, of the operand's own dtype; the fields of a format's class name its other parts.
    """

    shape: tuple[int, int]
    values: NDArray[Any]

    @abstractmethod
    def parts(self) -> dict[str, NDArray[Any]]:
        """Return every array that is stored, by the names that `Format.stored_bits` uses.

        ``values`` has one element per stored value; all bytes of the other parts are metadata.
        """


E = TypeVar("E", bound=Encoded)


@dataclass(frozen=True)
class Format(ABC, Generic[E]):
    """A way to store an operand.

    Parameters
    ----------
    side : {"a", "b"}
        Whether operands are on the left of the product, (m, k), or on the right, (k, n).

    Attributes
    ----------
    name : str
        Equals the file's name and the key in `stcsim.formats.FORMATS`.
    summary : str
        One line for listings.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    side: Side = "a"

    def __post_init__(self) -> None:
        if self.side not in ("a", "b"):
            raise FormatError(must("the side of an operand must be a or b", self.side))

    @property
    def k_axis(self) -> int:
        """Axis of the operand along which K runs: 1 for A, 0 for B."""
        return 1 if self.side == "a" else 0

    @abstractmethod
    def encode(self, values: ArrayLike) -> E:
        """Encode an operand.

        Parameters
        ----------
        values : array_like of numbers, shape (m, k) for side a, (k, n) for side b
            A whole operand, or one block of it.

        Returns
        -------
        encoded : Encoded

        Raises
        ------
        FormatError
            If it is not two-dimensional, or has a pattern that the format does not take.
        """

    @abstractmethod
    def decode(self, encoded: E) -> NDArray[Any]:
        """Return the values that were encoded; a negative zero comes back as zero."""

    @abstractmethod
    def stored_bits(self, pattern: Pattern, element_bits: int) -> dict[str, int]:
        """Return the bits that an operand with this pattern takes, by part, without encoding it.

        Parameters
        ----------
        pattern : Pattern
            One that the format takes.
        element_bits : int
            Bits of one value.

        Returns
        -------
        bits : dict of str to int
            ``values`` and the parts of the metadata, whole bytes each; their sum is what is stored.
        """

    def accepts(self, pattern: Pattern) -> Problem | None:
        """Return why an operand with this pattern cannot be stored, or None if it can."""
        del pattern
        return None


def as_operand(values: ArrayLike) -> NDArray[Any]:
    """Return `values` as an array.

    Raises
    ------
    FormatError
        If it is not a two-dimensional array of numbers.
    """
    array = np.asarray(values)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        found = f"{array.dtype} with the shape {array.shape}"
        raise FormatError(must("an operand must be a two-dimensional array of numbers", found))
    return array


def whole_bytes(bits: int) -> int:
    """Return `bits` rounded up to whole bytes, in bits."""
    return -(-bits // 8) * 8
