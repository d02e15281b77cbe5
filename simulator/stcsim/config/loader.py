"""The strict YAML loader: the only reader of configuration files.

First step of every run: text in, `Document` out, which validation then holds
against a model.  Knows no model.  What it reads is the plain part of YAML:

* ``2:4``, ``on``, ``yes``, ``010``, ``1_000``, ``.inf``, ``2024-01-01`` are texts; only ``true`` and
  ``false`` are booleans; ``null``, ``~`` and an empty value are null;
* a whole number is decimal, or hexadecimal with 0x; ``1e9`` and ``.5`` are numbers, and finite;
* a key is a text or a whole number, and stands once in its mapping;
* anchors and aliases are fine, within bounds; merge keys (``<<``) and tags (``!!int``) are refused.

A text that stands where a number is needed is then refused by the model, so that ``010`` is
never taken for 8 or 10.
"""

from __future__ import annotations

import os
import re
from pathlib import Path as FilePath
from typing import Any

import yaml

from stcsim.config.document import Document, Path, Place, format_path
from stcsim.errors import ConfigError, Problem, must, nearest

MAX_VALUES = 100_000
"""Values of one document, aliases expanded; far above any study, far below what hurts."""
MAX_DEPTH = 50
"""Nesting of one document."""
MAX_DIGITS = 300
"""Digits of a whole number, about as far as a float reaches."""

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)")
_FLOAT = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_TAG = "tag:yaml.org,2002:"


class _Refused(Exception):
    """What is wrong with a text, and in which line (0-based, as PyYAML counts)."""

    def __init__(self, message: str, line: int, path: Path = ()) -> None:
        super().__init__(message)
        self.line = line + 1
        self.path = path


def resolve(text: str) -> str | int | float | bool | None:
    """Return what an unquoted YAML scalar means under our rules.

    Parameters
    ----------
    text : str
        The scalar as written.

    Returns
    -------
    value : str, int, float, bool or None
        A number too large for a float comes back as infinity, which the loader refuses.
    """
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if _INT.fullmatch(text):
        digits = text.lstrip("+-")
        if len(digits) > MAX_DIGITS:
            return float("inf")
        return int(text, 16 if digits.startswith("0x") else 10)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


