"""What pattern generators share: their options, a random stream that never changes, density factors.

Below `stcsim.workload.generator` (the generators) and `stcsim.workload.conv_generator`;
knows no generator and no study.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from stcsim.config.machine import Section
from stcsim.config.sentence import shown
from stcsim.config.validation import FieldError
from stcsim.errors import Problem, must
from stcsim.workload.operand import check_seed
from stcsim.workload.pattern import Pattern

_ACCEPTED_FRACTIONS = "a fraction between 0 and 1, such as density: 0.3 or sparsity: 0.7"


def check_fraction(value: object) -> float:
    """Return a density or sparsity given as a number from 0 to 1.

    Parameters
    ----------
    value : object
        What the user wrote, already a number if it looked like one.

    Returns
    -------
    fraction : float

    Raises
    ------
    ValueError
        If it is anything else; percentages are refused with the accepted spellings, because 50 and 0.5
        both have been meant by somebody.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    message = must(f"must be {_ACCEPTED_FRACTIONS}", shown(value))
    percent = re.fullmatch(r"(\d+(?:\.\d+)?) *%?", str(value).strip())
    if percent and 1 < Decimal(percent[1]) <= 100:
        message += f" (did you mean {Decimal(percent[1]) / 100}?)"
    raise ValueError(message)


MAX_SPREAD = 4.0
"""Largest relative standard deviation of density factors; real matrices stay below 1.5."""

_FRACTION_SCHEMA = WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
Fraction = Annotated[float, BeforeValidator(check_fraction), _FRACTION_SCHEMA]
OptionalFraction = Annotated[float | None, BeforeValidator(check_fraction), _FRACTION_SCHEMA]
"""May be left out, but where it is given it is a fraction: null is none."""

Spread = Annotated[float, Field(ge=0, le=MAX_SPREAD, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]


class RandomStream:
    """Numbers drawn from the raw stream of PCG64.

    Parameters
    ----------
    seed : int
        Seed of the study or operand.
    stream : int
        Number of this stream under the seed; streams of one seed are independent of each other.
    """

    def __init__(self, seed: int, stream: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(check_seed(seed), spawn_key=(stream,)))

    def words(self, count: int) -> NDArray[np.uint32]:
        """Return `count` uniform 32-bit words."""
        raw = np.asarray(self._bits.random_raw(-(-count // 2)), dtype="<u8")
        return raw.view("<u4")[:count]

    def uniform(self, count: int) -> NDArray[np.float64]:
        """Return `count` numbers in [0, 1), each a multiple of 2**-53."""
        raw = np.asarray(self._bits.random_raw(count), dtype=np.uint64)
        return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53


class GeneratorOptions(Section, ABC):
    """Options of one generator, and the generator itself."""

    name: ClassVar[str]

    @abstractmethod
    def draw(self, shape: tuple[int, int], random: RandomStream, k_axis: Literal[0, 1]) -> Pattern:
        """Return a pattern of `shape`; `k_axis` is the axis of the operand along which K runs."""

    def __str__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in self.model_dump().items())
        return f"{self.name}({options})"


def _offer_sparsity(schema: dict[str, Any]) -> None:
    """Say in the JSON Schema that exactly one of density and sparsity is given."""
    schema["properties"]["sparsity"].pop("default")
    schema["required"] = [name for name in schema["required"] if name != "density"]
    schema["oneOf"] = [{"required": ["density"]}, {"required": ["sparsity"]}]


class WithDensity(GeneratorOptions):
    """Options with a density, which may be written as `sparsity` = 1 - density instead.

    What is kept, and printed in an expanded study, is the density.
    """

    model_config = ConfigDict(json_schema_extra=_offer_sparsity)
    density: Fraction = Field(description="Share of non-zero elements; or give sparsity = 1 - density.")
    sparsity: OptionalFraction = Field(
        default=None, exclude=True, description="1 - density, instead of density."
    )

    @model_validator(mode="before")
    @classmethod
    def _derive_density(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or "sparsity" not in data:
            return data
        if "density" in data:
            message = f"must not be given beside density: one of the two, {_ACCEPTED_FRACTIONS}"
            raise FieldError(Problem(message, path="sparsity"))
        try:
            density = float(1 - Decimal(repr(check_fraction(data["sparsity"]))))
        except ValueError:
            density = 0.0  # the field's own check refuses the sparsity
        return {**data, "density": density}


def density_factors(length: int, run: int, spread: float, random: RandomStream) -> NDArray[np.float64]:
    """Draw one density factor for every `run` of `length` elements: Weibull, mean 1, deviation `spread`.

    Notes
    -----
    One draw falls in each of the equally likely strata of the distribution, in random order, so that
    even the few runs of a small matrix have nearly the spread asked for.
    """
    count = -(-length // run)
    if spread == 0:
        return np.ones(length)
    order = np.argsort(random.uniform(count), kind="stable")
    quantiles = (order + random.uniform(count)) / max(1, count)
    exponent = _weibull_exponent(spread)
    factors = (-np.log1p(-quantiles)) ** exponent / math.gamma(1 + exponent)
    return np.repeat(factors, run)[:length]


def _weibull_exponent(spread: float) -> float:
    """Return the e for which E**e, E exponential, has the relative standard deviation `spread`."""
    low, high = 0.0, MAX_SPREAD + 1
    for _ in range(60):
        middle = (low + high) / 2
        log_ratio = math.lgamma(1 + 2 * middle) - 2 * math.lgamma(1 + middle)
        low, high = (middle, high) if math.expm1(log_ratio) < spread**2 else (low, middle)
    return high


def scale_to_density(rows: NDArray[np.float64], cols: NDArray[np.float64], density: float) -> float:
    """Return the c for which the mean of min(1, c * rows[i] * cols[j]) is `density`, by bisection."""
    if not rows.size or not cols.size or density in (0.0, 1.0):
        return density
    ascending = np.sort(cols)
    sums = np.concatenate([[0.0], np.cumsum(ascending)])

    def mean(scale: float) -> float:
        with np.errstate(divide="ignore", over="ignore"):  # a factor may be too small for any column
            below = np.searchsorted(ascending, 1 / (scale * rows))
        return float(np.sum(scale * rows * sums[below] + (cols.size - below))) / (rows.size * cols.size)

    low, high = 0.0, density
    while mean(high) < density:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < density else (low, middle)
    return high
