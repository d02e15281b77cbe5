"""An operand that shows elements of another one: windows of a feature map, filters of a group.

Stands between the operands of a convolution and the GEMM that it is lowered to:
an element keeps its value wherever, and however often, a view shows it.  Knows
nothing of convolutions, formats or tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern

Indices = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Rows and columns of the elements that a block shows; their shapes broadcast to the block's."""


class Elements(Protocol):
    """Which element of the other operand stands at each place of a view."""

    def elements(self, r0: int, r1: int, c0: int, c1: int) -> Indices:
        """Return the elements behind rows r0..r1-1 and columns c0..c1-1, cut off at the edges.

        Where the view's pattern is zero (padding), any valid index will do.
        """


@dataclass(frozen=True, kw_only=True)
class ViewOperand(Operand):
    """An operand whose values are those of another operand's elements.

    Parameters
    ----------
    pattern, role, seed, source, is_transposed
        As for `Operand`; the pattern is the view's own, so that pruning it leaves the base alone.
    base : Operand
        Whose values are shown.
    index : Elements
        Which of them stand where, in the view's untransposed rows and columns.
    """

    base: Operand
    index: Elements

    @property
    def magnitude(self) -> int:
        """Largest magnitude of a value: the base's."""
        return self.base.magnitude

    def values(self, r0: int, r1: int, c0: int, c1: int) -> NDArray[np.int8]:
        """Return a block of values; see `Operand.values`."""
        mask = self.pattern.block(r0, r1, c0, c1)
        r1, c1 = r0 + mask.shape[0], c0 + mask.shape[1]
        if self.is_transposed:
            values = self.base.draw(*self.index.elements(c0, c1, r0, r1)).T
        else:
            values = self.base.draw(*self.index.elements(r0, r1, c0, c1))
        return np.asarray(values * mask, dtype=np.int8)


def rows_of(operand: Operand, first: int, count: int) -> ViewOperand:
    """Return `count` rows of an operand that has not been transposed, from row `first` on."""
    length = operand.shape[1]
    whole = operand.pattern
    pattern = (
        DensePattern((count, length))
        if isinstance(whole, DensePattern)
        else MaskPattern.adopt(whole.block(first, first + count, 0, length))
    )
    return ViewOperand(
        pattern=pattern,
        role=operand.role,
        seed=operand.seed,
        source=operand.source,
        base=operand,
        index=_Rows(first, count, length),
    )


@dataclass(frozen=True)
class _Rows:
    """Consecutive rows of an operand."""

    first: int
    count: int
    length: int

    def elements(self, r0: int, r1: int, c0: int, c1: int) -> Indices:
        """Return the elements behind a block; see `Elements`."""
        rows = np.arange(self.first + r0, self.first + min(r1, self.count), dtype=np.uint64)
        return rows[:, None], np.arange(c0, min(c1, self.length), dtype=np.uint64)
