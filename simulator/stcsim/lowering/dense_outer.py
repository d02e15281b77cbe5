"""Dense GEMM on outer-product tensor cores: OWMMA, zeros are multiplied.

What the DSTC hardware does with a dense layer: every step runs all of its outer
products, whatever the operands hold; K is filled up to whole slabs of 16.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel
from stcsim.config.machine import Dtype, Machine
from stcsim.isa import execute
from stcsim.isa.semantics.outer_product import STEPS
from stcsim.lowering.lowered import Grid, Lowered, MicroOp, OuterSteps, WarpProgram
from stcsim.lowering.lowering import Lowering, dense_bits, padded_block, require_multiple, traffic
from stcsim.lowering.outer_loop import OuterLoop
from stcsim.workload.gemm import Gemm


class DenseOuter(Lowering):
    """Tiles of C by the outer products that OWMMA stands for."""

    name = "dense_outer"
    summary = "dense GEMM by outer products (OWMMA), sums in the accumulator buffer"
    format_a = "dense"
    format_b = "dense"
    datapaths = frozenset({"outer_product"})

    @classmethod
    def lower(cls, gemm: Gemm, kernel: Kernel, dtype: Dtype, machine: Machine) -> Lowered:
        """Lower `gemm`; see `Lowering.lower`."""
        loop = OuterLoop.of(kernel, machine)
        require_multiple(kernel, "m", loop.m_inst)
        require_multiple(kernel, "n", loop.n_inst)
        tile = kernel.tile
        grid = Grid(gemm.m, gemm.n, tile)
        padded_k = -(-gemm.k // STEPS) * STEPS
        body = tuple(
            MicroOp(loop.outer_product(k, i, j))
            for k in range(STEPS)
            for i in range(tile.m_warp // loop.m_inst)
            for j in range(tile.n_warp // loop.n_inst)
        )
        return Lowered(
            gemm=gemm,
            kernel=kernel,
            dtype=dtype,
            grid=grid,
            program=WarpProgram(body, STEPS, -(-gemm.k // STEPS)),
            steps=OuterSteps(
                ones_a=np.full((grid.tiles_m, padded_k), tile.m_warp, np.uint8),
                ones_b=np.full((grid.tiles_n, padded_k), tile.n_warp, np.uint8),
                m_inst=loop.m_inst,
                n_inst=loop.n_inst,
                k_slab=STEPS,
                words=partial(_words, grid, padded_k),
                dense=True,
            ),
            macs_executed=gemm.macs_total,
            slots_per_instruction=loop.slots_per_instruction(),
            traffic_bytes=traffic(grid, dense_bits(gemm.a, dtype), dense_bits(gemm.b, dtype), dtype, kernel),
            execute=partial(_execute, gemm, loop, body),
        )


def _words(grid: Grid, k: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return words of all ones."""
    all_a, all_b = ((1 << edge) - 1 for edge in (grid.tile.m_warp, grid.tile.n_warp))
    return np.full((grid.tiles_m, k), all_a, np.uint64), np.full((grid.tiles_n, k), all_b, np.uint64)


def _execute(
    gemm: Gemm, loop: OuterLoop, body: tuple[MicroOp, ...], i_m: int, i_n: int
) -> npt.NDArray[np.float64]:
    """Run one warp tile for values: every bitmap word is all ones, every value is stored."""
    tile = loop.kernel.tile
    row, column = i_m * tile.m_warp, i_n * tile.n_warp
    state = loop.state()
    all_a, all_b = (np.full(STEPS, (1 << edge) - 1, np.uint64) for edge in (tile.m_warp, tile.n_warp))
    for k0 in range(0, gemm.k, STEPS):
        a = padded_block(gemm.a, row, tile.m_warp, k0, STEPS)
        b = padded_block(gemm.b, k0, STEPS, column, tile.n_warp)
        loop.load(state, "a", all_a, a.T.reshape(-1))
        loop.load(state, "b", all_b, b.reshape(-1))
        for op in body:
            execute(op.instruction, state)
    return np.asarray(state.accumulators[0], np.float64)
