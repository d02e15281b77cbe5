"""Dense GEMM on inner-product tensor cores: every element is multiplied, zero or not."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel
from stcsim.config.machine import Dtype, Machine
from stcsim.isa.fragment import pack_a, pack_b
from stcsim.lowering.fragment_loop import FragmentLoop, steps_of
from stcsim.lowering.lowered import Grid, Lowered
from stcsim.lowering.lowering import Lowering, dense_bits, padded_block, traffic
from stcsim.workload.gemm import Gemm


class DenseInner(Lowering):
    """Tiles of C by mma.sync or HMMA.884."""

    name = "dense_inner"
    summary = "dense GEMM by inner products, sums in registers"
    format_a = "dense"
    format_b = "dense"
    datapaths = frozenset({"inner_product"})

    @classmethod
    def lower(cls, gemm: Gemm, kernel: Kernel, dtype: Dtype, machine: Machine) -> Lowered:
        """Lower `gemm`; see `Lowering.lower`."""
        del machine
        loop = FragmentLoop(kernel, steps_of(kernel, dtype))
        grid = Grid(gemm.m, gemm.n, kernel.tile)
        return Lowered(
            gemm=gemm,
            kernel=kernel,
            dtype=dtype,
            grid=grid,
            program=loop.program(gemm.k),
            steps=None,
            macs_executed=gemm.macs_total,
            slots_per_instruction=loop.slots_per_instruction(),
            traffic_bytes=traffic(grid, dense_bits(gemm.a, dtype), dense_bits(gemm.b, dtype), dtype, kernel),
            execute=partial(_execute, gemm, loop),
        )


def _execute(gemm: Gemm, loop: FragmentLoop, i_m: int, i_n: int) -> npt.NDArray[np.float64]:
    """Run one warp tile for values."""
    spec = loop.steps[0]
    m, n, k = spec.product.m, spec.product.n, spec.product.k
    row, column = i_m * loop.kernel.tile.m_warp, i_n * loop.kernel.tile.n_warp

    def load_a(i: int, k0: int) -> tuple[npt.NDArray[np.uint32], None]:
        return pack_a(spec, padded_block(gemm.a, row + i * m, m, k0, k)), None

    def load_b(j: int, k0: int) -> npt.NDArray[np.uint32]:
        return pack_b(spec, padded_block(gemm.b, k0, k, column + j * n, n))

    return loop.run(gemm.k, load_a, load_b)
