"""How a validation is shown: rows and errors as text or JSON, and its plot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from stcsim.result.validation import Validation

csv_option = click.option(
    "--csv", "table", type=click.Path(path_type=Path),
    help="Rows to predict; measured columns may be empty.  Default: what ships.",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print rows and summary as JSON.")
jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes."
)
plot_option = click.option(
    "--plot", "folder", type=click.Path(file_okay=False, path_type=Path),
    help="Also draw predicted against measured: PNG, SVG and the numbers, into this folder.",
)  # fmt: skip


def show(name: str, found: Validation, folder: Path | None, *, as_json: bool) -> None:
    """Print rows and errors, as JSON or as a table with a line for each measured quantity; draw what was measured.

    Printed first: where the picture cannot be made, the predictions are not lost.
    """
    if as_json:
        click.echo(json.dumps({"rows": found.rows, "summary": found.summary}, indent=2))
    else:
        _print_table(found)
    if folder is not None:
        draw(name, found, folder)


def _print_table(found: Validation) -> None:
    columns = [
        column for column in (found.rows[0] if found.rows else {}) if not column.startswith("bottleneck_")
    ]
    click.echo("\t".join(columns))
    for row in found.rows:
        cells = (row[column] for column in columns)
        click.echo("\t".join("" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)
                             for cell in cells))  # fmt: skip
    for column, figures in found.summary.items():
        click.echo(f"{column}: {errors_text(figures)}")


def errors_text(figures: dict[str, Any]) -> str:
    """Return the errors of one measured quantity in words."""
    return (
        f"{figures['n_measured']} measured, mean absolute error "
        f"{figures['mean_absolute_error_fraction']:.1%}, p90 {figures['p90_absolute_error_fraction']:.1%}, "
        f"largest {figures['largest_absolute_error_fraction']:.1%}"
    )


def draw(name: str, found: Validation, folder: Path) -> None:
    """Write the plot of a validation into a folder.

    Raises
    ------
    ConfigError
        If nothing was measured, or the folder cannot be written.
    """
    from stcsim.cli.output_file import write_files
    from stcsim.errors import ConfigError, Problem
    from stcsim.report.plot_validation import predicted_against_measured  # matplotlib takes a while

    plot = predicted_against_measured(name, found)
    if plot is None:
        message = "must hold measured values: there is nothing to draw"
        raise ConfigError(Problem(message, name))
    write_files(folder, plot.files())
