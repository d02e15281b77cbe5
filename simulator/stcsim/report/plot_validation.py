"""Predicted against measured, with bands of 10 and 20 %: what ``stcsim validate NAME --plot DIR`` draws."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from stcsim.report.plot import COLOURS, MARKERS, Plot, legend_above, readable_log, style_figure
from stcsim.result.validation import Validation, error_figures

BANDS = (0.2, 0.1)
"""Relative errors that are shaded, the widest first."""
_SHADES = ("0.93", "0.85")
_LOWEST, _HIGHEST = 0.4, 2.5
"""Ratios between which the lower panel may reach; points beyond stand on its edge."""


def predicted_against_measured(name: str, found: Validation) -> Plot | None:
    """Draw every pair of a validation: predicted over measured above, their ratio below.

    Parameters
    ----------
    name : str
        Of the validation; stem of the files.
    found : Validation

    Returns
    -------
    plot : Plot or None
        None where nothing was measured.
    """
    # A quantity that sums others up is in the errors, not drawn twice.
    drawn = {
        quantity: pairs for quantity, pairs in found.pairs.items() if pairs and "all" not in quantity.split()
    }
    if not drawn:
        return None
    table: list[dict[str, Any]] = [
        {"quantity": quantity, "measured": measured, "predicted": predicted, "ratio": predicted / measured}
        for quantity, pairs in drawn.items()
        for measured, predicted in pairs
    ]
    with style_figure(3.6) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        low = min(min(row["measured"], row["predicted"]) for row in table) / 1.25
        high = max(max(row["measured"], row["predicted"]) for row in table) * 1.25
        _bands(above, below, low, high)
        for i, (quantity, pairs) in enumerate(drawn.items()):
            measured = [pair[0] for pair in pairs]
            # Past the last colour the markers go on by one, so that no two quantities look alike.
            marker = MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]
            look: dict[str, Any] = {
                "color": COLOURS[i % len(COLOURS)], "marker": marker, "s": 7, "linewidth": 0.2,
                "edgecolor": "white", "zorder": 3,
            }  # fmt: skip
            mean = error_figures(pairs)["mean_absolute_error_fraction"]
            above.scatter(measured, [pair[1] for pair in pairs], label=f"{quantity}: {mean:.1%}", **look)
            ratios = [min(max(predicted / value, _LOWEST), _HIGHEST) for value, predicted in pairs]
            below.scatter(measured, ratios, clip_on=False, **look)  # one on the edge is seen whole
        for axes in (above, below):
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.grid(color="0.9", linewidth=0.4)
        readable_log(above.yaxis, low, high)
        readable_log(below.xaxis, low, high)
        above.set_xlim(low, high)
        above.set_ylim(low, high)
        below.set_yticks([0.4, 0.5, 0.65, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5], minor=False)
        below.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        below.set_yticks([], minor=True)
        spread = [row["ratio"] for row in table]
        below.set_ylim(
            max(_LOWEST, min(0.75, min(spread) / 1.05)), min(_HIGHEST, max(1.33, max(spread) * 1.05))
        )
        above.set_ylabel(f"predicted ({found.unit})")
        below.set_ylabel("predicted / measured")
        below.set_xlabel(f"measured ({found.unit})")
        legend_above(figure, above, 2, "mean absolute error; shaded: within 10 and 20 %")
    return Plot(
        f"validation_{name}",
        f"{name}: predicted against measured",
        "Every measured row; the legend gives each quantity's mean absolute error. Shaded: within 10 and 20 %. "
        f"Ratios beyond {_LOWEST:g} or {_HIGHEST:g} stand on the edge of the lower panel.",
        figure,
        table,
    )


def _bands(above: Axes, below: Axes, low: float, high: float) -> None:
    """Shade what is within each band, and mark where both are equal."""
    for band, shade in zip(BANDS, _SHADES, strict=True):
        ends = [low, high]
        above.fill_between(ends, [(1 - band) * x for x in ends], [(1 + band) * x for x in ends],
                           color=shade, linewidth=0, zorder=0)  # fmt: skip
        below.axhspan(1 - band, 1 + band, color=shade, linewidth=0, zorder=0)
    above.plot([low, high], [low, high], color="black", linewidth=0.7, zorder=1)
    below.axhline(1, color="black", linewidth=0.7, zorder=1)
