"""From the sizes that a study or a trace states to the shapes of the operands' patterns.

Between `stcsim.config.workload` and the geometry (`stcsim.workload.conv_shape`); knows no patterns.
"""

from __future__ import annotations

from stcsim.config.workload import Conv2dShape, GemmShape, PerAxis
from stcsim.workload.conv_shape import ConvShape


def conv_shape(sizes: Conv2dShape) -> ConvShape:
    """Return the geometry of a convolution.

    Raises
    ------
    WorkloadError
        If the filter does not fit, or groups do not divide the channels; paths are those of the study.
    """
    return ConvShape(
        n=sizes.n,
        c=sizes.c,
        h=sizes.h,
        w=sizes.w,
        k=sizes.k,
        r=sizes.r,
        s=sizes.s,
        stride=_both(sizes.stride),
        padding=_both(sizes.padding),
        dilation=_both(sizes.dilation),
        groups=sizes.groups,
    )


def _both(value: PerAxis) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def operand_shapes(sizes: GemmShape | Conv2dShape) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the shapes in which the patterns of A and B are made or read."""
    if isinstance(sizes, Conv2dShape):
        shape = conv_shape(sizes)
        return shape.input_shape, shape.weight_shape
    return (sizes.batch * sizes.m, sizes.k), (sizes.batch * sizes.k, sizes.n)


def macs_total(sizes: GemmShape | Conv2dShape) -> int:
    """Return the multiply-accumulates of the dense problem."""
    if isinstance(sizes, Conv2dShape):
        return conv_shape(sizes).macs_total
    return sizes.batch * sizes.m * sizes.n * sizes.k


def sizes_text(sizes: GemmShape | Conv2dShape) -> str:
    """Return the sizes in words, as tables show them."""
    if isinstance(sizes, GemmShape):
        text = f"{sizes.m} x {sizes.n} x {sizes.k}"
        return text if sizes.batch == 1 else f"{sizes.batch} of {text}"
    shape = conv_shape(sizes)
    words = [f"{shape.n} x {shape.c} x {shape.h} x {shape.w}, {shape.k} of {shape.r} x {shape.s}"]
    for name, usual in (("stride", 1), ("padding", 0), ("dilation", 1)):
        rows, cols = getattr(shape, name)
        if (rows, cols) != (usual, usual):
            words.append(f"{name} {rows}" if rows == cols else f"{name} {rows}/{cols}")
    if shape.groups > 1:
        words.append(f"groups {shape.groups}")
    return ", ".join(words)
