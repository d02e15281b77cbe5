"""Captures a model: runs it once and writes the operands of its layers as a trace.

From `stcsim.workload.onnx_graph` and `stcsim.workload.model_input` to `stcsim.workload.trace`.  Every operand of
Conv, Gemm and MatMul is made an output of the graph and taken as onnxruntime computes it, without its
graph optimisations, so that no operator has been fused away.  Needs the packages onnx and onnxruntime; knows
nothing of machines.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stcsim.config.trace import LeftOut, TraceLayer
from stcsim.config.workload import Conv2dShape
from stcsim.errors import WorkloadError, must
from stcsim.workload.extra import optional
from stcsim.workload.magnitude import Magnitude
from stcsim.workload.model_input import Feeds
from stcsim.workload.onnx_graph import OnnxGraph, OnnxOperator, first_line
from stcsim.workload.onnx_operator import OnnxLayer, understand
from stcsim.workload.product import Product
from stcsim.workload.trace import TraceWriter

NOT_RETRAINED = "at one stroke, NOT retrained; the activations are those of the model as it was"

_OPERATORS = ("Conv", "Gemm", "MatMul")


def capture(
    graph: OnnxGraph,
    feeds: Feeds,
    path: str | os.PathLike[str],
    *,
    model: str,
    described: Mapping[str, str],
    layers: Sequence[str] = (),
    prune: Magnitude | None = None,
    keep_values: bool = False,
) -> None:
    """Run a model and write the trace of its layers.

    Parameters
    ----------
    graph : OnnxGraph
        Read with its weights.
    feeds : dict of str to ndarray
        An array for every input.
    path : str or path-like
        The trace, written only once everything has gone well.
    model : str
        What the trace calls the model.
    described : mapping of str to str
        What each input is, for the trace.
    layers : sequence of str
        Names or patterns of the layers to keep; empty: all.
    prune : Magnitude, optional
        Sets weights to zero, layer by layer, after the model has run.
    keep_values : bool
        Whether values go along, not only which are zero.

    Raises
    ------
    WorkloadError
        If a pattern fits no layer, or the model does not run.
    """
    chosen = _chosen(graph, layers)
    run = [operator for operator in chosen if operator.op in _OPERATORS]
    tensors = _run(graph, feeds, dict.fromkeys(name for operator in run for name in operator.inputs[:2]))
    shapes = {
        **graph.inferred({name: array.shape for name, array in feeds.items()}),
        **{name: array.shape for name, array in tensors.items()},
    }
    with TraceWriter(path, model) as writer:
        for operator in chosen:
            found = understand(operator, shapes, graph.constants)
            if isinstance(found, LeftOut):
                writer.left_out.append(found)
            elif isinstance(found, OnnxLayer):
                write_layer(
                    writer,
                    traced(operator.name, operator.op, found.product, found.role_a, found.role_b),
                    found.product,
                    (tensors[found.a], tensors[found.b]),
                    prune=prune,
                    keep_values=keep_values,
                )
        if not writer.layers:
            message = must(
                f"must have {', '.join(_OPERATORS)} whose operands can be recorded",
                "; ".join(f"{one.name} ({one.op}): {one.reason}" for one in writer.left_out[:3]) or "none",
            )
            raise graph.error(message)
        writer.finish(
            {
                "inputs": dict(described),
                "model_file": Path(graph.path).name,
                "model_sha256": hashlib.sha256(Path(graph.path).read_bytes()).hexdigest(),
                "packages": {name: version(name) for name in ("numpy", "onnx", "onnxruntime")},
            }
            | ({"pruning": f"{prune}, {NOT_RETRAINED}"} if prune else {})
        )


def traced(name: str, op: str, product: Product, role_a: Any, role_b: Any) -> TraceLayer:
    """Return what a trace says of a layer."""
    sizes = product.sizes
    kind = {"conv2d": sizes} if isinstance(sizes, Conv2dShape) else {"gemm": sizes}
    return TraceLayer.model_validate(
        {"name": name, "op": op, "a": role_a, "b": role_b, "note": product.note} | kind
    )


def write_layer(
    writer: TraceWriter,
    layer: TraceLayer,
    product: Product,
    tensors: tuple[NDArray[Any], NDArray[Any]],
    *,
    prune: Magnitude | None,
    keep_values: bool,
) -> None:
    """Write a layer's operands, its weights pruned.

    Parameters
    ----------
    writer : TraceWriter
    layer : TraceLayer
    product : Product
        What makes operands of the tensors.
    tensors : tuple of ndarray
        Of A and B, as the model has them.
    prune : Magnitude or None
    keep_values : bool
    """
    pruned = [
        np.where(prune.kept(tensor), tensor, 0) if prune is not None and role == "weight" else tensor
        for tensor, role in zip(tensors, (layer.a, layer.b), strict=True)
    ]
    a, b = product.operands(*pruned)
    writer.add(layer, a, b, keep_values=keep_values)


def _chosen(graph: OnnxGraph, patterns: Sequence[str]) -> list[OnnxOperator]:
    """Return the operators with multiply-accumulates that are asked for."""
    unknown: dict[str, tuple[int | None, ...]] = {}
    every = [one for one in graph.operators if understand(one, unknown, frozenset()) is not None]
    names = [one.name for one in every]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            what = f"--layers must fit a layer of the model, which has {len(names)}"
            raise graph.error(must(what, pattern, near=names))
    return [
        one for one in every if not patterns or any(fnmatchcase(one.name, pattern) for pattern in patterns)
    ]


def _run(graph: OnnxGraph, feeds: Feeds, names: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return tensors of the model as it computes them."""
    onnx = optional("onnx", "trace")
    runtime = optional("onnxruntime", "trace")
    optional("onnx.numpy_helper", "trace")
    found: dict[str, NDArray[Any]] = {}
    for name in names:
        if name in feeds:
            found[name] = feeds[name]
        elif isinstance(graph.initializers.get(name), onnx.TensorProto):
            found[name] = onnx.numpy_helper.to_array(graph.initializers[name])
    computed = [name for name in names if name not in found]
    model = type(graph.model)()
    model.CopyFrom(graph.model)
    present = {one.name for one in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in computed if name not in present)
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        with tempfile.TemporaryDirectory() as folder:
            session = runtime.InferenceSession(
                _runnable(onnx, model, folder), options, providers=["CPUExecutionProvider"]
            )
            outputs = session.run(computed, feeds) if computed else []
    except WorkloadError:
        raise
    except Exception as error:  # onnxruntime raises many kinds, none of which is told apart
        message = f"must be a model that onnxruntime can run ({first_line(error)})"
        raise graph.error(message) from None
    return found | dict(zip(computed, map(np.asarray, outputs), strict=True))


def _runnable(onnx: Any, model: Any, folder: str) -> bytes | str:
    """Return a model as bytes, or, where it is longer than a message can be (2 GiB), as a file in `folder`."""
    try:
        content: bytes = model.SerializeToString()
        return content
    except Exception:  # protobuf's own error, whose class depends on its version
        path = str(Path(folder, "model.onnx"))
        onnx.save_model(model, path, save_as_external_data=True, location="weights")
        return path
