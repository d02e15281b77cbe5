"""``stcsim replay``: run a result again and compare."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("result", type=click.Path(path_type=Path))
@click.option(
    "--point", "points", type=int, multiple=True, help="Only this point of a sweep; may be repeated."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Worker processes.")
def replay(result: Path, points: tuple[int, ...], jobs: int) -> int:
    """Run RESULT again from what is kept in it, and say whether every number comes out the same.

    RESULT is a folder that stcsim run --out or stcsim sweep wrote.  Exit status 1 where something differs.
    """
    from stcsim.replay import replay as run_again  # imported where used: --help stays quick

    ended = run_again(result, points, jobs)
    for line in ended.differences:
        click.echo(line)
    click.echo(f"{ended.n_equal} results the same, {len(ended.differences)} different")
    return 1 if ended.differences else 0
