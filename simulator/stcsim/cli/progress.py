"""Progress on stderr for whatever takes more than two seconds: a rewritten line on a terminal, else plain lines."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Self

DELAY_SECONDS = 2.0
"""Nothing is shown before: most runs are done by then."""
PLAIN_SECONDS = 5.0
"""Least time between two lines where there is no terminal to rewrite one on."""


class Bar:
    """Shows ``[3/9] what is running``."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._last = -PLAIN_SECONDS
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
        self.show(number, total, number, what)

    def show(self, number: int, total: int, fresh: int, what: str, *, with_rate: bool = False) -> None:
        """Say how far it is.

        Parameters
        ----------
        number, total : int
            Runs that are done, and all.
        fresh : int
            Those of the done ones that this process did: rate and time left follow from them.
        what : str
            What is running, or anything else worth knowing.
        with_rate : bool
            Whether to say how many are done a second.
        """
        now = time.monotonic()
        seconds = now - self._start
        on_terminal = sys.stderr.isatty()
        if seconds < DELAY_SECONDS or (not on_terminal and now - self._last < PLAIN_SECONDS):
            return
        filled = 20 * number // max(1, total)
        eta = f", about {_time(seconds / fresh * (total - number))} left" if fresh else ""
        rate = f", {fresh / seconds:.3g} runs/s" if with_rate else ""
        line = f"[{'#' * filled}{'.' * (20 - filled)}] {number}/{total}{rate}{eta}: {what}"
        if on_terminal:
            sys.stderr.write(f"\r\x1b[K{line[:150]}")
        else:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
        self._shown = True
        self._last = now


class Clock:
    """Shows ``12 s: what is running`` on a terminal, for work that cannot say how far it is.

    Parameters
    ----------
    what : str
        What is running.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        start = time.monotonic()
        shown = False
        wait = DELAY_SECONDS
        while not self._done.wait(wait):
            sys.stderr.write(f"\r\x1b[K{_time(time.monotonic() - start)}: {self._what}"[:150])
            sys.stderr.flush()
            shown, wait = True, 1.0
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _time(seconds: float) -> str:
    """Return a duration for people.

    Examples
    --------
    >>> _time(42.4), _time(150), _time(8000)
    ('42 s', '2 min 30 s', '2 h 13 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
