"""``stcsim validate``: the model against recorded measurements."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from stcsim.cli.validate_dstc import fig21, sparseloop
from stcsim.cli.validate_gpu import a100_gemm, a100_sxm_bf16, h200_mma_sync
from stcsim.cli.validate_output import draw, jobs_option, plot_option


@click.group()
def validate() -> None:
    """Hold the model against measurements."""


@validate.command()
@click.option(
    "--data", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the recorded H200 tables (mma_instr.csv, mainloop/...).",
)  # fmt: skip
@click.option(
    "--only",
    type=click.Choice(["instr", "tiles", "loops", "resident"]),
    multiple=True,
    help="Parts; default: all.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the page to a file."
)
@click.option("--json", "as_json", is_flag=True, help="Print every row as JSON.")
def h200(data: Path, only: tuple[str, ...], output: Path | None, as_json: bool) -> None:
    """Predict what was measured on an H200, instruction by instruction, and print the errors as Markdown."""
    from stcsim.errors import ConfigError, Problem
    from stcsim.h200 import PARTS
    from stcsim.h200_page import page

    parts = {name: list(PARTS[name][2](data / PARTS[name][0])) for name in only or PARTS}
    if as_json:
        rows = {name: [{**asdict(row), "error": row.error} for row in part] for name, part in parts.items()}
        click.echo(json.dumps(rows, indent=2))
        return
    text = page({name: (PARTS[name][0], PARTS[name][1], rows) for name, rows in parts.items()})
    if output is None:
        click.echo(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        message = f"must be a file that can be written ({error.strerror})"
        raise ConfigError(Problem(message, str(output))) from None


@validate.command("all")
@jobs_option
@click.option("--json", "as_json", is_flag=True, help="Print the errors as JSON.")
@plot_option
def everything(jobs: int, as_json: bool, folder: Path | None) -> None:
    """Run every validation whose measurements ship, and print the errors as Markdown."""
    from stcsim.cli.progress import Bar
    from stcsim.shipped_validation import run_all

    summaries = {}
    with Bar() as bar:
        for name, found in run_all(jobs, bar.update):
            summaries[name] = found.summary
            if folder is not None:
                draw(name, found, folder)
    if as_json:
        click.echo(json.dumps(summaries, indent=2))
        return
    click.echo("| validation | quantity | measured | mean | p90 | largest |\n|---|---|---|---|---|---|")
    for name, summary in summaries.items():
        for quantity, figures in summary.items():
            errors = (figures[f"{which}_absolute_error_fraction"] for which in ("mean", "p90", "largest"))
            cells = [name, quantity, str(figures["n_measured"]), *(f"{error:.1%}" for error in errors)]
            click.echo(f"| {' | '.join(cells)} |")


validate.add_command(fig21)
validate.add_command(sparseloop)
validate.add_command(a100_gemm)
validate.add_command(a100_sxm_bf16)
validate.add_command(h200_mma_sync)
