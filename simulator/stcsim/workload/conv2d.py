"""A 2-D convolution with its two operands, and the GEMMs that it is lowered to.

The unit of work that a study's ``conv2d`` and the layers of a network describe.
Each group is C[m,n] = A[m,k] B[k,n] with m the output pixels (activations, A),
n the group's output channels (weights, B) and k the taps (channel, filter row,
filter column); A is a view of the feature map, never a matrix.  It knows the
closed-form work counts and nothing of how the products are run.

>>> from stcsim.workload.pattern import DensePattern
>>> shape = ConvShape(n=1, c=4, h=8, w=8, k=8, r=3, s=3, padding=(1, 1), groups=2)
>>> conv = Conv2d("layer", shape, Operand(DensePattern((4, 64)), "activation", 1, "dense"),
...               Operand(DensePattern((8, 18)), "weight", 2, "dense"))
>>> [(gemm.m, gemm.n, gemm.k) for gemm in conv.gemms()]
[(64, 4, 18), (64, 4, 18)]
>>> conv.macs_total, conv.macs_useful      # the difference: taps on padding
(9216, 7744)
"""

from __future__ import annotations

from dataclasses import dataclass

from stcsim.errors import Problem, WorkloadError, must
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.gemm import Gemm
from stcsim.workload.im2col import Im2colPattern
from stcsim.workload.operand import EXACT_FP32, Operand
from stcsim.workload.view import ViewOperand, rows_of


@dataclass(frozen=True)
class Conv2d:
    """out[n,k,p,q] = sum over (c,r,s) of input[n,c,...] weight[k,c,r,s].

    Parameters
    ----------
    name : str
        Label for reports; nothing is derived from it.
    shape : ConvShape
    input : Operand, shape (N * C, H * W)
        The feature map: a row for each channel of each image, its elements row by row.
    weight : Operand, shape (K, C / groups * R * S)
        A row for each output channel, its taps in the order (channel, filter row, filter column).

    Raises
    ------
    WorkloadError
        If an operand does not have its shape, or sums would not be exact in fp32.
    """

    name: str
    shape: ConvShape
    input: Operand
    weight: Operand

    def __post_init__(self) -> None:
        problems = [
            Problem(must(f"must be {_by(want)} ({what})", _by(operand.shape)), path=path)
            for path, operand, want, what in (
                ("input", self.input, self.shape.input_shape, "N*C rows of H*W elements"),
                ("weight", self.weight, self.shape.weight_shape, "K rows of C/groups*R*S taps"),
            )
            if operand.shape != want
        ]
        if not problems and self.shape.taps * self.input.magnitude * self.weight.magnitude >= EXACT_FP32:
            most = (EXACT_FP32 - 1) // (self.input.magnitude * self.weight.magnitude)
            what = f"must be at most {most} taps (C/groups*R*S), or sums are not exact in fp32"
            problems = [Problem(must(what, self.shape.taps), path="shape")]
        if problems:
            raise WorkloadError(problems)

    @property
    def macs_total(self) -> int:
        """Multiply-accumulates of the dense convolution, padding positions included."""
        return self.shape.macs_total

    @property
    def macs_useful(self) -> int:
        """Multiply-accumulates whose operands are both non-zero, exact."""
        return sum(gemm.macs_useful for gemm in self.gemms())

    def gemms(self) -> tuple[Gemm, ...]:
        """Return the product of each group; they share no element of the output."""
        return tuple(
            Gemm(self.name, self._windows(group), self._filters(group)) for group in range(self.shape.groups)
        )

    def _windows(self, group: int) -> Operand:
        """Return A (m, k): the feature map as the filters of a group see it."""
        pattern = Im2colPattern(self.input.pattern, self.shape, group)
        return ViewOperand(
            pattern=pattern,
            role=self.input.role,
            seed=self.input.seed,
            source=self.input.source,
            base=self.input,
            index=pattern,
        )

    def _filters(self, group: int) -> Operand:
        """Return B (k, n): the transposed weights of a group."""
        if self.shape.groups == 1:
            return self.weight.transpose()
        return rows_of(self.weight, group * self.shape.k_group, self.shape.k_group).transpose()


def _by(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"
