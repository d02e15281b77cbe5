"""Patterns from files: .smtx, .mtx, .npy and our .npz bitmaps.

A study or the command line names a file (and a key in it); `load_pattern` returns
the pattern or one clear error.  Files are not trusted: sizes that a file declares
are checked against its length and against `MAX_ELEMENTS` before anything is
allocated, and nothing pickled is ever loaded.  Knows nothing of layers, roles or
the folders in which files are looked for.

.smtx, the text format of the DLMC collection: three lines that are not empty
(rows, columns and non-zeros, separated by commas; row offsets; column indices); the third
line may be missing where there are no non-zeros.

.mtx files are read by `stcsim.workload.matrix_market`, .npz bitmaps by `stcsim.workload.bitmap_archive`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import must
from stcsim.workload.bitmap_archive import BitmapArchive, open_archive
from stcsim.workload.bitmap_writer import BitmapWriter
from stcsim.workload.matrix_market import read_mtx
from stcsim.workload.packed_pattern import PackedPattern
from stcsim.workload.pattern import MaskPattern, Pattern
from stcsim.workload.untrusted_file import (
    MAX_HEADER_BYTES,
    Fault,
    check_size,
    length_of,
    npy_header,
    open_file,
)

SUFFIXES = (".mtx", ".npy", ".npz", ".smtx")
"""Kinds of files that hold patterns."""

_PIECE_BYTES = 1 << 24
"""About how much of a file is taken apart at a time."""
_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,19}")
_DIGITS = 20
"""Characters that one number of an .smtx file may take, its separator included."""


def load_pattern(path: str | os.PathLike[str], key: str | None = None) -> Pattern:
    """Return the pattern that a file holds.

    Parameters
    ----------
    path : str or path-like
        A .smtx, .mtx, .npy or .npz file; messages show it as given here.  Any non-zero element of a .npy
        array or a .mtx file counts as one.
    key : str, optional
        Name of the pattern in an .npz file; may be left out where there is only one.

    Returns
    -------
    pattern : Pattern

    Raises
    ------
    WorkloadError
        If the file is missing, cut short, inconsistent, too large or not of a known kind, or if `key`
        does not name a pattern in it.
    """
    file = os.fspath(path)
    suffix = Path(file).suffix.lower()
    try:
        if suffix not in SUFFIXES:
            known = f"must be a file that ends in {', '.join(SUFFIXES)}"
            raise Fault(must(known, suffix or "one without an ending", near=SUFFIXES))
        if key is not None and suffix != ".npz":
            raise Fault(must("must be an .npz file where a key is given", suffix))
        if suffix == ".npz":
            with open_archive(file) as archive:
                return _packed(archive, key).unpacked()
        with open_file(file) as stream:
            return {".smtx": _read_smtx, ".npy": _read_npy, ".mtx": read_mtx}[suffix](stream)
    except Fault as fault:
        raise fault.of(file) from None


def check_pattern(path: str | os.PathLike[str], key: str | None = None) -> tuple[int, int]:
    """Return the shape of the pattern that a file holds, which is read as by `load_pattern` but not kept.

    Raises
    ------
    WorkloadError
        As `load_pattern`.

    Notes
    -----
    Bitmaps are not unpacked, so that those of a large trace cost an eighth of the memory that they run in.
    """
    if Path(path).suffix.lower() != ".npz":
        return load_pattern(path, key).shape
    with open_archive(os.fspath(path)) as archive:
        return _packed(archive, key).shape


def _packed(archive: BitmapArchive, key: str | None) -> PackedPattern:
    """Return a pattern of an archive: the one called `key`, or the only one."""
    if key is not None:
        archive.require(key)
    return archive.packed(archive.only() if key is None else key)


def pattern_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the patterns in an .npz file, sorted.

    Raises
    ------
    WorkloadError
        If the file cannot be read.
    """
    with open_archive(os.fspath(path)) as archive:
        return archive.names()


