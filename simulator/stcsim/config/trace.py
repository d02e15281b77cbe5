"""What a trace says of itself: its layers, in the words of a study, and what is not in it.

Read by `stcsim.workload.trace` out of a file that is not trusted, written by the capture of a model.
Knows nothing of files or bits.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from stcsim.config.section import NotNegative, Section
from stcsim.config.validation import FieldError
from stcsim.config.workload import Conv2dShape, GemmShape, Role
from stcsim.errors import Problem, must

FORMAT: Final = "stcsim-trace"
VERSION: Final = 1
"""Raised when a reader of the version before could not read what is written."""

Name = Annotated[str, Field(min_length=1, max_length=1000)]


class TraceLayer(Section):
    """A layer whose two operands are in the trace, as ``NAME.a`` and ``NAME.b``."""

    name: Name = Field(description="As in the model; a result never depends on it.")
    op: Name = Field(description="Operator or module that it comes from.")
    gemm: GemmShape | None = Field(default=None, description="Sizes of a product.")
    conv2d: Conv2dShape | None = Field(default=None, description="Sizes of a convolution.")
    a: Role = Field(description="Role of operand A.")
    b: Role = Field(description="Role of operand B.")
    note: str = Field(default="", description="What was done to the layer, if anything.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.gemm is None) == (self.conv2d is None):
            message = "must have either gemm or conv2d"
            raise ValueError(message)
        return self

    @property
    def sizes(self) -> GemmShape | Conv2dShape:
        """Sizes of the layer, whichever kind it is."""
        sizes = self.gemm or self.conv2d
        if sizes is None:
            message = "a layer has neither gemm nor conv2d"
            raise AssertionError(message)
        return sizes


class LeftOut(Section):
    """An operator with multiply-accumulates that is not in the trace."""

    name: Name
    op: Name
    macs: NotNegative | None = Field(
        default=None, description="Its multiply-accumulates; absent where they are not known."
    )
    reason: str


class TraceMeta(Section):
    """The description of a trace."""

    format: Literal["stcsim-trace"]
    version: Literal[1]
    model: str = Field(description="What the model is called.")
    layers: tuple[TraceLayer, ...]
    left_out: tuple[LeftOut, ...] = ()
    provenance: dict[str, Any] = Field(
        default_factory=dict, description="Inputs, pruning, versions of packages; for people."
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = [layer.name for layer in self.layers]
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise FieldError(Problem(must("must name each layer once", twice), path="layers"))
        return self
