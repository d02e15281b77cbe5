"""Vector-wise sparse GEMM on the gathering HMMA.884: A stored as values and offsets, B dense.

Of every vector of 16 along K four elements of A are multiplied, so the loop has a quarter of the dense one's
products.  All of B goes from memory to shared memory and on to registers, whatever A keeps; the tensor core picks
the rows that the offsets name.

Source: Zhu et al., MICRO 2019, as isa/vector_wise.yaml says; the way of B is ASSUMED.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stcsim.errors import LoweringError, Problem, must
from stcsim.formats.vector_wise import VectorWiseFormat
from stcsim.isa import offset
from stcsim.isa.fragment import operand_layout, pack_a, pack_b
from stcsim.lowering.fragment_loop import FragmentLoop, LoadA, LoadB
from stcsim.lowering.group_inner import GroupInner, GroupOptions
from stcsim.lowering.lowering import padded_block
from stcsim.workload.gemm import Gemm


class VectorWiseOptions(GroupOptions):
    """Which vectors A has: n of m elements kept; the instruction must take them."""

    form = VectorWiseFormat


class VectorWiseInner(GroupInner):
    """Tiles of C by the gathering HMMA.884; the sparse operand is A."""

    name = "vector_wise_inner"
    summary = "vector-wise sparse GEMM: 4 of 16 elements of A along K with their offsets, B dense"
    format_a = "vector_wise"
    datapaths = frozenset({"vector_sparse"})
    options = VectorWiseOptions

    @classmethod
    def require(cls, loop: FragmentLoop, form: VectorWiseFormat) -> None:
        """Refuse vectors of another size than the instruction's."""
        spec = loop.steps[0]
        takes = operand_layout(spec, "a").shape[1], spec.product.k
        if (form.n, form.m) != takes:
            what = f"must keep n = {takes[0]} of m = {takes[1]} elements, as the kernel's instruction does"
            path = f"kernel {loop.kernel.name}: options"
            raise LoweringError(Problem(must(what, f"{form.n} of {form.m}"), path=path))

    @classmethod
    def loads(
        cls, gemm: Gemm, loop: FragmentLoop, form: VectorWiseFormat, row: int, column: int
    ) -> tuple[LoadA, LoadB]:
        """Load stored A with its offsets, and B as it is; see `GroupInner.loads`."""
        spec = loop.steps[0]
        m, n, k = spec.product.m, spec.product.n, spec.product.k

        def load_a(i: int, k0: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
            encoded = form.encode(padded_block(gemm.a, row + i * m, m, k0, k))
            offsets = encoded.offsets.reshape(m, -1)
            return pack_a(spec, encoded.values.reshape(m, -1)), offset.pack(offsets, loop.selector(k0 // k))

        def load_b(j: int, k0: int) -> npt.NDArray[np.uint32]:
            return pack_b(spec, padded_block(gemm.b, k0, k, column + j * n, n))

        return load_a, load_b
