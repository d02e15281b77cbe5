"""What n:m formats share: at most n of every m consecutive elements along K are non-zero.

Between `stcsim.formats.format` and the formats that store such groups in different ways: 2:4 with a code
(`nm`), vectors with offsets (`vector_wise`), (2N-2):2N as overlapping 2:4 windows (`k_expanded`).  It says
which patterns fit, names the first misfit, prunes by magnitude, and chooses the places that are kept.  How
those are stored, it does not know.

A K that is no multiple of m is filled up with zeros, which are stored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import FormatError, Problem, must
from stcsim.formats.format import E, Format, as_operand
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import MaskPattern, Pattern

_CHUNK_ELEMENTS = 1 << 22


class GroupFormat(Format[E]):
    """At most n of every m consecutive elements along K.

    Attributes
    ----------
    n, m : int
        Fields of every subclass.
    """

    n: int
    m: int

    def groups(self, k: int) -> int:
        """Return the number of groups along a K, the last one filled up with zeros."""
        return -(-k // self.m)

    def stored_k(self, k: int) -> int:
        """Return how many of the `k` elements of a row of A can be stored: those that are multiplied.

        Of a last group that K cuts short, no more elements than it has.
        """
        return k // self.m * self.n + min(self.n, k % self.m)

    def accepts(self, pattern: Pattern) -> Problem | None:
        """Refuse operands of which a group along K holds more than n non-zeros; names the first one."""
        counts = pattern.group_counts(self.k_axis, self.m)
        crowded = counts > self.n
        n_crowded = int(np.count_nonzero(crowded))
        if not n_crowded:
            return None
        by_outer = crowded if self.side == "a" else crowded.T
        outer, group = (int(i) for i in np.unravel_index(int(np.argmax(by_outer)), by_outer.shape))
        first, last = group * self.m, min((group + 1) * self.m, pattern.shape[self.k_axis]) - 1
        line, along = ("row", "columns") if self.side == "a" else ("column", "rows")
        found = int(counts[outer, group] if self.side == "a" else counts[group, outer])
        what = (
            f"must have at most {self.n} non-zeros in every {self.m} consecutive elements along k "
            f"(axis {self.k_axis} of {self.side.upper()})"
        )
        where = f"{found} in {line} {outer}, {along} {first} to {last}"
        return Problem(must(what, f"{where} ({n_crowded} of {counts.size} groups have too many)"))

    def grouped(self, values: ArrayLike) -> NDArray[Any]:
        """Return an operand group by group.

        Parameters
        ----------
        values : array_like of numbers, shape (m, k) for side a, (k, n) for side b

        Returns
        -------
        grouped : ndarray, shape (outer, groups, m)
            A copy, filled up with zeros along K.

        Raises
        ------
        FormatError
            If it is not two-dimensional, or has a pattern that the format does not take.
        """
        operand = as_operand(values)
        problem = self.accepts(MaskPattern.adopt(operand != 0))
        if problem is not None:
            raise FormatError(problem)
        by_outer = operand if self.side == "a" else operand.T
        outer, k = by_outer.shape
        padded = np.zeros((outer, self.groups(k) * self.m), dtype=operand.dtype)
        padded[:, :k] = by_outer
        return padded.reshape(outer, self.groups(k), self.m)

    def ungrouped(self, grouped: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
        """Return the operand of a shape that stands group by group in `grouped`; the inverse of `grouped`."""
        outer, groups, _ = grouped.shape
        by_outer = grouped.reshape(outer, groups * self.m)[:, : shape[self.k_axis]]
        return np.ascontiguousarray(by_outer if self.side == "a" else by_outer.T)

    def places(self, grouped: NDArray[Any]) -> NDArray[np.intp]:
        """Choose n places of each group, its non-zeros among them; spare ones from the lowest.

        Parameters
        ----------
        grouped : ndarray, shape (outer, groups, m)

        Returns
        -------
        places : ndarray of intp, shape (outer, groups, n)
            Rising within a group.
        """
        # A stable sort of "is zero" puts the non-zeros first, then the spare places from the lowest.
        order = np.argsort(grouped == 0, axis=2, kind="stable")[:, :, : self.n]
        return np.sort(order, axis=2)

    def keep(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Choose the n elements of largest magnitude in every group along K.

        Parameters
        ----------
        values : array_like of numbers, shape (m, k) for side a, (k, n) for side b

        Returns
        -------
        kept : ndarray of bool, the shape of `values`
            Non-zeros only; of equal magnitudes those of lowest index.

        Raises
        ------
        FormatError
            If a value is not finite.
        """
        operand = as_operand(values)
        if operand.dtype.kind == "f" and not np.all(np.isfinite(operand)):
            message = "an operand must be finite to be pruned by magnitude"
            raise FormatError(message)
        by_k = operand if self.side == "b" else operand.T
        wide: Any = by_k.dtype
        if by_k.dtype.kind in "bi":
            wide = np.int16 if by_k.dtype.itemsize == 1 else np.int64
        k, outer = by_k.shape
        magnitude = np.zeros((self.groups(k) * self.m, outer), dtype=wide)
        np.abs(by_k, out=magnitude[:k], casting="unsafe", dtype=wide)
        magnitude = magnitude.reshape(self.groups(k), self.m, outer)
        rank = np.zeros(magnitude.shape, dtype=np.uint8)
        for i in range(self.m):
            for j in range(i + 1, self.m):
                first = magnitude[:, i] >= magnitude[:, j]
                rank[:, j] += first
                rank[:, i] += ~first
        kept = (rank < self.n) & (magnitude != 0)
        by_k = kept.reshape(self.groups(k) * self.m, outer)[:k]
        return np.ascontiguousarray(by_k if self.side == "b" else by_k.T)

    def project(self, operand: Operand) -> tuple[Operand, float]:
        """Prune an operand by magnitude onto n:m.

        Parameters
        ----------
        operand : Operand

        Returns
        -------
        pruned : Operand
            With the n largest values of each group; those keep their values.
        loss : float
            Share of its non-zeros that were dropped, 0 to 1.
        """
        rows, cols = operand.shape
        kept = np.empty((rows, cols), dtype=np.bool_)
        outer, k = operand.shape[1 - self.k_axis], operand.shape[self.k_axis]
        step = max(1, _CHUNK_ELEMENTS // max(1, k))
        for start in range(0, outer, step):
            stop = min(start + step, outer)
            block = (start, stop, 0, cols) if self.side == "a" else (0, rows, start, stop)
            kept[block[0] : block[1], block[2] : block[3]] = self.keep(operand.values(*block))
        pattern = MaskPattern.adopt(kept)
        dropped = operand.pattern.nnz - pattern.nnz
        source = f"{operand.source}, pruned to {self.n}:{self.m} by magnitude"
        return replace(operand, pattern=pattern, source=source), dropped / max(1, operand.pattern.nnz)
