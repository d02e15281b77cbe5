"""Tornado: how far each axis alone moves the speed-up from the reference point."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from stcsim.report.plot import (
    COLOURS,
    Plot,
    baseline_text,
    column_figure,
    legend_above,
    readable_log,
    reference_point,
)
from stcsim.report.sweep_table import PointSummary, summarise
from stcsim.result.sweep_results import SweepResults

_LOG_FROM = 8
"""Ratio of the largest to the smallest speed-up from which on the axis is logarithmic."""


@dataclass(frozen=True)
class Swing:
    """What one axis does while all others stay at the reference.

    Parameters
    ----------
    name : str
    low, high : float
        Smallest and largest speed-up along the axis, the reference among them.
    low_value, high_value : str
        The axis' values there.
    """

    name: str
    low: float
    high: float
    low_value: str
    high_value: str


def swings(results: SweepResults) -> tuple[PointSummary, list[Swing]] | None:
    """Return the reference point and every axis' swing, the widest first; None where nothing can be told."""
    reference = reference_point(results)
    if reference is None or reference.metric("speed_up") is None:
        return None
    alike = [
        point for point in summarise(results) if point.name == reference.name and not point.first.is_baseline
    ]
    found = []
    for group in results.axis_groups:
        along = [point for point in alike if _differs_in(point, reference, group)]
        values = [(point.metric("speed_up"), _value(point, group)) for point in (*along, reference)]
        known = [(gain, text) for gain, text in values if gain is not None]
        if len(known) > 1:
            low, high = min(known, key=lambda item: item[0]), max(known, key=lambda item: item[0])
            name = " x ".join(results.axes[path] for path in group)
            found.append(Swing(name, low[0], high[0], low[1], high[1]))
    if not found:
        return None
    return reference, sorted(found, key=lambda swing: swing.low - swing.high)


def _differs_in(point: PointSummary, reference: PointSummary, group: tuple[str, ...]) -> bool:
    """Tell whether a point has the reference's value in every axis outside `group`, and others within."""
    if point.first.repetition != reference.first.repetition or point is reference:
        return False
    mine, its = point.first.axes, reference.first.axes
    return all(json.dumps(mine[path]) == json.dumps(its[path]) for path in mine if path not in group)


def _value(point: PointSummary, group: tuple[str, ...]) -> str:
    return " x ".join(_text(point.first.axes[path]) for path in group)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " x ".join(_text(item) for item in value.values())
    return f"{value:g}" if isinstance(value, float) else str(value)


def tornado(results: SweepResults) -> Plot | None:
    """Draw the swings of all axes as bars to both sides of the reference."""
    found = swings(results)
    if found is None:
        return None
    reference, bars = found
    centre = reference.metric("speed_up") or 0.0
    with column_figure(0.85 + 0.34 * len(bars)) as (figure, axes):
        for i, swing in enumerate(bars):
            axes.barh(i, swing.low - centre, 0.6, centre, color=COLOURS[5], hatch="////", edgecolor="white",
                      linewidth=0.3, label="slower" if i == 0 else None)  # fmt: skip
            axes.barh(i, swing.high - centre, 0.6, centre, color=COLOURS[0], edgecolor="white", linewidth=0.3,
                      label="faster" if i == 0 else None)  # fmt: skip
            if swing.low == swing.high:
                axes.annotate(
                    "no effect", (centre, i), (3, 0), textcoords="offset points", va="center", fontsize=6
                )
            for gain, text, side, align in (
                (swing.low, swing.low_value, -2, "right"),
                (swing.high, swing.high_value, 2, "left"),
            ):
                if gain != centre:
                    axes.annotate(
                        text,
                        (gain, i),
                        (side, 0),
                        textcoords="offset points",
                        ha=align,
                        va="center",
                        fontsize=6,
                    )
        axes.axvline(centre, color="black", linewidth=0.8)
        axes.set_yticks(range(len(bars)), [swing.name for swing in bars])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        low, high = min(swing.low for swing in bars), max(swing.high for swing in bars)
        longest = max(len(text) for swing in bars for text in (swing.low_value, swing.high_value))
        share = 0.08 + 0.04 * longest
        if high > _LOG_FROM * low:
            axes.set_xscale("log")
            axes.set_xlim(low * (low / high) ** share, high * (high / low) ** share)
            readable_log(axes.xaxis, low, high)
        else:
            room = share * (high - low) or 0.1 * centre
            axes.set_xlim(low - room, high + room)
            axes.set_xticks(
                [tick for tick in axes.get_xticks() if max(0.0, low - room) <= tick <= high + room]
            )
        axes.set_xlabel(f"geomean speed-up over base (x)\nreference: {centre:.3g}x")
        axes.grid(axis="x", color="0.9", linewidth=0.5)
        legend_above(figure, axes, 2)
    table = [
        {"axis": swing.name, "reference_speed_up": centre, "low_speed_up": swing.low, "low_value": swing.low_value,
         "high_speed_up": swing.high, "high_value": swing.high_value}
        for swing in bars
    ]  # fmt: skip
    return Plot(
        "tornado",
        "Sensitivity, one axis at a time",
        f"From point {reference.first.point} ({reference.first.machine} with {reference.first.kernel}, every axis at "
        f"its file's value, or its first): the slowest and fastest speed-up over {baseline_text(results)} that each "
        "axis reaches alone, with the value that does it.",
        figure,
        table,
    )
