"""What timing a lowered problem returns, whichever engine counted it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

EngineName = Literal["numba", "reference", "analytic"]
"""The fast cycle engine, the readable one that defines it, closed forms."""


@dataclass(frozen=True)
class CtaCycles:
    """Medians over the CTAs of a grid.

    Parameters
    ----------
    prologue_cycles : float
        Start to first slab landed.
    slab_cycles : float
        Of one K-slab, from then to the last one done; wall cycles, which resident CTAs share.
    epilogue_cycles : float
        Last slab done to tile stored.
    """

    prologue_cycles: float
    slab_cycles: float
    epilogue_cycles: float


@dataclass(frozen=True)
class Timing:
    """Where the cycles of one run went.

    Parameters
    ----------
    cycles : int
        Cycles until the last sub-core is done.
    sub_cores : int
        Sub-cores of the machine.
    stalls : dict of str to int
        Sub-core cycles by cause, tensor_busy included; they sum to cycles * sub_cores.
    instructions : dict of str to int
        Issued instructions by mnemonic.
    products : int
        Products of non-zero operands that data-dependent instructions computed.
    resident_warps : int
        Warps that each sub-core holds at a time.
    model : str
        What the cycles cover, in words.
    clock_hz : float, optional
        The clock that the board sustains; None: the machine's.
    dram_bytes : int, optional
        Moved from and to DRAM; None: not modelled.
    cta : CtaCycles, optional
        None: CTAs are not told apart.
    memory_bytes_per_second : dict of str to float
        Most that the SMs can fetch from ``l2``, and that ``dram`` sustains; empty: not modelled.
    """

    cycles: int
    sub_cores: int
    stalls: dict[str, int]
    instructions: dict[str, int]
    products: int
    resident_warps: int
    model: str
    clock_hz: float | None = None
    dram_bytes: int | None = None
    cta: CtaCycles | None = None
    memory_bytes_per_second: dict[str, float] = field(default_factory=dict)
