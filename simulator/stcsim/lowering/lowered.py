"""What a lowering hands to the machine: a warp program, the grid of warp tiles, and the account of the work.

Place in the data flow: made by the lowering plug-ins, read by `stcsim.machine`
(cycles) and by `stcsim.lowering.check` (values).  Knows nothing of cycles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel, Tile
from stcsim.config.machine import Dtype
from stcsim.isa import Instruction
from stcsim.workload.gemm import Gemm


@dataclass(frozen=True)
class Grid:
    """How many warp tiles and CTAs cover C, and which CTA a warp tile belongs to.

    Parameters
    ----------
    m, n : int
        Sizes of C in elements.
    tile : Tile
        Tile levels of the kernel.
    """

    m: int
    n: int
    tile: Tile

    @property
    def ctas_m(self) -> int:
        """CTAs along M."""
        return -(-self.m // self.tile.m_cta)

    @property
    def ctas_n(self) -> int:
        """CTAs along N."""
        return -(-self.n // self.tile.n_cta)

    @property
    def tiles_m(self) -> int:
        """Warp tiles along M that hold at least one row of C."""
        return -(-self.m // self.tile.m_warp)

    @property
    def tiles_n(self) -> int:
        """Warp tiles along N that hold at least one column of C."""
        return -(-self.n // self.tile.n_warp)

    @property
    def n_tiles(self) -> int:
        """Warp tiles that hold at least one element of C."""
        return self.tiles_m * self.tiles_n


@dataclass(frozen=True)
class MicroOp:
    """One instruction of the loop body.

    Parameters
    ----------
    instruction : Instruction
        What executes; where `OuterSteps` say how often, the first of its kind.
    """

    instruction: Instruction


@dataclass(frozen=True)
class WarpProgram:
    """The math loop of one warp tile.

    Parameters
    ----------
    body : tuple of MicroOp
        One iteration.
    k_step : int
        K that one iteration consumes.
    iterations : int
        Iterations in every warp tile: ceil(K / k_step).
    """

    body: tuple[MicroOp, ...]
    k_step: int
    iterations: int


@dataclass(frozen=True)
class OuterSteps:
    """Popcounts that drive the data-dependent repetition of outer products.

    Parameters
    ----------
    ones_a : ndarray of uint8, shape (tiles_m, k)
        Non-zeros of A's column k within each row of warp tiles.
    ones_b : ndarray of uint8, shape (tiles_n, k)
        Non-zeros of B's row k within each column of warp tiles.
    m_inst, n_inst : int
        Shape of one outer product: the quanta.
    k_slab : int
        Steps of one warp instruction.
    words : callable
        Returns the bitmap words themselves, two ndarrays of uint64 of the same shapes: where the ones
        are, for models that ask.
    dense : bool
        Whether zeros are multiplied: every word counts as all ones, no bitmap is loaded.
    """

    ones_a: npt.NDArray[np.uint8]
    ones_b: npt.NDArray[np.uint8]
    m_inst: int
    n_inst: int
    k_slab: int
    words: Callable[[], tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]]
    dense: bool = False


@dataclass(frozen=True)
class Lowered:
    """A GEMM on a kernel, ready to be timed and to be executed for values.

    Parameters
    ----------
    gemm : Gemm
        The problem as it runs (transposed or pruned where `notes` say so).
    kernel : Kernel
    dtype : str
        Operand type.
    grid : Grid
    program : WarpProgram
    steps : OuterSteps or None
        None where nothing depends on the operands' patterns.
    macs_executed : int
        MACs of the problem that go through a multiplier.
    slots_per_instruction : dict of str to int
        Multiplier slots of one issue of each tensor instruction.
    traffic_bytes : dict of str to int
        Bytes that all CTAs together fetch (operands, as stored) and write (output).
    execute : callable
        ``execute(i_m, i_n)`` runs the program of one warp tile through the ISA's functional
        semantics and returns its (m_warp, n_warp) sums as float64, edges included.
    notes : tuple of str
        What was done to the problem, for the result.
    encodes_output : bool
        C is written bitmap-encoded (`stcsim.lowering.bitmap_output`).
    parts : tuple of Lowered
        The products of a batch that runs as one grid (`stcsim.lowering.batch`), of which `gemm` and
        `execute` are the first; empty for a single product.
    """

    gemm: Gemm
    kernel: Kernel
    dtype: Dtype
    grid: Grid
    program: WarpProgram
    steps: OuterSteps | None
    macs_executed: int
    slots_per_instruction: dict[str, int]
    traffic_bytes: dict[str, int]
    execute: Callable[[int, int], npt.NDArray[np.float64]]
    notes: tuple[str, ...] = field(default=())
    encodes_output: bool = False
    parts: tuple[Lowered, ...] = field(default=())

    @property
    def products(self) -> tuple[Lowered, ...]:
        """The products of a batch, or this one alone."""
        return self.parts or (self,)

    @property
    def outer_products(self) -> dict[str, int]:
        """Outer products of ``whole_tiles``, and of those rows and columns ``inside`` C; empty where none is skipped.

        Whole tiles are what a core that multiplies everything issues: every warp tile in full, K in whole
        slabs.  Inside is what is left for operands without any zero.
        """
        found = {"whole_tiles": 0, "inside": 0}
        for part in self.products:
            steps, grid = part.steps, part.grid
            if steps is None or steps.dense:
                return {}
            tile, k = grid.tile, steps.ones_a.shape[1]
            quanta = (tile.m_warp // steps.m_inst) * (tile.n_warp // steps.n_inst)
            found["whole_tiles"] += grid.n_tiles * quanta * -(-k // steps.k_slab) * steps.k_slab
            rows = _quanta(grid.m, tile.m_warp, steps.m_inst)
            found["inside"] += rows * _quanta(grid.n, tile.n_warp, steps.n_inst) * k
        return found

    @property
    def macs_useful(self) -> int:
        """MACs of the problem as it runs whose operands are both non-zero."""
        return sum(part.gemm.macs_useful for part in self.products)


def _quanta(size: int, edge: int, quantum: int) -> int:
    """Return the quanta that hold a row (or column) of C, tile by tile of `edge`."""
    whole, rest = divmod(size, edge)
    return whole * (edge // quantum) + -(-rest // quantum)
