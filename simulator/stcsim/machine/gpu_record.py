"""The flat records that both GPU engines read and write: chip, CTAs, L2 state, where the time of every SM went.

Place in the data flow: `stcsim.machine.gpu_simulator` makes them from a machine's ``gpu`` section and a lowered
problem; the reference engine (`stcsim.machine.gpu`) and the numba engine (`stcsim.machine.kernels.gpu`) read them.
Knows no instructions, no operand values and no files.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

TICKS = 64
"""Ticks of a cycle: time is counted in whole ticks, so that both engines add alike and nothing is lost."""
MILLI = 1024
"""Fractions are counted in 1/1024."""
AGE_STEPS = 256
"""Entries of the table of misses for each capacity's worth of age."""
MOST_AGE = 8
"""Capacities after which nothing is left."""
LONG_AGO = -(2**60)
"""Count of touched bytes at which data that L2 never held was touched last."""


class SmTime(IntEnum):
    """What the time of an SM went to: columns of `GpuRun.sm_ticks`."""

    COMPUTE = 0
    """A slab is computed."""
    PROLOGUE = 1
    """No CTA has its first slab yet: entry code and the first loads."""
    L2 = 2
    """The next slab has not landed; L2 or the way to the SM was the last to serve it."""
    DRAM = 3
    """The next slab has not landed; DRAM was the last to serve it."""
    EPILOGUE = 4
    """A CTA stores its tile and no other computes."""
    TAIL = 5
    """The SM has no CTA, others have."""


@dataclass(frozen=True)
class GpuModel:
    """The chip as CTAs see it.

    Parameters
    ----------
    sms, resident_ctas : int
        SMs, and the CTAs that each holds at a time.
    stages : int
        Slabs that a CTA's shared memory holds; stages - 1 are in flight while one is computed.
    start_ticks : int
        Start of a CTA to its first request.
    head_ticks : int
        First request to first product, at the earliest: all first requests are issued before.
    store_latency_ticks : int
        Last slab done to the CTA's end, beside the time of storing.
    dispatch_ticks : int
        Between the first CTAs that the dispatcher starts.
    l2_rate, sm_rate, dram_rate, write_rate : int
        Milli-bytes (1/1024 byte) a tick: L2 of the chip, into one SM, DRAM, stores into L2.
    l2_latency_ticks, dram_latency_ticks : int
        From the last byte served to landed.
    capacity_bytes : int
        Of L2.
    edge_milli : int
        Beyond an age of the capacity L2 loses all but 1/e of a block over so much of the capacity, in 1/1024.
    persistent : int
        1: CTAs are fixed to slots (i, i + slots, ...) and a slot's next CTA asks for its first slabs before its
        predecessor stores; 0: each goes to the first slot that is free.
    lead_milli : int
        Where several slabs count as one: the share of its time, in 1/1024, that may be computed before its last
        byte has landed, all but its last slab; 0 where slabs are told apart.
    outstanding_bytes : int
        Bytes that a CTA may have asked for and not got.
    """

    sms: int
    resident_ctas: int
    stages: int
    start_ticks: int
    head_ticks: int
    store_latency_ticks: int
    dispatch_ticks: int
    l2_rate: int
    sm_rate: int
    dram_rate: int
    write_rate: int
    l2_latency_ticks: int
    dram_latency_ticks: int
    capacity_bytes: int
    edge_milli: int
    persistent: int
    lead_milli: int
    outstanding_bytes: int

    def vector(self) -> IntArray:
        """Return the parameters in the order of the fields, as the numba engine takes them."""
        return np.array(astuple(self), np.int64)

    def but(self, **changes: int) -> GpuModel:
        """Return a model with some parameters changed."""
        return replace(self, **changes)


MODEL_FIELDS = tuple(field.name for field in fields(GpuModel))
"""Names of the elements of `GpuModel.vector`."""


