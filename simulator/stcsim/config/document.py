"""Raw configuration data that knows where each of its values was written.

Stands between the YAML loader, which makes documents, and validation, which
reads them; overrides and the files that a study refers to are put into a
document with their own places.  Knows neither YAML nor models.

A path names a value: a tuple of keys and list indices in code, and in text the
same joined by dots, a key that holds a dot in double quotes:
``tensor_core.instructions."mma.sp".interval_cycles``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str | int, ...]
"""Keys and list indices from the root of a document to a value."""

_PLAIN = re.compile(r'[^."\s]+')
_SEGMENT = re.compile(r'"([^"]*)"|([^."\s]+)')


def format_path(path: Sequence[str | int]) -> str:
    """Return `path` as dotted text.

    Examples
    --------
    >>> format_path(("layers", 0, "a.b"))
    'layers.0."a.b"'
    """
    texts = [str(item) for item in path]
    return ".".join(text if _PLAIN.fullmatch(text) else f'"{text}"' for text in texts)


def parse_path(text: str) -> tuple[str, ...] | None:
    """Return the segments of a dotted path, or None if `text` is not one.

    A segment is text even where it stands for a list index: only the data tells.
    """
    segments: list[str] = []
    position = 0
    while match := _SEGMENT.match(text, position):
        segments.append(match[2] if match[1] is None else match[1])
        position = match.end()
        if position == len(text):
            return tuple(segments)
        if text[position] != ".":
            return None
        position += 1
    return None


@dataclass(frozen=True)
class Place:
    """Where a value was written: a file (or a command-line option) and a line in it."""

    file: str | None
    line: int | None = None


@dataclass(frozen=True)
class Document:
    """Raw data and the place of every value in it.

    Parameters
    ----------
    data : object
        Mappings, lists and scalars, as read.  Not to be changed in place.
    file : str or None
        The file that it was read from, as the user named it.
    places : mapping of Path to Place
        Place of each value; a value that has none has its parent's.
    prefix : Path
        Where this document stands in the one that it was taken from.
    """

    data: Any
    file: str | None = None
    places: Mapping[Path, Place] = field(default_factory=dict)
    prefix: Path = ()

    def place_of(self, path: Path) -> Place:
        """Return where the value at `path` was written, or where its nearest known parent was."""
        for length in range(len(path), -1, -1):
            place = self.places.get(path[:length])
            if place is not None:
                return place
        return Place(self.file)

    def line_of(self, path: Path) -> int | None:
        """Return the line of the value at `path`, 1-based; for a value that is absent, its parent's line."""
        return self.place_of(path).line

    def get(self, path: Path) -> Any:
        """Return the value at `path`.

        Raises
        ------
        KeyError
            If there is none.
        """
        value = self.data
        for item in path:
            inside_mapping = isinstance(value, dict) and item in value
            inside_list = isinstance(value, list) and isinstance(item, int) and 0 <= item < len(value)
            if not (inside_mapping or inside_list):
                raise KeyError(path)
            value = value[item]
        return value

    def subtree(self, *path: str | int) -> Document:
        """Return the part at `path` as a document whose messages still show the whole path.

        Raises
        ------
        KeyError
            If there is no such part.
        """
        n = len(path)
        places = {where[n:]: place for where, place in self.places.items() if where[:n] == path}
        places.setdefault((), self.place_of(path))
        return Document(self.get(path), self.file, places, self.prefix + path)

    def replaced(self, path: Path, part: Document) -> Document:
        """Return a copy in which `part`, with its places, stands at `path`.

        Parameters
        ----------
        path : Path
            An existing value, or a key that its parent mapping lacks.
        part : Document
            What shall stand there.

        Raises
        ------
        KeyError
            If the parent of `path` does not exist.
        """
        n = len(path)
        places = {where: place for where, place in self.places.items() if where[:n] != path}
        places |= {path + where: place for where, place in part.places.items()}
        places[path] = part.place_of(())
        return Document(_with(self.data, path, part.data), self.file, places, self.prefix)


def _with(data: Any, path: Path, value: Any) -> Any:
    """Return `data` with `value` at `path`, copying only the containers on the way."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(data, dict) and (head in data or not rest):
        return {**data, head: _with(data.get(head), rest, value)}
    if isinstance(data, list) and isinstance(head, int) and 0 <= head < len(data):
        return [*data[:head], _with(data[head], rest, value), *data[head + 1 :]]
    raise KeyError(path)
