"""Tiny ONNX models for tests, made by onnx itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")


def node(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return onnx.helper.make_node(op, list(inputs), list(outputs), **attributes)


def save(
    path: Path,
    nodes: Sequence[Any],
    inputs: Mapping[str, Sequence[int | str | None]],
    weights: Mapping[str, np.ndarray],
    *,
    output: str = "y",
    dtype: int | None = None,
) -> Path:
    """Save a model; an input's size may be a name or None, which leaves it open."""
    floats = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        list(nodes),
        "tiny",
        [
            onnx.helper.make_tensor_value_info(name, dtype or floats, list(dims))
            for name, dims in inputs.items()
        ],
        [onnx.helper.make_tensor_value_info(output, floats, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 13), onnx.helper.make_opsetid("com.microsoft", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def small_cnn(path: Path, *, batch: int | str | None = 1) -> Path:
    """Save x (batch, 3, 12, 10) -> conv, relu, depthwise conv, relu, flatten, Gemm."""
    rng = np.random.default_rng(1)

    def weight(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return save(
        path,
        [
            node("Conv", ["x", "w1"], ["c1"], name="stem/conv", pads=[1, 1, 1, 1], strides=[2, 1]),
            node("Relu", ["c1"], ["r1"]),
            node("Conv", ["r1", "w2"], ["c2"], name="stem/depthwise", group=8, pads=[1, 1, 1, 1]),
            node("Relu", ["c2"], ["r2"]),
            node("Flatten", ["r2"], ["f"]),
            node("Gemm", ["f", "w3", "b3"], ["y"], name="head", transB=1),
        ],
        {"x": [batch, 3, 12, 10]},
        {"w1": weight(8, 3, 3, 3), "w2": weight(8, 1, 3, 3), "w3": weight(5, 480), "b3": weight(5)},
    )


SMALL_CNN_MACS = 60 * 8 * 27 + 60 * 8 * 9 + 5 * 480
