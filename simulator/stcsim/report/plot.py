"""What every plot shares: size, fonts, colours that colour-blind readers can tell apart, and its files.

Place in the data flow: plots read `stcsim.result.sweep_results` and nothing else; the
modules ``plot_*`` and this one are the only ones that import matplotlib.  A plot
is a figure for one column of a paper, its caption, and its numbers as a table.
The same numbers give the same bytes: no date, no host, no random identifier.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from stcsim.report.sweep_table import PointSummary, ranked, summarise
from stcsim.result.sweep_results import SweepResults, csv_text

COLUMN_INCHES = 3.5
"""Width of one column of a two-column paper."""
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
"""The palette of Okabe and Ito, which the common kinds of colour blindness can tell apart."""
HATCHES = ("", "///", "...", "\\\\\\", "xx", "---", "++", "|||")
"""With the colours, so that grey prints can be read too."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
BASELINE_COLOUR = "#7F7F7F"
_PLAIN_DECADES = 4
MOST_POINTS = 5
"""Points that a plot with bars compares."""
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.labelsize": 7,
    "axes.titlesize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "hatch.linewidth": 0.4,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "svg.hashsalt": "stcsim",
    "svg.fonttype": "path",
    "savefig.dpi": 300,
}


@dataclass(frozen=True)
class Plot:
    """One figure.

    Parameters
    ----------
    name : str
        Stem of its files.
    title, caption : str
        The caption names the baseline and says what is shown.
    figure : Figure
    data : sequence of dict
        The numbers drawn, rows of equal columns.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    data: Sequence[Mapping[str, Any]]

    def files(self) -> dict[str, bytes]:
        """Return the picture as PNG and SVG and its numbers as CSV, by file name."""
        png, svg = io.BytesIO(), io.BytesIO()
        with mpl.rc_context(_STYLE):
            FigureCanvasAgg(self.figure)
            self.figure.savefig(png, format="png", metadata={"Software": None})
            FigureCanvasSVG(self.figure)
            self.figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        return {
            f"{self.name}.png": png.getvalue(),
            f"{self.name}.svg": svg.getvalue(),
            f"{self.name}.csv": csv_text(self.data).encode(),
        }


@contextmanager
def style_figure(height_inches: float) -> Iterator[Figure]:
    """Give an empty figure of column width, in the style of all plots."""
    with mpl.rc_context(_STYLE):
        yield Figure(figsize=(COLUMN_INCHES, height_inches), layout="constrained")


@contextmanager
def column_figure(height_inches: float) -> Iterator[tuple[Figure, Axes]]:
    """Give a figure of column width and its axes, in the style of all plots."""
    with style_figure(height_inches) as figure:
        yield figure, figure.add_subplot()


def legend_above(figure: Figure, axes: Axes, columns: int, title: str | None = None) -> None:
    """Put the legend over the axes, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper left", ncols=columns, columnspacing=1.0, borderaxespad=0.2,
        handletextpad=0.5, title=title, alignment="left",
    )  # fmt: skip


def readable_log(axis: Axis, low: float, high: float) -> None:
    """Mark a logarithmic axis from `low` to `high`: plain numbers over a few decades, powers of ten over many."""
    axis.set_minor_formatter(NullFormatter())
    if high / low > 10**_PLAIN_DECADES:
        axis.set_major_locator(LogLocator(numticks=7))
        return
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 10**1.5 else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def chosen_points(results: SweepResults) -> list[PointSummary]:
    """Return the points that plots with bars compare, all of one baseline.

    The workloads are those of the study's file (or of its first point): the baseline itself, then for each
    other machine and kernel the point of its files (or its first) and, where that is another one, its best.
    """
    points = summarise(results)
    reference = reference_point(results)
    if reference is None:
        return []
    baseline = reference.first.baseline
    group = [point for point in points if point.first.baseline == baseline]
    chosen = {point.first.point for point in group if point.first.is_baseline}
    by_pair: dict[str, list[PointSummary]] = {}
    for point in group:
        if not point.first.is_baseline:
            by_pair.setdefault(point.name, []).append(point)
    base_pairs = {point.name for point in group if point.first.is_baseline}
    for name, pair in by_pair.items():
        if name in base_pairs and len(by_pair) > 1:
            continue
        best = ranked(pair, results.metrics[0])[0]
        for point in (best, _reference(pair, results)):
            if len(chosen) < MOST_POINTS:
                chosen.add(point.first.point)
    return [point for point in group if point.first.point in chosen]


def _reference(points: Sequence[PointSummary], results: SweepResults) -> PointSummary:
    """Return the point whose axes have the values of the files, else the first."""
    for point in points:
        axes = point.first.axes
        if all(value is None or value == results.axis_defaults.get(path) for path, value in axes.items()):
            return point
    return points[0]


def reference_point(results: SweepResults) -> PointSummary | None:
    """Return the point that sensitivities are measured from: that of the files, of the best machine and kernel."""
    points = summarise(results)
    others = ranked([point for point in points if not point.first.is_baseline], results.metrics[0])
    pool = others or points
    if not pool:
        return None
    return _reference([point for point in points if point.name == pool[0].name and point in pool], results)


def point_label(point: PointSummary, points: Sequence[PointSummary]) -> str:
    """Return a short name of a point among those of a plot; the page says what it is in full."""
    first = point.first
    base = " (base)" if first.is_baseline else ""
    same_machine = [other for other in points if other.first.machine == first.machine]
    if len(same_machine) == 1:
        return f"{first.machine}{base}"
    if len({other.first.kernel for other in same_machine}) == len(same_machine):
        return f"{first.machine} {first.kernel.split('_')[0]}{base}"
    return f"{first.machine} #{first.point}{base}"


def baseline_text(results: SweepResults) -> str:
    """Name what speed-ups are measured against."""
    names = sorted({f"{row.machine} with {row.kernel}" for row in results if row.is_baseline})
    return " or ".join(names) or "none"
