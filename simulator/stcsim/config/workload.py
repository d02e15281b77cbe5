"""What a study says of its workloads: a GEMM or a convolution with its operands, or a whole network.

Part of `stcsim.config.study`.  Sizes are checked one by one here; whether a filter
fits its map is geometry and is told by `stcsim.workload.conv_shape`, and a network's
layers are written out by `stcsim.network` before a study is taken as it stands.
Knows nothing of simulation.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from stcsim.config.machine import NotNegative, Positive, Section
from stcsim.config.validation import FieldError
from stcsim.errors import Problem

Role = Literal["weight", "activation"]
Patterns = Literal["real", "uniform"]
Density = Annotated[float, Field(ge=0, le=1)]
Pair = Annotated[tuple[NotNegative, NotNegative], Field(description="Of rows and of columns.")]
PerAxis = NotNegative | Pair
"""One number for both axes, or one for rows and one for columns."""


class OperandSource(Section):
    """Where the non-zero pattern of one operand comes from: a generator or a file."""

    role: Role = Field(description="Whether the operand is a weight or an activation.")
    pattern: dict[str, Any] | None = Field(
        default=None, description="A generator and its options: {generator: uniform, density: 0.3}."
    )
    file: str | None = Field(
        default=None,
        description="A .smtx, .mtx, .npy or .npz file, relative to the study's folder or to the shipped data.",
    )
    key: str | None = Field(default=None, description="Which pattern of an .npz file.")
    transpose: bool = Field(default=False, description="Whether the file holds the transposed operand.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.pattern is None) == (self.file is None):
            message = "must have either pattern or file, not " + ("both" if self.file else "neither")
            raise ValueError(message)
        if self.file is None and (self.key is not None or self.transpose):
            message = "must name a file when it has key or transpose, not a pattern"
            raise ValueError(message)
        return self


class GemmShape(Section):
    """C[m,n] = A[m,k] B[k,n]."""

    m: NotNegative = Field(description="Rows of A and C.")
    n: NotNegative = Field(description="Columns of B and C.")
    k: NotNegative = Field(description="Columns of A, rows of B.")
    batch: Positive = Field(
        default=1,
        description="Independent products of these sizes in one grid (the heads of an attention); the "
        "operands' patterns then have batch * m and batch * k rows.",
    )


class Conv2dShape(Section):
    """A 2-D convolution: input (n, c, h, w), weight (k, c / groups, r, s).

    Operand a is the input, n * c rows of h * w elements; b is the weight, k rows of c / groups * r * s taps.
    """

    n: NotNegative = Field(default=1, description="Images.")
    c: Positive = Field(description="Input channels.")
    h: Positive = Field(description="Input rows.")
    w: Positive = Field(description="Input columns.")
    k: Positive = Field(description="Output channels.")
    r: Positive = Field(description="Filter rows.")
    s: Positive = Field(description="Filter columns.")
    stride: PerAxis = Field(default=1, description="One number, or [rows, columns].")
    padding: PerAxis = Field(
        default=0, description="Zeros on both sides of an axis; one number, or [rows, columns]."
    )
    dilation: PerAxis = Field(
        default=1, description="Distance between the filter's taps; one number, or [rows, columns]."
    )
    groups: Positive = Field(
        default=1, description="Groups of channels convolved apart; c of them is a depthwise convolution."
    )


class Densities(Section):
    """Densities of every layer of a network."""

    weight: Density = Field(default=1.0, description="Share of non-zero weights.")
    activation: Density = Field(default=1.0, description="Share of non-zero activations.")


class Workload(Section):
    """One GEMM or convolution and its two operands, or a network, which stands for all of its layers."""

    name: str = Field(min_length=1, description="For people only: a result never depends on it.")
    gemm: GemmShape | None = Field(
        default=None, description="Problem sizes; may be left out where both operands come from files."
    )
    conv2d: Conv2dShape | None = Field(default=None, description="Sizes of a convolution, instead of gemm.")
    a: OperandSource | None = Field(default=None, description="Operand A; of a convolution the input.")
    b: OperandSource | None = Field(default=None, description="Operand B; of a convolution the weight.")
    network: str | None = Field(
        default=None,
        description="A table of workloads/networks, or a .yaml file that stcsim import wrote, instead of sizes and "
        "operands.",
    )
    trace: str | None = Field(
        default=None,
        description="A trace (stcsim trace capture), instead of sizes and operands, relative to the study's folder "
        "or to the shipped data.",
    )
    sparsity: str | Densities | None = Field(
        default=None,
        description="Of a network: a table of workloads/sparsity, or densities of all layers; left out: dense, or as "
        "the .yaml file has it.",
    )
    layers: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Of a network or a trace: layers to run, by name or pattern (layer1.*).",
    )
    patterns: Patterns | None = Field(
        default=None,
        description="Of a network: zeros clustered as in real networks (real, the default), or uniform.",
    )
    seed: NotNegative = Field(default=0, description="Seed of this workload's generated patterns and values.")
    repeat: Positive = Field(
        default=1, description="Times that it runs, one after the other (the time steps of a recurrence)."
    )
    check_tiles: NotNegative | None = Field(
        default=None,
        description="Warp tiles whose values are checked, at most the study's; left out: as many.",
    )
    part_of: str | None = Field(
        default=None, description="Network in whose totals it counts; the layers of a network have it."
    )

    @property
    def has_layers(self) -> bool:
        """Whether it stands for several layers, which are written out before anything runs."""
        return self.network is not None or self.trace is not None

    @model_validator(mode="after")
    def _one_problem(self) -> Self:
        problems = []
        source = next((name for name in ("network", "trace") if getattr(self, name) is not None), None)
        excess: list[str] = []
        if source is not None:
            others = ("gemm", "conv2d", "a", "b", "part_of", "check_tiles", "trace", "sparsity", "patterns")
            fitting = ("sparsity", "patterns") if source == "network" else ("trace",)
            excess = [name for name in others if name not in fitting and getattr(self, name) is not None]
            if self.repeat != 1:
                excess.append("repeat")
        else:
            if self.gemm is not None and self.conv2d is not None:
                problems.append(Problem("must not be given beside gemm", path="conv2d"))
            problems += [
                Problem("must be given", path=name) for name in ("a", "b") if getattr(self, name) is None
            ]
            of_networks = [name for name in ("sparsity", "patterns") if getattr(self, name) is not None]
            problems += [Problem("must not be given without network", path=name) for name in of_networks]
            if self.layers is not None:
                problems.append(Problem("must not be given without network or trace", path="layers"))
        problems += [Problem(f"must not be given beside {source}", path=name) for name in excess]
        if problems:
            raise FieldError(problems)
        return self
