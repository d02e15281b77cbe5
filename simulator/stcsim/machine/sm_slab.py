"""How long an SM takes for one K-slab of a CTA: what the GPU level takes from the SM engine.

Place in the data flow: `stcsim.machine.gpu_simulator` asks; the SM engine answers for a short and a longer loop, whose
difference is the steady iteration.  Operands count as landed: when they land is the GPU level's to say.  Knows no L2,
no DRAM and no grid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stcsim.config.machine import Machine
from stcsim.lowering.lowered import Lowered
from stcsim.machine.gpu_record import TICKS
from stcsim.machine.sm_listing import bind_listing
from stcsim.machine.sm_record import CAUSES, Cause, IntArray, SmModel, SmRun
from stcsim.machine.sm_simulator import bind, run_sms
from stcsim.machine.timing import EngineName

SHORT, LONG = 16, 48
"""Slabs of the two runs; the first ones fill pipes and queues."""
SLABS_OF_CAUSES = LONG - SHORT
"""Slabs that the causes of one resident CTA are of."""


@dataclass(frozen=True)
class SlabTiming:
    """Time of an SM for slabs, by resident CTAs.

    Parameters
    ----------
    ticks : ndarray of int64, shape (resident_ctas + 1,)
        Of one slab while so many CTAs are resident; entry 0 is not used.
    causes : tuple of dict of str to int
        Sub-core cycles of those slabs by cause, in proportion; entry 0 is empty.
    before_cycles, after_cycles : int
        Of a CTA alone, around its slabs: first requests and fragments, and results of the last products.
    """

    ticks: IntArray
    causes: tuple[dict[str, int], ...]
    before_cycles: int
    after_cycles: int

    @property
    def resident_ctas(self) -> int:
        """CTAs that the SM holds."""
        return len(self.ticks) - 1


_KEPT = 512
"""Timings that are kept; a table of kernels with its splits is some hundred."""
_timed: dict[tuple[str, ...], SlabTiming] = {}


def time_slab(lowered: Lowered, machine: Machine, engine: EngineName, threads: int) -> SlabTiming:
    """Time the slabs of a dense or 2:4 kernel; what has been timed in this process is kept.

    Raises
    ------
    LoweringError
        If the kernel does not fit the machine.
    """
    kernel = lowered.kernel.model_dump_json(
        exclude={"name", "summary", "grid", "store_bytes", "output_bytes"}
    )
    tile = lowered.grid.tile.model_dump_json()
    key = (
        kernel,
        tile,
        machine.model_dump_json(exclude={"name", "summary", "gpu", "clock"}),
        lowered.dtype,
        engine,
    )
    if key not in _timed:
        if len(_timed) >= _KEPT:
            _timed.clear()
        _timed[key] = _time(lowered, machine, engine, threads)
    return _timed[key]


def _time(lowered: Lowered, machine: Machine, engine: EngineName, threads: int) -> SlabTiming:
    k_cta = lowered.grid.tile.k_cta
    models = [bind(lowered, machine, slabs * k_cta) for slabs in (SHORT, LONG)]
    before, after = _around(models, engine, threads)
    loop, n_residents = lowered.kernel.loop, models[0].resident_ctas
    if loop is not None:
        models = [bind_listing(loop, machine, iterations=slabs) for slabs in (SHORT, LONG)]
    ticks, causes = [0], [dict[str, int]()]
    for residents in range(1, n_residents + 1):
        short, long = (_landed(model, residents, engine, threads) for model in models)
        slabs = residents * (LONG - SHORT)
        ticks.append((long.cycles - short.cycles) * TICKS // slabs)
        # Sums over runs that are whole: what ends differently in the two may leave a cause one short.
        steady = np.maximum(0, long.causes.sum(axis=0) - short.causes.sum(axis=0)).tolist()
        causes.append(
            {
                "imbalance" if cause == Cause.IDLE else cause.value: count
                for cause, count in zip(CAUSES, steady, strict=True)
                if count
            }
        )
    return SlabTiming(np.array(ticks, np.int64), tuple(causes), before, after)


def _landed(model: SmModel, residents: int, engine: EngineName, threads: int) -> SmRun:
    """Run so many CTAs, all resident, whose copies land at once."""
    ready = replace(model, machine=model.machine.but(copy_latency=0), resident_ctas=residents)
    return run_sms(engine, ready, np.array([residents], np.int64), threads, n_starts=2)[0]


def _around(models: list[SmModel], engine: EngineName, threads: int) -> tuple[int, int]:
    """Return the cycles of a CTA alone that do not grow with its slabs: before its loop, and after it."""
    short, long = (_landed(model, 1, engine, threads) for model in models)
    both = max(0, short.cycles - SHORT * (long.cycles - short.cycles) // (LONG - SHORT))
    slab = (long.cycles - short.cycles) // (LONG - SHORT)
    before = min(both, max(0, int(short.starts[:, 1].max(initial=0)) - slab))
    return before, both - before
