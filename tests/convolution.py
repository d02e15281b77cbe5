"""Independent convolutions for tests: slow, written from the definition, sharing no code with stcsim."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from stcsim.workload.conv2d import Conv2d
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern, MaskPattern, Pattern


@st.composite
def conv_shapes(draw: st.DrawFn, largest: int = 9) -> ConvShape:
    """Draw strides, pads, dilations, groups, batches, and filters larger than the map but for padding."""
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    depthwise = draw(st.booleans())
    channels = groups * draw(st.integers(1, 3))
    sizes: dict[str, Any] = {
        "n": draw(st.integers(1, 2)),
        "c": channels,
        "k": channels if depthwise else groups * draw(st.integers(1, 3)),
        "groups": channels if depthwise else groups,
    }
    pairs = []
    for edge, taps in (("h", "r"), ("w", "s")):
        padding = draw(st.integers(0, 3))
        size = draw(st.integers(1, largest))
        count = draw(st.integers(1, min(4, size + 2 * padding)))
        most = (size + 2 * padding - 1) // (count - 1) if count > 1 else 3
        dilation = draw(st.integers(1, min(3, most)))
        pairs.append((draw(st.integers(1, 3)), padding, dilation))
        sizes |= {edge: size, taps: count}
    names = ("stride", "padding", "dilation")
    return ConvShape(**sizes, **dict(zip(names, zip(*pairs, strict=True), strict=True)))


def make_conv(
    shape: ConvShape, density_in: float, density_weight: float, seed: int, name: str = "layer"
) -> Conv2d:
    """Return a convolution with independent random patterns."""
    rng = np.random.default_rng(seed)

    def pattern(size: tuple[int, int], density: float) -> Pattern:
        return DensePattern(size) if density == 1 else MaskPattern(rng.random(size) < density)

    return Conv2d(
        name,
        shape,
        Operand(pattern(shape.input_shape, density_in), "activation", 2 * seed, "test"),
        Operand(pattern(shape.weight_shape, density_weight), "weight", 2 * seed + 1, "test"),
    )


def values_of(conv: Conv2d) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return input (N, C, H, W) and weight (K, C / groups, R, S)."""
    shape = conv.shape
    feature_map = conv.input.values(0, shape.n * shape.c, 0, shape.h * shape.w)
    weight = conv.weight.values(0, shape.k, 0, shape.taps)
    return (
        feature_map.reshape(shape.n, shape.c, shape.h, shape.w).astype(np.int64),
        weight.reshape(shape.k, shape.c_group, shape.r, shape.s).astype(np.int64),
    )


def convolve(feature_map: NDArray[Any], weight: NDArray[Any], shape: ConvShape) -> NDArray[np.int64]:
    """Return the output (N, K, P, Q): one tap at a time, one pixel at a time where it hangs over the edge."""
    (sh, sw), (ph, pw), (dh, dw) = shape.stride, shape.padding, shape.dilation
    height, width = (shape.h + 2 * ph, shape.w + 2 * pw)
    padded = np.zeros((shape.n, shape.c, height, width), np.int64)
    padded[:, :, ph : ph + shape.h, pw : pw + shape.w] = feature_map
    rows = [y for y in range(0, height, sh) if y + dh * (shape.r - 1) < height]
    columns = [x for x in range(0, width, sw) if x + dw * (shape.s - 1) < width]
    out = np.zeros((shape.n, shape.k, len(rows), len(columns)), np.int64)
    k_group, c_group = shape.k // shape.groups, shape.c // shape.groups
    for k in range(shape.k):
        first = k // k_group * c_group
        for i, y in enumerate(rows):
            for j, x in enumerate(columns):
                window = padded[
                    :, first : first + c_group, y : y + dh * shape.r : dh, x : x + dw * shape.s : dw
                ]
                window = window[:, :, : shape.r, : shape.s]
                out[:, k, i, j] = (window * weight[k]).sum(axis=(1, 2, 3))
    return out
