"""Writes the archives that `stcsim.workload.bitmap_archive` reads, one pattern at a time.

What is being written stands under another name until it is whole, so that a fault leaves nothing
behind.  The same content gives the same bytes.  It knows nothing of layers.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import Problem, WorkloadError
from stcsim.workload.pattern import Pattern


class BitmapWriter:
    """A file being written; to be used as a context.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced when `finish` is called.

    Raises
    ------
    WorkloadError
        If the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._part = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        try:
            self._archive = zipfile.ZipFile(self._part, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        except (OSError, ValueError) as error:
            message = f"must be a file that can be written ({getattr(error, 'strerror', None) or error})"
            raise WorkloadError(Problem(message, str(path))) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.close()
        self._part.unlink(missing_ok=True)

    def add(self, name: str, pattern: Pattern, values: ArrayLike | None = None) -> None:
        """Write a pattern and, if they are given, the values of its ones in row-major order (as float32)."""
        pieces = [np.frombuffer(piece, np.uint8) for piece in pattern.packed_pieces()]
        self._write(f"{name}.bits", np.concatenate([np.zeros(0, np.uint8), *pieces]))
        self._write(f"{name}.shape", np.array(pattern.shape, dtype=np.int64))
        if values is not None:
            self._write(f"{name}.values", np.asarray(values, dtype=np.float32))

    def finish(self, meta: Mapping[str, Any]) -> None:
        """Write what is to be said of the patterns, as JSON can carry it, and put the file in its place."""
        text = json.dumps(meta, ensure_ascii=False, sort_keys=True)
        self._write("meta", np.frombuffer(text.encode(), dtype=np.uint8))
        self._archive.close()
        self._part.replace(self._path)

    def _write(self, name: str, array: NDArray[Any]) -> None:
        content = io.BytesIO()
        np.lib.format.write_array(content, array, version=(1, 0), allow_pickle=False)
        # A fixed date, so that the bytes do not depend on when they were written.
        member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
        member.compress_type = zipfile.ZIP_DEFLATED
        self._archive.writestr(member, content.getbuffer())
