"""Write a network out: a workload that names a table, a .yaml file or a trace becomes one for each of its layers.

Stands above the packages; `stcsim.study` calls it on the document before it takes the
study as it stands.  What comes out is plain configuration: `stcsim run --out` keeps it,
and running that file gives the same results.

Patterns are "real" (the default: generators with the clustering of measured networks,
`stcsim.workload.conv_generator`) or "uniform".  The seed of a layer follows from the
workload's seed and the layer's row in the table, so that running some layers alone
gives what they have in the whole network.

Executing a whole layer's K for values costs more than timing it, so that of each kind
of geometry in a network only the layer with the shortest K is checked; tables show the
others as off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stcsim.config.document import Document
from stcsim.config.document import Path as Place
from stcsim.config.loader import load
from stcsim.config.study import Study
from stcsim.config.validation import validate
from stcsim.config.workload import Conv2dShape, GemmShape, Role, Workload
from stcsim.errors import Problem, StcsimError, WorkloadError, must, unknown
from stcsim.resources import data_path, data_root
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.network_table import GemmSizes, Layer, load_network
from stcsim.workload.operand_shape import conv_shape
from stcsim.workload.sparsity_table import LayerSparsity, SparsityTable, load_sparsity
from stcsim.workload.trace import Trace

_SEEDS_PER_NETWORK = 100_000
"""Distance of the seeds of two networks; more layers than a table has."""
_PROJECTION_SPREAD = 0.4
"""Spread of the densities of rows and columns of pruned fully connected and 1 x 1 layers.

