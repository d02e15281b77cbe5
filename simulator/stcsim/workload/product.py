"""A product that a network computes: from the tensors of a model to the operands of a study.

Made by the readers of models (`stcsim.workload.onnx_operator`, `stcsim.workload.torch_capture`) from
shapes and attributes; turns the tensors, once there are some, into the two-dimensional operands
that `stcsim.config.workload` describes.  Knows neither model formats nor files.

Of a convolution A is the input, N * C rows of H * W elements, and B the weight, K rows of C / groups * R * S
taps.  Of a product A is (batch * m, k) and B is (batch * k, n).  A product whose one side is the same for a
whole batch is one product: its rows or columns are put side by side.

>>> matmul((8, 128, 64), (64, 32)).sizes.m
1024
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stcsim.config.workload import Conv2dShape, GemmShape
from stcsim.errors import WorkloadError, must

Shape = tuple[int, ...]
Array = NDArray[Any]


class CannotSay(Exception):
    """A product that stcsim has no words for.

    Parameters
    ----------
    reason : str
    macs : int
        Its multiply-accumulates.
    """

    def __init__(self, reason: str, macs: int) -> None:
        super().__init__(reason)
        self.macs = macs


@dataclass(frozen=True)
class Product:
    """The sizes of a product and how the model's tensors become its operands.

    Parameters
    ----------
    sizes : GemmShape or Conv2dShape
    layout : {"conv", "gemm", "rows", "columns", "batch"}
        How operands are laid out: as a convolution's, as they are, or with a batch in rows of A,
        in columns of B, or in both.
    margins : tuple of ((int, int), (int, int))
        Zeros put around the input's rows and columns, where a convolution is not padded alike on both sides.
    transposed : tuple of bool
        Whether A and B are stored transposed.
    note : str
        What a reader should know.
    """

    sizes: GemmShape | Conv2dShape
    layout: Literal["conv", "gemm", "rows", "columns", "batch"]
    margins: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    transposed: tuple[bool, bool] = (False, False)
    note: str = ""

    def operands(self, a: Array, b: Array) -> tuple[Array, Array]:
        """Return the operands in the shapes of `stcsim.workload.operand_shape.operand_shapes`.

        Parameters
        ----------
        a, b : ndarray
            The tensors, of the shapes that the product was made for.
        """
        if isinstance(self.sizes, Conv2dShape):
            sizes = self.sizes
            maps = a.reshape(sizes.n, sizes.c, -1, a.shape[-1])
            if self.margins != ((0, 0), (0, 0)):
                maps = np.pad(maps, ((0, 0), (0, 0), *self.margins))
            return maps.reshape(sizes.n * sizes.c, sizes.h * sizes.w), b.reshape(sizes.k, -1)
        m, n, k = self.sizes.m, self.sizes.n, self.sizes.k
        if self.layout == "gemm":
            turn_a, turn_b = self.transposed
            return a.T if turn_a else a, b.T if turn_b else b
        if self.layout == "rows":
            return a.reshape(m, k), b.reshape(k, n)
        if self.layout == "columns":
            stacked = np.moveaxis(b.reshape(-1, k, b.shape[-1]), 1, 0)
            return a.reshape(m, k), stacked.reshape(k, n)
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        rows = np.broadcast_to(a, (*batch, m, k)).reshape(-1, k)
        return rows, np.broadcast_to(b, (*batch, k, n)).reshape(-1, n)


def gemm(a: Shape, b: Shape, *, transpose_a: bool = False, transpose_b: bool = False) -> Product:
    """Return the product of two matrices, either of which may be stored transposed."""
    m, k = a[::-1] if transpose_a else a
    _, n = b[::-1] if transpose_b else b
    return Product(GemmShape(m=m, n=n, k=k), "gemm", transposed=(transpose_a, transpose_b))


def matmul(a: Shape, b: Shape) -> Product:
    """Return a product of stacks of matrices, broadcast against each other as numpy.matmul does."""
    m, k = a[-2:] if len(a) > 1 else (1, a[0])
    n = b[-1] if len(b) > 1 else 1
    batch_a, batch_b = math.prod(a[:-2]), math.prod(b[:-2])
    if batch_b == 1:
        return Product(GemmShape(m=batch_a * m, n=n, k=k), "rows")
    if batch_a == 1:
        return Product(GemmShape(m=m, n=batch_b * n, k=k), "columns")
    batch = math.prod(np.broadcast_shapes(a[:-2], b[:-2]))
    if batch == 0:
        message = "has no elements"
        raise CannotSay(message, 0)
    return Product(GemmShape(m=m, n=n, k=k, batch=batch), "batch")


def conv(
    x: Shape,
    w: Shape,
    *,
    stride: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilation: Sequence[int],
    groups: int,
) -> Product:
    """Return a convolution.

    Parameters
    ----------
    x, w : tuple of int
        Shapes (N, C, ...) of the input and (K, C / groups, ...) of the weight, with one or two axes of space.
    stride, dilation : sequence of int
        One for each axis of space.
    pads : sequence of (int, int)
        Zeros before and after each axis of space.
    groups : int

    Raises
    ------
    CannotSay
        If there are three axes of space, or no elements.
    WorkloadError
        If the sizes do not fit each other.
    """
    n_axes = len(x) - 2
    if not n_axes == len(w) - 2 == len(stride) == len(dilation) == len(pads) or n_axes < 1:
        raise WorkloadError(
            must("a convolution's input, weight and attributes must have the same axes", (x, w))
        )
    if 0 in (*x[1:], *w):
        message = "has no elements"
        raise CannotSay(message, 0)
    if n_axes > 2:
        out = [
            (size + sum(pad) - gap * (taps - 1) - 1) // step + 1
            for size, pad, gap, taps, step in zip(x[2:], pads, dilation, w[2:], stride, strict=True)
        ]
        message = f"convolves {n_axes} axes; stcsim has one and two"
        raise CannotSay(message, x[0] * math.prod(out) * math.prod(w))
    if n_axes == 1:
        x, w = (*x[:2], 1, x[2]), (*w[:2], 1, w[2])
        stride, dilation, pads = (1, *stride), (1, *dilation), ((0, 0), *pads)
    around = tuple(min(before, after) for before, after in pads)
    margins = tuple(
        (before - least, after - least) for (before, after), least in zip(pads, around, strict=True)
    )
    high, wide = (size + sum(margin) for size, margin in zip(x[2:], margins, strict=True))
    note = ""
    if any(map(any, margins)):
        note = "padded unevenly: the odd zeros are stored, and count as zeros of the activations"
    sizes = Conv2dShape(
        n=x[0],
        c=x[1],
        h=high,
        w=wide,
        k=w[0],
        r=w[2],
        s=w[3],
        stride=(stride[0], stride[1]),
        padding=(around[0], around[1]),
        dilation=(dilation[0], dilation[1]),
        groups=groups,
    )
    return Product(sizes, "conv", margins=(margins[0], margins[1]), note=note)
