"""Files that build on another one: ``base: NAME`` and what differs.

Stands between the loader and validation, as overrides do: the base's values keep their own places, so that messages
and assumptions name the file that a value stands in.  Knows neither models nor simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stcsim.config.document import Document, Path
from stcsim.errors import ConfigError, Problem, must

KEY = "base"
"""The key that names the base."""


def with_base(document: Document, find: Callable[[str, Problem], Document]) -> Document:
    """Return a document with everything of its base that it does not say itself.

    Parameters
    ----------
    document : Document
        Mappings are joined key by key; lists and scalars stand for themselves.
    find : callable
        ``find(name, place)`` returns the base's document, its own base resolved.

    Raises
    ------
    ConfigError
        If the base is not a name, or there is none of that name.
    """
    if not isinstance(document.data, dict) or KEY not in document.data:
        return document
    name, where = document.data[KEY], document.place_of((KEY,))
    place = Problem("", where.file, where.line, KEY)
    if not isinstance(name, str):
        raise ConfigError(replace(place, message=must("must be the name of a file to build on", name)))
    own = {key: value for key, value in document.data.items() if key != KEY}
    return joined(find(name, place), replace(document, data=own))


def joined(base: Document, top: Document) -> Document:
    """Return `base` with everything that `top` says put over it, as a document of `top`'s file."""
    return replace(_joined(base, top, ()), file=top.file)


def _joined(base: Document, top: Document, path: Path) -> Document:
    given = top.get(path)
    for key, value in given.items():
        try:
            under = base.get((*path, key))
        except KeyError:
            under = None
        if isinstance(value, dict) and isinstance(under, dict):
            base = _joined(base, top, (*path, key))
        else:
            base = base.replaced((*path, key), top.subtree(*path, key))
    return base
