"""The table of a sweep: its best points, one row each; reads results only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from stcsim.result.sweep_results import SweepResults, SweepRow

MOST_ROWS = 20
"""Points of the printed table; ``stcsim results query`` prints them all."""
METRIC_NAMES = {
    "speed_up": "speed-up",
    "cycles": "cycles",
    "time_us": "time us",
    "lane": "lane util.",
    "issue": "issue util.",
    "effective": "effective util.",
}
_LESS_IS_BETTER = ("cycles", "time_us")


@dataclass(frozen=True)
class PointSummary:
    """One point over all its layers.

    Parameters
    ----------
    rows : tuple of SweepRow
        Its layers that were done.
    """

    rows: tuple[SweepRow, ...]

    @property
    def first(self) -> SweepRow:
        """A layer, for what all layers share."""
        return self.rows[0]

    @property
    def name(self) -> str:
        """Machine and kernel."""
        return f"{self.first.machine} {self.first.kernel}"

    def metric(self, name: str) -> float | None:
        """Return a metric over all layers: speed-up as geometric mean, cycles and time as sums.

        Utilisations are weighted by what they divide by, so that they are those of all layers together.
        """
        results = [row.result for row in self.rows if row.result is not None]
        if name == "speed_up":
            return geomean([row.speed_up for row in self.rows])
        if name == "cycles":
            return float(sum(result.cycles for result in results))
        if name == "time_us":
            return sum(result.time_us for result in results)
        if name == "lane":
            return _ratio(sum(r.macs_useful for r in results), sum(r.mac_slots for r in results))
        if name == "issue":
            busy = sum(result.stalls["tensor_busy"] for result in results)
            return _ratio(busy, sum(result.cycles * result.sub_cores for result in results))
        useful = sum(result.macs_useful for result in results)
        return _ratio(useful, sum(result.multipliers * result.cycles for result in results))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def geomean(values: Sequence[float | None]) -> float | None:
    """Return the geometric mean, None where a value is missing."""
    known = [value for value in values if value]
    if not known or len(known) < len(values):
        return None
    return math.exp(sum(math.log(value) for value in known) / len(known))


def summarise(results: SweepResults) -> list[PointSummary]:
    """Return the points of which every layer was done, in their order."""
    by_point: dict[int, list[SweepRow]] = {}
    for row in results:
        by_point.setdefault(row.point, []).append(row)
    return [
        PointSummary(tuple(rows)) for rows in by_point.values() if all(row.result is not None for row in rows)
    ]


def ranked(points: Sequence[PointSummary], metric: str) -> list[PointSummary]:
    """Return the points, best first; equal ones in their order, those without the metric last."""
    sign = 1 if metric in _LESS_IS_BETTER else -1

    def place(point: PointSummary) -> tuple[bool, float]:
        value = point.metric(metric)
        return value is None, sign * (value or 0.0)

    return sorted(points, key=place)


def print_sweep(console: Console, results: SweepResults) -> None:
    """Print the best points; on a terminal as a table, otherwise as tab-separated lines with a header."""
    points = summarise(results)
    metric = results.metrics[0]
    best = ranked(points, metric)[:MOST_ROWS]
    header, cells = table_cells(best, results)
    n_layers = len({row.layer for row in results})
    title = f"{results.study}: {len(points)} points of {n_layers} layers, by {METRIC_NAMES[metric]}"
    if console.is_terminal:
        table = Table(title=title, title_justify="left")
        for name in header:
            table.add_column(name, overflow="fold")
        for row in cells:
            table.add_row(*row)
        console.print(table)
    else:
        for line in (header, *cells):
            print("\t".join(line), file=console.file)
    if len(points) > len(best):
        console.print(f"the best {len(best)} of {len(points)} points", markup=False, highlight=False)
    if results.missing:
        console.print(
            f"{results.missing} runs are missing: go on with --resume", markup=False, highlight=False
        )
    for model in sorted({result.model for result in results.results}):
        console.print(f"cycles cover: {model}", markup=False, highlight=False, soft_wrap=True)


def failures(results: SweepResults) -> list[str]:
    """Return a line for each reason for which runs failed, and one that counts them; none where none did."""
    by_reason: dict[str, list[SweepRow]] = {}
    for row in results.failed:
        by_reason.setdefault(row.error, []).append(row)
    lines = []
    for reason, rows in by_reason.items():
        first = rows[0]
        values = [
            f"{results.axes[path]} = {value}" for path, value in first.axes.items() if value is not None
        ]
        where = ", ".join(
            [f"point {first.point}", f"{first.workload} on {first.machine} with {first.kernel}", *values]
        )
        others = list(dict.fromkeys(str(row.point) for row in rows if row.point != first.point))
        also = f" (also point{'s' if len(others) > 1 else ''} {_shortened(others)})" if others else ""
        lines.append(f"failed: {where}: {reason}{also}")
    return [*lines, f"{len(results.failed)} of {len(results)} runs failed"] if lines else []


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def table_cells(
    points: Sequence[PointSummary], results: SweepResults
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and the cells of a table of points."""
    header = (
        "point",
        "machine",
        "kernel",
        *results.axes.values(),
        *(METRIC_NAMES[m] for m in results.metrics),
    )
    return header, [
        (
            str(point.first.point) + (" (base)" if point.first.is_baseline else ""),
            point.first.machine,
            point.first.kernel,
            *("-" if value is None else str(value) for value in point.first.axes.values()),
            *(metric_text(name, point.metric(name)) for name in results.metrics),
        )
        for point in points
    ]


def metric_text(name: str, value: float | None) -> str:
    """Return a metric for people."""
    if value is None:
        return "-"
    if name == "speed_up":
        return f"{value:.2f}x"
    if name == "cycles":
        return f"{value:,.0f}"
    return f"{value:,.2f}" if name == "time_us" else f"{value:.1%}"
