"""``stcsim sim``: one problem from the command line, without a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from stcsim.cli.loop import loop


@click.group()
def sim() -> None:
    """Simulate one problem given on the command line."""


sim.add_command(loop)


@sim.command()
@click.option("--m", type=click.IntRange(0), help="Rows of A and C.")
@click.option("--n", type=click.IntRange(0), help="Columns of B and C.")
@click.option("--k", type=click.IntRange(0), help="Columns of A, rows of B.")
@click.option("--density-a", type=float, help="Fraction of A that is non-zero, 0 to 1 (uniform at random).")
@click.option("--density-b", type=float, help="Fraction of B that is non-zero, 0 to 1 (uniform at random).")
@click.option("--a", "file_a", type=click.Path(path_type=Path), help="Pattern of A: .smtx, .npy or .npz.")
@click.option("--b", "file_b", type=click.Path(path_type=Path), help="Pattern of B: .smtx, .npy or .npz.")
@click.option("--key-a", help="Which pattern of A's .npz file.")
@click.option("--key-b", help="Which pattern of B's .npz file.")
@click.option("--machine", required=True, help="A shipped machine (stcsim list machines) or a machine file.")
@click.option(
    "--kernel", help="A kernel (stcsim list kernels) or a kernel file; default: the machine's first."
)
@click.option("--dtype", default="fp16", show_default=True, help="Operand type.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of patterns and values."
)
@click.option(
    "--sparse-side", type=click.Choice(["as-given", "a", "b", "auto"]), default="as-given", show_default=True,
    help="Operand for the side that the datapath wants sparse (8-quantum of DSTC, A of 2:4); b transposes "
    "the problem, auto keeps the faster.",
)  # fmt: skip
@click.option(
    "--adapt", type=click.Choice(["error", "dense", "prune"]), default="error", show_default=True,
    help="What to do with an operand that does not satisfy the kernel's pattern.",
)  # fmt: skip
@click.option(
    "--engine",
    type=click.Choice(["numba", "reference", "analytic"]),
    default="numba",
    show_default=True,
    help="Fast cycle engine, readable cycle engine, or closed forms.",
)
@click.option(
    "--level", type=click.Choice(["gpu", "sm"]), default="gpu", show_default=True,
    help="Time the whole GPU where the machine has a section gpu, or its SMs alone.",
)  # fmt: skip
@click.option(
    "--check-tiles", type=click.IntRange(0), default=2, show_default=True, help="Warp tiles to check."
)
@click.option(
    "--threads", type=click.IntRange(1), default=2, show_default=True, help="Threads of the engine."
)
@click.option(
    "--set", "overrides", multiple=True, metavar="PATH=VALUE", help="machine.PATH=... or kernel.PATH=..."
)
@click.option(
    "--timeline",
    type=click.IntRange(1),
    metavar="N",
    help="Also print the first N outer products of the first SM, each from its bitmap words to its banks.",
)
@click.option(
    "--all-kernels", is_flag=True, help="Also print every kernel that the machine lists, the fastest first."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def gemm(as_json: bool, timeline: int | None, all_kernels: bool, **options: Any) -> None:
    """Simulate C[m,n] = A[m,k] B[k,n]; the operands stay as given unless --sparse-side says otherwise."""
    from stcsim.cli.progress import Clock  # imported where used: --help stays quick
    from stcsim.single import prepare

    single = prepare(**options)
    with Clock(single.label):
        lines = single.timeline(timeline) if timeline is not None else []
        result = single.run()
        kernels = single.kernels() if all_kernels else []
    if as_json:
        more: dict[str, Any] = {"timeline": lines} if lines else {}
        if all_kernels:
            more["kernels"] = kernels
        click.echo(json.dumps(result.to_json() | more, indent=2))
        return
    from rich.console import Console

    from stcsim.report.detail import print_result

    print_result(Console(), result)
    for line in lines:
        click.echo(line)
    for row in kernels:
        time = "-" if row["time_us"] is None else f"{row['time_us']:.2f} us"
        click.echo(f"{row['kernel']:<36} {time:>14}  {row['reason'].partition(', not ')[0]}".rstrip())
