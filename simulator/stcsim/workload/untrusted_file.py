"""Files that are not trusted: opened, measured and told about, before anything in them is believed.

Below the readers of patterns and traces.  It knows how an .npy header is spelt and how large
a pattern may be; nothing of what patterns mean.
"""

from __future__ import annotations

import ast
import math
import os
import re
from pathlib import Path
from typing import IO, Any

import numpy as np

from stcsim.errors import Problem, WorkloadError, must, nearest

MAX_ELEMENTS = 1 << 30
"""Most elements of a pattern that is read from a file (1 GiB as a mask; 32768 x 32768)."""

MAX_HEADER_BYTES = 10_000
"""Longest header of an array or of a text file."""

_NUMBERS = re.compile(r"\|b1|[<>|=](?:[iu][1248]|f[248])")
"""How a .npy header spells the dtypes that are read."""


class Fault(Exception):
    """What is wrong with a file, and where in it."""

    def __init__(self, message: str, *, line: int | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.path = path

    def of(self, file: str) -> WorkloadError:
        """Return the error that a user sees; what a file holds cannot break its line."""
        return WorkloadError(
            Problem(printable(str(self)), file, self.line, self.path and printable(self.path))
        )


def open_file(file: str) -> IO[bytes]:
    """Open a file that holds something, or say why not."""
    path = Path(file)
    try:
        if path.is_dir():
            raise Fault(must("must be a file", "a directory"))
        if path.exists() and not path.is_file():
            raise Fault(must("must be a file", "a device or a pipe"))
        stream = path.open("rb")
    except FileNotFoundError:
        near = nearest(path.name, [other.name for other in path.parent.glob("*")])
        hint = f" (did you mean {path.with_name(near)}?)" if near else ""
        message = f"must be a file that exists{hint}"
        raise Fault(message) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"must be a file that can be read ({reason})"
        raise Fault(message) from None
    if not length_of(stream):
        stream.close()
        message = "must hold something, but is empty"
        raise Fault(message)
    return stream


def length_of(stream: IO[bytes]) -> int:
    """Return the length of an open file in bytes."""
    return os.fstat(stream.fileno()).st_size


def printable(text: str) -> str:
    """Return `text` with what cannot be printed written out, so that it stays one line."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def check_size(shape: tuple[int, ...], *, line: int | None = None, path: str | None = None) -> None:
    """Raise if a pattern of this shape would have more than `MAX_ELEMENTS`."""
    if math.prod(shape) > MAX_ELEMENTS:
        size = f"{' x '.join(map(str, shape))} = {math.prod(shape)}"
        raise Fault(must(f"must have at most {MAX_ELEMENTS} elements", size), line=line, path=path)


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether stored column by column, and dtype of the .npy array that `stream` starts."""
    magic = stream.read(8)
    size_bytes = {1: 2, 2: 4, 3: 4}.get(magic[6]) if len(magic) == 8 and magic[:6] == b"\x93NUMPY" else None
    size = int.from_bytes(stream.read(size_bytes or 0), "little")
    text = stream.read(size) if size <= MAX_HEADER_BYTES else b""
    try:
        header = ast.literal_eval(text.decode("latin-1"))
        shape, fortran, descr = header["shape"], header["fortran_order"], header["descr"]
        is_sound = len(text) == size and isinstance(shape, tuple) and all(type(i) is int for i in shape)
    except (ValueError, SyntaxError, TypeError, LookupError, RecursionError, MemoryError):
        is_sound = False
    if not is_sound:
        message = "must be an array in .npy format, but its header is cut short or damaged"
        raise Fault(message)
    if descr == "|O":
        message = "must be an array of numbers: pickled objects are never loaded"
        raise Fault(message)
    if not isinstance(descr, str) or not _NUMBERS.fullmatch(descr):
        raise Fault(must("must be an array of booleans, integers or floats", f"of the dtype {descr}"))
    if any(length < 0 for length in shape):
        raise Fault(must("must have sizes of 0 or more", f"the shape {shape}"))
    return shape, bool(fortran), np.dtype(descr)
