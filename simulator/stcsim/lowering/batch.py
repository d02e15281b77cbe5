"""Run a batch of products as one kernel: each is lowered alone, then their grids are joined.

Between `stcsim.run` and the lowering plug-ins, which know single products only.
The tiles of the products lie below each other in one grid, so that the CTAs of
all of them spread over the SMs together: a depthwise convolution is one launch,
not one for each channel.

How it stays exact without the machine knowing of batches: the joined problem is
the product of a block-diagonal A with the Bs below each other,

    [A0  0 ] [B0]   [A0 B0]
    [ 0  A1] [B1] = [A1 B1]

whose steps outside a tile's own block hold no non-zero and so do not execute on an
outer-product datapath; where nothing depends on patterns, every tile has the K of
one product.  A CTA of the joined grid holds as many rows (and columns) of warp tiles
as divide those of one product, so that none holds parts of two or an empty warp
(ASSUMED: a kernel for batches would choose its CTA tile so).

Knows nothing of cycles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel
from stcsim.config.machine import Dtype, Machine
from stcsim.errors import Problem
from stcsim.lowering.lowered import Grid, Lowered, OuterSteps
from stcsim.lowering.lowering import Lowering
from stcsim.workload.batch import GemmBatch, products
from stcsim.workload.gemm import Gemm


def lower(
    lowering: type[Lowering], problem: Gemm | GemmBatch, kernel: Kernel, dtype: Dtype, machine: Machine
) -> Lowered:
    """Lower a product or a batch of them; see `Lowering.lower`."""
    parts = [lowering.lower(gemm, kernel, dtype, machine) for gemm in products(problem)]
    return parts[0] if len(parts) == 1 else join(parts)


def misfit(lowering: type[Lowering], problem: Gemm | GemmBatch, kernel: Kernel) -> Problem | None:
    """Return why an operand of one of the products does not fit its format, or None."""
    found = (lowering.misfit(gemm, kernel) for gemm in products(problem))
    return next((item for item in found if item is not None), None)


def prune(
    lowering: type[Lowering], problem: Gemm | GemmBatch, kernel: Kernel
) -> tuple[Gemm | GemmBatch, float]:
    """Project every A onto the pattern that the format takes; see `Lowering.prune`.

    Returns
    -------
    problem : Gemm or GemmBatch
    loss : float
        Fraction of the non-zeros of all A that were dropped.
    """
    before = sum(gemm.a.pattern.nnz for gemm in products(problem))
    pruned = tuple(lowering.prune(gemm, kernel)[0] for gemm in products(problem))
    after = sum(gemm.a.pattern.nnz for gemm in pruned)
    whole = GemmBatch(problem.name, pruned) if isinstance(problem, GemmBatch) else pruned[0]
    return whole, (before - after) / max(1, before)


def join(parts: Sequence[Lowered]) -> Lowered:
    """Return one grid with the tiles of every part.

    Parameters
    ----------
    parts : sequence of Lowered
        Two or more of the same sizes, by the same kernel.

    Returns
    -------
    joined : Lowered
        Its `parts` are these; its `gemm` and `execute` are those of the first one.
    """
    first = parts[0]
    rows = first.grid.tiles_m
    tile = first.grid.tile
    cta = {
        "m_cta": _largest_divisor(rows, tile.warps_m) * tile.m_warp,
        "n_cta": _largest_divisor(first.grid.tiles_n, tile.warps_n) * tile.n_warp,
    }
    grid = Grid(len(parts) * rows * tile.m_warp, first.grid.n, tile.model_copy(update=cta))
    steps = [part.steps for part in parts if part.steps is not None]
    program = first.program
    if steps:
        program = replace(program, iterations=sum(part.program.iterations for part in parts))
    return replace(
        first,
        grid=grid,
        program=program,
        steps=_join_steps(steps) if steps else None,
        macs_executed=sum(part.macs_executed for part in parts),
        traffic_bytes={name: sum(part.traffic_bytes[name] for part in parts) for name in first.traffic_bytes},
        notes=(
            f"{len(parts)} products of {first.gemm.m} x {first.gemm.n} x {first.gemm.k} in one grid",
            *first.notes,
        ),
        parts=tuple(parts),
    )


def _largest_divisor(number: int, most: int) -> int:
    """Return the largest divisor of `number` up to `most`; 1 for zero."""
    return max(d for d in range(1, most + 1) if number % d == 0) if number else 1


def _join_steps(steps: Sequence[OuterSteps]) -> OuterSteps:
    """Put A's counts on the diagonal and B's one after the other along K, each in whole slabs."""

    def words() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        parts = [part.words() for part in steps]
        return _diagonal([a for a, _ in parts], slab), _side_by_side([b for _, b in parts], slab)

    slab = steps[0].k_slab
    return replace(
        steps[0],
        ones_a=_diagonal([part.ones_a for part in steps], slab),
        ones_b=_side_by_side([part.ones_b for part in steps], slab),
        words=words,
    )


def _diagonal(blocks: Sequence[npt.NDArray[Any]], slab: int) -> npt.NDArray[Any]:
    """Put blocks on a diagonal, each as wide as whole slabs."""
    rows, k = blocks[0].shape
    width = -(-k // slab) * slab
    joined = np.zeros((len(blocks) * rows, len(blocks) * width), blocks[0].dtype)
    for i, block in enumerate(blocks):
        joined[i * rows : (i + 1) * rows, i * width : i * width + k] = block
    return joined


def _side_by_side(blocks: Sequence[npt.NDArray[Any]], slab: int) -> npt.NDArray[Any]:
    """Put blocks beside each other, each as wide as whole slabs."""
    rows, k = blocks[0].shape
    width = -(-k // slab) * slab
    joined = np.zeros((rows, len(blocks) * width), blocks[0].dtype)
    for i, block in enumerate(blocks):
        joined[:, i * width : i * width + k] = block
    return joined
