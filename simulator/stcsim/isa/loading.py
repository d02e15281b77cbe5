"""A program's data, put into a warp's state; and its results, taken out as matrices.

Between directives and values: knows both, and no instruction's semantics.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import IsaError, Problem, must
from stcsim.isa import metadata
from stcsim.isa.directive import Matrix, Memory, Place, Show, Words
from stcsim.isa.fragment import PER_WORD, FragmentLayout, Role, encode, operand_layout
from stcsim.isa.operand import ZERO_REGISTER, Accumulator, Register
from stcsim.isa.program import Program
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import LANES, WarpState
from stcsim.isa.table import Isa, load_isa

DEFAULT_SHARED_BYTES = 48 * 1024
"""Shared memory of a program that does not say.  Source: CUDA's limit for a static allocation."""


def initial_state(program: Program, *, isa: Isa | None = None) -> WarpState:
    """Return the state in which a program starts.

    Parameters
    ----------
    program : Program
    isa : Isa, optional
        The shipped one by default; fragments are placed for its instructions.

    Returns
    -------
    state : WarpState

    Raises
    ------
    IsaError
        If a directive names an unknown matrix or instruction, or data do not fit where they go.
    """
    rows = load_isa() if isa is None else isa
    sizes = {"shared": DEFAULT_SHARED_BYTES, "global": 0}
    sizes |= {
        directive.space: directive.n_bytes for directive in program.data if isinstance(directive, Memory)
    }
    state = WarpState(
        np.zeros(sizes["shared"], dtype=np.uint8), memory=np.zeros(sizes["global"], dtype=np.uint8)
    )
    matrices: dict[str, Matrix] = {}
    for directive in program.data:
        try:
            match directive:
                case Matrix(name=name):
                    matrices[name] = directive
                case Words(register=register, words=words):
                    state.registers[register.index] = words
                case Place(matrix=name):
                    if name not in matrices:
                        raise IsaError(must("must place a matrix given before", name, near=matrices))
                    _place(directive, matrices[name], state, rows)
                case _:
                    pass
        except IsaError as error:
            raise IsaError(Problem(error.problems[0].message, path=str(directive))) from None
    return state


def elements(matrix: Matrix) -> NDArray[Any]:
    """Return the elements of a matrix as numbers.

    Parameters
    ----------
    matrix : Matrix

    Returns
    -------
    values : ndarray of int64 or float64, shape (rows, columns)
    """
    shape = matrix.rows, matrix.columns
    if matrix.elements:
        try:
            return np.array([int(text, 10) for text in matrix.elements], dtype=np.int64).reshape(shape)
        except (ValueError, OverflowError):
            return np.array([float(text) for text in matrix.elements]).reshape(shape)
    if matrix.generator == "identity":
        return np.eye(*shape, dtype=np.int64)
    least, largest, *_, seed = matrix.arguments
    position = np.arange(shape[0] * shape[1], dtype=np.uint64)
    values = (least + _mix(position, seed) % np.uint64(largest - least + 1).astype(np.int64)).reshape(shape)
    chance = _mix(position, seed + 1)
    if matrix.generator == "integers":
        return values * (chance % 100 < matrix.arguments[2]).reshape(shape)
    # Two of four: of each group of four the two with the largest draw stay.
    groups = chance.reshape(-1, 4)
    rank = np.argsort(np.argsort(-groups, axis=1, kind="stable"), axis=1, kind="stable")
    return values * (rank < 2).reshape(shape)


def shown(show: Show, state: WarpState, *, isa: Isa | None = None) -> NDArray[Any]:
    """Return the matrix that a ``.show`` directive asks for.

    Parameters
    ----------
    show : Show
    state : WarpState
    isa : Isa, optional
        The shipped one by default.

    Returns
    -------
    values : ndarray of float32 or int32, shape (rows, columns)

    Raises
    ------
    IsaError
        If the tile or the fragment does not exist.
    """
    if isinstance(show.origin, Accumulator):
        m, n = (int(edge) for edge in show.form.split("x"))
        n_tiles, m_warp, n_warp = state.accumulators.shape
        if show.origin.index >= n_tiles or m > m_warp or n > n_warp:
            what = f"must be within {n_tiles} tiles of {m_warp} x {n_warp}"
            raise IsaError(Problem(must(what, f"{show.form} of {show.origin}"), path=str(show)))
        return state.accumulators[show.origin.index, :m, :n]
    layout = shown_layout(show, isa=isa)
    return layout.unpack(state.words(show.origin, layout.n_registers))


