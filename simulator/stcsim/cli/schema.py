"""``stcsim schema``: the JSON Schema of the YAML files, for editors."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("kind", type=click.Choice(["study", "machine", "kernel"]), default="study")
@click.option("--markdown", is_flag=True, help="Print a reference table instead of the JSON Schema.")
def schema(kind: str, markdown: bool) -> None:
    """Print the JSON Schema of study, machine or kernel files (KIND; default study)."""
    from stcsim.config.kernel import Kernel  # noqa: PLC0415  (imported where used: --help stays quick)
    from stcsim.config.machine import Section, compose_machine  # noqa: PLC0415
    from stcsim.config.schema import json_schema, yaml_reference  # noqa: PLC0415
    from stcsim.config.study import Study  # noqa: PLC0415
    from stcsim.machine.datapaths import DATAPATHS  # noqa: PLC0415

    options = [DATAPATHS[name].options for name in DATAPATHS]
    models: dict[str, type[Section]] = {
        "study": Study,
        "machine": compose_machine(option for option in options if option is not None),
        "kernel": Kernel,
    }
    model = models[kind]
    click.echo(yaml_reference(model) if markdown else json.dumps(json_schema(model), indent=2))
