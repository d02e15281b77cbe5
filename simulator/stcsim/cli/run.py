"""``stcsim run``: a study from its file to a table and a folder."""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option(
    "--set", "overrides", multiple=True, metavar="PATH=VALUE",
    help="Override a value: machine.clock=1.2GHz (every machine that has it), kernel.stages=3, or a path in "
    "the study such as workloads.0.gemm.m=64.  May be given several times.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), help="Folder for results.csv, results.json and study.yaml."
)
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON instead of a table.")
@click.option(
    "--threads", type=click.IntRange(1), default=2, show_default=True, help="Threads of the engine."
)
def run(
    study: Path, overrides: tuple[str, ...], out: Path | None, force: bool, as_json: bool, threads: int
) -> int:
    """Run the study in the YAML file STUDY and print its table.

    All points of a study with axes are run, and nothing is kept on the way: stcsim sweep does that.
    """
    from rich.console import Console  # imported where used: --help stays quick

    from stcsim.cli.progress import Bar
    from stcsim.report.table import print_study
    from stcsim.result.writer import check_folder, csv_text, json_text, write_folder
    from stcsim.study import load_study, run_study

    if out is not None:
        check_folder(out, force=force)
    loaded = load_study(study, overrides)
    if loaded.study.is_sweep:
        return _sweep(study, overrides, out, force=force, as_json=as_json, jobs=threads)
    start = time.time()
    with Bar() as bar:
        pairs = list(run_study(loaded, progress=bar.update, threads=threads))
    results = [result for result, _ in pairs]
    provenance = _provenance(start)
    text = json_text(loaded.study.name, results, provenance)
    if out is not None:
        from stcsim.export import study_yaml

        files = {"results.csv": csv_text(results), "results.json": text, "study.yaml": study_yaml(loaded)}
        write_folder(out, files, force=force)
    if as_json:
        click.echo(text, nl=False)
    else:
        print_study(Console(), results, [baseline for _, baseline in pairs], loaded.study.name)
        if out is not None:
            click.echo(f"written: {out}/results.csv, results.json, study.yaml")
    return 0


def _sweep(
    study: Path, overrides: tuple[str, ...], out: Path | None, *, force: bool, as_json: bool, jobs: int
) -> int:
    """Run every point of a study with axes, keeping the results in memory only."""
    from stcsim.cli.sweep import print_summary, run_all
    from stcsim.export import study_yaml
    from stcsim.points import expand
    from stcsim.result.sweep_results import SweepResults, csv_text, json_text
    from stcsim.result.writer import write_folder
    from stcsim.sweep import Memory, plan

    planned = plan(expand(study, overrides), jobs)
    expanded = study_yaml(planned.space.base)
    sink = Memory()
    run_all(planned, sink, jobs=jobs)
    results = SweepResults.collect(planned.meta(expanded), planned.runs, sink.kept)
    text = json_text(results)
    if out is not None:
        files = {"results.csv": csv_text(results.flat()), "results.json": text, "study.yaml": expanded}
        write_folder(out, files, force=force)
    if as_json:
        click.echo(text, nl=False)
    else:
        print_summary(results)
        if out is not None:
            click.echo(f"written: {out}/results.csv, results.json, study.yaml")
    return 1 if results.failed else 0


def _provenance(start: float) -> dict[str, Any]:
    import numba
    import numpy as np

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "host": platform.node(),
        "wall_seconds": round(time.time() - start, 3),
    }
