"""Bitmaps in an .npz archive: what it holds, and one pattern at a time out of it.

Below `stcsim.workload.pattern_file` and `stcsim.workload.trace`; it knows nothing of layers.
The archive is not trusted: its directory may be 16 MiB, an array is unpacked no further than the
sizes that it must have, and nothing pickled is ever loaded.

For each pattern ``NAME.bits`` (uint8, `numpy.packbits` of the row-major mask, most significant bit
first) and ``NAME.shape`` (two int64); optionally ``NAME.values`` (the non-zero values in the order of
the bits), and ``meta`` (UTF-8 JSON as uint8).
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import must, unknown
from stcsim.workload.packed_pattern import PackedPattern
from stcsim.workload.untrusted_file import (
    MAX_HEADER_BYTES,
    Fault,
    check_size,
    length_of,
    npy_header,
    open_file,
)

MAX_META_BYTES = 1 << 24
"""Longest description of an archive's patterns."""

_MAX_DIRECTORY_BYTES = 1 << 24
_END, _END_64 = b"PK\x05\x06", b"PK\x06\x07"
_END_BYTES, _END_64_BYTES = 22, 20
"""Records at the end of a ZIP file (APPNOTE 4.3.15 and 4.3.16), without a comment."""


class BitmapArchive:
    """An open archive of bitmaps.

    Parameters
    ----------
    archive : zipfile.ZipFile

    Notes
    -----
    Its methods raise `Fault`, which the reader of the file turns into an error that names it.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._members = frozenset(archive.namelist())

    def names(self) -> list[str]:
        """Return the names of the patterns that have both their arrays, sorted."""
        ending = ".bits.npy"
        stems = (member.removesuffix(ending) for member in self._members if member.endswith(ending))
        return sorted(stem for stem in stems if f"{stem}.shape.npy" in self._members)

    def require(self, name: str) -> None:
        """Raise unless there is a pattern called `name`."""
        if not {f"{name}.bits.npy", f"{name}.shape.npy"} <= self._members:
            raise Fault(unknown("pattern of this file", name, self.names()))

    def only(self) -> str:
        """Return the name of the one pattern."""
        names = self.names()
        if not names:
            held = ", ".join(sorted(member.removesuffix(".npy") for member in self._members)[:8])
            raise Fault(must("must hold bitmaps: arrays NAME.bits and NAME.shape", held or "nothing"))
        if len(names) > 1:
            message = f"must be read with a key, since it holds several patterns: {', '.join(names)}"
            raise Fault(message)
        return names[0]

    def shape(self, name: str) -> tuple[int, int]:
        """Return rows and columns of a pattern."""
        shape = self._read(f"{name}.shape", np.dtype("<i8"), 16)
        if shape.size != 2 or shape.min() < 0:
            raise Fault(must("must be two sizes of 0 or more", shape.tolist()), path=f"{name}.shape")
        rows, cols = int(shape[0]), int(shape[1])
        check_size((rows, cols), path=f"{name}.shape")
        return rows, cols

    def packed(self, name: str) -> PackedPattern:
        """Return a pattern, one bit an element."""
        rows, cols = self.shape(name)
        n_bytes = -(-rows * cols // 8)
        bits = self._read(f"{name}.bits", np.dtype(np.uint8), n_bytes)
        if bits.size != n_bytes:
            what = f"must be {n_bytes} bytes for a {rows} x {cols} pattern"
            raise Fault(must(what, bits.size), path=f"{name}.bits")
        if rows * cols % 8 and bits[-1] & (0xFF >> rows * cols % 8):
            message = "must have zeros after its last element"
            raise Fault(message, path=f"{name}.bits")
        return PackedPattern((rows, cols), bits)

    def values(self, name: str, count: int) -> NDArray[np.float32] | None:
        """Return the `count` non-zero values of a pattern, or None if they were not kept."""
        if f"{name}.values.npy" not in self._members:
            return None
        values = self._read(f"{name}.values", np.dtype("<f4"), 4 * count)
        if values.size != count:
            raise Fault(must(f"must be {count} values, one for each 1 of the bits", values.size), path=name)
        return values

    def meta(self) -> dict[str, Any]:
        """Return what the archive says about its patterns; empty if it says nothing."""
        if "meta.npy" not in self._members:
            return {}
        meta = self._read("meta", np.dtype(np.uint8), MAX_META_BYTES)
        try:
            data = json.loads(meta.tobytes())
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
            data = None
        if not isinstance(data, dict):
            message = "must be a JSON object in UTF-8"
            raise Fault(message, path="meta")
        return data

    def _read(self, name: str, dtype: np.dtype[Any], max_bytes: int) -> NDArray[Any]:
        """Read one array that may hold at most `max_bytes` of data.

        Notes
        -----
        Neither the archive's directory nor the array's header is believed: at most the bytes that are
        allowed are unpacked, and an array is made only of bytes that were there.
        """
        limit = max_bytes + MAX_HEADER_BYTES
        try:
            info = self._archive.getinfo(f"{name}.npy")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                message = "must be stored or deflated, as numpy writes it"
                raise Fault(message, path=name)
            with self._archive.open(info) as member:
                content = member.read(limit + 1)
                if len(content) <= limit:
                    member.read(1)  # reaching the end checks the checksum
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            RuntimeError,
            NotImplementedError,
            ValueError,
        ):
            message = "must be an array in .npy format, but is cut short or damaged"
            raise Fault(message, path=name) from None
        if len(content) > limit:
            raise Fault(must(f"must hold at most {max_bytes} bytes", "more"), path=name)
        stream = io.BytesIO(content)
        try:
            shape, _, found = npy_header(stream)
        except Fault as fault:
            raise Fault(str(fault), path=name) from None
        if found != dtype or len(shape) != 1:
            what = f"must be an array of {dtype} with one dimension"
            raise Fault(must(what, f"{found} with the shape {shape}"), path=name)
        data = memoryview(content)[stream.tell() :]
        if len(data) != math.prod(shape) * dtype.itemsize:
            what = f"must hold {math.prod(shape) * dtype.itemsize} bytes, as its header declares"
            raise Fault(must(what, len(data)), path=name)
        return np.frombuffer(data, dtype=dtype)


@contextmanager
def open_archive(file: str) -> Iterator[BitmapArchive]:
    """Open a .npz file, and give every `Fault` met on the way the file's name.

    Raises
    ------
    WorkloadError
        If it cannot be read, or where the reader meets a fault.
    """
    try:
        with open_file(file) as stream, _zip(stream) as archive:
            yield BitmapArchive(archive)
    except Fault as fault:
        raise fault.of(file) from None


def _zip(stream: IO[bytes]) -> zipfile.ZipFile:
    size = _directory_bytes(stream)
    if size > _MAX_DIRECTORY_BYTES:
        raise Fault(must(f"must list its arrays in at most {_MAX_DIRECTORY_BYTES} bytes", size))
    try:
        return zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        message = "must be an .npz archive, but is cut short or damaged"
        raise Fault(message) from None


def _directory_bytes(stream: IO[bytes]) -> int:
    """Return how long an archive says that its directory is, which would be read whole; 0 if it does not say.

    Notes
    -----
    Finds the record as `zipfile` does: at the very end, or before a comment.
    """
    tail_bytes = min(length_of(stream), (1 << 16) + _END_BYTES + _END_64_BYTES)
    stream.seek(-tail_bytes, io.SEEK_END)
    tail = stream.read(tail_bytes)
    at = len(tail) - _END_BYTES
    if at < 0 or tail[at : at + 4] != _END or tail[-2:] != b"\0\0":
        at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        return 0
    size = int.from_bytes(tail[at + 12 : at + 16], "little")
    locator = tail[at - _END_64_BYTES : at] if at >= _END_64_BYTES else b""
    if locator[:4] == _END_64:
        stream.seek(min(int.from_bytes(locator[8:16], "little"), length_of(stream)))
        size = max(size % 0xFFFF_FFFF, int.from_bytes(stream.read(56)[40:48], "little"))
    return size
