"""``stcsim validate dstc-fig21`` and ``dstc-sparseloop``: the dual-side core against published figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

if TYPE_CHECKING:
    from stcsim.dstc_validation import Validation

_csv = click.option(
    "--csv", "table", type=click.Path(path_type=Path), help="Rows to predict; default: those that ship."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print rows and summary as JSON.")


@click.command("dstc-fig21")
@_csv
@_json
@click.option("--size", type=click.IntRange(1), default=4096, show_default=True, help="M, N and K.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="machine.PATH=... of dstc-v100, kernel.PATH=...",
)
@click.option(
    "--engine", type=click.Choice(["numba", "reference", "analytic"]), default="numba", show_default=True
)
def fig21(
    table: Path | None,
    as_json: bool,
    size: int,
    overrides: tuple[str, ...],
    engine: Literal["numba", "reference", "analytic"],
) -> None:
    """Predict Fig. 21 of the DSTC paper: time at densities A x B over dense x dense, on dstc-v100."""
    from stcsim import dstc_validation  # imported where used: --help stays quick
    from stcsim.cli.progress import Bar

    with Bar() as bar:
        found = dstc_validation.fig21(table, size, bar.update, overrides, engine)
    _show(found, as_json)


@click.command("dstc-sparseloop")
@_csv
@_json
def sparseloop(table: Path | None, as_json: bool) -> None:
    """Predict another model's cycles of a dual-side core (Sparseloop's): a trend, not the truth."""
    from stcsim import dstc_validation  # imported where used: --help stays quick
    from stcsim.cli.progress import Bar

    with Bar() as bar:
        found = dstc_validation.sparseloop(table, bar.update)
    _show(found, as_json)


def _show(found: Validation, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"rows": found.rows, "summary": found.summary}, indent=2))
        return
    columns = list(found.rows[0]) if found.rows else []
    click.echo("\t".join(columns))
    for row in found.rows:
        click.echo("\t".join("" if row[name] is None else f"{row[name]:.6g}" if isinstance(row[name], float)
                             else str(row[name]) for name in columns))  # fmt: skip
    summary = found.summary
    if summary["n_measured"]:
        click.echo(
            f"{summary['n_measured']} measured: mean absolute error "
            f"{summary['mean_absolute_error_fraction']:.1%}, largest {summary['largest_absolute_error_fraction']:.1%}"
        )
