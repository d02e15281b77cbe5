"""What an SM did in a window of cycles: Chrome trace JSON (opens in Perfetto), and text for tiny cases.

Place in the data flow: reads the events of `stcsim.machine.sm_record`; knows nothing of how they came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stcsim.machine.sm_record import EventColumn, IntArray

MAX_COLUMNS = 160
"""Cycles that the text timeline shows; more do not fit a terminal."""


def chrome_trace(events: IntArray, names: Sequence[str]) -> dict[str, Any]:
    """Return events in the Chrome trace format: one process a sub-core, one thread a warp, a microsecond a cycle.

    Parameters
    ----------
    events : ndarray of int64, shape (n_events, len(EventColumn))
    names : sequence of str
        Name of each row of the program.

    Returns
    -------
    trace : dict
        For `json.dump`.  Each instruction is three spans on its warp's thread: issue (one cycle), execute (until
        its result) and, from the cycle of its result on, write-back (one cycle).
    """
    spans: list[dict[str, Any]] = []
    threads = set()
    for event in events.tolist():
        issue, execute, done, sub_core, warp, cta, row = event
        thread = {"pid": sub_core, "tid": cta * 64 + warp}
        threads.add((sub_core, cta, warp))
        common = {"ph": "X", "name": names[row], **thread, "args": {"row": row, "cta": cta, "warp": warp}}
        spans.append({**common, "cat": "issue", "ts": issue, "dur": 1})
        if done > execute:
            spans.append({**common, "cat": "execute", "ts": execute, "dur": done - execute})
        spans.append({**common, "cat": "write-back", "ts": done, "dur": 1})
    meta: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": s, "args": {"name": f"sub-core {s}"}}
        for s in sorted({sub_core for sub_core, _, _ in threads})
    ]
    meta += [
        {"ph": "M", "name": "thread_name", "pid": s, "tid": cta * 64 + warp, "args": {"name": f"CTA {cta} warp {warp}"}}
        for s, cta, warp in sorted(threads)
    ]  # fmt: skip
    return {
        "traceEvents": [*meta, *spans],
        "displayTimeUnit": "ns",
        "otherData": {"time unit": "1 us = 1 cycle"},
    }


def text_timeline(events: IntArray, names: Sequence[str], start: int, length: int) -> list[str]:
    """Return one line an instruction: I where it issues, . while it waits, = while it executes, W at its result.

    Parameters
    ----------
    events, names
        As `chrome_trace` takes them.
    start, length : int, unit cycle
        Window; its first `MAX_COLUMNS` cycles are shown.
    """
    length = min(length, MAX_COLUMNS)
    width = max((len(names[row]) for row in events[:, EventColumn.ROW].tolist()), default=0)
    ruler = "".join(f"{start + c:<10}" for c in range(0, length, 10))[:length]
    lines = [f"{'s.cta.w':<8} {'row':>4} {'':<{width}}  {ruler}"]
    for issue, execute, done, sub_core, warp, cta, row in events.tolist():
        cells = [" "] * length
        for cycle in range(issue, min(done + 1, start + length)):
            cells[cycle - start] = "." if cycle < execute else "="
        if done < start + length:
            cells[done - start] = "W"
        if issue < start + length:
            cells[issue - start] = "I"
            place = f"{sub_core}.{cta}.{warp}"
            lines.append(f"{place:<8} {row:>4} {names[row]:<{width}}  {''.join(cells).rstrip()}")
    return lines
