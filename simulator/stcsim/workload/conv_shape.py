"""The geometry of a 2-D convolution: sizes of its output and of the GEMM that it is lowered to.

Read by the convolution, by the lazy im2col and by network tables; knows no
patterns, no values and no machines.

>>> shape = ConvShape(n=1, c=32, h=112, w=112, k=32, r=3, s=3, padding=(1, 1), groups=32)
>>> shape.p, shape.q, shape.pixels, shape.k_group, shape.taps
(112, 112, 12544, 1, 9)
>>> shape.macs_total
3612672
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from stcsim.errors import Problem, WorkloadError, must

LARGEST_EDGE = 2**24
"""Of an output's rows and columns: some arrays are as long as these, though none holds their product."""


@dataclass(frozen=True)
class ConvShape:
    """Sizes of a convolution; each problem of them is told at construction, all at once.

    Parameters
    ----------
    n, c, h, w : int
        Images, input channels, input rows, input columns; `n` may be 0.
    k, r, s : int
        Output channels, filter rows, filter columns.
    stride, padding, dilation : tuple of int
        Of rows and of columns.  Padding is the same on both sides of an axis.
    groups : int
        Groups of channels that are convolved apart; `c` of them is a depthwise convolution.

    Raises
    ------
    WorkloadError
        If a size is too small, channels cannot be divided by `groups`, or the filter does not fit.
    """

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1

    def __post_init__(self) -> None:
        problems = [problem for field in fields(self) for problem in self._small(field.name)]
        if not problems:
            problems = [*self._indivisible(), *self._too_large()]
        if problems:
            raise WorkloadError(problems)

    def _small(self, name: str) -> list[Problem]:
        """Return what is wrong with one size alone."""
        value: Any = getattr(self, name)
        least = 0 if name in ("n", "padding") else 1
        pair = name in ("stride", "padding", "dilation")
        sizes = value if pair else (value,)
        whole = all(isinstance(size, int) and not isinstance(size, bool) for size in sizes)
        if len(sizes) == (2 if pair else 1) and whole and min(sizes) >= least:
            return []
        what = "must be two whole numbers (rows, columns), each" if pair else "must be"
        return [Problem(must(f"{what} {least} or more", value), path=name)]

    def _indivisible(self) -> list[Problem]:
        return [
            Problem(must(f"must be a multiple of groups ({self.groups})", value), path=name)
            for name, value in (("c", self.c), ("k", self.k))
            if value % self.groups
        ]

    def _too_large(self) -> list[Problem]:
        """Return on which axes the dilated filter is larger than the padded map."""
        axes = (("r", self.r, 0, "rows", self.h), ("s", self.s, 1, "columns", self.w))
        problems = []
        for name, size, axis, word, edge in axes:
            span, room = self.dilation[axis] * (size - 1) + 1, edge + 2 * self.padding[axis]
            if span > room:
                what = f"must leave a filter that fits into the padded map's {room} {word}"
                problems.append(Problem(must(what, f"{size} (it spans {span})"), path=name))
            elif self._out(axis, edge, size) > LARGEST_EDGE:
                what = f"must leave at most {LARGEST_EDGE:,} output {word}"
                problems.append(Problem(must(what, f"{self._out(axis, edge, size):,}"), path="padding"))
        return problems

    @property
    def p(self) -> int:
        """Output rows: floor((H + 2 pad - dilation (R - 1) - 1) / stride) + 1."""
        return self._out(0, self.h, self.r)

    @property
    def q(self) -> int:
        """Output columns, by the same rule."""
        return self._out(1, self.w, self.s)

    def _out(self, axis: int, size: int, taps: int) -> int:
        span = self.dilation[axis] * (taps - 1) + 1
        return (size + 2 * self.padding[axis] - span) // self.stride[axis] + 1

    @property
    def c_group(self) -> int:
        """Input channels of one group."""
        return self.c // self.groups

    @property
    def k_group(self) -> int:
        """Output channels of one group: N of its GEMM."""
        return self.k // self.groups

    @property
    def pixels(self) -> int:
        """Output pixels of all images: M of the GEMM."""
        return self.n * self.p * self.q

    @property
    def taps(self) -> int:
        """Input elements under the filter of one group: K of the GEMM."""
        return self.c_group * self.r * self.s

    @property
    def input_shape(self) -> tuple[int, int]:
        """Shape of the input's pattern: a row for each channel of each image, a column for each element."""
        return self.n * self.c, self.h * self.w

    @property
    def weight_shape(self) -> tuple[int, int]:
        """Shape of the weight's pattern: a row for each output channel, a column for each tap."""
        return self.k, self.taps

    @property
    def macs_total(self) -> int:
        """N P Q K (C / groups) R S: every tap of every output, padding positions included."""
        return self.pixels * self.k * self.taps

    @cached_property
    def inside(self) -> int:
        """Pairs of an output pixel and a tap (r, s) that lie on the map, not on padding."""
        return self.n * self._inside(0, self.p, self.r, self.h) * self._inside(1, self.q, self.s, self.w)

    def _inside(self, axis: int, out: int, taps: int, size: int) -> int:
        at = np.arange(out)[:, None] * self.stride[axis] - self.padding[axis]
        at = at + np.arange(taps) * self.dilation[axis]
        return int(np.count_nonzero((at >= 0) & (at < size)))
