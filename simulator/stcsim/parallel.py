"""Run a numbered list of independent pieces of work in forked processes, results in order.

Base of `stcsim.study.run_study`.  A piece is a function of its number; what it needs is
in the function's closure, which forked processes share, so that only numbers and results
travel.  Results do not depend on the number of processes.
"""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

# Set before the processes are forked, so that nothing of it is sent.
_piece: Callable[[int], Any] | None = None


def ordered(piece: Callable[[int], T], count: int, processes: int) -> Iterator[T]:
    """Yield ``piece(0)``, ``piece(1)``, ... ``piece(count - 1)``.

    Parameters
    ----------
    piece : callable
        Its results are pickled where there is more than one process.
    count : int
    processes : int
        1 runs everything in this process.

    Raises
    ------
    Exception
        What the first piece to fail raised.
    """
    global _piece
    if min(processes, count) <= 1:
        yield from map(piece, range(count))
        return
    _piece = piece
    with warnings.catch_warnings():
        # numpy's idle threads make newer Pythons warn of the fork; no thread of ours runs at this point.
        warnings.simplefilter("ignore", DeprecationWarning)
        pool = ProcessPoolExecutor(
            min(processes, count), mp_context=multiprocessing.get_context("fork"), initializer=_begin
        )
        try:
            yield from pool.map(_run, range(count))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            _piece = None


def _begin() -> None:
    """Leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _run(number: int) -> Any:
    if _piece is None:
        message = "a worker was started without work"
        raise AssertionError(message)
    return _piece(number)
