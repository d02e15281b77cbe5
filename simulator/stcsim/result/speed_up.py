"""Speed-up, defined once; knows results only."""

from __future__ import annotations

from stcsim.result.result import Result


def speed_up(result: Result, baseline: Result | None) -> float | None:
    """Return baseline time over time, None where either is zero or there is no baseline."""
    if baseline is None or result.cycles == 0 or baseline.cycles == 0:
        return None
    return baseline.time_us / result.time_us
