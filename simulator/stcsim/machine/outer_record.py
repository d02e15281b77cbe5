"""The records of the outer-product engines: what an SM and its work look like, and what is counted.

Place in the data flow: `stcsim.machine.outer_simulator` makes these records
from a lowered problem and a machine; the reference engine
(`stcsim.machine.outer_reference`) and the fast one (`stcsim.machine.kernels.outer`)
read them.  Every number of the model is in a record, none in an engine.

Sub-cycle quantities (front-end cycles per step, words per cycle) are kept exact
in integers: time in thousandths of a cycle, buffer time in words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]

MILLI = 1000
"""Thousandths of a cycle in a cycle: the unit of front-end time."""


class Buffer(IntEnum):
    """Models of the accumulator buffer's bandwidth, chosen by name and never blended."""

    UNLIMITED = 0
    WORDS = 1
    BANKED = 2


class OuterCounter(IntEnum):
    """What an engine counts for each sub-core; the causes in order of precedence.

    Where several causes hold in a cycle the first counts, over all resident warps.
    """

    CYCLES = 0
    """Cycles until the SM's last CTA is done."""
    TENSOR_BUSY = 1
    """An outer product occupies the tensor pipe."""
    ACCUMULATOR_CONFLICT = 2
    """A warp has its operands, and the accumulator buffer cannot take its products.
    Example: 128 products at 116 words a cycle leave one such cycle in about ten."""
    ISSUE = 3
    """A warp has its operands, and the front end is still going on to its next outer product.
    Example: front_end_cycles_per_step of 1 leaves one such cycle after every step."""
    DEPENDENCY = 4
    """Every warp waits, one of them for the population counts of its next slab.
    Example: two POPC a step on 4 lanes take 256 cycles, 128 outer products take 128."""
    SHARED_MEMORY = 5
    """Every warp waits, one of them for its next slab from shared memory.
    Example: one warp, its first slab: the port and the latency of the first loads."""
    BARRIER = 6
    """Every warp waits, at best at a barrier of its CTA.
    Example: a warp of 10 outer products waits for one of 40 on another sub-core."""
    PROLOGUE = 7
    """Every warp waits for its C to be loaded into the accumulator buffer."""
    EPILOGUE = 8
    """Every warp waits for its last sums and for its tile to drain.
    Example: 1024 words at 32 a cycle: 32 such cycles where one warp is alone."""
    IMBALANCE = 9
    """The sub-core has no warp of the resident CTAs left, another sub-core of the SM has."""
    OHMMA = 10
    """Outer products executed."""
    PRODUCTS = 11
    """Products of two non-zeros."""
    LOADS = 12
    """Shared-memory load instructions (bitmaps, offsets, packed values)."""
    WAVEFRONTS = 13
    """128-byte transfers of those loads through the shared-memory port."""
    POPC = 14
    """Population-count instructions."""
    SLABS = 15
    """Warp instructions (SpWMMA) that were not skipped as empty."""


N_OUTER_COUNTERS = len(OuterCounter)
FIRST_CAUSE = OuterCounter.TENSOR_BUSY
LAST_CAUSE = OuterCounter.IMBALANCE


