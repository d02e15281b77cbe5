"""``stcsim trace``: record the operands of a model of the user's own, and look at what was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import click

_PATH = click.Path(path_type=Path)


@click.group()
def trace() -> None:
    """Record the operands of a model as a trace, and look at traces."""


@trace.command()
@click.argument("model", type=_PATH)
@click.option(
    "--input", "inputs", multiple=True, metavar="[NAME=]FILE",
    help="A .npy array or a picture for an input of the model; may be given several times.",
)  # fmt: skip
@click.option(
    "--random", "seed", type=click.IntRange(0), metavar="SEED",
    help="Draw the inputs that have no file: standard normal floats, whole numbers of 0 and 1.",
)  # fmt: skip
@click.option(
    "--input-shape", "shapes", multiple=True, metavar="NAME=1,3,224,224",
    help="Shape of an input that the model leaves open; may be given several times.",
)  # fmt: skip
@click.option(
    "--prepare", type=click.Choice(["imagenet", "caffe", "unit", "raw"]), default="imagenet", show_default=True,
    help="How pictures are prepared: RGB 0 to 1 less mean by deviation; BGR less mean; RGB 0 to 1; RGB 0 to 255.",
)  # fmt: skip
@click.option(
    "--prune",
    metavar="magnitude:SHARE",
    help="Set this share of each layer's weights to zero, not retrained.",
)
@click.option(
    "--layers", multiple=True, metavar="GLOB", help="Only layers whose name fits; may be given several times."
)
@click.option("--values", is_flag=True, help="Keep the non-zero values too, not only where they are.")
@click.option("--name", help="What the trace calls the model; left out: the file's name.")
@click.option("-o", "--output", type=_PATH, required=True, metavar="FILE.npz", help="The trace to write.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def capture(
    model: Path,
    inputs: tuple[str, ...],
    seed: int | None,
    shapes: tuple[str, ...],
    prepare: str,
    prune: str | None,
    layers: tuple[str, ...],
    values: bool,
    name: str | None,
    output: Path,
    force: bool,
) -> None:
    """Run the ONNX model MODEL and record the operands of every Conv, Gemm and MatMul.

    Needs the extra: pip install 'stcsim[trace]'.
    """
    # Imported where used: --help stays quick.
    from stcsim.cli.output_file import check_file
    from stcsim.workload.magnitude import Magnitude
    from stcsim.workload.model_input import model_inputs
    from stcsim.workload.onnx_capture import capture as run
    from stcsim.workload.onnx_graph import OnnxGraph, model_name, parse_input_shape

    check_file(output, (".npz",), force=force)
    pruning = None if prune is None else Magnitude.parse(prune)
    wanted = dict(parse_input_shape(text) for text in shapes)
    graph = OnnxGraph(model, with_weights=True)
    feeds, described = model_inputs(graph, inputs, wanted, seed=seed, preparation=prepare)
    run(
        graph, feeds, output, model=name or model_name(model), described=described, layers=layers,
        prune=pruning, keep_values=values,
    )  # fmt: skip
    _print(output)
    click.echo(f"written: {output}")


@trace.command()
@click.argument("file", metavar="TRACE", type=_PATH)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def info(file: Path, as_json: bool) -> None:
    """Print the layers of the trace in the file TRACE: sizes, MACs, densities, exact effectual MACs."""
    if not as_json:
        _print(file)
        return
    from stcsim.trace_account import account

    click.echo(json.dumps(account(file).to_json(), indent=2, ensure_ascii=False))


def _print(file: Path) -> None:
    """Print the account of a trace."""
    from stcsim.cli.columns import columns
    from stcsim.trace_account import account

    found = account(file)
    rows = [("layer", "op", "sizes", "MACs", "effectual", "share", "density A", "density B", "weight")]
    for layer in found.layers:
        roles = "".join(side for side, role in (("A", layer.role_a), ("B", layer.role_b)) if role == "weight")
        rows.append(
            (
                layer.name,
                layer.op,
                layer.sizes,
                f"{layer.macs_total:,}",
                f"{layer.macs_useful:,}",
                _share(layer.macs_useful, layer.macs_total),
                f"{layer.density_a:.4f}",
                f"{layer.density_b:.4f}",
                roles or "-",
            )
        )
    useful, total = found.macs_useful, found.macs_total
    rows.append(("total", "", "", f"{total:,}", f"{useful:,}", _share(useful, total), "", "", ""))
    click.echo(f"{found.model}: {len(found.layers)} layers")
    for line in columns(rows, (3, 4, 5, 6, 7)):
        click.echo(line)
    for layer in found.layers:
        if layer.note:
            click.echo(f"note: {layer.name}: {layer.note}")
    for one in found.left_out:
        macs = "MACs not known" if one.macs is None else f"{one.macs:,} MACs"
        click.echo(f"not in the trace: {one.name} ({one.op}, {macs}): {one.reason}")
    for key in ("inputs", "pruning"):
        if key in found.provenance:
            click.echo(f"{key}: {_text(found.provenance[key])}")
    click.echo(f"size: {found.file_bytes:,} bytes, {found.bitmap_bytes:,} of bitmaps unpacked")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.4f}" if whole else "-"


def _text(value: object) -> str:
    return (
        "; ".join(f"{key} = {one}" for key, one in value.items()) if isinstance(value, dict) else str(value)
    )
