"""Patterns from files: .smtx, .npy and our .npz bitmaps.

A study or the command line names a file (and a key in it); `load_pattern` returns
the pattern or one clear error.  Files are not trusted: sizes that a file declares
are checked against its length and against `MAX_ELEMENTS` before anything is
allocated, and nothing pickled is ever loaded.  Knows nothing of layers, roles or
the folders in which files are looked for.

.smtx, the text format of the DLMC collection: three lines that are not empty
(rows, columns and non-zeros, separated by commas; row offsets; column indices); the third
line may be missing where there are no non-zeros.

.npz bitmaps: for each pattern ``NAME.bits`` (uint8, `numpy.packbits` of the row-major mask,
most significant bit first) and ``NAME.shape`` (two int64), and optionally ``meta``
(UTF-8 JSON as uint8) that says where the patterns are from.
"""

from __future__ import annotations

import ast
import io
import json
import math
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import Problem, WorkloadError, must, nearest, unknown
from stcsim.workload.pattern import MaskPattern, Pattern

MAX_ELEMENTS = 1 << 30
"""Most elements of a pattern that is read from a file (1 GiB as a mask; 32768 x 32768)."""

SUFFIXES = (".npy", ".npz", ".smtx")
"""Kinds of files that hold patterns."""

_MAX_META_BYTES = 1 << 20
_MAX_HEADER_BYTES = 10_000
_PIECE_BYTES = 1 << 24
"""About how much of a file is taken apart at a time."""
_NUMBERS = re.compile(r"\|b1|[<>|=](?:[iu][1248]|f[248])")
"""How a .npy header spells the dtypes that are read."""
_WHOLE_NUMBER = re.compile(rb"-?[0-9]{1,19}")
_DIGITS = 20
"""Characters that one number of an .smtx file may take, its separator included."""


