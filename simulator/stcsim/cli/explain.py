"""``stcsim explain``: what a study will do, before it does it."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="As for stcsim run.")
@click.option("--axis", "axes", multiple=True, metavar="PATH=V1,V2,...", help="As for stcsim sweep.")
def explain(study: Path, overrides: tuple[str, ...], axes: tuple[str, ...]) -> None:
    """Print STUDY expanded, its sizes, an estimate of time and memory, and every ASSUMED parameter."""
    from stcsim.cli.sweep import print_points  # imported where used: --help stays quick
    from stcsim.estimate import estimate, estimate_sweep
    from stcsim.export import study_yaml
    from stcsim.points import axis_override, expand

    space = expand(study, [*overrides, *axis_override(axes, study, overrides)])
    click.echo("# The study, every default written out")
    click.echo(study_yaml(space.base))
    click.echo("# Runs")
    if space.base.study.is_sweep:
        total = estimate_sweep(space)
        print_points(space)
        n_runs = len(space.points) * len(space.layers)
    else:
        total = estimate(space.base)
        for line in total.lines:
            click.echo(line)
        n_runs = len(space.base.points)
    click.echo(
        f"{n_runs} runs, about {total.seconds:.1f} s and {total.bytes / 2**20:,.0f} MiB "
        "(estimated from the instruction counts; first use adds about 10 s of compilation)"
    )
    click.echo("\n# ASSUMED parameters: nobody published them")
    for item in space.assumed:
        click.echo(f"{item.file}: {item.path} = {item.value}: {item.reason}")
