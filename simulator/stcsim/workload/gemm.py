"""A matrix product C[m,n] = A[m,k] B[k,n] with its two operands.

The unit of work that lowerings take.  It knows the closed-form work counts of
the problem (`macs_total`, `macs_useful`) and nothing of how the product is run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stcsim.errors import WorkloadError, must
from stcsim.workload.operand import EXACT_FP32, Operand


@dataclass(frozen=True)
class Gemm:
    """C[m,n] = A[m,k] B[k,n].

    Parameters
    ----------
    name : str
        Label for reports; nothing is derived from it.
    a : Operand, shape (m, k)
    b : Operand, shape (k, n)

    Raises
    ------
    WorkloadError
        If the inner dimensions differ, or if K is so long that sums would not be exact in fp32.
    """

    name: str
    a: Operand
    b: Operand

    def __post_init__(self) -> None:
        if self.a.shape[1] != self.b.shape[0]:
            what = (
                f"columns of A and rows of B must agree: A is {_by(self.a.shape)}, B is {_by(self.b.shape)}"
            )
            raise WorkloadError(f"{self.name}: {what}" if self.name else what)
        if self.k * self.a.magnitude * self.b.magnitude >= EXACT_FP32:
            raise WorkloadError(must("K must be below 2**24, or sums are not exact in fp32", self.k))

    @property
    def m(self) -> int:
        """Rows of A and C."""
        return self.a.shape[0]

    @property
    def n(self) -> int:
        """Columns of B and C."""
        return self.b.shape[1]

    @property
    def k(self) -> int:
        """Columns of A, rows of B."""
        return self.a.shape[1]

    @property
    def density_a(self) -> float:
        """Share of the stored elements of A that are non-zero."""
        return self.a.pattern.density

    @property
    def density_b(self) -> float:
        """Share of the stored elements of B that are non-zero."""
        return self.b.pattern.density

    @property
    def macs_total(self) -> int:
        """Multiply-accumulates of the dense product: m * n * k."""
        return self.m * self.n * self.k

    @property
    def macs_useful(self) -> int:
        """Multiply-accumulates whose operands are both non-zero, exact.

        Notes
        -----
        The sum over k of (non-zeros of column k of A) * (non-zeros of row k of B).
        """
        columns, rows = self.a.pattern.counts_per_col(), self.b.pattern.counts_per_row()
        if self.macs_total < 1 << 63:
            return int(np.dot(columns, rows))
        return sum(int(column) * int(row) for column, row in zip(columns, rows, strict=True))

    def transposed(self) -> Gemm:
        """Return the problem with its result transposed: C^T = B^T A^T, each value unchanged."""
        return Gemm(self.name, self.b.transpose(), self.a.transpose())


def _by(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"
