"""Points on two axes: the roofline, and the Pareto front of gain against cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from stcsim.report.plot import (
    BASELINE_COLOUR,
    COLOURS,
    MARKERS,
    Plot,
    baseline_text,
    column_figure,
    legend_above,
    readable_log,
    reference_point,
)
from stcsim.report.sweep_table import PointSummary, summarise
from stcsim.result.result import Result
from stcsim.result.sweep_results import SweepResults

_MOST_LABELS = 6
_MOST_ROOFS = 3


def _pairs(points: Sequence[PointSummary]) -> list[str]:
    return list(dict.fromkeys(point.name for point in points))


def _look(point: PointSummary, pairs: Sequence[str]) -> dict[str, Any]:
    """Return colour and marker of a point: grey for the baseline, else those of its machine and kernel."""
    if point.first.is_baseline:
        return {"color": BASELINE_COLOUR, "marker": "*", "s": 34, "zorder": 4}
    index = pairs.index(point.name)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "s": 10,
        "zorder": 3,
    }


def roofline(results: SweepResults) -> Plot | None:
    """Draw useful MACs a second over useful MACs a byte, under the roofs of the multipliers, of L2 and of DRAM.

    A filled mark stands over the operand bytes that CTAs fetch, a hollow one over what DRAM moves for them.
    """
    points = summarise(results)
    pairs = _pairs([point for point in points if not point.first.is_baseline])
    table: list[dict[str, Any]] = []
    with column_figure(2.6) as (figure, axes):
        seen = set()
        for point in points:
            for row in point.rows:
                at = _under_the_roofs(row.result)
                if row.result is None or at is None:
                    continue
                label = point.name.split("_")[0] + (" (base)" if row.is_baseline else "")
                look, rate = _look(point, pairs), at["useful_tmacs_per_second"]
                axes.scatter([at["useful_macs_per_byte"]], [rate], linewidth=0.2, edgecolor="white",
                             label=None if label in seen else label, **look)  # fmt: skip
                seen.add(label)
                if at["useful_macs_per_dram_byte"] is not None:
                    hollow = {**look, "color": "none", "edgecolor": look["color"], "zorder": 2.5}
                    axes.scatter([at["useful_macs_per_dram_byte"]], [rate], linewidth=0.5, **hollow)
                table.append(
                    {"point": row.point, "layer": row.workload, "machine": row.machine, "kernel": row.kernel, **at}
                )  # fmt: skip
        if not table:
            return None
        axes.set_xscale("log")
        axes.set_yscale("log")
        rates = [row["useful_tmacs_per_second"] for row in table]
        along = [
            value
            for row in table
            for value in (row["useful_macs_per_byte"], row["useful_macs_per_dram_byte"])
            if value is not None
        ]
        readable_log(axes.xaxis, min(along), max(along))
        readable_log(axes.yaxis, min(rates), max(rates))
        axes.set_xlim(min(along) / 1.6, max(along) * 1.6)
        axes.set_ylim(min(rates) / 1.6, max(row["peak_tmacs_per_second"] for row in table) * 3)
        _draw_roofs(axes, table)
        axes.set_xlabel("useful MACs per byte (MAC/B)")
        axes.set_ylabel("useful rate (TMAC/s)")
        axes.grid(color="0.9", linewidth=0.5)
        legend_above(figure, axes, 2)
    memory = any(row["l2_tbytes_per_second"] is not None for row in table)
    return Plot(
        "roofline",
        "Roofline",
        "Every layer of every point: useful MACs a second over useful MACs a byte of operands that CTAs fetch. "
        "The level line is all multipliers busy with useful work; a layer's own ceiling is lower where zeros are "
        "multiplied. "
        + (
            "Filled marks belong to the solid slope, the most that L2 gives the SMs; hollow ones stand over the bytes "
            "that DRAM moves and belong to the dashed slope, what DRAM sustains. A hollow mark is missing where DRAM "
            "moves nothing."
            if memory
            else "SMs alone were timed (level: sm), so there is no memory roof."
        ),
        figure,
        table,
    )


def _under_the_roofs(result: Result | None) -> dict[str, Any] | None:
    """Return where a result stands and its roofs; None where it fetches or computes nothing."""
    if result is None:
        return None
    fetched = sum(count for name, count in result.traffic_bytes.items() if name != "output")
    if not (fetched and result.cycles and result.macs_useful):
        return None
    roofs = result.memory_bytes_per_second
    return {
        "useful_macs_per_byte": result.macs_useful / fetched,
        "useful_macs_per_dram_byte": result.macs_useful / result.dram_bytes if result.dram_bytes else None,
        "useful_tmacs_per_second": result.macs_useful / result.time_us * 1e-6,
        "peak_tmacs_per_second": round(result.multipliers * result.clock_hz * 1e-12, 6),
        "l2_tbytes_per_second": round(roofs["l2"] * 1e-12, 6) if "l2" in roofs else None,
        "dram_tbytes_per_second": round(roofs["dram"] * 1e-12, 6) if "dram" in roofs else None,
    }


def _draw_roofs(axes: Axes, table: Sequence[dict[str, Any]]) -> None:
    """Draw and name the roofs; of many of a kind all are drawn, and the lowest and the highest named."""
    ends = axes.get_xlim()

    def each(name: str) -> tuple[list[float], list[float]]:
        roofs = sorted({row[name] for row in table if row[name] is not None})
        return roofs, roofs if len(roofs) <= _MOST_ROOFS else [roofs[0], roofs[-1]]

    drawn, named = each("peak_tmacs_per_second")
    for roof in drawn:
        axes.axhline(roof, color="black", linewidth=0.8)
    for roof in named:
        axes.annotate(f"all multipliers busy: {roof:.4g} TMAC/s", (0.01, roof), (0, 1),
                      xycoords=("axes fraction", "data"), textcoords="offset points",
                      fontsize=6, va="bottom")  # fmt: skip
    for name, what, style in (
        ("l2_tbytes_per_second", "L2 to SMs", "-"), ("dram_tbytes_per_second", "DRAM", "--"),
    ):  # fmt: skip
        drawn, named = each(name)
        label = f"{what}: {(', ' if drawn == named else ' to ').join(f'{roof:.3g}' for roof in named)} TB/s"
        for roof in drawn:
            axes.plot(ends, [end * roof for end in ends], color="0.35", linewidth=0.8, linestyle=style, zorder=1,
                      scalex=False, scaley=False, label=label if roof == drawn[0] else None)  # fmt: skip


def pareto(results: SweepResults) -> Plot | None:
    """Draw the gain of every point over its cost, and the front of those that none beats in both."""
    points = [point for point in summarise(results) if point.metric("speed_up") is not None]
    reference = reference_point(results)
    if reference is None:
        return None
    group = [point for point in points if point.first.baseline == reference.first.baseline]
    name, costs = _costs(group, results)
    drawn = [
        (point, cost, point.metric("speed_up") or 0.0)
        for point, cost in zip(group, costs, strict=True)
        if cost is not None
    ]
    if len(drawn) < 3 or len({cost for _, cost, _ in drawn}) < 2:
        return None
    front = _front([(cost, gain) for _, cost, gain in drawn])
    pairs = _pairs([point for point in group if not point.first.is_baseline])
    table = [
        {"point": point.first.point, "machine": point.first.machine, "kernel": point.first.kernel,
         "cost": cost, "speed_up": gain, "on_front": (cost, gain) in front}
        for point, cost, gain in drawn
    ]  # fmt: skip
    with column_figure(2.4) as (figure, axes):
        seen = set()
        for point, cost, gain in drawn:
            label = point.name.split("_")[0] + (" (base)" if point.first.is_baseline else "")
            axes.scatter([cost], [gain], linewidth=0.2, edgecolor="white", label=None if label in seen else label,
                         **_look(point, pairs))  # fmt: skip
            seen.add(label)
        steps = sorted(front)
        axes.step([cost for cost, _ in steps], [gain for _, gain in steps], where="post", color="#D55E00",
                  linewidth=0.9, label="Pareto front", zorder=2)  # fmt: skip
        axes.scatter([cost for cost, _ in steps], [gain for _, gain in steps], s=26, facecolor="none",
                     edgecolor="#D55E00", linewidth=0.7, zorder=5)  # fmt: skip
        _name_front(axes, drawn, front)
        axes.set_xlabel(name)
        axes.set_ylabel("geomean speed-up over base (x)")
        largest, smallest = max(cost for _, cost, _ in drawn), min(cost for _, cost, _ in drawn)
        if smallest > 0 and largest / smallest > 8:
            axes.set_xscale("log")
            readable_log(axes.xaxis, smallest, largest)
        else:
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.margins(0.08, 0.12)
        axes.grid(color="0.9", linewidth=0.5)
        legend_above(figure, axes, 3)
    return Plot(
        "pareto",
        "Gain against cost",
        f"Every point: geometric mean of the layers' speed-ups over {baseline_text(results)} against its cost; "
        "the circled points are those that no other beats in both. Numbers are those of the points.",
        figure,
        table,
    )


def _costs(points: Sequence[PointSummary], results: SweepResults) -> tuple[str, list[float | None]]:
    """Return the name and the values of the cost: the study's, else multipliers, else bytes moved."""
    if results.cost is not None:
        values = [point.first.axes.get(results.cost) for point in points]
        return results.axes[results.cost], [float(v) if isinstance(v, int | float) else None for v in values]
    multipliers = [float(point.first.result.multipliers) if point.first.result else None for point in points]
    if len(set(multipliers)) > 1:
        return "physical multipliers (count)", multipliers
    moved = [
        sum(sum(row.result.traffic_bytes.values()) for row in point.rows if row.result) / 2**20
        for point in points
    ]
    return "bytes moved by CTAs, all layers (MiB)", list(moved)


def _front(points: Sequence[tuple[float, float]]) -> set[tuple[float, float]]:
    """Return the points for which no other costs at most as much and gains at least as much.

    Examples
    --------
    >>> sorted(_front([(1, 1), (2, 3), (3, 2), (4, 4)]))
    [(1, 1), (2, 3), (4, 4)]
    """
    front = set()
    best = float("-inf")
    for cost, gain in sorted(points, key=lambda point: (point[0], -point[1])):
        if gain > best:
            front.add((cost, gain))
            best = gain
    return front


def _name_front(
    axes: Axes, drawn: Sequence[tuple[PointSummary, float, float]], front: set[tuple[float, float]]
) -> None:
    """Write the numbers of the points on the front, the fastest ones first, so that they do not crowd."""
    named: set[tuple[float, float]] = set()
    for point, cost, gain in sorted(drawn, key=lambda item: -item[2]):
        if (cost, gain) in front and (cost, gain) not in named and len(named) < _MOST_LABELS:
            named.add((cost, gain))
            is_last = cost == max(front)[0]
            axes.annotate(f"#{point.first.point}", (cost, gain), (-4 if is_last else 3, 4), textcoords="offset points",
                          ha="right" if is_last else "left", fontsize=6)  # fmt: skip
