"""n:m sparse GEMM on mma.sp: A stored compressed along K with metadata, B dense.

The instruction covers twice the K of a dense one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stcsim.formats.nm import NmFormat
from stcsim.isa import metadata
from stcsim.isa.fragment import pack_a, pack_b
from stcsim.lowering.fragment_loop import FragmentLoop, LoadA, LoadB
from stcsim.lowering.group_inner import GroupInner, GroupOptions
from stcsim.lowering.lowering import padded_block
from stcsim.workload.gemm import Gemm


class NmOptions(GroupOptions):
    """Which n:m pattern A has: 2:4, or 1:2 for tf32."""

    form = NmFormat


class NmInner(GroupInner):
    """Tiles of C by mma.sp; the sparse operand is A."""

    name = "nm_inner"
    summary = "2:4 sparse GEMM by mma.sp: A compressed along K with metadata, B dense"
    format_a = "nm"
    datapaths = frozenset({"nm_sparse"})
    options = NmOptions

    @classmethod
    def loads(
        cls, gemm: Gemm, loop: FragmentLoop, form: NmFormat, row: int, column: int
    ) -> tuple[LoadA, LoadB]:
        """Load compressed A with its metadata, and B as it is; see `GroupInner.loads`."""
        spec = loop.steps[0]
        m, n, k = spec.product.m, spec.product.n, spec.product.k

        def load_a(i: int, k0: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
            encoded = form.encode(padded_block(gemm.a, row + i * m, m, k0, k))
            return pack_a(spec, encoded.values.reshape(m, -1)), metadata.pack(spec, encoded.codes)

        def load_b(j: int, k0: int) -> npt.NDArray[np.uint32]:
            return pack_b(spec, padded_block(gemm.b, k0, k, column + j * n, n))

        return load_a, load_b
