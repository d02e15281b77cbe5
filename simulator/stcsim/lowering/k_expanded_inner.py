"""K-expanded sparse GEMM on mma.sp: (2N-2):2N weights as overlapping 2:4 windows, the activation lifted alike.

An ordinary 2:4 kernel over K' = K (2 - 2/N).  Before it, the activation is lifted: row k' of the lifted B is the
row of B that place k' of the windows stands for, so that rows in two windows are written, and later fetched,
twice.  The traffic of the lift (B read, lifted B written) is counted as ``lift``; it takes no cycles here.

Source: SlideSparse (arXiv 2603.05232), which fuses the lift into the quantisation of the activation at near-zero
cost.  ASSUMED: the whole of the lift's traffic is charged to it, though a quantisation would read B and
write K of it anyway.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel
from stcsim.config.machine import Dtype
from stcsim.formats.k_expanded import WINDOW, KExpandedFormat
from stcsim.isa import metadata
from stcsim.isa.fragment import pack_a, pack_b
from stcsim.lowering.fragment_loop import FragmentLoop, LoadA, LoadB
from stcsim.lowering.group_inner import GroupInner, GroupOptions
from stcsim.lowering.lowered import Grid
from stcsim.lowering.lowering import dense_bits, padded_block, traffic
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand


class KExpandedOptions(GroupOptions):
    """Which (2N-2):2N pattern A has: n = 2N - 2, m = 2N; n = m = 2: dense."""

    form = KExpandedFormat


class KExpandedInner(GroupInner):
    """Tiles of C by mma.sp over the expanded K; the sparse operand is A."""

    name = "k_expanded_inner"
    summary = "(2N-2):2N sparse GEMM by mma.sp: A as overlapping 2:4 windows, B lifted to the same K"
    format_a = "k_expanded"
    datapaths = frozenset({"nm_sparse"})
    options = KExpandedOptions

    @classmethod
    def program_k(cls, form: KExpandedFormat, k: int) -> int:
        """Return K'."""
        return form.expanded_k(k)

    @classmethod
    def notes(cls, form: KExpandedFormat, k: int) -> tuple[str, ...]:
        """Return K' and what the cycles leave out."""
        expanded = form.expanded_k(k)
        return (
            f"K = {k} expanded to {expanded}: {form.n}:{form.m} as windows of 2:4; "
            "the lift of the activation takes traffic, no cycles",
        )

    @classmethod
    def bytes_moved(
        cls, grid: Grid, bits_a: int, b: Operand, form: KExpandedFormat, dtype: Dtype, kernel: Kernel
    ) -> dict[str, int]:
        """Return the traffic of the kernel, which fetches lifted B, and of the lift."""
        k = b.shape[0]
        bits_b = dense_bits(b, dtype)
        lifted_bits = -(-bits_b * form.expanded_k(k) // max(1, k))
        moved = traffic(grid, bits_a, lifted_bits, dtype, kernel)
        return moved | {"lift": -(-bits_b // 8) + -(-lifted_bits // 8)}

    @classmethod
    def loads(
        cls, gemm: Gemm, loop: FragmentLoop, form: KExpandedFormat, row: int, column: int
    ) -> tuple[LoadA, LoadB]:
        """Load the windows of A that an instruction covers, and the rows of B that they stand for."""
        spec = loop.steps[0]
        m, n, k = spec.product.m, spec.product.n, spec.product.k
        # Whole instructions may reach beyond K'.
        sources = np.append(form.sources(gemm.k), np.full(k, -1))

        def load_a(i: int, k0: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
            # The groups of which a window is covered; windows of theirs before the first are cut off.
            first, last = k0 // WINDOW, (k0 + k) // WINDOW
            group = first // form.windows
            span = -(-last // form.windows) - group
            encoded = form.encode(padded_block(gemm.a, row + i * m, m, group * form.m, span * form.m))
            covered = slice(first - group * form.windows, last - group * form.windows)
            codes = np.ascontiguousarray(encoded.codes[:, covered])
            return pack_a(spec, encoded.values[:, covered].reshape(m, -1)), metadata.pack(spec, codes)

        def load_b(j: int, k0: int) -> npt.NDArray[np.uint32]:
            rows = sources[k0 : k0 + k]
            held = rows >= 0
            lifted = np.zeros((k, n), np.int8)
            if held.any():
                start = int(rows[held].min())
                block = padded_block(gemm.b, start, int(rows.max()) + 1 - start, column + j * n, n)
                lifted[held] = block[rows[held] - start]
            return pack_b(spec, lifted)

        return load_a, load_b
