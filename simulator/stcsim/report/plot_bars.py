"""Bars: speed-up of each layer, where the cycles went, and the three utilisations."""

from __future__ import annotations

from typing import Any

from stcsim.report.plot import (
    BASELINE_COLOUR,
    COLOURS,
    HATCHES,
    Plot,
    baseline_text,
    chosen_points,
    column_figure,
    legend_above,
    point_label,
)
from stcsim.report.sweep_table import geomean
from stcsim.result.sweep_results import SweepResults

MOST_BARS = 18
"""Bars of the cycle breakdown; with more, layers are summed."""
_CAUSES = (
    "tensor_busy", "accumulator_conflict", "operand_fetch", "issue", "dependency", "shared_memory", "l2", "dram",
    "barrier", "prologue", "epilogue", "split_k", "launch", "imbalance", "tail",
)  # fmt: skip
"""Causes from the left: work, then what held a sub-core up, then what left it without work."""
_IDLE = {"imbalance": "#969696", "tail": "#D9D9D9"}
"""Colours of the causes that left a sub-core without work."""
_LINE_CHARACTERS = 56
"""Characters of a tick label's size that fit side by side in a column."""
_UTILIZATIONS = {
    "lane": "lane: useful MACs / issued slots",
    "issue": "issue: tensor pipe occupied / cycles",
    "effective": "effective: useful MACs / (multipliers x cycles)",
}


def _short(name: str, length: int = 16) -> str:
    return name if len(name) <= length else f"{name[: length - 1]}…"


def _wrapped(name: str) -> str:
    r"""Break a name at the separator nearest to its middle.

    Examples
    --------
    >>> _wrapped("stage1-branch2a")
    'stage1-\nbranch2a'
    """
    places = [i + 1 for i, character in enumerate(name[:-1]) if character in "-_. /"]
    at = min(places, key=lambda place: abs(place - len(name) / 2), default=len(name))
    return f"{name[:at]}\n{name[at:]}" if at < len(name) else name


def speed_up_bars(results: SweepResults) -> Plot | None:
    """Draw the speed-up of each layer and their geometric mean."""
    points = chosen_points(results)
    layers = list(dict.fromkeys(row.workload for point in points for row in point.rows))
    table: list[dict[str, Any]] = []
    with column_figure(2.1) as (figure, axes):
        width = 0.8 / max(1, len(points))
        n_coloured = 0
        for i, point in enumerate(points):
            values: list[float | None] = [row.speed_up for row in point.rows]
            if len(layers) > 1:
                values.append(geomean(values))
            if any(value is None for value in values):
                continue
            label = point_label(point, points)
            colour, hatch = BASELINE_COLOUR, ""
            if not point.first.is_baseline:
                colour, hatch = COLOURS[n_coloured % len(COLOURS)], HATCHES[n_coloured % len(HATCHES)]
                n_coloured += 1
            places = [x + (i - (len(points) - 1) / 2) * width for x in range(len(values))]
            heights = [value or 0.0 for value in values]
            axes.bar(
                places,
                heights,
                width * 0.94,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.3,
                label=label,
            )
            if width * len(layers) <= 1.2 or len(points) * (len(layers) + 1) <= 16:
                for x, height in zip(places, heights, strict=True):
                    axes.annotate(f"{height:.1f}" if height < 10 else f"{height:.0f}", (x, height), (0, 1),
                                  textcoords="offset points", ha="center", va="bottom", fontsize=6)  # fmt: skip
            names = [*layers, "geomean"] if len(layers) > 1 else layers
            table += [
                {"point": point.first.point, "machine": point.first.machine, "kernel": point.first.kernel,
                 "layer": name, "speed_up": value}
                for name, value in zip(names, values, strict=True)
            ]  # fmt: skip
        if not table:
            return None
        names = [*layers, "geomean"] if len(layers) > 1 else layers
        axes.axhline(1, color="black", linewidth=0.6, linestyle="--")
        if len(layers) > 1:
            axes.axvline(len(layers) - 0.5, color="0.7", linewidth=0.5)
        shown = [_short(name) for name in names]
        room = _LINE_CHARACTERS // len(names)
        if max(map(len, shown)) > room:
            shown = [_wrapped(name) for name in names]
        crowded = max(len(line) for name in shown for line in name.split("\n")) > room
        axes.set_xticks(range(len(names)), [_short(name) for name in names] if crowded else shown,
                        rotation=30 if crowded else 0, ha="right" if crowded else "center")  # fmt: skip
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel("speed-up over base (x)")
        axes.grid(axis="y", color="0.9", linewidth=0.5)
        legend_above(figure, axes, 2)
    return Plot(
        "speed_up",
        "Speed-up per layer",
        f"Time of the baseline ({baseline_text(results)}) over time, for each layer, and the geometric mean of all "
        "layers. The dashed line is the baseline.",
        figure,
        table,
    )


