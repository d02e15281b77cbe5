"""Patterns from Matrix Market files (.mtx).

Called by `stcsim.workload.pattern_file`.  Of a symmetric, skew-symmetric or Hermitian file both halves
are there; an entry whose value is zero is a zero; entries at the same place count once, by their sum.
(scipy.io.mmread reads beyond the end of files that are cut short, and so can end the process.)

Source: NIST, "Text File Formats", https://math.nist.gov/MatrixMarket/formats.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import must
from stcsim.workload.pattern import MaskPattern
from stcsim.workload.untrusted_file import MAX_HEADER_BYTES, Fault, check_size, length_of

_NUMBERS_OF_VALUE = {"pattern": 0, "real": 1, "integer": 1, "double": 1, "complex": 2}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_PIECE_BYTES = 1 << 22
"""About how much of a file is taken apart at a time."""


def read_mtx(stream: IO[bytes]) -> MaskPattern:
    """Read a Matrix Market file.

    Parameters
    ----------
    stream : binary file

    Returns
    -------
    pattern : MaskPattern

    Raises
    ------
    Fault
        If it is not one, is too large, or does not hold what its header says.
    """
    layout, n_values, symmetry = _banner(stream)
    line, sizes = _sizes(stream, 3 if layout == "coordinate" else 2)
    rows, cols = sizes[:2]
    check_size((rows, cols), line=line)
    if symmetry != "general" and rows != cols:
        raise Fault(must(f"a {symmetry} matrix must be square", f"{rows} x {cols}"), line=line)
    if layout == "array":
        return _array(stream, line, (rows, cols), n_values, symmetry)
    entries = sizes[2]
    least = entries * (4 + 2 * n_values) - 1
    if least > length_of(stream):
        what = f"must be at least {least} bytes long for the {entries} entries that its header declares"
        raise Fault(must(what, length_of(stream)))
    return _coordinates(stream, line, (rows, cols), entries, n_values, symmetry)


def _banner(stream: IO[bytes]) -> tuple[str, int, str]:
    """Return layout, numbers of a value and symmetry of the first line."""
    words = stream.readline(MAX_HEADER_BYTES).decode("latin-1").lower().split()
    if not words or words[0] != "%%matrixmarket":
        message = "must start with %%MatrixMarket (is this a Matrix Market file?)"
        raise Fault(message, line=1)
    known = (("matrix",), ("coordinate", "array"), tuple(_NUMBERS_OF_VALUE), _SYMMETRIES)
    for i, choices in enumerate(known, start=1):
        word = words[i] if i < len(words) else "nothing"
        if word not in choices:
            raise Fault(must(f"must say {' or '.join(choices)}", word, near=choices), line=1)
    layout, field, symmetry = words[2:5]
    if layout == "array" and field == "pattern":
        message = "must be a coordinate matrix where it is a pattern, not an array"
        raise Fault(message, line=1)
    return layout, _NUMBERS_OF_VALUE[field], symmetry


def _sizes(stream: IO[bytes], count: int) -> tuple[int, list[int]]:
    """Return the line and the numbers of the first line that is no comment."""
    line = 1
    while text := stream.readline(MAX_HEADER_BYTES):
        line += 1
        words = text.split()
        if not words or text.startswith(b"%"):
            continue
        if len(words) != count or not all(word.isdigit() and len(word) < 19 for word in words):
            what = f"must be {count} sizes: rows, columns" + (", entries" if count == 3 else "")
            raise Fault(must(what, text[:40].decode("latin-1").strip()), line=line)
        return line, [int(word) for word in words]
    message = "must have a line of sizes"
    raise Fault(message, line=line)


def _pieces(stream: IO[bytes], line: int, width: int) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield the numbers of the lines behind `line`, `width` in each, and the line before each piece."""
    while lines := stream.readlines(_PIECE_BYTES):
        split = [text.split() for text in lines]
        found = [words for words in split if words]
        try:
            numbers = np.array(found or np.empty((0, width)), dtype=np.float64)
            is_sound = numbers.shape == (len(found), width) and bool(np.all(np.isfinite(numbers)))
        except ValueError:
            is_sound = False
        if not is_sound:
            _refuse(split, line, width)
        yield line, numbers
        line += len(lines)


def _refuse(split: list[list[bytes]], line: int, width: int) -> None:
    """Raise for the first line that does not hold `width` finite numbers."""
    for i, words in enumerate(split, start=1):
        try:
            is_sound = not words or (
                len(words) == width and bool(np.all(np.isfinite([float(w) for w in words])))
            )
        except ValueError:
            is_sound = False
        if not is_sound:
            shown = b" ".join(words)[:40].decode("latin-1")
            raise Fault(must(f"must hold {width} finite numbers", shown), line=line + i)


def _coordinates(
    stream: IO[bytes], line: int, shape: tuple[int, int], entries: int, n_values: int, symmetry: str
) -> MaskPattern:
    indices = []
    values = []
    for before, numbers in _pieces(stream, line, 2 + n_values):
        places = numbers[:, :2]
        if places.size and (
            np.any(places != np.floor(places)) or places.min() < 1 or np.any(places.max(0) > shape)
        ):
            what = f"must name rows 1 to {shape[0]} and columns 1 to {shape[1]}"
            wrong = np.any((places != np.floor(places)) | (places < 1) | (places > shape), axis=1)
            row, col = places[int(np.argmax(wrong))]
            raise Fault(must(what, f"({row:g}, {col:g}) below line {before}"))
        indices.append(places.astype(np.int64) - 1)
        values.append(numbers[:, 2:] if n_values else np.ones((len(numbers), 1)))
    at = np.concatenate([np.empty((0, 2), np.int64), *indices])
    if len(at) != entries:
        raise Fault(must(f"must have {entries} entries, as its header declares", len(at)))
    flat = at[:, 0] * shape[1] + at[:, 1]
    mask = np.zeros(shape, np.bool_)
    mask.reshape(-1)[_non_zero(flat, np.concatenate([np.empty((0, max(1, n_values))), *values]))] = True
    return MaskPattern.adopt(mask if symmetry == "general" else mask | mask.T)


def _non_zero(flat: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places whose values do not sum to zero."""
    unique, which = np.unique(flat, return_inverse=True)
    sums = [np.bincount(which, weights=column, minlength=unique.size) for column in values.T]
    return unique[np.any(np.array(sums) != 0, axis=0)]


def _array(stream: IO[bytes], line: int, shape: tuple[int, int], n_values: int, symmetry: str) -> MaskPattern:
    """Read values column by column; of a symmetric matrix from the diagonal down, of a skew one from below it."""
    rows, cols = shape
    first = {"general": None, "skew-symmetric": -1}.get(symmetry, 0)
    count = rows * cols if first is None else rows * (rows + 1) // 2 + first * rows
    least = 2 * n_values * count - 1
    if least > length_of(stream):
        what = f"must be at least {least} bytes long for the {count} values that its header declares"
        raise Fault(must(what, length_of(stream)))
    ones = [np.any(numbers != 0, axis=1) for _, numbers in _pieces(stream, line, n_values)]
    found = np.concatenate([np.empty(0, np.bool_), *ones])
    if found.size != count:
        raise Fault(must(f"must have {count} values, as its header declares", found.size))
    if first is None:
        return MaskPattern.adopt(np.ascontiguousarray(found.reshape(cols, rows).T))
    upper = np.zeros(shape, np.bool_)
    upper[np.triu_indices(rows, -first)] = found
    return MaskPattern.adopt(upper | upper.T)