class _Loader(yaml.SafeLoader):
    """PyYAML's scanner, parser and composer without its resolvers: every scalar is kept as written."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own class attribute)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line if event.start_mark else 0
        tag = getattr(event, "tag", None)
        if tag is not None:
            shown = "!!" + tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
            raise _Refused(must("must not have a YAML tag", shown), line)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            message = f"must be nested at most {MAX_DEPTH} levels deep"
            raise _Refused(message, line)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


class _Builder:
    """Turns the nodes of one text into data, and notes the line of every path."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._n_values = 0
        self.places: dict[Path, Place] = {}
        self._open: list[yaml.Node] = []

    def build(self, node: yaml.Node, path: Path, line: int) -> Any:
        """Return the data of `node`, which stands at `path`; `line` is that of its key."""
        self.places[path] = Place(self._file, line + 1)
        self._n_values += 1
        if self._n_values > MAX_VALUES:
            message = f"must hold at most {MAX_VALUES} values, those of expanded aliases included"
            raise _Refused(message, node.start_mark.line)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if any(node is parent for parent in self._open):
            message = "must not hold an alias of itself"
            raise _Refused(message, line, path)
        self._open.append(node)
        data: Any
        if isinstance(node, yaml.MappingNode):
            data = self._mapping(node, path)
        else:
            data = [self.build(item, (*path, i), item.start_mark.line) for i, item in enumerate(node.value)]
        self._open.pop()
        return data

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> str | int | float | bool | None:
        if node.style is not None:
            return str(node.value)
        value = resolve(node.value)
        if value in (float("inf"), float("-inf")):
            raise _Refused(
                must("must be a number that a float can hold", _short(node.value)), node.start_mark.line, path
            )
        return value

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str | int, Any]:
        data: dict[str | int, Any] = {}
        spelled: dict[str, str | int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line
            key = self._key(key_node, path)
            if str(key) in spelled:
                first = self.places[(*path, spelled[str(key)])].line
                message = f"must be given once, not again (first in line {first})"
                raise _Refused(message, line, (*path, key))
            spelled[str(key)] = key
            data[key] = self.build(value_node, (*path, key), line)
        return data

    def _key(self, node: yaml.Node, path: Path) -> str | int:
        line = node.start_mark.line
        if not isinstance(node, yaml.ScalarNode):
            shown = "a mapping" if isinstance(node, yaml.MappingNode) else "a list"
            raise _Refused(must("must have texts or whole numbers as keys", shown), line, path)
        if node.style is None and node.value == "<<":
            message = "must be written out: merge keys (<<) are not supported"
            raise _Refused(message, line, path)
        key = self._scalar(node, path)
        if isinstance(key, bool) or not isinstance(key, str | int):
            shown = node.value or "an empty one"
            raise _Refused(must("must have texts or whole numbers as keys", shown), line, path)
        return key


def parse(text: str, file: str) -> Document:
    """Read YAML text by the rules of this module.

    Parameters
    ----------
    text : str
        One YAML document, of any kind of value.
    file : str
        What messages call it.

    Returns
    -------
    document : Document
        An empty text is null.

    Raises
    ------
    ConfigError
        If the text is not YAML, or uses a part of YAML that is refused.
    """
    builder = _Builder(file)
    try:
        node = _Loader(text).get_single_node()
        data = None if node is None else builder.build(node, (), node.start_mark.line)
    except _Refused as refused:
        problem = Problem(str(refused), file, refused.line, format_path(refused.path) or None)
        raise ConfigError(problem) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = must("must hold printable text only", f"the character U+{error.character:04X}")
        raise ConfigError(Problem(message, file, line)) from None
    except yaml.MarkedYAMLError as error:
        raise ConfigError(Problem(_syntax_message(error), file, _line(error))) from None
    return Document(data, file, builder.places)


def load(path: str | os.PathLike[str]) -> Document:
    """Read a configuration file, whose top level is a mapping.

    Parameters
    ----------
    path : str or path-like
        The file; messages show it as given here.

    Returns
    -------
    document : Document

    Raises
    ------
    ConfigError
        If the file cannot be read, is not UTF-8, not YAML by our rules, empty or not a mapping.
    """
    file = os.fspath(path)
    document = parse(_read(file), file)
    if not isinstance(document.data, dict):
        kind = {list: "a list", type(None): "an empty file"}.get(type(document.data), "a single value")
        message = must("must hold a mapping (key: value) at its top level", kind)
        raise ConfigError(Problem(message, file, document.line_of(())))
    return document


def _read(file: str) -> str:
    """Return the text of a file, or raise the one error that says why not."""
    where = FilePath(file)
    try:
        raw = where.read_bytes()
    except FileNotFoundError:
        hint = nearest(where.name, [entry.name for entry in where.parent.glob("*")])
        message = "must be a file that exists" + (f" (did you mean {where.with_name(hint)}?)" if hint else "")
        raise ConfigError(Problem(message, file)) from None
    except IsADirectoryError:
        raise ConfigError(Problem(must("must be a file", "a directory"), file)) from None
    except (OSError, ValueError) as error:
        message = f"must be a file that can be read ({getattr(error, 'strerror', None) or error})"
        raise ConfigError(Problem(message, file)) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = must("must be UTF-8 text", f"the byte 0x{raw[error.start]:02x}")
        raise ConfigError(Problem(message, file, line)) from None


def _line(error: yaml.MarkedYAMLError) -> int | None:
    mark = error.problem_mark or error.context_mark
    return None if mark is None else int(mark.line) + 1


def _syntax_message(error: yaml.MarkedYAMLError) -> str:
    """Return the sentence for a syntax error of PyYAML's."""
    detail, context = str(error.problem), str(error.context)
    if "'\\t'" in detail:
        return "must have spaces here, not a tab"
    if context == "expected a single document in the stream":
        return "must hold one YAML document, not several"
    if context.startswith("found duplicate anchor"):
        return "must give each anchor once, not again"
    return f"must be valid YAML: {detail}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
