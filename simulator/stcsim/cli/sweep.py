"""``stcsim sweep``: every point of a study into a store that survives being killed."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stcsim.points import DesignSpace
    from stcsim.result.sweep_results import SweepResults
    from stcsim.sweep import Planned, Sink, Tally


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder of the results (needed but for --dry-run)."
)
@click.option(
    "--axis", "axes", multiple=True, metavar="PATH=V1,V2,...",
    help="Vary a parameter, beside the study's axes or in the place of one: "
    "machine.tensor_core.accumulator.tiles=4,8,16.  May be given several times.",
)  # fmt: skip
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="As for stcsim run.")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes; left out: one for each core.")
@click.option("--resume", is_flag=True, help="Continue in a folder that this study's sweep has begun.")
@click.option("--retry-failed", is_flag=True, help="Run again what failed before.")
@click.option("--dry-run", is_flag=True, help="List the points, run nothing, write nothing.")
def sweep(
    study: Path,
    out: Path | None,
    axes: tuple[str, ...],
    overrides: tuple[str, ...],
    jobs: int | None,
    resume: bool,
    retry_failed: bool,
    dry_run: bool,
) -> int:
    """Run every point of the study in the YAML file STUDY and keep each result at once.

    Ctrl-C, a kill or a full disk loses at most the runs in flight; --resume runs what is missing.  Exit
    status: 0, or 1 where a point failed (stcsim results query DIR --failed says why).
    """
    # Imported where used: --help stays quick.
    from stcsim.export import study_yaml
    from stcsim.points import axis_override, expand
    from stcsim.result.store import Store, check_folder
    from stcsim.result.sweep_results import SweepResults
    from stcsim.sweep import plan

    if out is None and not dry_run:
        message = "--out DIR must be given (or --dry-run)"
        raise click.UsageError(message)
    if out is not None and not dry_run:
        check_folder(out, resume=resume)
    space = expand(study, [*overrides, *axis_override(axes, study, overrides)])
    if dry_run:
        print_points(space)
        return 0
    jobs = jobs or len(os.sched_getaffinity(0))
    planned = plan(space, jobs)
    folder = out or Path()
    with Store.create(folder, planned.runs, planned.meta(study_yaml(space.base)), resume=resume) as store:
        try:
            run_all(planned, store, jobs=jobs, retry_failed=retry_failed)
        except KeyboardInterrupt:
            done = len(store.statuses())
            again = shlex.join(
                ["stcsim", "sweep", str(study), *_repeated(axes, overrides), "--out", str(folder)]
            )
            print(f"stopped: {done} results are kept; go on with: {again} --resume", file=sys.stderr)
            return 130
        results = SweepResults.collect(store.meta(), store.plan(), store.outcomes())
    print_summary(results)
    click.echo(f"results: {folder} (stcsim results export {folder}, stcsim report {folder})")
    return 1 if results.failed else 0


def _repeated(axes: tuple[str, ...], overrides: tuple[str, ...]) -> list[str]:
    return [
        word
        for name, texts in (("--axis", axes), ("--set", overrides))
        for text in texts
        for word in (name, text)
    ]


def run_all(planned: Planned, sink: Sink, *, jobs: int, retry_failed: bool = False) -> Tally:
    """Run a sweep with its progress on stderr."""
    from stcsim.cli.progress import Bar
    from stcsim.sweep import run

    with Bar() as bar:

        def show(tally: Tally) -> None:
            failed = f"{tally.failed} failed" if tally.failed else "none failed"
            best = f"; best so far {tally.best}" if tally.best else ""
            bar.show(tally.done, tally.total, tally.fresh, f"{failed}{best}", with_rate=True)

        return run(planned, sink, jobs=jobs, retry_failed=retry_failed, progress=show)


def print_points(space: DesignSpace) -> None:
    """Print every point, how many there are and what a constraint left out."""
    for point in space.points:
        base = " (baseline)" if point.baseline == point.number else ""
        seeds = f", repetition {point.repetition}" if space.base.study.repetitions > 1 else ""
        fault = f": cannot run: {point.error}" if point.error else ""
        click.echo(f"point {point.number}{base}: {point.label}{seeds}{fault}")
    left_out = f"; {space.left_out} left out by constraints" if space.left_out else ""
    impossible = sum(point.error is not None for point in space.points)
    cannot = f"; {impossible} cannot run" if impossible else ""
    n_layers = len(space.layers)
    click.echo(
        f"{len(space.points)} points of {n_layers} layer{'s' if n_layers != 1 else ''}: "
        f"{len(space.points) * n_layers} runs{left_out}{cannot}"
    )


def print_summary(results: SweepResults) -> None:
    """Print the table of a sweep, then what failed and why: equal reasons once."""
    from rich.console import Console

    from stcsim.report.sweep_table import failures, print_sweep

    print_sweep(Console(), results)
    for line in failures(results):
        print(line, file=sys.stderr)