def load_meta(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what an .npz file says about its patterns; empty if it says nothing.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or its ``meta`` is not a JSON object.
    """
    with open_archive(os.fspath(path)) as archive:
        return archive.meta()


def save_patterns(
    path: str | os.PathLike[str], patterns: Mapping[str, Pattern], meta: Mapping[str, Any]
) -> None:
    """Write patterns as bitmaps into an .npz file; the same content gives the same bytes.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced if it exists.
    patterns : mapping of str to Pattern
        Patterns by name.
    meta : mapping
        Provenance, as JSON can carry it.
    """
    with BitmapWriter(path) as writer:
        for name, pattern in sorted(patterns.items()):
            writer.add(name, pattern)
        writer.finish(meta)


# --- .smtx ---------------------------------------------------------------------------------------


def _read_smtx(stream: IO[bytes]) -> MaskPattern:
    """Read the three lines of an .smtx file: sizes, row offsets, column indices."""
    lines = _lines(stream)
    line, text = next(lines, (1, b""))
    fields = text.split(b",")
    sizes = _integers(b" ".join(fields), line) if len(fields) == 3 else np.empty(0, dtype=np.int64)
    if len(sizes) != 3:
        raise Fault(must("must be three sizes: rows, columns, non-zeros", _shorten(text)), line=line)
    rows, cols, nnz = (int(size) for size in sizes)
    if min(rows, cols, nnz) < 0:
        raise Fault(must("sizes must be 0 or more", _shorten(text)), line=line)
    check_size((rows, cols), line=line)
    if nnz > rows * cols:
        what = f"non-zeros must be at most rows * columns ({rows * cols})"
        raise Fault(must(what, nnz), line=line)
    longest = (rows + 1 + nnz) * _DIGITS + MAX_HEADER_BYTES
    if length_of(stream) > longest:
        what = f"must be at most {longest} bytes long for {rows + 1} offsets and {nnz} indices"
        raise Fault(must(what, length_of(stream)))

    line, text = next(lines, (line + 1, b""))
    offsets = _integers(text, line)
    if len(offsets) != rows + 1:
        raise Fault(must(f"must be rows + 1 = {rows + 1} row offsets", len(offsets)), line=line)
    counts = np.diff(offsets)
    if offsets[0] != 0:
        raise Fault(must("row offsets must start at 0", offsets[0]), line=line)
    if counts.size and counts.min() < 0:
        row = int(np.argmax(counts < 0))
        what = f"row offsets must not fall: offset {row + 1} must be at least {offsets[row]}"
        raise Fault(must(what, offsets[row + 1]), line=line)
    if offsets[-1] != nnz:
        raise Fault(
            must(f"the last row offset must be the number of non-zeros ({nnz})", offsets[-1]), line=line
        )

    line, text = next(lines, (line + 1, b""))
    indices = _integers(text, line)
    if len(indices) != nnz:
        raise Fault(must(f"must be {nnz} column indices", len(indices)), line=line)
    outside = np.flatnonzero((indices < 0) | (indices >= cols))
    if outside.size:
        what = f"column indices must be 0 to {cols - 1}"
        raise Fault(must(what, indices[outside[0]]), line=line)
    extra, text = next(lines, (0, b""))
    if extra:
        what = "must end after the column indices (three lines that are not empty)"
        raise Fault(must(what, _shorten(text)), line=extra)

    mask = np.zeros((rows, cols), dtype=np.bool_)
    mask.reshape(-1)[np.repeat(np.arange(rows) * cols, counts) + indices] = True
    if np.count_nonzero(mask) != nnz:
        row = int(np.argmax(np.count_nonzero(mask, axis=1) != counts))
        what = f"column indices of a row must all differ: row {row} must have {counts[row]} columns"
        raise Fault(must(what, np.count_nonzero(mask[row])), line=line)
    return MaskPattern.adopt(mask)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the number (1-based) and text of every line that is not blank; the first may not be long."""
    number, limit = 0, MAX_HEADER_BYTES
    while text := stream.readline(limit):
        number += 1
        if len(text) == limit:
            message = "must be three sizes: rows, columns, non-zeros (is this an .smtx file?)"
            raise Fault(message, line=number)
        if stripped := text.strip():
            yield number, stripped
            limit = -1


def _integers(text: bytes, line: int) -> NDArray[np.int64]:
    """Return the whole numbers of a line, which blanks separate; a piece at a time, to save memory."""
    pieces = [np.empty(0, dtype=np.int64)]
    start = 0
    while start < len(text):
        blank = text.find(b" ", start + _PIECE_BYTES)
        fields = text[start : blank if blank >= 0 else None].split()
        try:
            wrong = next((field for field in fields if not _WHOLE_NUMBER.fullmatch(field)), None)
            if wrong is None and fields:
                pieces.append(np.array(fields, dtype=np.int64))
        except (ValueError, OverflowError):
            wrong = max(fields, key=len)
        if wrong is not None:
            raise Fault(must("must hold whole numbers of 64 bits only", _shorten(wrong)), line=line)
        start = blank if blank >= 0 else len(text)
    return np.concatenate(pieces)


def _shorten(text: bytes) -> str:
    shown = text.decode("utf-8", "backslashreplace")
    return f"{shown[:37]}..." if len(shown) > 40 else shown or "an empty line"


# --- .npy ----------------------------------------------------------------------------------------


def _read_npy(stream: IO[bytes]) -> MaskPattern:
    """Read a two-dimensional .npy array, some rows at a time, as the mask of its non-zero elements."""
    length = length_of(stream)
    shape, fortran, dtype = npy_header(stream)
    if len(shape) != 2:
        raise Fault(must("must be an array with two dimensions", f"the shape {shape}"))
    check_size(shape)
    declared = stream.tell() + math.prod(shape) * dtype.itemsize
    if length != declared:
        raise Fault(must(f"must be {declared} bytes long, as its header declares", length))
    stored = shape[::-1] if fortran else shape
    mask = np.empty(stored, dtype=np.bool_)
    rows_per_piece = max(1, _PIECE_BYTES // max(1, stored[1] * dtype.itemsize))
    for r0 in range(0, stored[0], rows_per_piece):
        piece = mask[r0 : r0 + rows_per_piece]
        values = np.frombuffer(stream.read(piece.size * dtype.itemsize), dtype=dtype).reshape(piece.shape)
        if dtype.kind == "f" and not np.all(np.isfinite(values)):
            i, j = np.argwhere(~np.isfinite(values))[0] + (r0, 0)
            where = (j, i) if fortran else (i, j)
            what = f"must hold finite numbers only: element ({where[0]}, {where[1]})"
            raise Fault(must(what, values[i - r0, j]))
        np.not_equal(values, 0, out=piece)
    return MaskPattern.adopt(np.ascontiguousarray(mask.T) if fortran else mask)
