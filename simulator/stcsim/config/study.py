"""What a study file says: machines with their kernels, and workloads (`stcsim.config.workload`).

The options of a pattern generator are validated by the generator's own schema
(`stcsim.study` does that), so ``pattern`` is only a mapping here.  Knows
nothing of simulation.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stcsim.config.axis import Axis, Constraint, Metric
from stcsim.config.machine import Dtype, NotNegative, Section
from stcsim.config.validation import FieldError
from stcsim.config.workload import Workload
from stcsim.errors import Problem, must

Adapt = Literal["error", "dense", "prune"]
SparseSide = Literal["as_given", "weight", "a", "b", "auto"]
Level = Literal["gpu", "sm"]
"""What is timed: the whole GPU, or its SMs alone."""
Engine = Literal["numba", "reference", "analytic"]


class Target(Section):
    """A machine and the kernels to run on it."""

    machine: str = Field(description="Name of a shipped machine, or the path of a machine file.")
    kernels: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Kernels to run; left out: the first one of the machine's list.",
    )


class Baseline(Section):
    """What speed-ups are measured against."""

    machine: str = Field(description="Machine of the baseline, as named under machines.")
    kernel: str | None = Field(default=None, description="Its kernel; left out: the first one run there.")


class Study(Section):
    """A study: every workload on every machine with every one of its kernels."""

    name: str = Field(min_length=1, description="Name of the study.")
    summary: str = Field(default="", description="What the study asks.")
    machines: tuple[Target, ...] = Field(min_length=1)
    baseline: Baseline | None = Field(default=None, description="Left out: the first machine and kernel.")
    workloads: tuple[Workload, ...] = Field(min_length=1)
    dtype: Dtype = Field(default="fp16", description="Type of both operands.")
    adapt: Adapt = Field(
        default="error",
        description="What to do with an operand that a kernel's format does not take: refuse it (error), run it "
        "dense, or prune the weight onto the pattern and report the loss.",
    )
    sparse_side: SparseSide = Field(
        default="weight",
        description="Which operand goes to the side that a datapath wants sparse: the weight, a, b, the "
        "faster of the two (auto), or the problem as given.",
    )
    overrides: tuple[str, ...] = Field(
        default=(),
        description="PATH=VALUE for machines and kernels, as --set: machine.clock=1.2GHz, kernel.stages=3.",
    )
    engine: Engine = Field(
        default="numba", description="Cycle engine; analytic: closed forms for first looks."
    )
    level: Level = Field(
        default="gpu",
        description="What is timed: gpu, the whole chip, where the machine has a section gpu; sm, the SMs alone, as if "
        "memory and launch took no time.",
    )
    check_tiles: NotNegative = Field(
        default=2,
        description="Warp tiles of each run whose values are executed and checked; 0 is shown as off.",
    )
    axes: tuple[Axis, ...] = Field(
        default=(),
        description="What stcsim sweep varies; every combination is a point, the first axis outermost.",
    )
    constraints: tuple[Constraint, ...] = Field(
        default=(), description="Comparisons that leave points out of a sweep."
    )
    repetitions: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=1, description="Runs of every point of a sweep, with seeds that follow the workload's."
    )
    metrics: tuple[Metric, ...] = Field(
        default=("speed_up", "cycles", "effective"),
        min_length=1,
        description="What a sweep prints of each point; the first one decides which is the best.",
    )
    cost: str | None = Field(
        default=None,
        description="Axis whose value is the cost in the Pareto plot; left out: multipliers where they differ, "
        "else bytes fetched.",
    )

    @model_validator(mode="after")
    def _each_path_once(self) -> Self:
        paths = [part.path for axis in self.axes for part in axis.parts]
        for i, axis in enumerate(self.axes):
            for part in axis.parts:
                if paths.count(part.path) > 1:
                    message = must("must be the path of one axis only", part.path)
                    raise FieldError(Problem(message, path=f"axes.{i}"))
        if self.cost is not None and self.cost not in paths:
            known = [path for path in paths if path]
            message = must(
                f"must be the path of an axis ({', '.join(known) or 'there is none'})", self.cost, near=known
            )
            raise FieldError(Problem(message, path="cost"))
        return self

    @property
    def is_sweep(self) -> bool:
        """Whether a machine-and-kernel pair has more than one point."""
        return bool(self.axes) or self.repetitions > 1
