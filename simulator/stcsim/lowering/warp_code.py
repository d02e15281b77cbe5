"""Straight-line code of one warp, with a loop in its middle: what the SM engine times.

Place in the data flow: made by `stcsim.lowering.main_loop` from a kernel's shapes; `stcsim.machine.sm_schedule`
gives it stall counts and scoreboard counters as a compiler does.  Knows no cycles but those that a kernel states.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CodeOp:
    """One instruction and what it depends on.

    Parameters
    ----------
    mnemonic : str
    writes, reads : tuple of int
        First registers of its operands; those of a fragment count as one.
    wavefronts : int
        Loads and stores: passes through the shared-memory port, 128 bytes each without conflicts.
    lines : int
        Asynchronous copies and global loads: 128-byte lines that the warp touches.
    pending : int
        Waits for groups of copies: how many may be pending.
    batch : int
        Loads: those of one batch are waited for together, so they share a scoreboard counter.
    wait_cycles : int
        Cycles from its issue in which the warp issues nothing, at least.
    set_, step : int
        HMMA.884: set and step of the 16x16x16 product.
    """

    mnemonic: str
    writes: tuple[int, ...] = ()
    reads: tuple[int, ...] = ()
    wavefronts: int = 0
    lines: int = 0
    pending: int = 0
    batch: int = 0
    wait_cycles: int = 0
    set_: int = 0
    step: int = 0


@dataclass(frozen=True)
class WarpCode:
    """What every warp of a CTA runs: before the loop, the loop's body without its branch, after the loop.

    Parameters
    ----------
    before, body, after : tuple of CodeOp
    iterations : int, at least 1
    """

    before: tuple[CodeOp, ...]
    body: tuple[CodeOp, ...]
    after: tuple[CodeOp, ...]
    iterations: int
