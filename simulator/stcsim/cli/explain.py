"""``stcsim explain``: what a study will do, before it does it."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="As for stcsim run.")
def explain(study: Path, overrides: tuple[str, ...]) -> None:
    """Print STUDY expanded, its sizes, an estimate of time and memory, and every ASSUMED parameter."""
    from stcsim.estimate import estimate  # imported where used: --help stays quick
    from stcsim.export import study_yaml
    from stcsim.study import load_study

    loaded = load_study(study, overrides)
    click.echo("# The study, every default written out")
    click.echo(study_yaml(loaded))
    click.echo("# Runs")
    total = estimate(loaded)
    for line in total.lines:
        click.echo(line)
    click.echo(
        f"{len(loaded.points)} runs, about {total.seconds:.1f} s and {total.bytes / 2**20:,.0f} MiB "
        "(estimated from the instruction counts; first use adds about 10 s of compilation)"
    )
    click.echo("\n# ASSUMED parameters: nobody published them")
    for item in loaded.assumed:
        click.echo(f"{item.file}: {item.path} = {item.value}: {item.reason}")
