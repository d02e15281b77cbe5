"""``stcsim import``: another tool's file, shown as it was understood and written as a study."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from stcsim.cli.columns import columns as aligned
from stcsim.cli.output_file import check_file

_PATH = click.Path(path_type=Path)


@click.command("import")
@click.argument("file", type=_PATH)
@click.option(
    "-o",
    "--output",
    type=_PATH,
    metavar="FILE.yaml",
    help="The study to write; left out: only show what it means.",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--assume-same-padding", is_flag=True, help="SCALE-Sim: pad convolutions to ceil(size / stride) outputs."
)
@click.option(
    "--single-filter", type=click.Choice(["depthwise", "dense"]),
    help="SCALE-Sim: what one filter over several channels is.",
)  # fmt: skip
@click.option(
    "--columns", type=click.IntRange(1), help="A matrix: columns of the dense operand it is multiplied by."
)
@click.option(
    "--input-shape", "shapes", multiple=True, metavar="NAME=1,3,224,224",
    help="ONNX: shape of an input that the model leaves open; may be given several times.",
)  # fmt: skip
def import_(
    file: Path,
    output: Path | None,
    force: bool,
    assume_same_padding: bool,
    single_filter: Literal["depthwise", "dense"] | None,
    columns: int | None,
    shapes: tuple[str, ...],
) -> None:
    """Show what FILE means, layer by layer, with MACs, and write it as a study.

    Reads ONNX graphs (shapes alone), SCALE-Sim topologies (.csv), Timeloop and Sparseloop problems (.yaml), and
    sparse matrices (.smtx, .mtx, .npy).
    """
    # Imported where used: --help stays quick.
    from stcsim.importing import study_text, understand
    from stcsim.workload.onnx_graph import parse_input_shape
    from stcsim.workload.operand_shape import sizes_text

    if output is not None:
        check_file(output, (".yaml", ".yml"), force=force)
    found = understand(
        file,
        same_padding=assume_same_padding,
        single_filter=single_filter,
        columns=columns,
        shapes=dict(parse_input_shape(text) for text in shapes),
    )
    rows = [("layer", "sizes", "MACs", "A", "B")]
    rows += [
        (
            layer.name,
            sizes_text(layer.sizes),
            f"{layer.macs_total:,}",
            f"{layer.role_a}, {_source(layer.a)}",
            f"{layer.role_b}, {_source(layer.b)}",
        )
        for layer in found.layers
    ]
    for line in aligned(rows, (2,)):
        click.echo(line)
    for note in found.notes:
        click.echo(f"note: {note}")
    for one in found.left_out:
        macs = "MACs not known" if one.macs is None else f"{one.macs:,} MACs"
        click.echo(f"left out: {one.name} ({one.op}, {macs}): {one.reason}")
    if output is not None:
        output.write_text(study_text(found, output.stem, file.name), encoding="utf-8")
    written = f"; written: {output}" if output is not None else ""
    click.echo(f"{found.kind}: {len(found.layers)} layers, {found.macs_total:,} MACs{written}")


def _source(operand: object) -> str:
    """Return where a pattern comes from, in a few words."""
    found = dict(operand) if isinstance(operand, dict) else {}
    pattern = found.get("pattern")
    if pattern is None:
        return Path(str(found.get("file"))).name
    options = ", ".join(f"{key} {value}" for key, value in pattern.items() if key != "generator")
    return f"{pattern['generator']} {options}".strip()
