"""Imports the shapes of an ONNX model: its layers without running it and without reading weights.

From `stcsim.workload.onnx_graph`; whether operands are sparse is not in a graph, so every pattern is dense until a
study says otherwise.  Needs the package onnx.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from stcsim.config.trace import LeftOut
from stcsim.errors import must
from stcsim.workload.imported import Imported, ImportedLayer
from stcsim.workload.onnx_graph import OnnxGraph
from stcsim.workload.onnx_operator import OnnxLayer, understand


def read_model(path: str | os.PathLike[str], shapes: Mapping[str, Sequence[int]]) -> Imported:
    """Read a model.

    Parameters
    ----------
    path : str or path-like
    shapes : mapping of str to sequence of int
        Shapes of inputs that the model leaves open, by name (empty: of the only one).

    Returns
    -------
    imported : Imported

    Raises
    ------
    WorkloadError
        If the model cannot be read, has no layer, or leaves an input's shape open.
    """
    graph = OnnxGraph(path, with_weights=False)
    known = graph.inferred(graph.fixed(shapes))
    layers = []
    left_out = []
    notes = []
    for operator in graph.operators:
        found = understand(operator, known, graph.constants)
        if isinstance(found, LeftOut):
            left_out.append(found)
        elif isinstance(found, OnnxLayer):
            layers.append(
                ImportedLayer(operator.name, found.product.sizes, role_a=found.role_a, role_b=found.role_b)
            )
            if found.product.note:
                notes.append(f"{operator.name}: {found.product.note}")
    if not layers and not left_out:
        raise graph.error(must("must have Conv, Gemm or MatMul", "none of them"))
    if not layers:
        one = left_out[0]
        raise graph.error(must("must have layers that stcsim runs", f"{one.name} ({one.op}): {one.reason}"))
    notes.append(
        "a graph says nothing of zeros: give sparsity in the study, or record it: stcsim trace capture"
    )
    return Imported("ONNX graph", tuple(layers), tuple(notes), tuple(left_out))
