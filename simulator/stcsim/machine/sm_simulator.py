"""Time a dense or 2:4 kernel on the SM engine: every instruction of every warp of a CTA.

Place in the data flow: takes a `Lowered` and a `Machine` with a section ``sm``, has the warp's code scheduled, gives
CTAs to SMs in raster order, runs one SM of each number of CTAs, and sums.  Knows no files and no networks.
"""

from __future__ import annotations

import numpy as np

from stcsim.config.machine import Machine
from stcsim.isa import load_isa
from stcsim.lowering.lowered import Lowered
from stcsim.lowering.main_loop import MainLoop
from stcsim.machine.datapaths import DATAPATHS
from stcsim.machine.occupancy import resident_ctas
from stcsim.machine.sm_record import CAUSES, Cause, IntArray, SmModel, SmRun
from stcsim.machine.sm_schedule import schedule
from stcsim.machine.timing import EngineName, Timing

LABEL = "SM engine: every instruction of every warp; L2, DRAM and launch take no time, cp.async latency fixed"
"""How results name this model of the chip."""

_IMBALANCE, _TAIL = "imbalance", "tail"


def bind(lowered: Lowered, machine: Machine, k: int | None = None) -> SmModel:
    """Return the model of one SM, for the problem's K or another one.

    Raises
    ------
    LoweringError
        If the kernel does not fit the machine.
    """
    kernel, tile = lowered.kernel, lowered.grid.tile
    limit = DATAPATHS[kernel.datapath].accumulator_tiles(machine)
    loop = MainLoop(kernel, lowered.dtype, tile)
    return schedule(
        loop.code(lowered.program.iterations * lowered.program.k_step if k is None else k),
        machine,
        warps_per_cta=tile.warps,
        resident_ctas=resident_ctas(machine, kernel, lowered.dtype, limit, loop.stage_bytes),
    )


def ctas_of_sms(ctas: int, sms: int) -> IntArray:
    """Return the CTAs of each SM: in raster order, round robin."""
    return np.array([ctas // sms + (i < ctas % sms) for i in range(sms)], np.int64)


def simulate(lowered: Lowered, machine: Machine, engine: EngineName = "numba", threads: int = 1) -> Timing:
    """Count the cycles of a lowered problem; arguments as `stcsim.machine.simulator.simulate`.

    Idle sub-cores of a working SM count as imbalance; SMs that have finished, or never had a CTA, as tail.

    Raises
    ------
    LoweringError
        If the kernel does not fit the machine.
    """
    model = bind(lowered, machine)
    ctas, times = np.unique(
        ctas_of_sms(lowered.grid.ctas_m * lowered.grid.ctas_n, machine.sms), return_counts=True
    )
    runs = run_sms(engine, model, ctas, threads)
    cycles = max((run.cycles for run in runs), default=0)
    stalls = dict.fromkeys([cause.value for cause in CAUSES if cause != Cause.IDLE], 0)
    stalls |= {_IMBALANCE: 0, _TAIL: 0}
    issued = np.zeros(len(model.mnemonics), np.int64)
    for run, n in zip(runs, times.tolist(), strict=True):
        for cause, count in zip(CAUSES, run.causes.sum(axis=0).tolist(), strict=True):
            stalls[_IMBALANCE if cause == Cause.IDLE else cause.value] += n * count
        stalls[_TAIL] += n * machine.sub_cores_per_sm * (cycles - run.cycles)
        issued += n * run.issued.sum(axis=0)
    sub_cores = machine.sms * machine.sub_cores_per_sm
    if sum(stalls.values()) != cycles * sub_cores:
        message = f"causes ({sum(stalls.values())}) do not tile {cycles} cycles of {sub_cores} sub-cores"
        raise AssertionError(message)
    isa = load_isa()
    tensor = {
        name: int(count)
        for name, count in zip(model.mnemonics, issued, strict=True)
        if name in isa and isa[name].unit == "tensor"
    }
    return Timing(
        cycles=cycles,
        sub_cores=sub_cores,
        stalls={cause: count for cause, count in stalls.items() if count or cause == Cause.TENSOR_BUSY},
        instructions=tensor,
        products=0,
        resident_warps=max(1, model.resident_ctas * model.warps_per_cta // machine.sub_cores_per_sm),
        model=LABEL,
    )


def run_sms(
    engine: EngineName, model: SmModel, ctas: IntArray, threads: int, n_starts: int = 0
) -> list[SmRun]:
    """Run SMs with the given numbers of CTAs on the engine of that name; see `stcsim.machine.sm.simulate`."""
    if engine == "reference":
        from stcsim.machine import sm  # each engine is loaded only where it runs

        return sm.simulate(model, ctas, n_starts=n_starts)
    from stcsim.machine.kernels import sm as fast  # numba takes most of a second to import

    return fast.simulate(model, ctas, threads=threads, n_starts=n_starts)
