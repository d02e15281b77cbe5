"""``stcsim list``: what there is to choose from."""

from __future__ import annotations

import click

_KINDS = ["machines", "kernels", "formats", "lowerings", "datapaths", "generators"]


@click.command("list")
@click.argument("kind", type=click.Choice(_KINDS))
def list_(kind: str) -> None:
    """List the KIND: machines, kernels, formats, lowerings, datapaths or generators, one a line."""
    entries = _entries(kind)
    width = max((len(name) for name, _ in entries), default=0)
    for name, summary in entries:
        click.echo(f"{name:<{width}}  {summary}")


def _entries(kind: str) -> list[tuple[str, str]]:
    from stcsim import catalog  # imported where used: --help stays quick
    from stcsim.formats import FORMATS
    from stcsim.lowering import LOWERINGS
    from stcsim.machine.datapaths import DATAPATHS
    from stcsim.workload.generator import GENERATORS

    if kind == "machines":
        return [(name, catalog.load_machine(name)[0].machine.summary) for name in catalog.shipped("machine")]
    if kind == "kernels":
        return [(name, catalog.load_kernel(name)[0].kernel.summary) for name in catalog.shipped("kernel")]
    if kind == "lowerings":
        return [(name, LOWERINGS[name].summary) for name in LOWERINGS]
    if kind == "datapaths":
        return [(name, DATAPATHS[name].summary) for name in DATAPATHS]
    if kind == "formats":
        return [(name, _first_line(FORMATS[name])) for name in FORMATS]
    return [(name, _first_line(options)) for name, options in sorted(GENERATORS.items())]


def _first_line(item: object) -> str:
    return (item.__doc__ or "").strip().partition("\n")[0].rstrip(".")
