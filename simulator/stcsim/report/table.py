"""The table of a study: one row for each workload, machine and kernel; reads results only."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from stcsim.report import im2col, network
from stcsim.report.skipped import skipped_text
from stcsim.result.result import Result
from stcsim.result.speed_up import speed_up

COLUMNS = (
    "workload", "machine", "kernel", "M x N x K", "density A x B", "cycles", "time us", "speed-up",
    "edges x zeros", "lane", "issue", "effective", "check",
)  # fmt: skip
_RIGHT = {*COLUMNS[5:12], *network.COLUMNS[3:], *im2col.COLUMNS[4:]}


def rows(results: Sequence[Result], baselines: Sequence[Result | None]) -> list[tuple[str, ...]]:
    """Return the cells of the table, row by row.

    Parameters
    ----------
    results : sequence of Result
    baselines : sequence of Result or None
        For each result, the one its speed-up is measured against.

    Returns
    -------
    rows : list of tuple of str
        In the order of `COLUMNS`.
    """
    return [_row(result, baseline) for result, baseline in zip(results, baselines, strict=True)]


def _row(result: Result, baseline: Result | None) -> tuple[str, ...]:
    factor = speed_up(result, baseline)
    base = " (base)" if result is baseline else ""
    use = result.utilization
    return (
        result.workload,
        result.machine,
        result.kernel,
        f"{result.m} x {result.n} x {result.k}",
        f"{result.density_a:.3f} x {result.density_b:.3f}",
        f"{result.cycles:,}",
        f"{result.time_us:,.2f}",
        "-" if factor is None else f"{factor:.2f}x{base}",
        skipped_text(result.outer_products),
        f"{use['lane']:.1%}",
        f"{use['issue']:.1%}",
        f"{use['effective']:.1%}",
        check_text(result),
    )


def check_text(result: Result) -> str:
    """Say how much of the output was checked."""
    if result.check.ok is None:
        return "off"
    word = "ok" if result.check.ok else "WRONG"
    share = result.check.share
    if share >= 1:
        return f"{word}, all of C"
    return f"{word}, {share:.2g} of C"


def print_study(
    console: Console, results: Sequence[Result], baselines: Sequence[Result | None], title: str
) -> None:
    """Print the table, then what was done to operands and what the cycles cover.

    On a terminal a table with lines; otherwise tab-separated lines with one header line, for other
    programs to read.
    """
    _print_cells(console, COLUMNS, rows(results, baselines), title)
    networks = network.rows(network.totals(results, baselines))
    if networks:
        _print_cells(console, network.COLUMNS, networks, f"{title}: networks")
    lowered = im2col.rows(results)
    if lowered:
        _print_cells(
            console, im2col.COLUMNS, lowered, f"{title}: im2col on the integer pipes, not in the cycles"
        )
    for note in notes(results):
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def _print_cells(
    console: Console, columns: Sequence[str], cells: Sequence[Sequence[str]], title: str
) -> None:
    if console.is_terminal:
        table = Table(title=title, title_justify="left", row_styles=["", "dim"])
        for name in columns:
            table.add_column(name, justify="right" if name in _RIGHT else "left", overflow="fold")
        for row in cells:
            table.add_row(*row)
        console.print(table)
    else:
        for line in (columns, *cells):
            print("\t".join(line), file=console.file)


def notes(results: Sequence[Result]) -> list[str]:
    """Return the lines that stand under the table."""
    lines = [
        f"{result.workload} on {result.machine} with {result.kernel}: {note}"
        for result in results
        for note in result.notes
    ]
    lines += sorted({f"cycles cover: {result.model}" for result in results})
    engines = sorted({result.engine for result in results})
    lines.append(f"engine: {', '.join(engines)}; utilisations: lane = useful MACs / slots of issued instructions, "
                 "issue = tensor pipe occupied / cycles, effective = useful MACs / (multipliers x cycles)")  # fmt: skip
    return lines
