"""An ONNX model as a list of operators with the shapes and the constants that stand between them.

First step of a capture (`stcsim.workload.onnx_capture`) and of an import of shapes
(`stcsim.workload.onnx_import`).  A constant is an initializer or whatever is computed from constants
alone, behind Constant, Identity, Transpose, DequantizeLinear or anything else.  Knows what operators are
called and linked by, not what they compute; needs the package onnx.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stcsim.errors import Problem, WorkloadError, must
from stcsim.workload.extra import optional
from stcsim.workload.untrusted_file import Fault, open_file, printable

Dims = tuple[int | None, ...]
"""A shape of which some sizes may not be known."""

_RANDOM = (
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
)


@dataclass(frozen=True)
class OnnxOperator:
    """One node of the graph.

    Parameters
    ----------
    name : str
        Unique; the node's own, or that of its first output.
    op : str
        Its type; with the domain in front (``com.microsoft.FusedConv``) where it is not ONNX's own.
    inputs, outputs : tuple of str
        Names of tensors; an input that is left out is empty.
    attributes : dict
        Whole numbers, floats, texts and lists of them; of a subgraph the number of its nodes.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GraphInput:
    """An input of the model: its name, dtype and shape as far as they are known."""

    name: str
    dtype: np.dtype[Any] | None
    dims: Dims

    @property
    def is_fixed(self) -> bool:
        """Whether every size is known; exporters write an unknown one as a name, as nothing or as 0."""
        return all(self.dims)


