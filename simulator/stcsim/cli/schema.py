"""``stcsim schema``: the JSON Schema of the YAML files, for editors."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("kind", type=click.Choice(["study", "machine", "kernel", "reference"]), default="study")
def schema(kind: str) -> None:
    """Print the JSON Schema of study, machine or kernel files (KIND; default study).

    KIND reference prints every key of all three as Markdown instead: docs/yaml.md.
    """
    # Imported where used: --help stays quick.
    from stcsim.config.kernel import Kernel
    from stcsim.config.machine import Section, compose_machine
    from stcsim.config.schema import json_schema, yaml_reference
    from stcsim.config.study import Study
    from stcsim.lowering import LOWERINGS
    from stcsim.machine.datapaths import DATAPATHS
    from stcsim.workload.generator import GENERATORS

    options = [DATAPATHS[name].options for name in DATAPATHS]
    models: dict[str, type[Section]] = {
        "study": Study,
        "machine": compose_machine(option for option in options if option is not None),
        "kernel": Kernel,
    }
    if kind != "reference":
        click.echo(json.dumps(json_schema(models[kind]), indent=2))
        return
    click.echo("# Every key of the YAML files\n\nMade by `stcsim schema reference`; a test keeps it in step.")
    for name, model in models.items():
        click.echo(f"\n## {name.capitalize()} files\n\n{yaml_reference(model)}", nl=False)
    for title, sections in (
        ("Options of the generators (under pattern)", dict(sorted(GENERATORS.items()))),
        ("Options of the lowerings (under options)", {name: LOWERINGS[name].options for name in LOWERINGS}),
    ):
        for name, model in sections.items():
            if model.model_fields:
                click.echo(f"\n## {title}: {name}\n\n{yaml_reference(model)}", nl=False)
