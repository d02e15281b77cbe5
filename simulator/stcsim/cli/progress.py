"""A progress bar on stderr for whatever takes more than two seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

DELAY_SECONDS = 2.0
"""Nothing is shown before: most runs are done by then."""


class Bar:
    """Shows ``[3/9] what is running``; one rewritten line on a terminal, a line each otherwise."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")

    def update(self, number: int, total: int, what: str) -> None:
        """Say that run `number` (from 0) of `total` begins."""
        seconds = time.monotonic() - self._start
        if seconds < DELAY_SECONDS:
            return
        filled = 20 * number // total
        eta = f", about {seconds / number * (total - number):.0f} s left" if number else ""
        line = f"[{'#' * filled}{'.' * (20 - filled)}] {number}/{total}{eta}: {what}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line[:150]}")
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
        self._shown = True
