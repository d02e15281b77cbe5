"""Validation: a raw document against a model, every problem at once and in one form.

Stands behind the loader and the overrides, before everything else: what comes
out is a finished, frozen instance.  pydantic does the checking, strictly (a
text is never taken for a number, a number never for a boolean); what it finds
is told in our words, with the file and line of the value.

Knows nothing of simulation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from stcsim.config.document import Document, Path, format_path, parse_path
from stcsim.config.sentence import OUT_OF_BOUNDS, Sentence, either, one_of, sentence, unknown_key
from stcsim.config.shape import Schema, Shape
from stcsim.errors import ConfigError, Problem, nearest

T = TypeVar("T")

_LARGEST = 2**63
_EXACT = 2**53


class FieldError(ValueError):
    """What a validator of a model raises to speak of a value below it, or of several.

    Parameters
    ----------
    problems : Problem or sequence of Problem
        Their paths are relative to the model that validates.

    Examples
    --------
    >>> raise FieldError(Problem("must be a multiple of inst_tile.m (8), not 20", path="warp_tile.m"))
    Traceback (most recent call last):
    ...
    stcsim.config.validation.FieldError: warp_tile.m: must be a multiple of inst_tile.m (8), not 20
    """

    def __init__(self, problems: Problem | Sequence[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("; ".join(str(problem) for problem in self.problems))


def validate(model: type[T], source: Document | object, *, context: object = None) -> T:
    """Return an instance of `model` made from raw data.

    Parameters
    ----------
    model : type
        A pydantic model (frozen, ``extra="forbid"``), or any type that pydantic validates.
    source : Document or object
        The document, a part of one (`Document.subtree`), or bare data.
    context : object, optional
        Handed to the model's validators as ``info.context``.

    Returns
    -------
    instance : model

    Raises
    ------
    ConfigError
        With every problem, in the order of the file's lines.

    Notes
    -----
    A whole number may be spelled as a float (``1e9``); infinities, NaN and whole numbers of 64 bits
    and more are refused everywhere.
    """
    document = source if isinstance(source, Document) else Document(source)
    found: list[_Found] = []
    text = json.dumps(_plain(document.data, (), found))
    instance: T | None = None
    try:
        instance = TypeAdapter(model).validate_json(text, strict=True, context=context)
    except ValidationError as error:
        located = _Locator(model, document.data)
        errors = [located.locate(detail) for detail in error.errors(include_url=False)]
        found = [*_settle(_of_the_data(errors), 0), *found]
    if instance is None or found:
        raise ConfigError(_problems(found, document))
    return instance


@dataclass(frozen=True)
class _Found:
    """A sentence and the path of the value it is about.

    ``missing`` marks a key that is absent, ``meant`` is the known key that an unknown one resembles.
    """

    path: Path
    sentence: Sentence
    missing: bool = False
    meant: str | None = None


@dataclass(frozen=True)
class _Error:
    """One error of pydantic's at its path in the data.

    ``unions`` lists the unions passed on the way: how long the path was there, and the member taken.
    """

    path: Path
    kind: str
    found: tuple[_Found, ...]
    unions: tuple[tuple[int, str], ...]


class _Locator:
    """Follows the locations of pydantic's errors through a model and the data at once."""

    def __init__(self, model: Any, data: Any) -> None:
        self._shape = Shape(model)
        self._data = data

    def locate(self, detail: Any) -> _Error:
        """Return an error with its path in the data and its sentence."""
        path: Path = ()
        unions: list[tuple[int, str]] = []
        schema: Schema | None = self._shape.root
        parent: Schema | None = None
        location = list(detail["loc"])
        is_key = bool(location) and location[-1] == "[key]"
        if is_key:
            location.pop()
        for item in location:
            if schema is not None and schema["type"] in ("union", "tagged-union"):
                if schema["type"] == "union":
                    unions.append((len(path), str(item)))
                schema = self._shape.member(schema, str(item))
                continue
            key = self._key(path, item)
            parent, schema = schema, None if schema is None else self._shape.child(schema, item)
            path = (*path, key)
        found = self._found(detail, path, schema, parent, is_key=is_key)
        return _Error(path, detail["type"], found, tuple(unions))

    def _found(
        self, detail: Any, path: Path, schema: Schema | None, parent: Schema | None, *, is_key: bool
    ) -> tuple[_Found, ...]:
        kind, context = detail["type"], detail.get("ctx", {})
        value = path[-1] if is_key else _at(self._data, path, detail["input"])
        choices = [] if schema is None else self._shape.literals(schema)
        if kind in ("extra_forbidden", "unexpected_keyword_argument"):
            known = [] if parent is None else list(self._shape.fields(parent))
            return (_Found(path, unknown_key(path[-1], known), meant=nearest(path[-1], known)),)
        if is_key and parent is not None:
            keys = [str(choice) for choice in self._shape.literals(self._shape.bare(parent["keys_schema"]))]
            if keys:
                return (_Found(path, unknown_key(value, keys)),)
        if kind in ("union_tag_invalid", "union_tag_not_found") and schema is not None:
            return (self._tag(kind, path, schema, value),)
        error = context.get("error")
        if isinstance(error, FieldError):
            return tuple(
                _Found(self._below(path, problem.path), Sentence(problem.message, whole=True))
                for problem in error.problems
            )
        return (_Found(path, sentence(kind, context, value, choices), missing=kind == "missing"),)

    def _tag(self, kind: str, path: Path, schema: Schema, value: Any) -> _Found:
        """Return what to say of a discriminated union whose deciding key is absent or unknown."""
        tags = list(self._shape.choices(schema))
        name = schema["discriminator"]
        where = (*path, name) if isinstance(name, str) else path
        if kind == "union_tag_not_found":
            return _Found(where, Sentence(f"must be given (one of {', '.join(sorted(tags))})", whole=True))
        return _Found(where, one_of(tags, _at(self._data, where, value)))

    def _key(self, path: Path, item: str | int) -> str | int:
        """Return a location's item as it stands in the data, where keys may be whole numbers."""
        parent = _at(self._data, path, None)
        if isinstance(parent, dict) and item not in parent:
            return next((key for key in parent if str(key) == str(item)), item)
        return item

    def _below(self, path: Path, relative: str | None) -> Path:
        for segment in parse_path(relative or "") or ():
            inside = isinstance(_at(self._data, path, None), list)
            path = (*path, int(segment) if inside and segment.isdecimal() else self._key(path, segment))
        return path


