"""One measured main loop on one SM: cycles of an iteration, where they went, and the events of a window.

Stands above the packages; ``stcsim sim loop`` calls `run_loop`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stcsim.catalog import load_machine
from stcsim.errors import ConfigError, Problem, must
from stcsim.h200 import load_loop, per_iteration
from stcsim.machine import sm
from stcsim.machine.kernels import sm as fast
from stcsim.machine.sm_listing import bind_listing
from stcsim.machine.sm_record import CAUSES, IntArray, Window

ITERATIONS = 60
"""Iterations that are simulated; those from the first quarter to two thirds count as steady."""


@dataclass(frozen=True)
class LoopResult:
    """What a main loop took.

    Parameters
    ----------
    loop, machine, engine : str
    ctas : int
        Resident on the SM.
    cycles_per_iteration : float
        Steady, of one CTA.
    iterations : int
        Of the whole run, to which the next two belong.
    cycles : int
    causes : dict of str to int
        Sub-core cycles by cause; they sum to cycles times sub-cores.
    issued : dict of str to int
        Instructions by opcode.
    events : ndarray of int64
        Of the traced window.
    names : tuple of str
        Opcode of each row of the listing.
    """

    loop: str
    machine: str
    engine: str
    ctas: int
    cycles_per_iteration: float
    iterations: int
    cycles: int
    causes: dict[str, int]
    issued: dict[str, int]
    events: IntArray
    names: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, without the events."""
        return {
            "loop": self.loop,
            "machine": self.machine,
            "engine": self.engine,
            "ctas": self.ctas,
            "cycles_per_iteration": self.cycles_per_iteration,
            "iterations": self.iterations,
            "cycles": self.cycles,
            "causes": self.causes,
            "issued": self.issued,
        }


def parse_window(text: str) -> Window:
    """Read ``START:LEN``.

    Raises
    ------
    ConfigError
        If it is not two whole numbers, the second at least 1.
    """
    start, colon, length = text.partition(":")
    if not (colon and start.isdecimal() and length.isdecimal() and int(length) >= 1):
        raise ConfigError(
            Problem(must("must be START:LEN in cycles, such as 1000:200", text), path="--trace-window")
        )
    if int(length) > 1_000_000:
        raise ConfigError(Problem(must("must trace at most 1000000 cycles", length), path="--trace-window"))
    return Window(int(start), int(length))


def run_loop(name: str, *, machine: str, ctas: int | None, engine: str, window: Window) -> LoopResult:
    """Simulate a measured main loop.

    Parameters
    ----------
    name : str
        A shipped loop, or a file.
    machine : str
    ctas : int or None
        CTAs on the SM; None: one.
    engine : "numba" or "reference"
    window : Window
        Cycles whose issues are recorded.

    Raises
    ------
    StcsimError
        If there is no such loop or machine, or the machine has no section ``sm``.
    """
    loop = load_loop(name)
    entry, _ = load_machine(machine, place=Problem("", path="--machine"))
    model = bind_listing(loop, entry.machine, iterations=ITERATIONS, resident_ctas=ctas or 1)
    ctas_of_sm = np.array([model.resident_ctas])
    if engine == "reference":
        (run,) = sm.simulate(model, ctas_of_sm, window=window)
    else:
        (run,) = fast.simulate(model, ctas_of_sm, window=window)
    totals = run.causes.sum(axis=0)
    issued = run.issued.sum(axis=0)
    return LoopResult(
        loop=loop.name,
        machine=entry.machine.name,
        engine=engine,
        ctas=model.resident_ctas,
        cycles_per_iteration=per_iteration(model),
        iterations=ITERATIONS,
        cycles=run.cycles,
        causes={cause.value: int(n) for cause, n in zip(CAUSES, totals, strict=True)},
        issued={name: int(n) for name, n in zip(model.mnemonics, issued, strict=True)},
        events=run.events,
        names=tuple(op.opcode for op in loop.ops()),
    )
