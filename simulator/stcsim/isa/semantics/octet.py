"""HMMA.884, dense and gathering: one step of Volta's 16 x 16 x 4 product by four octets.

Four steps (two with fp16 sums) make a set, a set covers a k-slice of 4, four sets the k of 16.  In a
step of an fp32 set each of an octet's two thread groups adds 2 x 4 by 4 x 4 to one pair of
accumulator registers: rows 2 (s % 2), +1 of its four, columns 4 (s // 2) to +3 of the octet's eight.
An fp16 step adds 4 x 4 by 4 x 4.

Source: Raihan et al., ISPASS 2019; which pair a step writes: the PTX layout of m8n8k4 and the rising
register pairs of SASS.  Raihan's order of the column halves, own then other, would swap them in the
upper thread group; that moves no value and no cycle, and is not modelled.

The gathering form (vector-wise sparse tensor core) has a B of several k-slices, of which each element of A
picks its row by an offset; steps, rows, columns and sums are the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stcsim.isa import offset
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
        octet_layout("b", str(spec.parameters["b"]), split=True, slices=spec.product.k // 4),
        rows,
        slice(half, half + 4),
        slots,
        tile,
    )


@semantic("mma_octet")
def multiply_octet(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Add one step's products; operands D, A, B, C, each a register pair."""
    step = _step(spec)
    a, b = _factors(step, operands, state)
    with np.errstate(over="ignore", invalid="ignore"):
        _accumulate(spec, step, operands, state, np.matmul(a, b))


@semantic("mma_octet_gather")
def multiply_gathered(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Add one step's products of A's elements and the rows of B that their offsets name.

    Operands D, A, B, C, offsets, selector.  Rows of B that no offset names are not read, so that an
    infinity in them does no harm.
    """
    step = _step(spec)
    a, b = _factors(step, operands, state)
    offsets = offset.unpack(state.words(operands[4]), operands[5].value)[:, step.rows]
    chosen = b[np.arange(_OCTETS)[:, None, None], offsets]
    with np.errstate(over="ignore", invalid="ignore"):
        _accumulate(spec, step, operands, state, np.matmul(a[:, :, None], chosen)[:, :, 0])


def _factors(step: _Step, operands: Operands, state: WarpState) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read what a step multiplies: A (octet, row, 4) and B (octet, k, column)."""
    a = decode(state.words(operands[1], 2), step.a.dtype, step.a.element).reshape(_OCTETS, 8, 4)
    b = decode(state.words(operands[2], step.b.n_registers), step.b.dtype, step.b.element)
    return a[:, step.rows], b.reshape(-1, _OCTETS, 8).transpose(1, 0, 2)[:, :, step.columns]


def _accumulate(
    spec: InstructionSpec, step: _Step, operands: Operands, state: WarpState, product: NDArray[Any]
) -> None:
    """Add C to the products and write D."""
    total = product.reshape(-1).take(step.tile)
    words = state.words(operands[3], 2)
    if spec.parameters["c"] == "fp32":
        total += words.view(np.float32)
        state.write(operands[0], total.view(np.uint32))
    else:
        total += words.view(np.float16)
        state.write(operands[0], total.astype(np.float16).view(np.uint32))
