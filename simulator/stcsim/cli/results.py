"""``stcsim results``: look at, export and compare the results of sweeps; simulates nothing."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stcsim.errors import ConfigError, Problem, must

if TYPE_CHECKING:
    from stcsim.result.sweep_results import SweepResults

_DIR = click.Path(path_type=Path)
_WIDE = ("point", "status", "workload", "machine", "kernel", "repetition")


@click.group()
def results() -> None:
    """Look at, export and compare the results of sweeps."""


@results.command()
@click.argument("folder", metavar="DIR", type=_DIR)
@click.option(
    "--where", multiple=True, metavar="COLUMN=VALUE", help="Only rows with this value; may be repeated."
)
@click.option(
    "--columns", metavar="C1,C2,...", help="Columns to print; left out: the axes and the study's metrics."
)
@click.option("--sort", metavar="COLUMN", help="Order by a column, smallest first; -COLUMN: largest first.")
@click.option("--top", type=click.IntRange(1), help="Only the first N rows.")
@click.option("--failed", is_flag=True, help="Only rows that failed, with the reason.")
def query(
    folder: Path, where: tuple[str, ...], columns: str | None, sort: str | None, top: int | None, failed: bool
) -> None:
    """Print rows of the sweep in DIR as tab-separated lines, one for each layer of each point."""
    from stcsim.result.sweep_results import SweepResults, require_columns

    found = SweepResults.read(folder)
    rows = found.flat()
    conditions = [_condition(text) for text in where]
    names = [name.strip() for name in columns.split(",")] if columns else _columns(found, failed=failed)
    require_columns(rows, [name for name, _ in conditions], "--where")
    require_columns(rows, names, "--columns")
    if sort:
        require_columns(rows, [sort.lstrip("-")], "--sort")
    kept = [row for row in rows if all(_text(row[name]) == value for name, value in conditions)]
    if failed:
        kept = [row for row in kept if row["status"] == "failed"]
    if sort:
        kept = _sorted(kept, sort)
    for line in (names, *([_text(row[name]) for name in names] for row in kept[:top])):
        click.echo("\t".join(line))
    _tell_missing(found, folder)


def _condition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(Problem(must("must be COLUMN=VALUE", text), path="--where"))
    return name.strip(), value.strip()


def _columns(found: SweepResults, *, failed: bool) -> list[str]:
    if failed:
        return ["point", "workload", "machine", "kernel", *found.axes, "error"]
    names = {name: f"utilization_{name}_fraction" for name in ("lane", "issue", "effective")}
    return [*_WIDE, *found.axes, *(names.get(metric, metric) for metric in found.metrics)]


def _sorted(rows: list[dict[str, Any]], sort: str) -> list[dict[str, Any]]:
    """Order rows by a column; numbers before texts, rows without a value last."""
    name, is_down = sort.lstrip("-"), sort.startswith("-")
    known = [row for row in rows if row[name] is not None]
    try:
        known.sort(key=lambda row: row[name], reverse=is_down)
    except TypeError:
        known.sort(key=lambda row: str(row[name]), reverse=is_down)
    return [*known, *(row for row in rows if row[name] is None)]


def _text(value: object) -> str:
    return "" if value is None else str(value)


@results.command()
@click.argument("folder", metavar="DIR", type=_DIR)
@click.option(
    "--format", "kind", type=click.Choice(["csv", "json", "parquet"]), default="csv", show_default=True
)
@click.option("-o", "--output", type=_DIR, help="File to write; left out: standard output (csv and json).")
def export(folder: Path, kind: str, output: Path | None) -> None:
    """Write every row of the sweep in DIR, by point and layer.

    Equal results give equal bytes: nothing that depends on time or host is in it.
    """
    from stcsim.result.sweep_results import SweepResults, csv_text, json_text

    found = SweepResults.read(folder)
    if kind == "parquet":
        if output is None:
            raise ConfigError(Problem("must be given for parquet", path="-o"))
        _write_parquet(found.flat(), output)
    else:
        text = csv_text(found.flat()) if kind == "csv" else json_text(found)
        if output is None:
            click.echo(text, nl=False)
        else:
            _write(output, text.encode())
    _tell_missing(found, folder)


def _write(output: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    scratch = output.with_name(f".{output.name}.part")
    try:
        scratch.write_bytes(content)
        scratch.replace(output)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        message = f"must be a file that can be written ({error.strerror})"
        raise ConfigError(Problem(message, str(output))) from None


def _write_parquet(rows: list[dict[str, Any]], output: Path) -> None:
    try:
        pa = importlib.import_module("pyarrow")  # not a dependency of stcsim
        pq = importlib.import_module("pyarrow.parquet")
    except ImportError:
        message = "parquet must have pyarrow (pip install pyarrow); csv and json need nothing"
        raise ConfigError(Problem(message, path="--format")) from None
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows), buffer)
    _write(output, buffer.getvalue().to_pybytes())


def _tell_missing(found: SweepResults, folder: Path) -> None:
    if found.missing:
        print(
            f"{found.missing} runs of the sweep in {folder} are missing (--resume does them)", file=sys.stderr
        )


@results.command()
@click.argument("first", metavar="A", type=_DIR)
@click.argument("second", metavar="B", type=_DIR)
def diff(first: Path, second: Path) -> int:
    """Compare the sweeps in A and B, run by run; exit status 0 where all cycles are equal, else 1.

    Rows are matched by workload, machine, kernel, axis values and repetition.
    """
    from stcsim.result.sweep_comparison import compare
    from stcsim.result.sweep_results import SweepResults

    comparison = compare(SweepResults.read(first), SweepResults.read(second))
    for line in comparison.lines(str(first), str(second)):
        click.echo(line)
    return 0 if comparison.is_equal else 1