Source: `stcsim.workload.generator.Clustered` (0.2 to 0.7 outside attention projections); the middle of it.
"""


def shipped(kind: str) -> list[str]:
    """Return the names of the shipped tables of a kind ("networks" or "sparsity"), sorted."""
    return sorted(path.stem for path in data_path("workloads", kind).glob("*.csv"))


def expand(document: Document, workloads: tuple[Workload, ...], folder: Path) -> Document:
    """Return the study's document with the layers of every network in the network's place.

    Parameters
    ----------
    document : Document
        A study that has been validated.
    workloads : tuple of Workload
        Its workloads.
    folder : Path
        Of the study, where tables of the user's own are looked for.

    Returns
    -------
    document : Document
        Messages about a layer show the line of its network.

    Raises
    ------
    StcsimError
        With every problem of the tables.
    """
    if all(not workload.has_layers for workload in workloads):
        return document
    expanded: list[dict[str, Any]] = []
    origins: list[int] = []
    problems: list[Problem] = []
    for i, workload in enumerate(workloads):
        if not workload.has_layers:
            layers = [document.get(("workloads", i))]
        else:
            try:
                layers = _layers(workload, folder)
            except StcsimError as error:
                problems += [_placed(problem, document, i) for problem in error.problems]
                continue
        expanded += layers
        origins += [i] * len(layers)
    if problems:
        raise WorkloadError(problems)
    places = {path: place for path, place in document.places.items() if path[:1] != ("workloads",)}
    places[("workloads",)] = document.place_of(("workloads",))
    for new, old in enumerate(origins):
        places[("workloads", new)] = document.place_of(("workloads", old))
        if not workloads[old].has_layers:
            places |= {
                ("workloads", new, *path[2:]): place
                for path, place in document.places.items()
                if path[:2] == ("workloads", old)
            }
    return replace(document, data={**document.data, "workloads": expanded}, places=places)


def _placed(problem: Problem, document: Document, index: int) -> Problem:
    """Give a problem of a workload its place in the study; one of a table has its own."""
    if problem.file is not None:
        return problem
    path: Place = ("workloads", index, *(problem.path or "").split("."))
    place = document.place_of(path)
    return Problem(problem.message, place.file, place.line, ".".join(map(str, path)))


def _find(kind: str, field: str, name: str, folder: Path) -> Path:
    if "/" in name or name.endswith((".csv", ".yaml", ".yml")):
        return folder / name
    if name not in shipped(kind):
        what = "network" if kind == "networks" else "sparsity table"
        raise WorkloadError(Problem(unknown(what, name, shipped(kind)), path=field))
    return data_path("workloads", kind, f"{name}.csv")


def find_file(name: str, folder: Path) -> Path | None:
    """Return the file that a study names: beside it, or else among the shipped data; None if there is none."""
    candidates = (folder / name, data_root() / name)
    return next((path for path in candidates if path.is_file()), None)


def _layers(workload: Workload, folder: Path) -> list[dict[str, Any]]:
    if workload.trace is not None:
        return _of_trace(workload, folder)
    path = _find("networks", "network", workload.network or "", folder)
    if path.suffix in (".yaml", ".yml"):
        return _of_study(workload, path, folder)
    table = load_network(path)
    sparsity = _sparsity(workload, folder)
    chosen = _chosen(workload, [layer.name for layer in table])
    checked = _checked(table[row] for row in chosen)
    return [
        _written_out(workload, row, table[row], sparsity.of(table[row].name))
        | ({} if table[row] in checked else {"check_tiles": 0})
        for row in chosen
    ]


def _sparsity(workload: Workload, folder: Path) -> SparsityTable:
    if isinstance(workload.sparsity, str):
        return load_sparsity(_find("sparsity", "sparsity", workload.sparsity, folder))
    if workload.sparsity is not None:
        densities = LayerSparsity(workload.sparsity.weight, workload.sparsity.activation)
        return SparsityTable(Path(), (("*", densities),))
    return SparsityTable(Path(), (("*", LayerSparsity()),))


def _chosen(workload: Workload, names: Sequence[str]) -> list[int]:
    """Return the rows whose layers are wanted."""
    wanted = workload.layers or ("*",)
    idle = [pattern for pattern in wanted if not any(fnmatchcase(name, pattern) for name in names)]
    if idle:
        kind = "trace" if workload.trace is not None else "network"
        raise WorkloadError(
            [Problem(must(f"must fit a layer of the {kind}", one, near=names), path="layers") for one in idle]
        )
    return [row for row, name in enumerate(names) if any(fnmatchcase(name, pattern) for pattern in wanted)]


def _of_trace(workload: Workload, folder: Path) -> list[dict[str, Any]]:
    """Return the layers of a trace: sizes as recorded, operands from its bitmaps."""
    name = workload.trace or ""
    path = find_file(name, folder)
    if path is None:
        message = must("must be a file, relative to the study's folder or to the shipped data", name)
        raise WorkloadError(Problem(message, path="trace"))
    traced = Trace(path).layers
    chosen = _chosen(workload, [layer.name for layer in traced])
    sizes = {row: _layer(traced[row].name, traced[row].sizes, traced[row].b) for row in chosen}
    checked = _checked(sizes.values())
    return [
        _heading(workload, row, traced[row].name)
        | _sizes(traced[row].sizes)
        | {
            side: {"role": role, "file": name, "key": f"{traced[row].name}.{side}"}
            for side, role in (("a", traced[row].a), ("b", traced[row].b))
        }
        | ({} if sizes[row] in checked else {"check_tiles": 0})
        for row in chosen
    ]


def _of_study(workload: Workload, path: Path, folder: Path) -> list[dict[str, Any]]:
    """Return the workloads of a file that ``stcsim import`` wrote, or of any study without networks."""
    document = load(path)
    inner = validate(Study, document).workloads
    nested = [i for i, one in enumerate(inner) if one.has_layers]
    if nested:
        where = ("workloads", nested[0])
        message = must("must hold layers only where a study names it as a network", "a network or a trace")
        raise WorkloadError(
            Problem(message, document.file, document.line_of(where), f"workloads.{nested[0]}")
        )
    sparsity = None if workload.sparsity is None else _sparsity(workload, folder)
    chosen = _chosen(workload, [one.name for one in inner])
    layers = []
    for row in chosen:
        one = inner[row]
        written = one.model_dump(mode="json", exclude_none=True) | _heading(workload, row, one.name)
        for side in ("a", "b"):
            if "file" in written[side] and (path.parent / written[side]["file"]).is_file():
                written[side]["file"] = str((path.parent / written[side]["file"]).absolute())
        if sparsity is not None:
            written |= _with_sparsity(workload, row, one, sparsity)
        layers.append(written)
    return layers


def _with_sparsity(workload: Workload, row: int, one: Workload, sparsity: SparsityTable) -> dict[str, Any]:
    """Return the operands of a layer with densities of the user's own instead of the file's."""
    sizes = one.gemm or one.conv2d
    if sizes is None or one.b is None or one.a is None or one.a.role == "weight":
        message = must("must not be given for a layer whose sizes or weight come from a file", one.name)
        raise WorkloadError(Problem(message, path="sparsity"))
    written = _written_out(workload, row, _layer(one.name, sizes, one.b.role), sparsity.of(one.name))
    return {side: written[side] for side in ("a", "b")}


def _layer(name: str, sizes: GemmShape | Conv2dShape, role_b: Role) -> Layer:
    if isinstance(sizes, Conv2dShape):
        return Layer(name, "conv", conv_shape(sizes))
    products = GemmSizes(sizes.m, sizes.n, sizes.k, sizes.batch, repeat=1, has_weight=role_b == "weight")
    return Layer(name, "linear" if products.has_weight else "attn", products)


def _heading(workload: Workload, row: int, layer: str) -> dict[str, Any]:
    return {
        "name": f"{workload.name}/{layer}",
        "part_of": workload.name,
        "seed": workload.seed * _SEEDS_PER_NETWORK + row,
    }


def _sizes(sizes: GemmShape | Conv2dShape) -> dict[str, Any]:
    kind = "conv2d" if isinstance(sizes, Conv2dShape) else "gemm"
    return {kind: sizes.model_dump(mode="json")}


def _checked(layers: Iterable[Layer]) -> set[Layer]:
    """Return the layers whose values are checked: of each kind of geometry the one with the shortest K."""
    shortest: dict[tuple[Any, ...], Layer] = {}
    for layer in layers:
        sizes = layer.sizes
        kind: tuple[Any, ...] = (layer.kind,)
        if isinstance(sizes, ConvShape):
            kind = (sizes.r, sizes.s, sizes.stride, sizes.dilation, sizes.groups > 1, sizes.h * sizes.w > 1)
        if kind not in shortest or _inner(layer) < _inner(shortest[kind]):
            shortest[kind] = layer
    return set(shortest.values())


def _inner(layer: Layer) -> int:
    """Return K of a layer's products: what its value check costs."""
    return layer.sizes.taps if isinstance(layer.sizes, ConvShape) else layer.sizes.k