@dataclass(frozen=True)
class GpuWork:
    """The CTAs in the order in which they start, and what they fetch.

    Parameters
    ----------
    panel_a, panel_b, tile_c : ndarray of int64, shape (n_ctas,)
        Which panel of A and of B a CTA reads, which tile of C it writes.
    first, slabs : ndarray of int64, shape (n_ctas,)
        Its slabs of K: ``first`` to ``first + slabs - 1``.
    slab_ticks : ndarray of int64, shape (n_ctas,)
        Time of an SM for one of its slabs where no other CTA is resident.
    shared_milli : ndarray of int64, shape (resident_ctas + 1,)
        Time of an SM for a slab, by resident CTAs, in 1/1024 of that.
    store_ticks : ndarray of int64, shape (n_ctas,)
        Time of an SM for storing the CTA's tile.
    bytes_a : ndarray of int64, shape (n_panels_a,)
        Bytes of one slab of each panel.
    bytes_b : ndarray of int64, shape (n_panels_b,)
    bytes_c : ndarray of int64, shape (n_ctas,)
        Bytes that the CTA writes.
    written : ndarray of int64, shape (n_ctas,)
        The same in whole sectors, one for each part of one: what L2 is written.
    fresh_milli : tuple of int
        Share of A's and of B's bytes that is not also part of another slab (convolutions: windows overlap), in
        1/1024: what DRAM is asked for.
    """

    panel_a: IntArray
    panel_b: IntArray
    tile_c: IntArray
    first: IntArray
    slabs: IntArray
    slab_ticks: IntArray
    shared_milli: IntArray
    store_ticks: IntArray
    bytes_a: IntArray
    bytes_b: IntArray
    bytes_c: IntArray
    written: IntArray
    fresh_milli: tuple[int, int]

    @property
    def n_slabs(self) -> int:
        """Slabs along K of the whole problem."""
        return int((self.first + self.slabs).max(initial=0))


class CtaTime(IntEnum):
    """Moments of a CTA: columns of `GpuRun.cta_ticks`."""

    STARTED = 0
    LANDED = 1
    """Its first slab has landed."""
    COMPUTED = 2
    """Its last slab is done."""
    STORED = 3
    """Its tile is written."""


@dataclass
class L2State:
    """When L2 was last asked for each block, on a clock of touched bytes; engines go on from it.

    Parameters
    ----------
    last_a : ndarray of int64, shape (n_panels_a, n_slabs)
    last_b : ndarray of int64, shape (n_panels_b, n_slabs)
    last_c : ndarray of int64, shape (n_tiles_c,)
    touched_bytes : int
        The clock: a block of age 0 lets it stand, one that is as old as the capacity or never was there adds its bytes,
        between the two in proportion.  So a block's age is about what lies before it in the order of last use.
    """

    last_a: IntArray
    last_b: IntArray
    last_c: IntArray
    touched_bytes: int = 0

    def age(self, last: int, capacity_bytes: int) -> int:
        """Return the age of a block that was touched last at `last`, in 1/`AGE_STEPS` of the capacity."""
        capacity_bytes = max(1, capacity_bytes)
        return min(self.touched_bytes - last, MOST_AGE * capacity_bytes) * AGE_STEPS // capacity_bytes

    def touch(self, age: int, n_bytes: int) -> None:
        """Let the clock go on as a block of this age is asked for."""
        self.touched_bytes += n_bytes * min(age, AGE_STEPS) // AGE_STEPS

    @classmethod
    def cold(cls, work: GpuWork) -> L2State:
        """Return the state of an empty L2."""
        n_slabs = work.n_slabs
        return cls(
            np.full((len(work.bytes_a), n_slabs), LONG_AGO, np.int64),
            np.full((len(work.bytes_b), n_slabs), LONG_AGO, np.int64),
            np.full(int(work.tile_c.max(initial=-1)) + 1, LONG_AGO, np.int64),
        )


@dataclass(frozen=True)
class GpuRun:
    """What the chip did.

    Parameters
    ----------
    ticks : int
        Until the last CTA has ended.
    sm_ticks : ndarray of int64, shape (sms, len(SmTime))
        Each row sums to `ticks`.
    compute_ticks : ndarray of int64, shape (resident_ctas + 1,)
        Of all SMs, by CTAs that were resident.
    cta_ticks : ndarray of int64, shape (n_ctas, len(CtaTime))
        Moments of each CTA; without a slab it lands and computes when it has started.
    l2_bytes, dram_read_bytes, dram_write_bytes : int
    """

    ticks: int
    sm_ticks: IntArray
    compute_ticks: IntArray
    cta_ticks: IntArray
    l2_bytes: int
    dram_read_bytes: int
    dram_write_bytes: int


def miss_table(edge_milli: int) -> IntArray:
    """Return the share of a block that L2 has lost, in 1/1024, by its age in 1/`AGE_STEPS` of the capacity.

    Nothing up to the capacity; beyond it exp(-(age - capacity) / edge) is left.  Source: reads of 50, 59, 67 and 101 MB
    through the 50 MiB of an H200 (data/h200/mem_bandwidth.csv, L2_read_cg); docs/gpu.md sets both side by side.

    Parameters
    ----------
    edge_milli : int
        In 1/1024 of the capacity.

    Returns
    -------
    lost_milli : ndarray of int64, shape (MOST_AGE * AGE_STEPS + 1,)
    """
    beyond = np.maximum(0, np.arange(MOST_AGE * AGE_STEPS + 1) / AGE_STEPS - 1)
    lost = np.round(MILLI * -np.expm1(-beyond * MILLI / max(1, edge_milli))).astype(np.int64)
    lost[-1] = MILLI
    return lost