class OnnxGraph:
    """A model that has been read.

    Parameters
    ----------
    path : str or path-like
    with_weights : bool
        Whether weights that lie in files beside the model are read too.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or is not an ONNX model.
    """

    def __init__(self, path: str | os.PathLike[str], *, with_weights: bool) -> None:
        onnx = optional("onnx", "trace")
        optional("onnx.inliner", "trace")
        self.path = os.fspath(path)
        try:
            with open_file(self.path):
                pass
            # A file that is not a model ends in one of many ways.
            self.model = onnx.load(self.path, load_external_data=with_weights)
            if self.model.functions:
                self.model = onnx.inliner.inline_local_functions(self.model)
        except Fault as fault:
            raise fault.of(self.path) from None
        except Exception as error:
            message = f"must be an ONNX model that can be read ({first_line(error)})"
            raise self.error(message) from None
        graph = self.model.graph
        if not graph.node:
            message = "must be an ONNX model with operators"
            raise self.error(message)
        self.initializers = {one.name: one for one in graph.initializer}
        self.initializers |= {one.values.name: one for one in graph.sparse_initializer}
        self.inputs = tuple(self._inputs())
        self.operators = tuple(self._operators())
        self.constants = self._constants()

    def error(self, message: str, path: str | None = None) -> WorkloadError:
        """Return an error about the model."""
        return WorkloadError(Problem(printable(message), self.path, path=path and printable(path)))

    def _inputs(self) -> list[GraphInput]:
        onnx = optional("onnx", "trace")
        found = []
        for one in self.model.graph.input:
            if one.name in self.initializers:
                continue
            tensor = one.type.tensor_type
            try:
                dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
            except KeyError:
                dtype = None
            found.append(GraphInput(one.name, dtype, _dims(tensor)))
        return found

    def _operators(self) -> list[OnnxOperator]:
        onnx = optional("onnx", "trace")
        found = []
        taken: set[str] = set()
        for node in self.model.graph.node:
            label = printable(node.name or (node.output[0] if node.output else node.op_type))
            name, i = label, 2
            while name in taken:
                name, i = f"{label}#{i}", i + 1
            taken.add(name)
            attributes = {}
            for attribute in node.attribute:
                value = onnx.helper.get_attribute_value(attribute)
                if attribute.type == onnx.AttributeProto.GRAPH:
                    value = [inner.op_type for inner in value.node]
                attributes[attribute.name] = value.decode() if isinstance(value, bytes) else value
            domain = "" if node.domain in ("", "ai.onnx") else f"{node.domain}."
            found.append(
                OnnxOperator(name, domain + node.op_type, tuple(node.input), tuple(node.output), attributes)
            )
        return found

    def _constants(self) -> frozenset[str]:
        known = set(self.initializers)
        for operator in self.operators:
            if operator.op not in _RANDOM and all(name in known for name in operator.inputs if name):
                known |= set(operator.outputs)
        return frozenset(known)

    def fixed(self, wanted: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """Return the shape of every input.

        Parameters
        ----------
        wanted : mapping of str to sequence of int
            Shapes that the user gives, by name of the input; the name may be empty where there is but one.

        Raises
        ------
        WorkloadError
            If a shape is neither given nor fixed, contradicts the model, or is of no input.
        """
        names = [one.name for one in self.inputs]
        if "" in wanted and len(names) == 1:
            wanted = {names[0]: wanted[""]} | {name: dims for name, dims in wanted.items() if name}
        for name in wanted:
            if name not in names:
                what = f"--input-shape must name an input of the model ({', '.join(names) or 'it has none'})"
                raise self.error(must(what, name or "a shape alone", near=names))
        shapes = {}
        problems = []
        for one in self.inputs:
            dims = one.dims
            if one.name in wanted:
                dims = tuple(wanted[one.name])
                agree = len(dims) == len(one.dims) and all(
                    not old or old == new for old, new in zip(one.dims, dims, strict=True)
                )
                if one.dims and not agree:
                    problems.append(
                        Problem(
                            must(f"must be of the shape {_text(one.dims)}", _text(dims)),
                            self.path,
                            path=one.name,
                        )
                    )
            elif not one.is_fixed:
                example = ",".join(str(size or 1) for size in one.dims)
                message = must("must have a fixed shape", _text(one.dims))
                problems.append(
                    Problem(f"{message}: give --input-shape {one.name}={example}", self.path, path=one.name)
                )
            shapes[one.name] = tuple(size or 0 for size in dims)
        if problems:
            raise WorkloadError(problems)
        return shapes

    def inferred(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, Dims]:
        """Return the shape of every tensor, as far as onnx can infer it from those of the inputs.

        Parameters
        ----------
        shapes : mapping of str to tuple of int
            Of all inputs.
        """
        onnx = optional("onnx", "trace")
        optional("onnx.shape_inference", "trace")
        model = type(self.model)()
        model.CopyFrom(self.model)
        for one in model.graph.input:
            if one.name in shapes:
                one.type.tensor_type.ClearField("shape")
                for size in shapes[one.name]:
                    one.type.tensor_type.shape.dim.add().dim_value = size
        if any(shapes.get(one.name) != one.dims for one in self.inputs):
            # What an exporter wrote down was for other inputs.
            del model.graph.value_info[:]
        for one in model.graph.output:
            one.type.tensor_type.ClearField("shape")
        try:
            graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
        except Exception as error:
            message = f"must have shapes that agree ({first_line(error)})"
            raise self.error(message) from None
        found = {name: tuple(one.dims) for name, one in self.initializers.items()}
        found |= {
            one.name: _dims(one.type.tensor_type, zero_is_known=True)
            for one in (*graph.value_info, *graph.input, *graph.output)
            if one.type.tensor_type.HasField("shape")
        }
        return found


def _dims(tensor: Any, *, zero_is_known: bool = False) -> Dims:
    """Return the sizes of a tensor's type."""
    return tuple(
        dim.dim_value if dim.HasField("dim_value") and (dim.dim_value > 0 or zero_is_known) else None
        for dim in tensor.shape.dim
    )


def _text(dims: Dims | Sequence[int]) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in dims)})"


def first_line(error: Exception) -> str:
    """Return what an exception of another package says, cut to a line."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def parse_input_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return name and sizes of ``NAME=1,3,224,224``; the name may be left out.

    Raises
    ------
    WorkloadError
        If it is not that.
    """
    name, _, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",")]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise WorkloadError(must("--input-shape must be NAME=SIZE,SIZE,... such as input=1,3,224,224", text))
    return name.strip(), tuple(map(int, parts))


def model_name(path: str | os.PathLike[str]) -> str:
    """Return what a model is called unless its user says otherwise: its file's name without the ending."""
    return Path(path).stem
