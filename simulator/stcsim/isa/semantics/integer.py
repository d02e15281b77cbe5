"""The integer pipe: moves, adds, shifts, logic, population count, comparisons into predicates.

Every result is 32 bits in each active lane; arithmetic wraps.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stcsim.isa.operand import Immediate, Predicate, Register
from stcsim.isa.semantics.registry import Active, Operands, semantic
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import LANES, WarpState

Words = NDArray[np.uint32]

_COMPARE = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
_COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def popcount(words: Words) -> Words:
    """Count the ones of each word (in parallel pairs, nibbles and bytes; numpy 1.26 has no such function)."""
    n = words - (words >> 1 & np.uint32(0x55555555))
    n = (n & np.uint32(0x33333333)) + (n >> 2 & np.uint32(0x33333333))
    n = n + (n >> 4) & np.uint32(0x0F0F0F0F)
    ones: Words = n * np.uint32(0x01010101) >> np.uint32(24)
    return ones


@lru_cache(maxsize=1024)
def _constant(value: int) -> Words:
    words = np.full(LANES, value, dtype=np.uint32)
    words.setflags(write=False)
    return words


def _source(operand: Register | Immediate, state: WarpState) -> Words:
    """Read a register, or the number that stands in its place."""
    return _constant(operand.value) if isinstance(operand, Immediate) else state.words(operand)


def _truth(operand: Predicate, state: WarpState) -> NDArray[np.bool_]:
    values: NDArray[np.bool_] = state.predicates[operand.index]
    return ~values if operand.negated else values


@semantic("move")
def move(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = A."""
    state.write(operands[0], _source(operands[1], state), active)


@semantic("lane_number")
def lane_number(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = the lane's own number."""
    state.write(operands[0], np.arange(LANES, dtype=np.uint32), active)


@semantic("add3")
def add3(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = A + B + C."""
    total = state.words(operands[1]) + _source(operands[2], state) + state.words(operands[3])
    state.write(operands[0], total, active)


@semantic("multiply_add")
def multiply_add(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = A B + C, the low 32 bits."""
    total = state.words(operands[1]) * _source(operands[2], state) + state.words(operands[3])
    state.write(operands[0], total, active)


@semantic("shift")
def shift(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = A shifted by B; amounts of 32 and more give 0 (left, right) or the sign (right, signed)."""
    words, amount = state.words(operands[1]), np.minimum(_source(operands[2], state), 32).astype(np.int64)
    if spec.parameters["direction"] == "left":
        shifted = words.astype(np.int64) << amount
    elif spec.parameters["signed"]:
        shifted = words.view(np.int32).astype(np.int64) >> amount
    else:
        shifted = words.astype(np.int64) >> amount
    state.write(operands[0], (shifted & 0xFFFFFFFF).astype(np.uint32), active)


@semantic("funnel_shift")
def funnel_shift(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Shift the 64-bit value C:A by B % 32 and keep its high word (left) or its low word (right)."""
    amount = (_source(operands[2], state) & 31).astype(np.uint64)
    both = state.words(operands[3]).astype(np.uint64) << np.uint64(32) | state.words(operands[1])
    if spec.parameters["direction"] == "left":
        word = both << amount >> np.uint64(32)
    else:
        word = both >> amount & np.uint64(0xFFFFFFFF)
    state.write(operands[0], word.astype(np.uint32), active)


@semantic("logic3")
def logic3(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = any function of three bits: bit 4a + 2b + c of the table, for each bit of A, B and C."""
    a, b, c = state.words(operands[1]), _source(operands[2], state), state.words(operands[3])
    table = operands[4].value
    result = np.zeros(LANES, dtype=np.uint32)
    for case in range(8):
        if table >> case & 1:
            result |= (a if case & 4 else ~a) & (b if case & 2 else ~b) & (c if case & 1 else ~c)
    state.write(operands[0], result, active)


@semantic("popcount")
def count_ones(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = ones of A, lane by lane."""
    state.write(operands[0], popcount(state.words(operands[1])), active)


@semantic("compare")
def compare(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """P = (A ? B) and/or/xor Q, lane by lane."""
    target, first, second, other = operands
    a, b = state.words(first), _source(second, state)
    if spec.parameters["signed"]:
        outcome = _COMPARE[str(spec.parameters["compare"])](a.view(np.int32), b.view(np.int32))
    else:
        outcome = _COMPARE[str(spec.parameters["compare"])](a, b)
    outcome = _COMBINE[str(spec.parameters["combine"])](outcome, _truth(other, state))
    np.copyto(state.predicates[target.index], outcome, where=True if active is None else active)


@semantic("select")
def select(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = A where P holds, else B."""
    chosen = np.where(_truth(operands[3], state), state.words(operands[1]), _source(operands[2], state))
    state.write(operands[0], chosen, active)
