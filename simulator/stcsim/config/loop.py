"""A measured main loop, instruction by instruction: what a file of configs/kernels/loops/ says.

A listing is facts that were read from a compiled kernel: order, stall counts, scoreboard counters and waits.
`stcsim.machine.sm_listing` binds it to a machine.  Knows nothing of simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from stcsim.config.section import Positive, Section

_FIELDS = 8


@dataclass(frozen=True)
class ListedOp:
    """One line of a listing.

    Parameters
    ----------
    opcode : str
    stall : int
        Stall count as encoded, 0 to 15.
    yields : bool
        Whether the yield hint is given (the encoded bit is 0).
    write, read : int or None
        Scoreboard counter that it holds until its result is there, until its operands are read.
    wait_mask : int
        Counters that must be zero before it issues.
    pending : int
        Groups of copies that a wait lets pend.
    role : str
        ``off``: predicated off, takes an issue slot only; ``loop``: loop control; ``-``: neither.
    """

    opcode: str
    stall: int
    yields: bool
    write: int | None
    read: int | None
    wait_mask: int
    pending: int
    role: str


class Loop(Section):
    """A main loop."""

    name: str = Field(description="Equals the file's name.")
    summary: str = Field(description="One line for listings.")
    warps_per_cta: Positive = Field(description="Warps of a CTA.")
    resident_ctas: Positive = Field(description="CTAs that an SM held when it was measured.")
    k_per_iteration: Positive = Field(description="K (logical) of one iteration.")
    lines_per_copy: Positive = Field(
        description="128-byte lines that one asynchronous copy of a warp touches."
    )
    wavefronts_per_load: Positive = Field(
        description="Wavefronts of one load: 4 for LDSM.x4 without conflicts."
    )
    instructions: str = Field(
        description="One line each: opcode, stall, yield hint (y or -), write counter, read counter, wait mask "
        "(hexadecimal), pending groups, role."
    )

    @model_validator(mode="after")
    def _lines_are_instructions(self) -> Self:
        self.ops()
        return self

    def ops(self) -> tuple[ListedOp, ...]:
        """Return the listing, line by line.

        Raises
        ------
        ValueError
            If a line is none.
        """
        return tuple(_listed(line) for line in self.instructions.splitlines() if line.strip())


def _listed(line: str) -> ListedOp:
    parts = line.split()
    counters = {"-": None} | {str(n): n for n in range(6)}
    if (
        len(parts) != _FIELDS
        or not parts[1].isdecimal()
        or parts[2] not in ("y", "-")
        or parts[3] not in counters
        or parts[4] not in counters
        or parts[7] not in ("-", "off", "loop")
    ):
        message = (
            f"must have opcode, stall, y or -, two counters, wait mask, pending, role, not {line.strip()}"
        )
        raise ValueError(message)
    opcode, stall, yields, write, read, mask, pending, role = parts
    return ListedOp(
        opcode, int(stall), yields == "y", counters[write], counters[read], int(mask, 16), int(pending), role
    )
