"""The state that a run leaves, as lines of text.

Reads states and programs; changes neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stcsim.isa.directive import Show
from stcsim.isa.interpreter import lane_mask
from stcsim.isa.loading import shown, shown_layout
from stcsim.isa.operand import TRUE_PREDICATE, Accumulator
from stcsim.isa.program import Program
from stcsim.isa.state import WarpState

_LANES_PER_LINE = 8


def report(program: Program, before: WarpState, after: WarpState) -> Iterator[str]:
    """Yield what a run computed: the matrices that ``.show`` asks for, then all else that it changed.

    Parameters
    ----------
    program : Program
    before, after : WarpState
        Of the same sizes.

    Yields
    ------
    line : str
    """
    seen: set[str] = set()
    for directive in program.data:
        if isinstance(directive, Show):
            values = shown(directive, after)
            rows, columns = values.shape
            place = f"{directive.origin} {directive.form} {directive.mnemonic}".rstrip()
            yield f"{directive.name} ({rows} x {columns}, {place})"
            yield from _rows(values)
            seen |= _places(directive)
    for name, lines in _changes(before, after):
        if name not in seen:
            yield from lines


def _places(directive: Show) -> set[str]:
    """Return the registers or the tile that a ``.show`` directive prints."""
    if isinstance(directive.origin, Accumulator):
        return {str(directive.origin)}
    layout = shown_layout(directive)
    first = directive.origin.index
    return {f"R{i}" for i in range(first, first + layout.n_registers)}


def _changes(before: WarpState, after: WarpState) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the name of each thing that differs, and the lines that tell what it holds now."""
    for i in np.flatnonzero((before.registers != after.registers).any(axis=1)).tolist():
        yield f"R{i}", _words(f"R{i}", after.registers[i])
    for i in range(TRUE_PREDICATE):
        if (before.predicates[i] != after.predicates[i]).any():
            yield f"P{i}", [f"P{i:<4} {lane_mask(after.predicates[i])}"]
    for i, tile in enumerate(after.accumulators):
        changed = np.argwhere(before.accumulators[i] != tile)
        if changed.size:
            m, n = (int(edge) + 1 for edge in changed.max(axis=0))
            head = f"ACC{i} (rows 0..{m - 1}, columns 0..{n - 1}; the rest unchanged)"
            yield f"ACC{i}", chain([head], _rows(tile[:m, :n]))
    for name, old, new in (("shared", before.shared, after.shared), ("global", before.memory, after.memory)):
        places = np.flatnonzero(old != new)
        if places.size:
            span = f"from {hex(int(places[0]))} to {hex(int(places[-1]))}"
            yield name, [f"{name}: {places.size} bytes changed, {span}"]


def _words(name: str, lanes: NDArray[np.uint32]) -> Iterator[str]:
    """Write a register: one word if all lanes agree, else eight to a line."""
    words = [f"{word:08x}" for word in lanes.tolist()]
    if len(set(words)) == 1:
        yield f"{name:<5} {words[0]} in all lanes"
        return
    for lane in range(0, len(words), _LANES_PER_LINE):
        yield f"{name if lane == 0 else '':<5} {' '.join(words[lane : lane + _LANES_PER_LINE])}"


def _rows(values: NDArray[Any]) -> Iterator[str]:
    """Write a matrix, its columns aligned; whole numbers without a point."""
    cells = [[f"{value:g}" for value in row] for row in values.tolist()]
    width = max(len(cell) for row in cells for cell in row)
    for row in cells:
        yield "  " + " ".join(cell.rjust(width) for cell in row)
