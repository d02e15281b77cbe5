"""Quantities with units: the one place that reads ``1.41 GHz``, ``40 MiB`` or ``128 B/clk``.

Base layer: knows nothing of files, models or machines.  Each quantity is a
pydantic type (`Hertz`, `Bytes`, ...) for the fields of configuration models:
in YAML the value is written with its unit, in Python it is a plain number of
the base unit, and a model that is dumped as JSON writes the unit again, so
that an expanded study reads back to the very same numbers.

Scaling is exact: a text is read as a decimal fraction, multiplied by the unit
and only then rounded to the nearest float (or required to be whole).

Examples
--------
>>> parse_hertz("1.41 GHz")
1410000000.0
>>> parse_bytes("164 KB"), parse_bytes("164 KiB")
(164000, 167936)
>>> format_bytes(167936)
'164 KiB'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from stcsim.errors import must

_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_TEXT = re.compile(rf"({_NUMBER})\s*(\D.*)?", re.ASCII)
_DECIMAL_BYTES = {"B": 1, "KB": 10**3, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY_BYTES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LIMIT = 2**63
"""Amounts stay below this in their base unit: kernels count in 64-bit integers."""
_BYTES = {**_DECIMAL_BYTES, **_BINARY_BYTES}


class QuantityError(ValueError):
    """A value is not the quantity that it must be.

    Parameters
    ----------
    what : str
        What must hold, such as ``"must be a frequency with its unit (...)"``.
    value : object
        What was found.
    near : str, optional
        The spelling that was probably meant.
    """

    def __init__(self, what: str, value: object, near: str | None = None) -> None:
        self.what = what
        self.near = near
        super().__init__(must(what, _shown(value)) + (f" (did you mean {near}?)" if near else ""))


@dataclass(frozen=True)
class Quantity:
    """A kind of quantity: its units, its bounds and how it is written.

    Parameters
    ----------
    noun : str
        What it is called in a message, with its article.
    units : mapping of str to Fraction
        Factor of each accepted unit to the base unit; the first spelling of a factor is the one written.
    example : str
        An accepted value, for messages and the JSON Schema.
    whole : bool
        Whether the value in the base unit must be a whole number.
    positive : bool
        Whether zero is refused.
    bare : bool
        Whether a number without a unit is accepted, as one of the base unit.
    """

    noun: str
    units: Mapping[str, Fraction]
    example: str
    whole: bool = False
    positive: bool = False
    bare: bool = False

    @property
    def what(self) -> str:
        """What must hold of a value, for messages; names the accepted units."""
        units = ", ".join(self.units)
        accepted = f"({units}, or none)" if self.bare else f"with its unit ({units})"
        return f"must be {self.noun} {accepted}, such as {self.example}"

    def parse(self, value: object) -> Fraction:
        """Return `value` in the base unit, exactly.

        Parameters
        ----------
        value : object
            A text with a unit, or a number where the quantity may be bare.

        Returns
        -------
        amount : Fraction, base unit

        Raises
        ------
        QuantityError
            If there is no unit or not one of this quantity, or the amount is out of bounds.
        """
        base = next(iter(self.units))
        bare = self.bare and isinstance(value, int | float) and not isinstance(value, bool)
        text = f"{value!r} {base}" if bare else value
        match = _TEXT.fullmatch(text.strip()) if isinstance(text, str) else None
        if match is None:
            raise QuantityError(self.what, value)
        number, unit = match.group(1), match.group(2)
        if unit not in self.units:
            raise QuantityError(self.what, value, self._near(number, unit))
        amount = Fraction(Decimal(number)) * self.units[unit]
        if amount >= _LIMIT:
            what = f"must be less than 2**63 {base}"
        elif amount < 0 or (self.positive and not float(amount)):
            what = f"must be {'greater than' if self.positive else 'at least'} 0 {base}"
        elif self.whole and amount.denominator != 1:
            what = f"must come to a whole number of {base}"
        else:
            return amount
        raise QuantityError(what, value)

    def format(self, amount: float) -> str:
        """Return the shortest text that `parse` reads as exactly `amount`, in the largest unit that gives it.

        Parameters
        ----------
        amount : int or float, base unit

        Returns
        -------
        text : str
        """
        exact = Fraction(amount) if self.whole else Fraction(Decimal(repr(float(amount))))
        written = {factor: unit for unit, factor in list(self.units.items())[::-1]}
        texts = [f"{_decimal(exact / factor)} {written[factor]}" for factor in sorted(written, reverse=True)]
        return min(texts, key=len)

    def _near(self, number: str, unit: str | None) -> str | None:
        """Return the value with the accepted unit that differs from `unit` in case or spacing only."""
        wanted = (unit or "").replace(" ", "").lower()
        for known in self.units:
            if known.lower() == wanted:
                return f"{number} {known}"
        return None

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of a value as it is written in YAML."""
        units = "|".join(re.escape(unit) for unit in self.units)
        text = {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*({units})\s*$", "examples": [self.example]}
        return {"anyOf": [{"type": "integer"}, text]} if self.bare else text


def _shown(value: object) -> str:
    """Return a value as a user would have written it in YAML."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    quoted = isinstance(value, str) and (not value.strip() or re.fullmatch(_NUMBER, value.strip()))
    return f"'{value}'" if quoted else str(value)


def _decimal(value: Fraction) -> str:
    """Return a fraction whose denominator has the factors 2 and 5 only as an exact decimal."""
    with localcontext(prec=400):
        number = Decimal(value.numerator) / Decimal(value.denominator)
        plain = f"{number:f}"
        return plain if len(plain) <= 20 else f"{number.normalize():E}"


def _fractions(units: Mapping[str, float | Fraction]) -> dict[str, Fraction]:
    return {unit: Fraction(factor) for unit, factor in units.items()}


FREQUENCY = Quantity(
    "a frequency",
    _fractions({"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}),
    "1.41 GHz",
    positive=True,
)
STORAGE = Quantity("an amount of bytes", _fractions(_BYTES), "40 MiB", whole=True)
BYTES_PER_CYCLE = Quantity(
    "a bandwidth per clock cycle",
    _fractions({"B/clk": 1, "B/cycle": 1}),
    "128 B/clk",
    positive=True,
)
BYTES_PER_SECOND = Quantity(
    "a bandwidth per second",
    _fractions({f"{unit}/s": factor for unit, factor in _BYTES.items()}),
    "1555 GB/s",
    positive=True,
)
TIME = Quantity(
    "a time",
    _fractions({"s": 1, "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}),
    "3.5 us",
)
CYCLES = Quantity(
    "a number of clock cycles",
    _fractions({"clk": 1, "cycle": 1, "cycles": 1}),
    "25 clk",
    whole=True,
    bare=True,
)


def parse_hertz(value: object) -> float:
    """Return a frequency such as ``1.41 GHz`` in hertz."""
    return float(FREQUENCY.parse(value))


def parse_bytes(value: object) -> int:
    """Return an amount of bytes such as ``40 MiB``; KB is 1000, KiB is 1024 bytes."""
    return int(STORAGE.parse(value))


def parse_bytes_per_cycle(value: object) -> float:
    """Return a bandwidth per clock such as ``128 B/clk`` in bytes per cycle."""
    return float(BYTES_PER_CYCLE.parse(value))


def parse_bytes_per_second(value: object) -> float:
    """Return a bandwidth such as ``1555 GB/s`` in bytes per second."""
    return float(BYTES_PER_SECOND.parse(value))


def parse_seconds(value: object) -> float:
    """Return a time such as ``3.5 us`` in seconds."""
    return float(TIME.parse(value))


def parse_cycles(value: object) -> int:
    """Return a number of cycles, ``25`` or ``25 clk``."""
    return int(CYCLES.parse(value))


def format_hertz(value: float) -> str:
    """Return hertz as text, such as ``1.41 GHz``."""
    return FREQUENCY.format(value)


def format_bytes(value: int) -> str:
    """Return bytes as text, such as ``40 MiB``."""
    return STORAGE.format(value)


def format_bytes_per_cycle(value: float) -> str:
    """Return bytes per cycle as text, such as ``128 B/clk``."""
    return BYTES_PER_CYCLE.format(value)


def format_bytes_per_second(value: float) -> str:
    """Return bytes per second as text, such as ``1555 GB/s``."""
    return BYTES_PER_SECOND.format(value)


def format_seconds(value: float) -> str:
    """Return seconds as text, such as ``3.5 us``."""
    return TIME.format(value)


def format_cycles(value: int) -> str:
    """Return cycles as text, such as ``25 clk``."""
    return CYCLES.format(value)


def _field(
    quantity: Quantity, parse: Callable[[object], float]
) -> tuple[BeforeValidator, PlainSerializer, WithJsonSchema]:
    """Return what makes a number type a quantity: read with its unit, written with it, described with it."""
    return (
        BeforeValidator(parse),
        PlainSerializer(quantity.format, return_type=str, when_used="json"),
        WithJsonSchema(quantity.json_schema()),
    )


Hertz = Annotated[float, *_field(FREQUENCY, parse_hertz)]
"""A frequency in hertz, written such as ``1.41 GHz``."""
Bytes = Annotated[int, *_field(STORAGE, parse_bytes)]
"""An amount of bytes, written such as ``40 MiB``."""
BytesPerCycle = Annotated[float, *_field(BYTES_PER_CYCLE, parse_bytes_per_cycle)]
"""A bandwidth in bytes per clock cycle, written such as ``128 B/clk``."""
BytesPerSecond = Annotated[float, *_field(BYTES_PER_SECOND, parse_bytes_per_second)]
"""A bandwidth in bytes per second, written such as ``1555 GB/s``."""
Seconds = Annotated[float, *_field(TIME, parse_seconds)]
"""A time in seconds, written such as ``3.5 us``."""
Cycles = Annotated[int, *_field(CYCLES, parse_cycles)]
"""A number of clock cycles, written ``25`` or ``25 clk``."""
