"""The report of a sweep: its plots, their numbers and a Markdown page; reads results only."""

from __future__ import annotations

from collections.abc import Sequence

import jinja2

from stcsim.report.plot import Plot, baseline_text, chosen_points, point_label
from stcsim.report.plot_bars import cycle_breakdown, speed_up_bars, utilization_bars
from stcsim.report.plot_heat_map import speed_up_maps
from stcsim.report.plot_scatter import pareto, roofline
from stcsim.report.plot_tornado import tornado
from stcsim.report.sweep_table import METRIC_NAMES, failures, ranked, summarise, table_cells
from stcsim.result.sweep_results import SweepResults

_TEMPLATE = """\
# {{ results.study }}

{{ results.summary }}

{{ n_points }} points, {{ results.rows | length }} runs{% if results.missing %}, **{{ results.missing }} runs missing**\
{% endif %}{% if results.failed %}, **{{ results.failed | length }} failed**{% endif %}. Baseline: {{ baseline }}. \
stcsim {{ results.version }}, model version {{ results.model_version }}.
{% for model in models %}
Cycles cover: {{ model }}.
{% endfor %}
{% for plot in plots %}
## {{ plot.title }}

![{{ plot.title }}]({{ plot.name }}.png)

{{ plot.caption }} Numbers: [{{ plot.name }}.csv]({{ plot.name }}.csv); [SVG]({{ plot.name }}.svg).
{% endfor %}
## Points in the plots

| name | {{ header | join(" | ") }} |
|{{ "---|" * (header | length + 1) }}
{% for name, cells in shown %}| {{ name | escaped }} | {{ cells | map("escaped") | join(" | ") }} |
{% endfor %}
## The best points, by {{ metric }}

| {{ header | join(" | ") }} |
|{{ "---|" * (header | length) }}
{% for cells in best %}| {{ cells | map("escaped") | join(" | ") }} |
{% endfor %}{% if failures %}
## What failed
{% for line in failures %}
- {{ line }}
{%- endfor %}
{% endif %}
## Assumed, not published

{% for line in assumed %}- {{ line }}
{% else %}None.
{% endfor %}"""
_MOST_ROWS = 10


def escape(text: str) -> str:
    """Return text as it can stand in a cell of a Markdown table."""
    return text.replace("|", "\\|")


def draw(results: SweepResults) -> list[Plot]:
    """Draw every plot that the results have the data for."""
    made = [
        *speed_up_maps(results),
        speed_up_bars(results),
        cycle_breakdown(results),
        utilization_bars(results),
        roofline(results),
        pareto(results),
        tornado(results),
    ]
    return [plot for plot in made if plot is not None]


def report_files(results: SweepResults) -> dict[str, bytes]:
    """Return the files of the report by name: pictures, numbers and ``README.md``."""
    plots = draw(results)
    files = {name: content for plot in plots for name, content in plot.files().items()}
    return {**files, "README.md": _page(results, plots).encode()}


def _page(results: SweepResults, plots: Sequence[Plot]) -> str:
    environment = jinja2.Environment(autoescape=False, keep_trailing_newline=True, trim_blocks=False)
    environment.filters["escaped"] = escape
    points = summarise(results)
    shown = chosen_points(results)
    header, shown_cells = table_cells(shown, results)
    _, best = table_cells(ranked(points, results.metrics[0])[:_MOST_ROWS], results)
    assumed = {
        f"{item['file']}: `{item['path']}` = {item['value']}: {item['reason']}": None
        for result in results.results
        for item in result.assumed
    }
    text = environment.from_string(_TEMPLATE).render(
        results=results,
        plots=plots,
        n_points=len({row.point for row in results}),
        baseline=baseline_text(results),
        models=sorted({result.model for result in results.results}),
        header=header,
        shown=list(zip([point_label(point, shown) for point in shown], shown_cells, strict=True)),
        best=best,
        metric=METRIC_NAMES[results.metrics[0]],
        failures=failures(results),
        assumed=assumed,
    )
    return text.rstrip("\n") + "\n"
