"""Independent products of one shape: the groups of a convolution, the heads of an attention.

Stands beside `stcsim.workload.gemm`: whatever runs a `Gemm` also takes a
`GemmBatch`, as one kernel whose grid holds the tiles of every product.  It knows
the work counts and nothing of how the products are run.
"""

from __future__ import annotations

from dataclasses import dataclass

from stcsim.errors import WorkloadError
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand


@dataclass(frozen=True)
class GemmBatch:
    """Products C_i[m,n] = A_i[m,k] B_i[k,n].

    Parameters
    ----------
    name : str
        Label for reports.
    gemms : tuple of Gemm
        One or more, all of one shape and with the same roles.

    Raises
    ------
    WorkloadError
        If there is none, or they differ in shape or roles.
    """

    name: str
    gemms: tuple[Gemm, ...]

    def __post_init__(self) -> None:
        kinds = {(gemm.m, gemm.n, gemm.k, gemm.a.role, gemm.b.role) for gemm in self.gemms}
        if len(kinds) != 1:
            message = "the products of a batch must be one or more of the same sizes and roles"
            raise WorkloadError(f"{self.name}: {message}" if self.name else message)

    @property
    def a(self) -> Operand:
        """A of the first product, whose role is that of all."""
        return self.gemms[0].a

    @property
    def b(self) -> Operand:
        """B of the first product, whose role is that of all."""
        return self.gemms[0].b

    @property
    def m(self) -> int:
        """Rows of each product."""
        return self.gemms[0].m

    @property
    def n(self) -> int:
        """Columns of all products together: the output channels of a grouped convolution."""
        return sum(gemm.n for gemm in self.gemms)

    @property
    def k(self) -> int:
        """Inner size of each product."""
        return self.gemms[0].k

    @property
    def density_a(self) -> float:
        """Share of the stored elements of all A that are non-zero."""
        return _density([gemm.a for gemm in self.gemms])

    @property
    def density_b(self) -> float:
        """Share of the stored elements of all B that are non-zero."""
        return _density([gemm.b for gemm in self.gemms])

    @property
    def macs_total(self) -> int:
        """Multiply-accumulates of the dense products: m * n * k."""
        return sum(gemm.macs_total for gemm in self.gemms)

    @property
    def macs_useful(self) -> int:
        """Multiply-accumulates whose operands are both non-zero, exact."""
        return sum(gemm.macs_useful for gemm in self.gemms)

    def transposed(self) -> GemmBatch:
        """Return the batch with every product transposed."""
        return GemmBatch(self.name, tuple(gemm.transposed() for gemm in self.gemms))


def products(problem: Gemm | GemmBatch) -> tuple[Gemm, ...]:
    """Return the products of a problem: itself, or those of a batch."""
    return problem.gemms if isinstance(problem, GemmBatch) else (problem,)


def batch_of(name: str, gemms: tuple[Gemm, ...]) -> Gemm | GemmBatch:
    """Return one product as it is, several as a batch."""
    return gemms[0] if len(gemms) == 1 else GemmBatch(name, gemms)


def _density(operands: list[Operand]) -> float:
    stored = sum(operand.pattern.n_stored for operand in operands)
    return sum(operand.pattern.nnz for operand in operands) / stored if stored else 0.0
