"""Overrides: ``--set machine.clock=1.2GHz`` put into the raw data, before validation.

Stands between the loader and validation, so that an override is held against
the model like anything in the file; a problem in it names the option in the
place of the file.  Knows nothing of simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from stcsim.config.document import Document, Path, Place, format_path, parse_path
from stcsim.config.loader import parse
from stcsim.config.sentence import shown, unknown_key
from stcsim.config.shape import Schema, Shape
from stcsim.errors import ConfigError, Problem, must, unknown


def apply_overrides(
    document: Document, overrides: Iterable[str], model: Any = None, *, prefix: str = ""
) -> Document:
    """Return the document with values replaced or added.

    Parameters
    ----------
    document : Document
        As read.
    overrides : iterable of str
        Each ``PATH=VALUE``: a dotted path, list indices as numbers, a key that holds a dot in double
        quotes; the value as in YAML (``1.2GHz``, ``[1, 2]``, ``{m: 8}``).  A later one wins.
    model : type, optional
        The model that the document will be held against.  With it, a path may pass through a
        section that the file leaves out, and a key that the model lacks is told at once.
    prefix : str
        What the user wrote before each path (``machine.``), for messages.

    Returns
    -------
    document : Document

    Raises
    ------
    ConfigError
        With every override that is malformed or whose path leads nowhere.
    """
    shape = None if model is None else Shape(model)
    problems: list[Problem] = []
    for text in overrides:
        try:
            document = _applied(document, text, shape, prefix)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return document


def _applied(document: Document, text: str, shape: Shape | None, prefix: str) -> Document:
    option = f"--set {prefix}{text}"
    name, equals, value_text = _split(text)
    segments = parse_path(name)
    if not equals or segments is None:
        message = "must be PATH=VALUE with a dotted path, such as machine.clock=1.2GHz"
        raise ConfigError(Problem(message, option))
    data = _value(value_text, option)
    path = _resolve(document.data, segments, shape, option)
    for length in range(1, len(path)):
        if _is_absent(document, path[:length]):
            document = document.replaced(path[:length], Document({}, option))
    return document.replaced(path, Document(data, option, {(): Place(option)}))


def _value(text: str, option: str) -> Any:
    """Return the value of an option, by the rules of YAML files; its errors show the option and no line."""
    try:
        return parse(text, option).data
    except ConfigError as error:
        raise ConfigError([replace(problem, line=None) for problem in error.problems]) from None


def _split(text: str) -> tuple[str, str, str]:
    """Split at the first ``=`` that does not stand in a quoted key."""
    quoted = False
    for i, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "=" and not quoted:
            return text[:i].strip(), "=", text[i + 1 :]
    return text, "", ""


def _resolve(data: Any, segments: tuple[str, ...], shape: Shape | None, option: str) -> Path:
    """Return the path that the segments name, or raise the problem of the first that names nothing."""
    path: Path = ()
    schema: Schema | None = None if shape is None else shape.root
    while segments:
        item: str | int
        if isinstance(data, list):
            item, segments = _index(data, segments[0], path, option), segments[1:]
            data = data[item]
        elif isinstance(data, dict) or data is None:
            data = data or {}
            item, segments = _key(data, segments)
            if item not in data:
                known = None if shape is None or schema is None else shape.known_keys(schema)
                _require_known(item, list(data), known, option, (*path, item), is_last=not segments)
            data = data.get(item)
        else:
            what = f"must be a mapping or a list to have {segments[0]} set in it"
            raise ConfigError(Problem(must(what, shown(data)), option, path=format_path(path) or None))
        if shape is not None and schema is not None:
            schema = shape.at(schema, item)
        path = (*path, item)
    return path


def _key(data: dict[str | int, Any], segments: tuple[str, ...]) -> tuple[str | int, tuple[str, ...]]:
    """Return the key that the first segments name, and the other segments.

    A key that the data has may hold dots (``instructions.OHMMA.8161.latency_cycles``) or be a whole number.
    """
    keys = {str(key): key for key in data}
    for n in range(1, len(segments) + 1):
        name = ".".join(segments[:n])
        if name in keys:
            return keys[name], segments[n:]
    return segments[0], segments[1:]


def _require_known(
    key: str | int, given: list[Any], known: set[str] | None, option: str, path: Path, *, is_last: bool
) -> None:
    """Refuse a key that the model lacks or, where any key may stand, a section that the data lacks."""
    if known is not None:
        message = None if key in known else str(unknown_key(key, known))
    else:
        message = None if is_last else unknown("section", key, [str(other) for other in given])
    if message is not None:
        raise ConfigError(Problem(message, option, path=format_path(path)))


def _index(data: list[Any], segment: str, path: Path, option: str) -> int:
    if segment.isdecimal() and int(segment) < len(data):
        return int(segment)
    what = f"must be an index from 0 to {len(data) - 1}" if data else "must not be set in an empty list"
    raise ConfigError(Problem(must(what, segment), option, path=format_path(path) or None))


def _is_absent(document: Document, path: Path) -> bool:
    """Tell whether there is no value, or null, at `path`."""
    try:
        return document.get(path) is None
    except KeyError:
        return True
