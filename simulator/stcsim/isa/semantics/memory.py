"""Loads, stores and asynchronous copies between registers, shared and global memory.

Each lane gives its own byte address.  Where lanes store to one address the highest lane wins; the
machine does not say which does.
"""

from __future__ import annotations

import numpy as np

from stcsim.isa.semantics.registry import Active, Operands, semantic
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import LANES, WarpState

_MATRIX_ROW_BYTES = 16
_LANE = np.arange(LANES, dtype=np.intp)


@semantic("load")
def load(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = the words at each lane's address; register r takes the r-th word."""
    n_words = int(spec.parameters["words"])
    space = str(spec.parameters["space"])
    first = state.word_indices(operands[1], 4 * n_words, space, active)
    words = state.memory_words(space)
    if n_words == 1:
        state.write(operands[0], words.take(first), active)
    else:
        state.write(operands[0], words.take(first + np.arange(n_words)[:, None]), active)


@semantic("store")
def store(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Store registers at each lane's address; the r-th word comes from register r."""
    n_words = int(spec.parameters["words"])
    space = str(spec.parameters["space"])
    first = state.word_indices(operands[0], 4 * n_words, space, active)
    values = state.words(operands[1], n_words).reshape(n_words, LANES)
    places = first + np.arange(n_words)[:, None]
    if active is not None:
        places, values = places[:, active], values[:, active]
    state.memory_words(space)[places] = values


@semantic("load_matrix")
def load_matrix(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Load 8 x 8 matrices of 16-bit elements, one into each register.

    Lanes 8j to 8j + 7 give the addresses of the rows of matrix j.  Lane i receives row i // 4, columns
    2 (i % 4) and + 1, or, transposed, column i // 4, rows 2 (i % 4) and + 1.
    """
    n_matrices = int(spec.parameters["matrices"])
    named = None if n_matrices == LANES // 8 else np.less(_LANE, 8 * n_matrices)
    rows = state.word_indices(operands[1], _MATRIX_ROW_BYTES, "shared", named)
    rows = rows.reshape(LANES // 8, 8)[:n_matrices]
    words = state.memory_words("shared")
    if not spec.parameters["transposed"]:
        state.write(operands[0], words.take(rows[:, _LANE // 4] + _LANE % 4))
        return
    halves = words.view(np.uint16)
    column = _LANE // 4
    low = halves.take(2 * rows[:, 2 * (_LANE % 4)] + column).astype(np.uint32)
    high = halves.take(2 * rows[:, 2 * (_LANE % 4) + 1] + column).astype(np.uint32)
    state.write(operands[0], low | high << np.uint32(16))


@semantic("copy_async")
def copy_async(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Begin a copy from global to shared memory; the bytes land when DEPBAR has waited for them."""
    n_bytes = 4 * int(spec.parameters["words"])
    target = state.word_indices(operands[0], n_bytes, "shared", active) * 4
    source = state.word_indices(operands[1], n_bytes, "global", active) * 4
    if active is not None:
        target, source = target[active], source[active]
    span = np.arange(n_bytes)
    state.open_copies.append((target[:, None] + span, state.memory[source[:, None] + span]))


@semantic("close_copy_group")
def close_copy_group(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Make the copies begun since the last such instruction one group."""
    state.copy_groups.append(state.open_copies)
    state.open_copies = []


@semantic("wait_copy_groups")
def wait_copy_groups(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """Wait until at most N groups are under way; the oldest land first."""
    while len(state.copy_groups) > operands[0].value:
        for places, values in state.copy_groups.popleft():
            state.shared[places] = values