def _written_out(workload: Workload, row: int, layer: Layer, sparsity: LayerSparsity) -> dict[str, Any]:
    uniform = workload.patterns == "uniform"
    written = _heading(workload, row, layer.name)
    if isinstance(layer.sizes, ConvShape):
        a, b = _conv_patterns(layer.sizes, sparsity)
        written["conv2d"] = _conv_sizes(layer.sizes)
    else:
        a, b = _gemm_patterns(layer.sizes, sparsity)
        written["gemm"] = _gemm_sizes(layer.sizes)
        written["repeat"] = layer.sizes.repeat
    for side, role, pattern in (("a", "activation", a), ("b", "weight", b)):
        if uniform and pattern["generator"] != "dense":
            pattern = {"generator": "uniform", "density": pattern["density"]}
        is_weight = role == "weight" and layer.kind != "attn"
        written[side] = {"role": "weight" if is_weight else "activation", "pattern": pattern}
    return written


def _conv_sizes(shape: ConvShape) -> dict[str, Any]:
    sizes: dict[str, Any] = {
        name: getattr(shape, name) for name in ("n", "c", "h", "w", "k", "r", "s", "groups")
    }
    return sizes | {name: list(getattr(shape, name)) for name in ("stride", "padding", "dilation")}


def _gemm_sizes(sizes: GemmSizes) -> dict[str, Any]:
    return {"m": sizes.m, "n": sizes.n, "k": sizes.k, "batch": sizes.batch}


def _conv_patterns(shape: ConvShape, sparsity: LayerSparsity) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the generators of input and weight, clustered; a map of one element has no neighbours."""
    a: dict[str, Any] = {"generator": "uniform", "density": sparsity.activation}
    if shape.h * shape.w > 1:
        a = {"generator": "feature_map", "density": sparsity.activation, "width": shape.w}
    b = _projection(sparsity.weight)
    if shape.r * shape.s > 1:
        b = {"generator": "filters", "density": sparsity.weight, "window": shape.r * shape.s}
        if sparsity.zero_kernels is not None:
            b["zero_kernels"] = sparsity.zero_kernels
    return _unless_dense(a), _unless_dense(b)


def _gemm_patterns(sizes: GemmSizes, sparsity: LayerSparsity) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the generators of A and B; where there is no weight, both are activations."""
    a = {"generator": "uniform", "density": sparsity.activation}
    b = _projection(sparsity.weight) if sizes.has_weight else a
    return _unless_dense(a), _unless_dense(b)


def _projection(density: float) -> dict[str, Any]:
    return {
        "generator": "clustered",
        "density": density,
        "row_spread": _PROJECTION_SPREAD,
        "col_spread": _PROJECTION_SPREAD,
        "row_run": 1,
    }


def _unless_dense(pattern: dict[str, Any]) -> dict[str, Any]:
    return {"generator": "dense"} if pattern["density"] == 1 else pattern
