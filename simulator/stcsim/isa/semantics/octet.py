"""HMMA.884: one step of Volta's 16 x 16 x 4 product by four octets.

Four steps (two with fp16 sums) make a set, a set covers a k-slice of 4, four sets the k of 16.  In a
step of an fp32 set each of an octet's two thread groups adds 2 x 4 by 4 x 4 to one pair of
accumulator registers: rows 2 (s % 2), +1 of its four, columns 4 (s // 2) to +3 of the octet's eight.
An fp16 step adds 4 x 4 by 4 x 4.

Source: Raihan et al., ISPASS 2019; which pair a step writes: the PTX layout of m8n8k4 and the rising
register pairs of SASS.  Raihan's order of the column halves, own then other, would swap them in the
upper thread group; that moves no value and no cycle, and is not modelled.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stcsim.isa.fragment import FragmentLayout, decode, octet_layout
from stcsim.isa.semantics.registry import Active, Operands, semantic
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import LANES, WarpState

_OCTETS = 4


class _Step(NamedTuple):
    """What one step of a set reads and writes.

    `rows` and `columns` are those of an octet's 8 x 8 tile; `slots` (octet, row, column) are the
    elements of the accumulator pair, `tile` the same the other way round.
    """

    a: FragmentLayout
    b: FragmentLayout
    rows: NDArray[np.intp]
    columns: slice
    slots: NDArray[np.intp]
    tile: NDArray[np.intp]


@lru_cache(maxsize=16)
def _step(spec: InstructionSpec) -> _Step:
    step = int(spec.parameters["step"])
    octet = np.arange(_OCTETS)[:, None, None]
    column = np.arange(4)
    if spec.parameters["c"] == "fp32":
        first = 2 * (step % 2)
        rows = np.array([first, first + 1, first + 4, first + 5])
        half = 4 * (step // 2)
        i_row = np.arange(4)[:, None]
        lane = 4 * octet + 16 * (i_row // 2) + i_row % 2 + (column & 2)
        slots = (column & 1) * LANES + lane
    else:
        rows = np.arange(8)
        half = 4 * step
        i_row = rows[:, None]
        lane = 4 * octet + 16 * (i_row // 4) + i_row % 4
        slots = (column // 2 * LANES + lane) * 2 + column % 2
    tile = np.empty(slots.size, dtype=np.intp)
    tile[slots.reshape(-1)] = np.arange(slots.size)
    return _Step(
        octet_layout("a", str(spec.parameters["a"]), split=True),
        octet_layout("b", str(spec.parameters["b"]), split=True),
        rows,
        slice(half, half + 4),
        slots,
        tile,
    )


@semantic("mma_octet")
def multiply_octet(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Add one step's products; operands D, A, B, C, each a register pair."""
    step = _step(spec)
    a = decode(state.words(operands[1], 2), step.a.dtype, step.a.element).reshape(_OCTETS, 8, 4)
    b = decode(state.words(operands[2], 2), step.b.dtype, step.b.element).reshape(4, _OCTETS, 8)
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.matmul(a[:, step.rows], b.transpose(1, 0, 2)[:, :, step.columns])
        total = product.reshape(-1).take(step.tile)
        words = state.words(operands[3], 2)
        if spec.parameters["c"] == "fp32":
            total += words.view(np.float32)
            state.write(operands[0], total.view(np.uint32))
        else:
            total += words.view(np.float16)
            state.write(operands[0], total.astype(np.float16).view(np.uint32))
