"""``stcsim report``: plots and a page from the results of a sweep; simulates nothing."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder of the report; left out: DIR/report."
)
def report(folder: Path, output: Path | None) -> None:
    """Draw the results of the sweep in DIR: PNG and SVG pictures, their numbers as CSV, and a page, README.md.

    Files of an earlier report with the same names are replaced.
    """
    from stcsim.cli.output_file import write_files
    from stcsim.errors import ConfigError, Problem
    from stcsim.result.sweep_results import SweepResults

    results = SweepResults.read(folder)
    if not results.results:
        message = "must hold a run that was done: there is nothing to draw"
        raise ConfigError(Problem(message, str(folder)))
    from stcsim.report.page import report_files  # matplotlib takes a while: errors come first

    target = output or folder / "report"
    files = report_files(results)
    write_files(target, files)
    click.echo(f"written: {target / 'README.md'} and {sum(name.endswith('.png') for name in files)} plots")
