"""The flat records that both engines read and write: micro-operations, work and counters.

Place in the data flow: `stcsim.machine.binding` makes these records from a
lowered program and a machine's timings; the reference engine and the numba
engine read them; `stcsim.machine.simulator` sums what they write.  Every number
of the model is in a record, none in an engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]


class Column(IntEnum):
    """Columns of the micro-operation table, one row for each instruction of the loop body."""

    OPCODE = 0
    """Index into the list of mnemonics, for counting."""
    INTERVAL = 1
    """Cycles for which it occupies the tensor pipe."""
    LATENCY = 2
    """Cycles until a dependent instruction may issue."""
    DESTINATION = 3
    """Scoreboard slot that it writes."""
    SOURCE = 4
    """Scoreboard slot that must be ready before it issues, -1 for none."""
    REPEAT = 5
    """`Repeat`: how many times it executes in one iteration."""


class Repeat(IntEnum):
    """How many times a micro-operation executes in one iteration of the loop body."""

    ONCE = 0
    OUTER_GRID = 1
    """ceil(ones of A's column / m_inst) * ceil(ones of B's row / n_inst) times, from the step tables."""


class Cause(StrEnum):
    """What a cycle of a sub-core went to.

    The order of the members is the order of precedence: where several hold in
    one cycle, the first counts (the resource nearest to the tensor pipe first).
    Both engines and the documentation take it from here.
    """

    TENSOR_BUSY = "tensor_busy"
    """The tensor pipe is occupied.  Example: cycles 0..7 of an instruction of interval 8."""
    DEPENDENCY = "dependency"
    """The pipe is free, but every resident warp waits for an earlier result of its own.
    Example: two dependent instructions of latency 25 and interval 8 leave 17 such cycles."""
    IMBALANCE = "imbalance"
    """The sub-core has finished while another, with no more warp tiles than it, still works.
    Example: two sub-cores get a tile each, one of 10 cycles and one of 4: 6 such cycles."""
    TAIL = "tail"
    """The sub-core has finished, having got fewer warp tiles than the busiest one.
    Example: 3 equal tiles on 2 sub-cores: the second idles for the third tile."""


ENGINE_CAUSES = (Cause.TENSOR_BUSY, Cause.DEPENDENCY)
"""The causes that a sub-core's engine tells apart, in the order of its counters."""


class Counter(IntEnum):
    """Counters that an engine returns for each sub-core, before those of each mnemonic."""

    CYCLES = 0
    """Cycles until the last result of the last warp tile is there."""
    TENSOR_BUSY = 1
    DEPENDENCY = 2
    PRODUCTS = 3
    """Products of non-zero operands that data-dependent instructions computed (0 for others)."""


N_COUNTERS = len(Counter)


@dataclass(frozen=True)
class SubCoreModel:
    """All that an engine must know of a sub-core and of the program that its warps run.

    Parameters
    ----------
    micro_ops : ndarray of int64, shape (n_ops, len(Column))
        The loop body.
    mnemonics : tuple of str
        Names of the opcodes.
    n_slots : int
        Scoreboard slots of a warp.
    iterations : int
        Iterations of the loop body in every warp tile.
    resident_warps : int
        Warps that the sub-core holds at a time.
    greedy : bool
        Scheduler policy: True for gto, False for lrr.
    ones_a, ones_b : ndarray of uint8, shape (tiles along M or N, iterations)
        Non-zeros of A's column (B's row) in each warp tile and step; shape (0, 0)
        where no micro-operation repeats by data.
    m_inst, n_inst : int
        Outer-product shape: the quanta of the data-dependent repetition.
    """

    micro_ops: IntArray
    mnemonics: tuple[str, ...]
    n_slots: int
    iterations: int
    resident_warps: int
    greedy: bool
    ones_a: ByteArray
    ones_b: ByteArray
    m_inst: int
    n_inst: int


@dataclass(frozen=True)
class Work:
    """The warp tiles of every sub-core, in the order in which its warps take them.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n_sub_cores + 1,)
        Tiles of sub-core s are ``offsets[s]:offsets[s + 1]``.
    tile_m, tile_n : ndarray of int64, shape (n_tiles,)
        Position of each warp tile in the grid of warp tiles.
    """

    offsets: IntArray
    tile_m: IntArray
    tile_n: IntArray