def _of_the_data(errors: Sequence[_Error]) -> list[_Error]:
    """Leave out that a list is too short where pydantic counts only the items that are valid."""
    return [
        error
        for error in errors
        if error.kind != "too_short"
        or not any(len(other.path) > len(error.path) and _below(other, error) for other in errors)
    ]


def _below(error: _Error, other: _Error) -> bool:
    """Tell whether an error is inside the value that another one is about."""
    return error.path[: len(other.path)] == other.path


def _settle(errors: Sequence[_Error], depth: int) -> list[_Found]:
    """Reduce the errors of each union to those of the member that was meant, or to one sentence.

    Parameters
    ----------
    errors : sequence of _Error
        Of one place, or of one member of a union.
    depth : int
        Unions already settled for these errors.
    """
    found: list[_Found] = []
    groups: dict[Path, dict[str, list[_Error]]] = {}
    for error in errors:
        if len(error.unions) <= depth:
            found += error.found
            continue
        length, member = error.unions[depth]
        groups.setdefault(error.path[:length], {}).setdefault(member, []).append(error)
    for path, members in groups.items():
        inside = [group for group in members.values() if any(_is_inside(error, path) for error in group)]
        if inside:
            found += _settle(min(inside, key=_strangeness), depth + 1)
        else:
            parts = [one for group in members.values() for one in _settle(group, depth + 1)]
            found.append(_Found(path, either(part.sentence for part in parts)))
    return found


def _is_inside(error: _Error, path: Path) -> bool:
    """Tell whether the data is of the member's kind, and something in it is wrong."""
    return len(error.path) > len(path) or error.kind in OUT_OF_BOUNDS or error.found[0].sentence.whole


def _strangeness(errors: Sequence[_Error]) -> tuple[int, int]:
    """Return how far the data is from a member: first its unknown keys count, then all errors."""
    return sum(error.kind == "extra_forbidden" for error in errors), len(errors)


def _plain(data: Any, path: Path, found: list[_Found]) -> Any:
    """Return raw data as JSON can carry it, and note the numbers that no model takes."""
    if isinstance(data, dict):
        return {str(key): _plain(value, (*path, key), found) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value, (*path, i), found) for i, value in enumerate(data)]
    if isinstance(data, float) and abs(data) <= _EXACT and data.is_integer():
        return int(data)
    if isinstance(data, float) and not abs(data) < float("inf"):
        found.append(_Found(path, Sentence("must be a finite number", data)))
        return 0
    if isinstance(data, int) and abs(data) >= _LARGEST:
        found.append(_Found(path, Sentence("must be less than 2**63 in magnitude", data)))
        return 0
    return data


def _at(data: Any, path: Path, default: Any) -> Any:
    """Return the value at `path`, or `default` where there is none."""
    try:
        return Document(data).get(path)
    except KeyError:
        return default


def _problems(found: Sequence[_Found], document: Document) -> list[Problem]:
    """Give every sentence its place, in the order of lines; drop a missing key that a typo explains."""
    explained = {(one.path[:-1], one.meant) for one in found if one.meant is not None}
    problems: dict[Problem, None] = {}
    for one in found:
        if one.missing and (one.path[:-1], one.path[-1]) in explained:
            continue
        place = document.place_of(one.path)
        path = format_path(document.prefix + one.path) or None
        problems[Problem(str(one.sentence), place.file, place.line, path)] = None
    files = list(dict.fromkeys(problem.file for problem in problems))
    return sorted(problems, key=lambda problem: (files.index(problem.file), problem.line or 0))