@dataclass(frozen=True)
class OuterModel:
    """An SM with outer-product tensor cores, and the shape of the kernel that it runs.

    Parameters
    ----------
    sub_cores : int
        Of the SM; warp w of the CTA in slot s is on sub-core (s * warps + w) mod sub_cores.
    resident_ctas : int
    greedy : bool
        gto (True) or lrr (False).
    m_warp, n_warp, m_inst, n_inst : int
        Warp tile and outer-product shape, in elements.
    k : int
        K of the problem.
    k_slab : int
        K of one warp instruction (16).
    slabs_per_stage : int
        Slabs in one stage of shared memory; a CTA meets at a barrier once a stage.
    interval_cycles, latency_cycles : int
        Of an outer product: occupancy of the pipe; issue to last sum in the buffer.
    buffer : int
        `Buffer`.
    words_per_cycle : int
        Of `Buffer.WORDS`.
    bank_of : ndarray of int64, shape (m_warp, n_warp)
        Bank of each sum (`Buffer.BANKED`).
    n_banks : int
    accesses_per_cycle : int
        Accesses that a bank serves in a cycle.
    window : int
        Outer products that may be undrained at a time, the issuing one included; 1: no collector.
    step_milli : int
        Front-end time of each executed step beyond its outer products.
    skipped_milli : int
        Front-end time of each predicated-off outer product of a slab that is not skipped whole.
    popc_cycles : int
        Integer-pipe cycles of a slab's population counts; popc_latency_cycles follow.
    popc_latency_cycles : int
    popc_instructions : int
        Of one slab.
    shared_issue : bool
        Whether loads and population counts take front-end slots from outer products.
    load_wavefront_cycles : int
        Cycles between 128-byte wavefronts of one sub-core: its share of the SM's port.
    load_latency_cycles : int
    bitmap_wavefronts, bitmap_loads : int
        Of a slab's bitmap words and offsets, both operands.
    element_bytes : int
    load_c_words_per_cycle : int
        0: C starts as zero.
    drain_words_per_cycle : int
        0: draining takes no time.
    barrier_base_cycles, barrier_warp_cycles : int
        From the last arrival to the release: base + warps of the CTA * warp cycles; base < 0: no barriers.
    """

    sub_cores: int
    resident_ctas: int
    greedy: bool
    m_warp: int
    n_warp: int
    m_inst: int
    n_inst: int
    k: int
    k_slab: int
    slabs_per_stage: int
    interval_cycles: int
    latency_cycles: int
    buffer: int
    words_per_cycle: int
    bank_of: IntArray
    n_banks: int
    accesses_per_cycle: int
    window: int
    step_milli: int
    skipped_milli: int
    popc_cycles: int
    popc_latency_cycles: int
    popc_instructions: int
    shared_issue: bool
    load_wavefront_cycles: int
    load_latency_cycles: int
    bitmap_wavefronts: int
    bitmap_loads: int
    element_bytes: int
    load_c_words_per_cycle: int
    drain_words_per_cycle: int
    barrier_base_cycles: int
    barrier_warp_cycles: int

    @property
    def slabs(self) -> int:
        """Slabs along K, the last one possibly short."""
        return -(-self.k // self.k_slab)

    @property
    def grid_a(self) -> int:
        """Outer products of a dense step along M."""
        return -(-self.m_warp // self.m_inst)

    @property
    def grid_b(self) -> int:
        """Outer products of a dense step along N."""
        return -(-self.n_warp // self.n_inst)


@dataclass(frozen=True)
class OuterWork:
    """The CTAs of every SM, their warp tiles, and the operands' bitmaps.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n_sms + 1,)
        CTAs of SM s are ``offsets[s]:offsets[s + 1]``, in order.
    warp_offsets : ndarray of int64, shape (n_ctas + 1,)
        Warps of CTA c are ``warp_offsets[c]:warp_offsets[c + 1]`` (those that hold an element of C).
    warp_index : ndarray of int64, shape (n_warps,)
        Number of each warp within its CTA.
    tile_m, tile_n : ndarray of int64, shape (n_warps,)
        Its place in the grid of warp tiles.
    words : ndarray of int64, shape (n_warps,)
        Sums of each warp's tile that lie within C.
    warps : int
        Warps of a whole CTA.
    bits_a : ndarray of uint64, shape (tiles_m, k)
        Bit i of word (t, k): whether element k of row i of row tile t is non-zero.
    bits_b : ndarray of uint64, shape (tiles_n, k)
        The same of B's columns.
    """

    offsets: IntArray
    warp_offsets: IntArray
    warp_index: IntArray
    tile_m: IntArray
    tile_n: IntArray
    words: IntArray
    warps: int
    bits_a: npt.NDArray[np.uint64]
    bits_b: npt.NDArray[np.uint64]
