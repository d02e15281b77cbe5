"""What an error of pydantic's says in our words: what must hold, and what was probably meant.

Beside validation, which adds file, line and path.  Knows the kinds of errors
and nothing of documents.  No word of pydantic's reaches a user: a kind that
is not known here gets a sentence of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stcsim.config.loader import resolve
from stcsim.errors import nearest, unknown
from stcsim.units import QuantityError

_MAPPING = "must be a mapping (key: value)"
_WHAT = {
    "must be a whole number": "int_type int_parsing int_parsing_size int_from_float",
    "must be a number": "float_type float_parsing",
    "must be a finite number": "finite_number",
    "must be true or false": "bool_type bool_parsing",
    "must be a text": "string_type string_unicode string_sub_type",
    "must be a text in ASCII": "string_not_ascii",
    _MAPPING: "model_type model_attributes_type dataclass_type dataclass_exact_type dict_type mapping_type "
    "frozen_dict_type ordered_dict_type counter_type named_tuple_type arguments_type",
    "must be a list": "list_type tuple_type set_type frozen_set_type deque_type iterable_type",
    "must be null": "none_required",
    "must be given": "missing missing_argument missing_keyword_only_argument",
}
_WHAT_OF = {kind: what for what, kinds in _WHAT.items() for kind in kinds.split()}
_BOUNDS = {
    "greater_than": ("must be greater than {}", "gt"),
    "greater_than_equal": ("must be at least {}", "ge"),
    "less_than": ("must be less than {}", "lt"),
    "less_than_equal": ("must be at most {}", "le"),
    "multiple_of": ("must be a multiple of {}", "multiple_of"),
    "string_pattern_mismatch": ("must match the pattern {}", "pattern"),
}
_SIZES = {
    "too_short": ("at least", "min_length", "item"),
    "too_long": ("at most", "max_length", "item"),
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
}
OUT_OF_BOUNDS = frozenset({*_BOUNDS, *_SIZES, "finite_number"})
"""Kinds of errors of a value that is of the right type."""
_NOUNS = {
    "date": "a date",
    "datetime": "a date and time",
    "time_delta": "a duration",
    "url": "a URL",
    "uuid": "a UUID",
}
_NOUNS |= {
    "decimal": "a decimal number",
    "fraction": "a fraction",
    "complex": "a complex number",
    "time": "a time",
}
_BOOLEANS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}


@dataclass(frozen=True)
class Sentence:
    """What must hold of a value.

    Parameters
    ----------
    what : str
        Such as ``"must be a whole number"``.
    found : object
        What was found instead, shown after ``not``.
    near : str, optional
        What was probably meant.
    whole : bool
        Whether `what` is the whole message, so that nothing is added to it.
    """

    what: str
    found: object = None
    near: str | None = None
    whole: bool = False

    def __str__(self) -> str:
        if self.whole:
            return self.what
        return f"{self.what}, not {shown(self.found)}" + (
            f" (did you mean {self.near}?)" if self.near else ""
        )


def sentence(kind: str, context: Mapping[str, Any], value: object, choices: Iterable[object]) -> Sentence:
    """Say what must hold where pydantic reports an error.

    Parameters
    ----------
    kind : str
        The error's type, such as ``"int_type"``.
    context : mapping
        Its context.
    value : object
        What the user wrote.
    choices : iterable of object
        What a literal or an enumeration accepts here.

    Returns
    -------
    sentence : Sentence
    """
    if kind in ("value_error", "assertion_error"):
        error = context["error"]
        if isinstance(error, QuantityError):
            return Sentence(error.what, value, error.near)
        return Sentence(str(error), whole=True)
    if kind in ("literal_error", "enum"):
        return one_of(choices, value)
    if kind in _BOUNDS:
        what, name = _BOUNDS[kind]
        return Sentence(what.format(shown(context[name])), value)
    if kind in _SIZES:
        which, name, unit = _SIZES[kind]
        limit = context[name]
        what = f"must have {which} {limit} {unit}{'' if limit == 1 else 's'}"
        return Sentence(what, value if unit == "character" else context.get("actual_length"))
    what = _WHAT_OF.get(kind, "")
    if what == "must be given":
        return Sentence(what, whole=True)
    if what:
        return Sentence(what, value, _meant(what, value))
    noun = next(
        (noun for start, noun in _NOUNS.items() if kind.startswith(f"{start}_")), "a value of another kind"
    )
    return Sentence(f"must be {noun}", value)


def one_of(choices: Iterable[object], value: object) -> Sentence:
    """Say that a value must be one of `choices`, which are listed sorted."""
    known = sorted(shown(choice) for choice in choices)
    what = f"must be {known[0]}" if len(known) == 1 else f"must be one of {', '.join(known)}"
    return Sentence(what, value, nearest(shown(value), known))


def unknown_key(key: object, known: Iterable[str]) -> Sentence:
    """Say that a mapping does not take `key`, and which keys it takes."""
    names = list(known)
    return Sentence(
        unknown("key", key, names) if names else "must not be given: no key is known here", whole=True
    )


def either(sentences: Iterable[Sentence]) -> Sentence:
    """Join what the members of a union ask for into one sentence: ``must be auto or a whole number``."""
    parts = sorted(sentences, key=lambda part: len(part.what))
    first = parts[0]
    whats = list(dict.fromkeys(part.what for part in parts))
    if len(whats) == 1:
        return first
    rest = [what.removeprefix("must be ") for what in whats[1:]]
    near = next((part.near for part in parts if part.near), None)
    return Sentence(
        " or ".join([whats[0], *rest]), first.found, near, whole=any(part.whole for part in parts)
    )


def shown(value: object) -> str:
    """Return a value as a user would have written it in YAML, shortened.

    Examples
    --------
    >>> shown(None), shown(True), shown("12"), shown([1, "a"])
    ('null', 'true', "'12'", '[1, a]')
    """
    text = _flow(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _flow(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in list(value.items())[:20]) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(item) for item in value[:20]) + "]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, str):
        plain = value.isprintable() and value == value.strip() and isinstance(resolve(value), str)
        return value if plain else repr(value)
    return str(value)


def _meant(what: str, value: object) -> str | None:
    """Return what a value of the wrong type was probably meant to be."""
    if what == "must be a text" and isinstance(value, bool | int | float):
        return f"'{shown(value)}'"
    if what == "must be true or false" and isinstance(value, str):
        return _BOOLEANS.get(value.lower()) or nearest(value.lower(), ["true", "false"])
    return None
