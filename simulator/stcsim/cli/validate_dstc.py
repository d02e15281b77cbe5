"""``stcsim validate dstc-fig21`` and ``dstc-sparseloop``: the dual-side core against published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from stcsim.cli.validate_output import csv_option, json_option, plot_option, show


@click.command("dstc-fig21")
@csv_option
@json_option
@plot_option
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
    folder: Path | None,
    size: int,
    overrides: tuple[str, ...],
    engine: Literal["numba", "reference", "analytic"],
) -> None:
    """Predict Fig. 21 of the DSTC paper: time at densities A x B over dense x dense, on dstc-v100."""
    from stcsim import dstc_validation  # imported where used: --help stays quick
    from stcsim.cli.progress import Bar

    with Bar() as bar:
        found = dstc_validation.fig21(table, size, bar.update, overrides, engine)
    show("dstc-fig21", found, folder, as_json=as_json)


@click.command("dstc-sparseloop")
@csv_option
@json_option
@plot_option
def sparseloop(table: Path | None, as_json: bool, folder: Path | None) -> None:
    """Predict another model's cycles of a dual-side core (Sparseloop's): a trend, not the truth."""
    from stcsim import dstc_validation  # imported where used: --help stays quick
    from stcsim.cli.progress import Bar

    with Bar() as bar:
        found = dstc_validation.sparseloop(table, bar.update)
    show("dstc-sparseloop", found, folder, as_json=as_json)
