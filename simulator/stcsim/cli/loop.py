"""``stcsim sim loop``: a measured main loop on one SM, instruction by instruction."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--machine", default="h200-mma-sync", show_default=True, help="A machine with a section sm.")
@click.option("--ctas", type=click.IntRange(1, 32), help="CTAs on the SM at a time; default: one.")
@click.option("--engine", type=click.Choice(["numba", "reference"]), default="numba", show_default=True)
@click.option("--trace-window", metavar="START:LEN", help="Record the instructions issued in these cycles.")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the window as Chrome trace JSON (open it in Perfetto).",
)  # fmt: skip
@click.option(
    "--timeline", is_flag=True, help="Print the window as text; without --trace-window: cycles 0 to 120."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def loop(
    name: str | None, machine: str, ctas: int | None, engine: str, trace_window: str | None, output: Path | None,
    timeline: bool, as_json: bool,
) -> None:  # fmt: skip
    """Simulate a measured main loop: cycles of an iteration, and where every cycle went.

    Without NAME: list the loops.
    """
    from stcsim.catalog import loops
    from stcsim.errors import ConfigError, Problem
    from stcsim.h200 import load_loop
    from stcsim.loop_run import parse_window, run_loop
    from stcsim.machine.sm_record import NO_WINDOW, Window

    if name is None:
        for known in loops():
            click.echo(f"{known:<30}  {load_loop(known).summary}")
        return
    window = NO_WINDOW
    if trace_window is not None:
        window = parse_window(trace_window)
    elif timeline or output is not None:
        window = Window(0, 120)
    result = run_loop(name, machine=machine, ctas=ctas, engine=engine, window=window)
    if output is not None:
        from stcsim.report.timeline import chrome_trace

        try:
            output.write_text(json.dumps(chrome_trace(result.events, result.names)), encoding="utf-8")
        except OSError as error:
            message = f"must be a file that can be written ({error.strerror})"
            raise ConfigError(Problem(message, str(output))) from None
    if as_json:
        click.echo(json.dumps(result.to_json(), indent=2))
        return
    from stcsim.report.timeline import text_timeline

    click.echo(f"{result.loop} on one SM of {result.machine}, {result.ctas} CTAs")
    click.echo(f"cycles per iteration  {result.cycles_per_iteration:.1f}")
    total = sum(result.causes.values())
    for cause, count in result.causes.items():
        if count:
            share = count / total
            click.echo(
                f"  {cause:<14} {share:>6.1%}  {share * result.cycles_per_iteration:7.1f} cycles an iteration"
            )
    if timeline:
        for line in text_timeline(result.events, result.names, window.start, window.length):
            click.echo(line)
