"""Dual-side sparse GEMM by SpWMMA: zeros of both operands are skipped (DSTC).

Each step k of a warp tile multiplies A's condensed column by B's condensed row:
ceil(ones of A / m_inst) * ceil(ones of B / n_inst) outer products execute; an
empty tile of either operand skips the whole SpWMMA (its steps have no ones).
Source: Wang et al., ISCA 2021 (arXiv 2105.09564), as reading notes give it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel, Tile
from stcsim.config.machine import ELEMENT_BITS, Dtype, Machine
from stcsim.isa import execute
from stcsim.isa.expansion import expand
from stcsim.isa.semantics.outer_product import STEPS
from stcsim.lowering.bitmap_output import OutputOptions, encoded_bytes
from stcsim.lowering.lowered import Grid, Lowered, MicroOp, OuterSteps, WarpProgram
from stcsim.lowering.lowering import Lowering, padded_block, traffic
from stcsim.lowering.outer_loop import OuterLoop
from stcsim.workload.gemm import Gemm
from stcsim.workload.pattern import Pattern


class SparseOuter(Lowering):
    """Tiles of C by SpWMMA; the operand with the more useful sparsity goes to A, whose quantum is smaller."""

    name = "sparse_outer"
    summary = "DSTC GEMM by SpWMMA: outer products of condensed columns and rows"
    format_a = "bitmap"
    format_b = "bitmap"
    datapaths = frozenset({"outer_product"})
    sparse_side = "a"
    options = OutputOptions

    @classmethod
    def lower(cls, gemm: Gemm, kernel: Kernel, dtype: Dtype, machine: Machine) -> Lowered:
        """Lower `gemm`; see `Lowering.lower`."""
        loop = OuterLoop.of(kernel, machine)
        tile = kernel.tile
        grid = Grid(gemm.m, gemm.n, tile)
        bits_a, bits_b = (
            sum(loop.format(side).stored_bits(operand.pattern, ELEMENT_BITS[dtype]).values())
            for side, operand in (("a", gemm.a), ("b", gemm.b))
        )
        moved, density = traffic(grid, bits_a, bits_b, dtype, kernel), kernel.options.get("output_density")
        if density is not None:
            bits = 8 * moved["output"] // max(1, gemm.m * gemm.n)
            moved["output"] = encoded_bytes(gemm.m * gemm.n, density, bits)
        return Lowered(
            gemm=gemm,
            kernel=kernel,
            dtype=dtype,
            grid=grid,
            program=WarpProgram((MicroOp(loop.outer_product(0, 0, 0)),), 1, gemm.k),
            steps=OuterSteps(
                ones_a=gemm.a.pattern.group_counts(0, tile.m_warp).astype(np.uint8, copy=False),
                ones_b=np.ascontiguousarray(gemm.b.pattern.group_counts(1, tile.n_warp).T, np.uint8),
                m_inst=loop.m_inst,
                n_inst=loop.n_inst,
                k_slab=STEPS,
                words=partial(_words, gemm, tile),
            ),
            macs_executed=gemm.macs_useful,
            slots_per_instruction=loop.slots_per_instruction(),
            traffic_bytes=moved,
            execute=partial(_execute, gemm, loop),
            encodes_output=density is not None,
            notes=() if density is None else (f"C is written bitmap-encoded, {density:g} of it non-zero",),
        )


def _words(gemm: Gemm, tile: Tile) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Return the bitmap word of every warp tile and step, of A's columns and of B's rows."""
    return bitmap_words(gemm.a.pattern, tile.m_warp), bitmap_words(gemm.b.pattern.transpose(), tile.n_warp)


def bitmap_words(pattern: Pattern, edge: int) -> npt.NDArray[np.uint64]:
    """Return, for every `edge` rows of a pattern and every column, a word with a bit for each row.

    Parameters
    ----------
    pattern : Pattern
    edge : int
        At most 64.

    Returns
    -------
    words : ndarray of uint64, shape (ceil(rows / edge), columns)
    """
    rows, columns = pattern.shape
    words = np.zeros((-(-rows // edge), columns), np.uint64)
    for i in range(len(words)):
        block = pattern.block(i * edge, min((i + 1) * edge, rows), 0, columns)
        for bit, row in enumerate(block):
            words[i] |= row.astype(np.uint64) << np.uint64(bit)
    return words


def _execute(gemm: Gemm, loop: OuterLoop, i_m: int, i_n: int) -> npt.NDArray[np.float64]:
    """Run one warp tile for values: for every slab of 16, encode, load and execute what SpWMMA stands for."""
    tile = loop.kernel.tile
    row, column = i_m * tile.m_warp, i_n * tile.n_warp
    format_a, format_b = loop.format("a"), loop.format("b")
    state = loop.state()
    for k0 in range(0, gemm.k, STEPS):
        encoded_a = format_a.encode(padded_block(gemm.a, row, tile.m_warp, k0, STEPS))
        encoded_b = format_b.encode(padded_block(gemm.b, k0, STEPS, column, tile.n_warp))
        if not (encoded_a.occupied[0, 0] and encoded_b.occupied[0, 0]):
            continue
        words = []
        for side, encoded in (("a", encoded_a), ("b", encoded_b)):
            bits, values = encoded.tile(0, 0)
            loop.load(state, side, bits.astype(np.uint64), values)
            words.append(bits.tolist())
        for step in expand(loop.warp_product, loop.rows, bits_a=words[0], bits_b=words[1]):
            execute(step, state)
    return np.asarray(state.accumulators[0], np.float64)
