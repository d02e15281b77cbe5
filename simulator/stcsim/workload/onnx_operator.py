"""What an ONNX operator multiplies: a product that stcsim has words for, or one that it can only count.

Between `stcsim.workload.onnx_graph` and `stcsim.workload.product`; takes attributes and shapes alone, so that an
import without weights and a capture with them understand a model alike.

Source: ONNX operator schemas (opset 9 to 25), https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stcsim.config.trace import LeftOut
from stcsim.config.workload import Role
from stcsim.errors import StcsimError
from stcsim.workload.onnx_graph import OnnxOperator
from stcsim.workload.operand_shape import macs_total
from stcsim.workload.product import CannotSay, Product, Shape, conv, gemm, matmul

Shapes = Mapping[str, tuple[int | None, ...]]


@dataclass(frozen=True)
class OnnxLayer:
    """An operator that stcsim can run.

    Parameters
    ----------
    operator : OnnxOperator
    product : Product
    a, b : str
        Tensors of the operands.
    role_a, role_b : {"weight", "activation"}
        A constant is a weight.
    """

    operator: OnnxOperator
    product: Product
    a: str
    b: str
    role_a: Role
    role_b: Role


def understand(
    operator: OnnxOperator, shapes: Shapes, constants: frozenset[str]
) -> OnnxLayer | LeftOut | None:
    """Return what an operator multiplies.

    Parameters
    ----------
    operator : OnnxOperator
    shapes : mapping of str to tuple
        Shapes of the tensors, as far as they are known.
    constants : frozenset of str

    Returns
    -------
    layer : OnnxLayer, LeftOut or None
        None if it has no multiply-accumulates.
    """
    if operator.op in ("Conv", "Gemm", "MatMul"):
        return _layer(operator, shapes, constants)
    if operator.op in _COUNTED:
        operands, count = _COUNTED[operator.op]
        reason = "stcsim does not run this operator"
        return LeftOut(
            name=operator.name, op=operator.op, macs=_count(operator, shapes, operands, count), reason=reason
        )
    inner = [kind for value in operator.attributes.values() if isinstance(value, list) for kind in value]
    if operator.op in ("If", "Loop", "Scan", "SequenceMap"):
        held = sum(kind in _ALL for kind in inner)
        reason = f"{held} such operators are in its subgraphs, which are not looked into"
        return LeftOut(name=operator.name, op=operator.op, macs=None, reason=reason) if held else None
    if "." in operator.op or operator.op in _UNKNOWN:
        reason = "stcsim does not know this operator"
        return LeftOut(name=operator.name, op=operator.op, macs=None, reason=reason)
    return None


def _layer(operator: OnnxOperator, shapes: Shapes, constants: frozenset[str]) -> OnnxLayer | LeftOut:
    a, b = operator.inputs[:2]
    known = [_known(shapes, name) for name in (a, b)]

    def left_out(macs: int | None, reason: str) -> LeftOut:
        return LeftOut(name=operator.name, op=operator.op, macs=macs, reason=reason)

    if known[0] is None or known[1] is None:
        return left_out(None, "the shapes of its operands cannot be inferred")
    try:
        product = _PRODUCTS[operator.op](known[0], known[1], operator.attributes)
    except CannotSay as error:
        return left_out(error.macs, str(error))
    except StcsimError as error:
        return left_out(None, error.problems[0].message)
    if a in constants and b in constants:
        return left_out(0, "both operands are constants: it is computed once, before the model runs")
    return OnnxLayer(
        operator,
        product,
        a,
        b,
        "weight" if a in constants else "activation",
        "weight" if b in constants else "activation",
    )


def _known(shapes: Shapes, name: str) -> Shape | None:
    dims = shapes.get(name)
    if dims is None or any(size is None for size in dims):
        return None
    return tuple(size for size in dims if size is not None)


# --- what stcsim runs ----------------------------------------------------------------------------


def _conv(x: Shape, w: Shape, attributes: Mapping[str, Any]) -> Product:
    axes = len(x) - 2
    stride = attributes.get("strides", [1] * axes)
    dilation = attributes.get("dilations", [1] * axes)
    return conv(
        x,
        w,
        stride=stride,
        pads=_pads(x, w, attributes, stride, dilation),
        dilation=dilation,
        groups=attributes.get("group", 1),
    )


def _pads(
    x: Shape, w: Shape, attributes: Mapping[str, Any], stride: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the zeros before and after each axis; ``SAME`` gives ceil(size / stride) outputs."""
    axes = len(x) - 2
    auto = attributes.get("auto_pad", "NOTSET")
    if auto == "NOTSET":
        pads = attributes.get("pads", [0] * 2 * axes)
        return list(zip(pads[:axes], pads[axes:], strict=True))
    if auto == "VALID":
        return [(0, 0)] * axes
    pairs = []
    for size, taps, step, gap in zip(x[2:], w[2:], stride, dilation, strict=True):
        total = max(0, (-(-size // step) - 1) * step + gap * (taps - 1) + 1 - size)
        least, most = total // 2, total - total // 2
        pairs.append((least, most) if auto == "SAME_UPPER" else (most, least))
    return pairs


def _gemm(a: Shape, b: Shape, attributes: Mapping[str, Any]) -> Product:
    return gemm(
        a, b, transpose_a=bool(attributes.get("transA", 0)), transpose_b=bool(attributes.get("transB", 0))
    )


def _matmul(a: Shape, b: Shape, attributes: Mapping[str, Any]) -> Product:
    del attributes
    return matmul(a, b)


_PRODUCTS: dict[str, Callable[[Shape, Shape, Mapping[str, Any]], Product]] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
}


# --- what stcsim only counts ---------------------------------------------------------------------


def _count(
    operator: OnnxOperator,
    shapes: Shapes,
    operands: tuple[int, ...],
    count: Callable[[list[Shape], Mapping[str, Any]], int | None],
) -> int | None:
    names = [operator.inputs[i] if i < len(operator.inputs) else "" for i in operands]
    known = [shape for name in names if (shape := _known(shapes, name)) is not None]
    if len(known) < len(operands):
        return None
    try:
        return count(known, operator.attributes)
    except (StcsimError, ValueError, IndexError):
        return None


def _macs_of(product: Callable[[Shape, Shape, Mapping[str, Any]], Product]) -> Callable[..., int]:
    """Return a function that counts what a product would, run in another data type."""

    def count(shapes: list[Shape], attributes: Mapping[str, Any]) -> int:
        try:
            return macs_total(product(shapes[0], shapes[1], attributes).sizes)
        except CannotSay as error:
            return error.macs

    return count


def _transposed_conv(shapes: list[Shape], attributes: Mapping[str, Any]) -> int:
    """Return N C (K / groups) R S H W: every input pixel meets every tap; `w` is (C, K / groups, ...)."""
    del attributes
    x, w = shapes
    return math.prod(x) * math.prod(w[1:])


def _recurrent(gates: int) -> Callable[[list[Shape], Mapping[str, Any]], int]:
    def count(shapes: list[Shape], attributes: Mapping[str, Any]) -> int:
        """Return steps * batch * (elements of W and R): X is (steps, batch, in), W (directions, gates * hidden, in)."""
        del attributes
        x, w, r = shapes
        if w[1] % gates or r[1] != w[1]:
            raise ValueError
        return x[0] * x[1] * (math.prod(w) + math.prod(r))

    return count


def _einsum(shapes: list[Shape], attributes: Mapping[str, Any]) -> int | None:
    """Return the product of all sizes that a two-operand equation runs over."""
    equation = str(attributes.get("equation", "")).replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    if (
        "." in equation
        or len(terms) != 2
        or any(len(t) != len(s) for t, s in zip(terms, shapes, strict=True))
    ):
        return None
    sizes = {
        letter: size
        for term, shape in zip(terms, shapes, strict=True)
        for letter, size in zip(term, shape, strict=True)
    }
    return math.prod(sizes.values())


_COUNTED: dict[str, tuple[tuple[int, ...], Callable[..., int | None]]] = {
    "ConvInteger": ((0, 1), _macs_of(_conv)),
    "QLinearConv": ((0, 3), _macs_of(_conv)),
    "MatMulInteger": ((0, 1), _macs_of(_matmul)),
    "QLinearMatMul": ((0, 3), _macs_of(_matmul)),
    "ConvTranspose": ((0, 1), _transposed_conv),
    "LSTM": ((0, 1, 2), _recurrent(4)),
    "GRU": ((0, 1, 2), _recurrent(3)),
    "RNN": ((0, 1, 2), _recurrent(1)),
    "Einsum": ((0, 1), _einsum),
    "com.microsoft.FusedConv": ((0, 1), _macs_of(_conv)),
    "com.microsoft.FusedGemm": ((0, 1), _macs_of(_gemm)),
    "com.microsoft.FusedMatMul": ((0, 1), _macs_of(_matmul)),
    "com.microsoft.MatMulIntegerToFloat": ((0, 1), _macs_of(_matmul)),
    "com.microsoft.DynamicQuantizeMatMul": ((0, 1), _macs_of(_matmul)),
}
"""Operators that are counted: which inputs hold the operands, and how."""

_UNKNOWN = ("Attention", "DeformConv", "DFT", "LinearAttention", "RotaryEmbedding")
"""Operators of ONNX with multiply-accumulates of their own that are only named."""

_ALL = frozenset(_PRODUCTS) | frozenset(_COUNTED) | frozenset(_UNKNOWN)