class _Fault(Exception):
    """What is wrong with a file, and where in it."""

    def __init__(self, message: str, *, line: int | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.path = path

    def of(self, file: str) -> WorkloadError:
        """Return the error that a user sees; what a file holds cannot break its line."""
        return WorkloadError(
            Problem(_printable(str(self)), file, self.line, self.path and _printable(self.path))
        )


def load_pattern(path: str | os.PathLike[str], key: str | None = None) -> Pattern:
    """Return the pattern that a file holds.

    Parameters
    ----------
    path : str or path-like
        A .smtx, .npy or .npz file; messages show it as given here.  Any non-zero element of a .npy
        array counts as one.
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
            raise _Fault(must(known, suffix or "one without an ending", near=SUFFIXES))
        if key is not None and suffix != ".npz":
            raise _Fault(must("must be an .npz file where a key is given", suffix))
        with _open(file) as stream:
            if suffix == ".smtx":
                return _read_smtx(stream)
            if suffix == ".npy":
                return _read_npy(stream)
            with _archive(stream) as archive:
                return _read_bitmap(archive, key)
    except _Fault as fault:
        raise fault.of(file) from None


def pattern_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the patterns in an .npz file, sorted.

    Raises
    ------
    WorkloadError
        If the file cannot be read.
    """
    file = os.fspath(path)
    try:
        with _open(file) as stream, _archive(stream) as archive:
            return _names(archive)
    except _Fault as fault:
        raise fault.of(file) from None


def load_meta(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what an .npz file says about its patterns; empty if it says nothing.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or its ``meta`` is not a JSON object.
    """
    file = os.fspath(path)
    try:
        with _open(file) as stream, _archive(stream) as archive:
            if "meta.npy" not in archive.namelist():
                return {}
            meta = _read_member(archive, "meta", np.dtype(np.uint8), _MAX_META_BYTES)
            try:
                data = json.loads(meta.tobytes())
            except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
                data = None
            if not isinstance(data, dict):
                message = "must be a JSON object in UTF-8"
                raise _Fault(message, path="meta")
            return data
    except _Fault as fault:
        raise fault.of(file) from None


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
    arrays: dict[str, NDArray[Any]] = {}
    for name, pattern in patterns.items():
        arrays[f"{name}.bits"] = np.packbits(pattern.mask())
        arrays[f"{name}.shape"] = np.array(pattern.shape, dtype=np.int64)
    text = json.dumps(meta, ensure_ascii=False, sort_keys=True)
    arrays["meta"] = np.frombuffer(text.encode(), dtype=np.uint8)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in sorted(arrays.items()):
            content = io.BytesIO()
            np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
            # A fixed date, so that the bytes do not depend on when they were written.
            member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content.getvalue())


def _open(file: str) -> IO[bytes]:
    """Open a file that holds something, or say why not."""
    path = Path(file)
    try:
        if path.is_dir():
            raise _Fault(must("must be a file", "a directory"))
        if path.exists() and not path.is_file():
            raise _Fault(must("must be a file", "a device or a pipe"))
        stream = path.open("rb")
    except FileNotFoundError:
        near = nearest(path.name, [other.name for other in path.parent.glob("*")])
        hint = f" (did you mean {path.with_name(near)}?)" if near else ""
        message = f"must be a file that exists{hint}"
        raise _Fault(message) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"must be a file that can be read ({reason})"
        raise _Fault(message) from None
    if not _length(stream):
        stream.close()
        message = "must hold a pattern, but is empty"
        raise _Fault(message)
    return stream


def _length(stream: IO[bytes]) -> int:
    return os.fstat(stream.fileno()).st_size


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _check_size(shape: tuple[int, ...], *, line: int | None = None, path: str | None = None) -> None:
    if math.prod(shape) > MAX_ELEMENTS:
        size = f"{' x '.join(map(str, shape))} = {math.prod(shape)}"
        raise _Fault(must(f"must have at most {MAX_ELEMENTS} elements", size), line=line, path=path)


# --- .smtx ---------------------------------------------------------------------------------------


def _read_smtx(stream: IO[bytes]) -> MaskPattern:
    """Read the three lines of an .smtx file: sizes, row offsets, column indices."""
    lines = _lines(stream)
    line, text = next(lines, (1, b""))
    fields = text.split(b",")
    sizes = _integers(b" ".join(fields), line) if len(fields) == 3 else np.empty(0, dtype=np.int64)
    if len(sizes) != 3:
        raise _Fault(must("must be three sizes: rows, columns, non-zeros", _shorten(text)), line=line)
    rows, cols, nnz = (int(size) for size in sizes)
    if min(rows, cols, nnz) < 0:
        raise _Fault(must("sizes must be 0 or more", _shorten(text)), line=line)
    _check_size((rows, cols), line=line)
    if nnz > rows * cols:
        what = f"non-zeros must be at most rows * columns ({rows * cols})"
        raise _Fault(must(what, nnz), line=line)
    longest = (rows + 1 + nnz) * _DIGITS + _MAX_HEADER_BYTES
    if _length(stream) > longest:
        what = f"must be at most {longest} bytes long for {rows + 1} offsets and {nnz} indices"
        raise _Fault(must(what, _length(stream)))

    line, text = next(lines, (line + 1, b""))
    offsets = _integers(text, line)
    if len(offsets) != rows + 1:
        raise _Fault(must(f"must be rows + 1 = {rows + 1} row offsets", len(offsets)), line=line)
    counts = np.diff(offsets)
    if offsets[0] != 0:
        raise _Fault(must("row offsets must start at 0", offsets[0]), line=line)
    if counts.size and counts.min() < 0:
        row = int(np.argmax(counts < 0))
        what = f"row offsets must not fall: offset {row + 1} must be at least {offsets[row]}"
        raise _Fault(must(what, offsets[row + 1]), line=line)
    if offsets[-1] != nnz:
        raise _Fault(
            must(f"the last row offset must be the number of non-zeros ({nnz})", offsets[-1]), line=line
        )

    line, text = next(lines, (line + 1, b""))
    indices = _integers(text, line)
    if len(indices) != nnz:
        raise _Fault(must(f"must be {nnz} column indices", len(indices)), line=line)
    outside = np.flatnonzero((indices < 0) | (indices >= cols))
    if outside.size:
        what = f"column indices must be 0 to {cols - 1}"
        raise _Fault(must(what, indices[outside[0]]), line=line)
    extra, text = next(lines, (0, b""))
    if extra:
        what = "must end after the column indices (three lines that are not empty)"
        raise _Fault(must(what, _shorten(text)), line=extra)

    mask = np.zeros((rows, cols), dtype=np.bool_)
    mask.reshape(-1)[np.repeat(np.arange(rows) * cols, counts) + indices] = True
    if np.count_nonzero(mask) != nnz:
        row = int(np.argmax(np.count_nonzero(mask, axis=1) != counts))
        what = f"column indices of a row must all differ: row {row} must have {counts[row]} columns"
        raise _Fault(must(what, np.count_nonzero(mask[row])), line=line)
    return MaskPattern.adopt(mask)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the number (1-based) and text of every line that is not blank; the first may not be long."""
    number, limit = 0, _MAX_HEADER_BYTES
    while text := stream.readline(limit):
        number += 1
        if len(text) == limit:
            message = "must be three sizes: rows, columns, non-zeros (is this an .smtx file?)"
            raise _Fault(message, line=number)
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
            raise _Fault(must("must hold whole numbers of 64 bits only", _shorten(wrong)), line=line)
        start = blank if blank >= 0 else len(text)
    return np.concatenate(pieces)


def _shorten(text: bytes) -> str:
    shown = text.decode("utf-8", "backslashreplace")
    return f"{shown[:37]}..." if len(shown) > 40 else shown or "an empty line"


# --- .npy ----------------------------------------------------------------------------------------


def _read_npy(stream: IO[bytes]) -> MaskPattern:
    """Read a two-dimensional .npy array, some rows at a time, as the mask of its non-zero elements."""
    length = _length(stream)
    shape, fortran, dtype = _npy_header(stream)
    if len(shape) != 2:
        raise _Fault(must("must be an array with two dimensions", f"the shape {shape}"))
    _check_size(shape)
    declared = stream.tell() + math.prod(shape) * dtype.itemsize
    if length != declared:
        raise _Fault(must(f"must be {declared} bytes long, as its header declares", length))
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
            raise _Fault(must(what, values[i - r0, j]))
        np.not_equal(values, 0, out=piece)
    return MaskPattern.adopt(np.ascontiguousarray(mask.T) if fortran else mask)


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether stored column by column, and dtype of the .npy array that `stream` starts."""
    magic = stream.read(8)
    size_bytes = {1: 2, 2: 4, 3: 4}.get(magic[6]) if len(magic) == 8 and magic[:6] == b"\x93NUMPY" else None
    size = int.from_bytes(stream.read(size_bytes or 0), "little")
    text = stream.read(size) if size <= _MAX_HEADER_BYTES else b""
    try:
        header = ast.literal_eval(text.decode("latin-1"))
        shape, fortran, descr = header["shape"], header["fortran_order"], header["descr"]
        is_sound = len(text) == size and isinstance(shape, tuple) and all(type(i) is int for i in shape)
    except (ValueError, SyntaxError, TypeError, LookupError, RecursionError, MemoryError):
        is_sound = False
    if not is_sound:
        message = "must be an array in .npy format, but its header is cut short or damaged"
        raise _Fault(message)
    if descr == "|O":
        message = "must be an array of numbers: pickled objects are never loaded"
        raise _Fault(message)
    if not isinstance(descr, str) or not _NUMBERS.fullmatch(descr):
        raise _Fault(must("must be an array of booleans, integers or floats", f"of the dtype {descr}"))
    if any(length < 0 for length in shape):
        raise _Fault(must("must have sizes of 0 or more", f"the shape {shape}"))
    return shape, bool(fortran), np.dtype(descr)


# --- .npz ----------------------------------------------------------------------------------------


def _archive(stream: IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        message = "must be an .npz archive, but is cut short or damaged"
        raise _Fault(message) from None


def _names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the patterns that have both their arrays, sorted."""
    members = set(archive.namelist())
    ending = ".bits.npy"
    return sorted(
        member.removesuffix(ending)
        for member in members
        if member.endswith(ending) and f"{member.removesuffix(ending)}.shape.npy" in members
    )


def _read_bitmap(archive: zipfile.ZipFile, key: str | None) -> MaskPattern:
    """Read and unpack one pattern of an archive."""
    names = _names(archive)
    if not names:
        held = ", ".join(sorted(name.removesuffix(".npy") for name in archive.namelist())[:8]) or "nothing"
        message = must("must hold bitmaps: arrays NAME.bits and NAME.shape", held)
        raise _Fault(message)
    if key is None and len(names) > 1:
        message = f"must be read with a key, since it holds several patterns: {', '.join(names)}"
        raise _Fault(message)
    if key is not None and key not in names:
        raise _Fault(unknown("pattern of this file", key, names))
    name = names[0] if key is None else key
    shape = _read_member(archive, f"{name}.shape", np.dtype("<i8"), 16)
    if shape.size != 2 or shape.min() < 0:
        raise _Fault(must("must be two sizes of 0 or more", shape.tolist()), path=f"{name}.shape")
    rows, cols = int(shape[0]), int(shape[1])
    _check_size((rows, cols), path=f"{name}.shape")
    n_bytes = -(-rows * cols // 8)
    bits = _read_member(archive, f"{name}.bits", np.dtype(np.uint8), n_bytes)
    if bits.size != n_bytes:
        what = f"must be {n_bytes} bytes for a {rows} x {cols} pattern"
        raise _Fault(must(what, bits.size), path=f"{name}.bits")
    if rows * cols % 8 and bits[-1] & (0xFF >> rows * cols % 8):
        message = "must have zeros after its last element"
        raise _Fault(message, path=f"{name}.bits")
    return MaskPattern.adopt(np.unpackbits(bits, count=rows * cols).view(np.bool_).reshape(rows, cols))


def _read_member(archive: zipfile.ZipFile, name: str, dtype: np.dtype[Any], max_bytes: int) -> NDArray[Any]:
    """Read one array of an archive that may hold at most `max_bytes` of data.

    Notes
    -----
    Neither the archive's directory nor the array's header is believed: at most the bytes that are
    allowed are unpacked, and an array is made only of bytes that were there.
    """
    limit = max_bytes + _MAX_HEADER_BYTES
    try:
        if archive.getinfo(f"{name}.npy").compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            message = "must be stored or deflated, as numpy writes it"
            raise _Fault(message, path=name)
        with archive.open(f"{name}.npy") as member:
            content = member.read(limit + 1)
            if len(content) <= limit:
                member.read(1)  # reaching the end checks the checksum
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError, ValueError):
        message = "must be an array in .npy format, but is cut short or damaged"
        raise _Fault(message, path=name) from None
    if len(content) > limit:
        raise _Fault(must(f"must hold at most {max_bytes} bytes", "more"), path=name)
    stream = io.BytesIO(content)
    try:
        shape, _, found = _npy_header(stream)
    except _Fault as fault:
        raise _Fault(str(fault), path=name) from None
    if found != dtype or len(shape) != 1:
        what = f"must be an array of {dtype} with one dimension"
        raise _Fault(must(what, f"{found} with the shape {shape}"), path=name)
    data = content[stream.tell() :]
    if len(data) != math.prod(shape) * dtype.itemsize:
        what = f"must hold {math.prod(shape) * dtype.itemsize} bytes, as its header declares"
        raise _Fault(must(what, len(data)), path=name)
    return np.frombuffer(data, dtype=dtype)
