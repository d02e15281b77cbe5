"""What a study sweeps: axes, the constraints between their values, and the metrics that are looked at.

Part of the study's model (`stcsim.config.study`).  An axis is a dotted path and
its values: a list, a range or a logarithmic range; axes of one ``zip`` go hand in
hand.  `stcsim.points` puts the values into the study.  Knows nothing of machines,
kernels or simulation.

>>> Axis(path="kernel.stages", range={"first": 2, "last": 4}).settings()
[{'kernel.stages': 2}, {'kernel.stages': 3}, {'kernel.stages': 4}]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from stcsim.config.document import parse_path
from stcsim.config.machine import Section
from stcsim.config.validation import FieldError
from stcsim.errors import Problem, must

MAX_VALUES = 10_000
"""Values of one axis; far above any sweep, far below what hurts."""

Number = Annotated[int | float, Field(allow_inf_nan=False)]
Comparison = Literal[
    "at_least", "at_most", "greater_than", "less_than", "equal", "not_equal", "multiple_of", "divides"
]
Metric = Literal["speed_up", "cycles", "time_us", "lane", "issue", "effective"]

COMPARISONS: dict[Comparison, str] = {
    "at_least": "at least", "at_most": "at most", "greater_than": "greater than", "less_than": "less than",
    "equal": "equal to", "not_equal": "other than", "multiple_of": "a multiple of", "divides": "a divisor of",
}  # fmt: skip
"""How each comparison is read: left must be ... right."""


class Range(Section):
    """Evenly spaced values, both ends included where the step meets them."""

    first: Number = Field(description="First value.")
    last: Number = Field(description="Last value.")
    step: Number = Field(default=1, gt=0, description="Distance between two values.")

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.last < self.first:
            raise FieldError(Problem(must(f"must be at least first ({self.first})", self.last), path="last"))
        if (self.last - self.first) / self.step >= MAX_VALUES:
            raise FieldError(Problem(must(f"must give at most {MAX_VALUES} values", self.step), path="step"))
        return self

    def values(self) -> list[int | float]:
        """Return the values; decimal fractions come out as written, without rounding noise."""
        first, last, step = (Decimal(str(value)) for value in (self.first, self.last, self.step))
        count = int((last - first) / step) + 1
        whole = all(isinstance(value, int) for value in (self.first, self.step))
        return [int(value) if whole else float(value) for value in (first + i * step for i in range(count))]


class LogRange(Section):
    """Values of equal ratio, both ends included.

    Between two whole ends the values are whole (rounded, each once); otherwise they are rounded to six
    significant digits.
    """

    first: Number = Field(gt=0, description="First value, above 0.")
    last: Number = Field(gt=0, description="Last value, above 0.")
    points: Annotated[int, Field(ge=2, le=MAX_VALUES)] = Field(description="Number of values.")

    def values(self) -> list[int | float]:
        """Return the values, in the direction in which the ends are given."""
        ratio = self.last / self.first
        exact = [self.first * ratio ** (i / (self.points - 1)) for i in range(self.points)]
        if isinstance(self.first, int) and isinstance(self.last, int):
            return list(dict.fromkeys(round(value) for value in exact))
        return [float(f"{value:.6g}") for value in exact]


class Axis(Section):
    """One parameter and its values, or several parameters that change together (zip)."""

    path: str | None = Field(
        default=None,
        description="What to vary: machine.PATH, kernel.PATH, or a path in the study such as "
        "workloads.0.a.pattern.density; * for the index means every workload.",
    )
    label: str | None = Field(
        default=None, min_length=1, description="Short name for plots; left out: the path's end."
    )
    values: tuple[Any, ...] | None = Field(default=None, min_length=1, description="The values, listed.")
    range: Range | None = Field(
        default=None, description="The values, evenly spaced: {first: 2, last: 8, step: 2}."
    )
    log_range: LogRange | None = Field(
        default=None, description="The values, of equal ratio: {first: 0.001, last: 1, points: 9}."
    )
    only: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="Machines or kernels that it varies; left out: all that have such a parameter.",
    )
    zip: tuple[ZippedAxis, ...] | None = Field(
        default=None, min_length=2, description="Axes of equal length that take their values together."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.zip is not None:
            if self.path is not None or _n_sources(self):
                message = "must not be given beside path, values, range or log_range"
                raise FieldError(Problem(message, path="zip"))
            lengths = [len(part.expanded()) for part in self.zip]
            if len(set(lengths)) > 1:
                message = must("must have axes of equal length", ", ".join(map(str, lengths)))
                raise FieldError(Problem(message, path="zip"))
        elif self.path is None:
            message = "must have a path with values, range or log_range, or a zip of such axes"
            raise ValueError(message)
        else:
            _check_axis(self)
            seen: list[Any] = []
            for i, value in enumerate(self.values or ()):
                if value in seen:
                    message = must("must differ from the values before it", value)
                    raise FieldError(Problem(message, path=f"values.{i}"))
                seen.append(value)
        return self

    @property
    def parts(self) -> tuple[Axis | ZippedAxis, ...]:
        """The axes themselves: this one, or those of the zip."""
        return (self,) if self.zip is None else self.zip

    def expanded(self) -> list[Any]:
        """Return the values of an axis that is not a zip."""
        return _expanded(self)

    def settings(self) -> list[dict[str, Any]]:
        """Return what each position of the axis sets: the value of each path."""
        columns = [(part.path or "", part.expanded()) for part in self.parts]
        return [{path: values[i] for path, values in columns} for i in range(len(columns[0][1]))]


class ZippedAxis(Section):
    """One axis of a zip."""

    path: str = Field(description="As in axes.")
    label: str | None = Field(default=None, min_length=1, description="As in axes.")
    values: tuple[Any, ...] | None = Field(default=None, min_length=1, description="As in axes.")
    range: Range | None = Field(default=None, description="As in axes.")
    log_range: LogRange | None = Field(default=None, description="As in axes.")

    @model_validator(mode="after")
    def _valid(self) -> Self:
        _check_axis(self)
        return self

    def expanded(self) -> list[Any]:
        """Return the values."""
        return _expanded(self)


class Constraint(Section):
    """A comparison that every point must satisfy; points that do not are left out.

    A side is a number, or the path of a parameter.  Where a machine or kernel lacks the parameter, the
    constraint does not bind.
    """

    left: int | float | str = Field(description="Such as machine.tensor_core.accumulator.tiles.")
    compare: Comparison = Field(description="How left must compare with right.")
    right: int | float | str = Field(description="Such as 4, or kernel.stages.")

    def __str__(self) -> str:
        return f"{self.left} must be {COMPARISONS[self.compare]} {self.right}"

    def holds(self, left: Any, right: Any) -> bool:
        """Compare two values.

        Raises
        ------
        TypeError
            If they cannot be compared.
        """
        match self.compare:
            case "at_least":
                return bool(left >= right)
            case "at_most":
                return bool(left <= right)
            case "greater_than":
                return bool(left > right)
            case "less_than":
                return bool(left < right)
            case "equal":
                return bool(left == right)
            case "not_equal":
                return bool(left != right)
            case "multiple_of":
                return _is_multiple(left, right)
            case "divides":
                return _is_multiple(right, left)


def _is_multiple(value: Any, of: Any) -> bool:
    return bool(of) and math.isclose(value % of, 0.0, abs_tol=1e-12)


def _n_sources(axis: Axis | ZippedAxis) -> int:
    return sum(source is not None for source in (axis.values, axis.range, axis.log_range))


def _check_axis(axis: Axis | ZippedAxis) -> None:
    if parse_path(axis.path or "") is None:
        message = must("must be a dotted path, such as machine.clock", axis.path)
        raise FieldError(Problem(message, path="path"))
    if _n_sources(axis) != 1:
        message = "must have exactly one of values, range and log_range"
        raise ValueError(message)


def _expanded(axis: Axis | ZippedAxis) -> list[Any]:
    if axis.range is not None:
        return list(axis.range.values())
    if axis.log_range is not None:
        return list(axis.log_range.values())
    return [dict(value) if isinstance(value, Mapping) else value for value in axis.values or ()]
