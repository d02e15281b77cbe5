"""Heat map: speed-up over the densities of both operands, as in SpGEMM figures."""

from __future__ import annotations

import json
from typing import Any

from matplotlib.colors import LogNorm
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter

from stcsim.report.plot import Plot, column_figure
from stcsim.result.sweep_results import SweepResults, SweepRow

_LEAST_VALUES = 3
"""Distinct densities on each side that make a map worth drawing."""
_DENSITY = (".pattern.density", ".pattern.sparsity")


def speed_up_maps(results: SweepResults) -> list[Plot]:
    """Draw one map for each machine, kernel and choice of the other axes whose points form a grid."""
    groups: dict[tuple[str, ...], dict[tuple[float, float], SweepRow]] = {}
    for row in results:
        if row.result is None or row.speed_up is None or row.is_baseline:
            continue
        others = {path: value for path, value in row.axes.items() if not path.endswith(_DENSITY)}
        size = f"{row.result.m} x {row.result.n} x {row.result.k}"
        key = (row.machine, row.kernel, size, json.dumps(others), str(row.repetition))
        place = (_rounded(row.result.density_a), _rounded(row.result.density_b))
        groups.setdefault(key, {}).setdefault(place, row)
    maps = [(key, cells) for key, cells in groups.items() if _is_grid(cells)]
    return [
        _draw(key, cells, results, "heat_map" if len(maps) == 1 else f"heat_map_{i + 1}")
        for i, (key, cells) in enumerate(maps[:4])
    ]


def _rounded(density: float) -> float:
    return float(f"{density:.2g}")


def _is_grid(cells: dict[tuple[float, float], SweepRow]) -> bool:
    rows, columns = {a for a, _ in cells}, {b for _, b in cells}
    full = len(rows) * len(columns)
    return min(len(rows), len(columns)) >= _LEAST_VALUES and len(cells) >= 0.8 * full


def _draw(
    key: tuple[str, ...], cells: dict[tuple[float, float], SweepRow], results: SweepResults, name: str
) -> Plot:
    densities_a = sorted({a for a, _ in cells}, reverse=True)
    densities_b = sorted({b for _, b in cells}, reverse=True)
    machine, kernel, size, _, _ = key
    first = next(iter(cells.values()))
    base = next((row for row in results if row.point == first.baseline and row.layer == first.layer), None)
    table: list[dict[str, Any]] = []
    with column_figure(0.75 + 0.28 * len(densities_a)) as (figure, axes):
        grid = [
            [cells[a, b].speed_up if (a, b) in cells else float("nan") for b in densities_b]
            for a in densities_a
        ]
        known = [value for line in grid for value in line if value is not None and value == value]
        low, high = min(known), max(known)
        norm = LogNorm(low, max(high, low * 1.01))
        image = axes.imshow(grid, cmap="cividis", norm=norm, aspect="auto")  # type: ignore[arg-type]
        size_of_text = 6 if len(densities_b) <= 9 else 4.5
        for i, a in enumerate(densities_a):
            for j, b in enumerate(densities_b):
                value = grid[i][j]
                if value is None or value != value:
                    continue
                is_dark = norm(value) < 0.55
                axes.text(j, i, _number(value), ha="center", va="center", fontsize=size_of_text,
                          color="white" if is_dark else "black")  # fmt: skip
                if value < 1:
                    axes.add_patch(
                        Rectangle(
                            (j - 0.47, i - 0.47), 0.94, 0.94, fill=False, edgecolor="#E69F00", linewidth=1.0
                        )
                    )
                row = cells[a, b]
                table.append(
                    {"point": row.point, "density_a": row.result.density_a if row.result else a,
                     "density_b": row.result.density_b if row.result else b,
                     "cycles": row.result.cycles if row.result else None, "speed_up": value}
                )  # fmt: skip
        axes.set_xticks(
            range(len(densities_b)),
            [f"{b:g}" for b in densities_b],
            rotation=45 if len(densities_b) > 6 else 0,
        )
        axes.set_yticks(range(len(densities_a)), [f"{a:g}" for a in densities_a])
        axes.set_xlabel("density of B (fraction of non-zeros)")
        axes.set_ylabel("density of A (fraction of non-zeros)")
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.05)
        bar.set_label(f"speed-up over {base.machine if base else 'base'} (x, log scale)")
        bar.outline.set_visible(False)
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        bar.ax.minorticks_off()
    slower = " Outlined cells are slower than the baseline." if low < 1 else ""
    against = f"{base.machine} with {base.kernel}" if base else "the baseline"
    return Plot(
        name,
        "Speed-up over the densities of both operands",
        f"{size} on {machine} with {kernel}, against {against} on the same operands; the number in a cell is the "
        f"speed-up, colours are on a logarithmic scale.{slower}",
        figure,
        table,
    )


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