def shown_layout(show: Show, *, isa: Isa | None = None) -> FragmentLayout:
    """Return the layout of the registers that a ``.show`` directive names.

    Parameters
    ----------
    show : Show
        Of registers, not of an accumulator tile.
    isa : Isa, optional

    Returns
    -------
    layout : FragmentLayout

    Raises
    ------
    IsaError
        If the instruction does not exist or has no fragments.
    """
    return operand_layout((load_isa() if isa is None else isa)[show.mnemonic], _role(show.form))


def _mix(position: NDArray[np.uint64], seed: int) -> NDArray[np.int64]:
    """Return a 31-bit number for each position: a fixed function, the same on every machine.

    The finaliser of splitmix64 (public domain, S. Vigna).
    """
    x = position + np.uint64((seed * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % (1 << 64))
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return ((x ^ x >> np.uint64(31)) >> np.uint64(33)).astype(np.int64)


def _place(place: Place, matrix: Matrix, state: WarpState, isa: Isa) -> None:
    """Write a matrix, in its form, where it goes."""
    values = elements(matrix)
    if place.mnemonic:
        words = _fragments(isa[place.mnemonic], place.form, matrix, values)
    else:
        words = _run(place.form, matrix.dtype, values)
    if isinstance(place.target, Register):
        n_registers = -(-words.size // LANES)
        if place.target.index + n_registers > ZERO_REGISTER:
            what = f"{n_registers} registers must end below R{ZERO_REGISTER}"
            raise IsaError(must(what, f"begin at {place.target}"))
        padded = np.zeros(n_registers * LANES, dtype=np.uint32)
        padded[: words.size] = words
        state.write(place.target, padded)
        return
    space, address = place.target
    memory = state.memory_words(space)
    first = address // 4
    if first + words.size > memory.size:
        what = f"{4 * words.size} bytes must end within {space} memory of {4 * memory.size}"
        raise IsaError(must(what, f"begin at {hex(address)}"))
    memory[first : first + words.size] = words


def _fragments(spec: InstructionSpec, form: str, matrix: Matrix, values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return a matrix as fragments of an instruction, one after the other along k."""
    layout = operand_layout(spec, _role(form))
    k = spec.product.k
    along_k = {"a": 1, "e": 1, "b": 0}.get(form)
    parts = [values]
    if along_k is not None and values.shape[along_k] % k == 0:
        parts = np.split(values, values.shape[along_k] // k, axis=along_k)
    if form != "e" and matrix.dtype != layout.dtype:
        raise IsaError(must(f"matrix must be of {layout.dtype}", matrix.dtype))
    if form == "e":
        words = [metadata.pack(spec, metadata.compress(spec, part)[1]) for part in parts]
    elif form == "a" and spec.semantics == "mma_sparse":
        words = [layout.pack(metadata.compress(spec, part)[0]) for part in parts]
    else:
        words = [layout.pack(part) for part in parts]
    return np.concatenate([word.reshape(-1) for word in words])


def _run(form: str, dtype: str, values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return a matrix as a run of words, row by row or column by column."""
    lines = values if form.endswith("rows") else values.T
    if form.startswith("bits"):
        if lines.shape[1] > LANES:
            raise IsaError(must(f"a bitmap word must stand for at most {LANES} elements", lines.shape[1]))
        weights = np.uint64(1) << np.arange(lines.shape[1], dtype=np.uint64)
        words: NDArray[np.uint32] = ((lines != 0) * weights).sum(axis=1).astype(np.uint32)
        return words
    flat = lines[lines != 0] if form.startswith("packed") else lines.reshape(-1)
    padded = np.zeros(-(-flat.size // PER_WORD[dtype]) * PER_WORD[dtype], dtype=values.dtype)
    padded[: flat.size] = flat
    return encode(padded, dtype)


def _role(form: str) -> Role:
    """Return the operand whose layout a form has; metadata belong to A."""
    return "b" if form == "b" else "c" if form == "c" else "a"
