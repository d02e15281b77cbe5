"""``kernel: auto``: time the kernels that a machine lists on a problem, keep the fastest.

Stands above the packages, beside `stcsim.run`.  A kernel is left out of the race only where a lower bound of its time
shows that it cannot win; ties go to the kernel that is listed first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from stcsim.catalog import KernelEntry, MachineEntry, kernels_of_table, load_kernel
from stcsim.config.machine import Dtype
from stcsim.errors import LoweringError, Problem, StcsimError
from stcsim.lowering.lowered import Lowered
from stcsim.machine.gpu_simulator import least_seconds
from stcsim.machine.simulator import simulate, slab_timing
from stcsim.machine.timing import EngineName, Timing


@dataclass(frozen=True)
class Tried:
    """One kernel on one problem.

    Parameters
    ----------
    kernel : KernelEntry
    lowered : Lowered or None
    timing : Timing or None
        None: it was not run, because it does not fit or cannot be the fastest.
    least_seconds : float
        What it takes at least.
    reason : str
        Why it was not run; empty if it was.
    """

    kernel: KernelEntry
    lowered: Lowered | None
    timing: Timing | None
    least_seconds: float
    reason: str = ""

    def seconds(self, clock_hz: float) -> float:
        """Return the time, infinite where it was not run."""
        if self.timing is None:
            return float("inf")
        return self.timing.cycles / (self.timing.clock_hz or clock_hz)


def listed(machine: MachineEntry, dtype: Dtype) -> Iterator[KernelEntry]:
    """Return the kernels that a machine lists for an operand type, by name and by table, in order."""
    names = list(machine.machine.kernels)
    for table in machine.machine.kernel_tables:
        names += kernels_of_table(table)
    for name in dict.fromkeys(names):
        entry, _ = load_kernel(name)
        if dtype in entry.kernel.instructions:
            yield entry


def race(
    kernels: Sequence[KernelEntry],
    machine: MachineEntry,
    lower: Callable[[KernelEntry], Lowered],
    engine: EngineName = "numba",
    threads: int = 1,
    *,
    every: bool = False,
) -> list[Tried]:
    """Time kernels on a problem until none of the others can be faster.

    Parameters
    ----------
    kernels : sequence of KernelEntry
    machine : MachineEntry
    lower : callable
        Lowers the problem to a kernel; raises where it does not fit.
    engine, threads
        As `stcsim.machine.simulator.simulate`.
    every : bool
        Run also those that cannot win.

    Returns
    -------
    tried : list of Tried
        The fastest first, then the others in order of time; those that were not run last.
    """
    bounded: list[tuple[float, int, KernelEntry, Lowered]] = []
    tried: list[Tried] = []
    for i, entry in enumerate(kernels):
        try:
            lowered = lower(entry)
            least = _least(lowered, machine, engine, threads)
        except StcsimError as error:
            tried.append(Tried(entry, None, None, float("inf"), str(error.problems[0])))
            continue
        bounded.append((least, i, entry, lowered))
    best = float("inf")
    places = {}
    for least, i, entry, lowered in sorted(bounded, key=lambda item: item[:2]):
        if least >= best and not every:
            tried.append(Tried(entry, lowered, None, least, "cannot be the fastest"))
            continue
        timing = simulate(lowered, machine.machine, engine, threads)
        done = Tried(entry, lowered, timing, least)
        places[entry.kernel.name] = i
        best = min(best, done.seconds(machine.machine.clock))
        tried.append(done)
    clock_hz = machine.machine.clock
    return sorted(tried, key=lambda one: (one.seconds(clock_hz), places.get(one.kernel.kernel.name, 0)))


def fastest(tried: Sequence[Tried], where: str) -> Tried:
    """Return the winner of a race.

    Raises
    ------
    LoweringError
        If no kernel ran; the message is that of the first one.
    """
    if not tried or tried[0].timing is None:
        reason = tried[0].reason if tried else "the machine lists none for this operand type"
        raise LoweringError(Problem(f"must have a kernel that runs it: {reason}", path=where))
    return tried[0]


def _least(lowered: Lowered, machine: MachineEntry, engine: EngineName, threads: int) -> float:
    """Return a lower bound of the time, 0 where there is none."""
    if machine.machine.gpu is None or lowered.steps is not None:
        return 0.0
    return least_seconds(lowered, machine.machine, slab_timing(lowered, machine.machine, engine, threads))