def cycle_breakdown(results: SweepResults) -> Plot | None:
    """Draw what the sub-cores did in every cycle, as shares that add up to one."""
    points = chosen_points(results)
    layers = list(dict.fromkeys(row.workload for point in points for row in point.rows))
    groups: list[tuple[str, list[dict[str, int]], int]] = []
    by_layer = len(points) * len(layers) <= MOST_BARS
    for point in points:
        name = point_label(point, points)
        done = [row.result for row in point.rows if row.result is not None]
        if by_layer:
            groups += [(f"{_short(r.workload)}\n{name}", [r.stalls], point.first.point) for r in done]
        else:
            groups.append((name, [result.stalls for result in done], point.first.point))
    if by_layer:
        groups.sort(
            key=lambda group: layers.index(next(n for n in layers if _short(n) == group[0].split("\n")[0]))
        )
    met = {cause for _, stalls, _ in groups for each in stalls for cause, count in each.items() if count}
    causes = [*(cause for cause in _CAUSES if cause in met), *sorted(met - set(_CAUSES))]
    if not causes:
        return None
    table: list[dict[str, Any]] = []
    legend_rows = -(-len(causes) // 3)
    with column_figure(0.75 + 0.26 * len(groups) + 0.17 * max(0, legend_rows - 3)) as (figure, axes):
        left = [0.0] * len(groups)
        totals = [sum(sum(each.values()) for each in stalls) for _, stalls, _ in groups]
        for i, cause in enumerate(causes):
            counts = [sum(each.get(cause, 0) for each in stalls) for _, stalls, _ in groups]
            shares = [
                100 * count / total if total else 0.0 for count, total in zip(counts, totals, strict=True)
            ]
            colour, hatch = (
                _IDLE.get(cause, COLOURS[i % len(COLOURS)]),
                HATCHES[(i // len(COLOURS) + i) % len(HATCHES)],
            )
            axes.barh(range(len(groups)), shares, 0.72, left, color=colour, hatch="" if cause in _IDLE else hatch,
                      edgecolor="white", linewidth=0.3, label=cause.replace("_", " "))  # fmt: skip
            left = [a + b for a, b in zip(left, shares, strict=True)]
            table += [
                {"point": number, "bar": name.replace("\n", ", "), "cause": cause, "sub_core_cycles": count,
                 "share_percent": share}
                for (name, _, number), count, share in zip(groups, counts, shares, strict=True)
            ]  # fmt: skip
        axes.set_yticks(range(len(groups)), [name for name, _, _ in groups])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.set_xlabel("sub-core cycles (%)")
        legend_above(figure, axes, 3 if len(causes) > 2 else len(causes))
    return Plot(
        "cycle_breakdown",
        "Where the cycles went",
        "Sub-core cycles by cause, in percent of all cycles of all sub-cores of the run"
        f"{'' if by_layer else ', layers summed'}; docs/model.md defines the causes.",
        figure,
        table,
    )


def utilization_bars(results: SweepResults) -> Plot | None:
    """Draw the three utilisations of each point over all its layers."""
    points = chosen_points(results)
    if not points:
        return None
    table: list[dict[str, Any]] = []
    with column_figure(1.2 + 0.34 * len(points)) as (figure, axes):
        height = 0.8 / len(_UTILIZATIONS)
        for i, (metric, label) in enumerate(_UTILIZATIONS.items()):
            values = [100 * (point.metric(metric) or 0.0) for point in points]
            places = [y + (i - 1) * height for y in range(len(points))]
            axes.barh(places, values, height * 0.92, color=COLOURS[i], hatch=HATCHES[i], edgecolor="white",
                      linewidth=0.3, label=label)  # fmt: skip
            for y, value in zip(places, values, strict=True):
                axes.annotate(
                    f"{value:.3g}", (value, y), (2, 0), textcoords="offset points", va="center", fontsize=6
                )
            table += [
                {"point": point.first.point, "machine": point.first.machine, "kernel": point.first.kernel,
                 "utilization": metric, "percent": value}
                for point, value in zip(points, values, strict=True)
            ]  # fmt: skip
        axes.set_yticks(range(len(points)), [point_label(point, points) for point in points])
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, 108)
        axes.set_xticks(range(0, 101, 20))
        axes.set_xlabel("utilisation (%)")
        axes.grid(axis="x", color="0.9", linewidth=0.5)
        legend_above(figure, axes, 1)
    return Plot(
        "utilization",
        "Three utilisations",
        "Over all layers of a point, each weighted by what it divides by. None is measured against a sparse peak.",
        figure,
        table,
    )
