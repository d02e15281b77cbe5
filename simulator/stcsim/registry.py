"""Registries of plug-ins: formats, lowerings and datapaths.

Base layer.  Built-ins are listed by name and import path in their package's
``__init__`` and imported on first use, so that asking for one does not import
numba for all; third parties announce theirs as entry points, which are looked
at only when a name is looked up or the names are listed.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from stcsim.errors import ConfigError, unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """Names and the objects they stand for, loaded on first use.

    Parameters
    ----------
    kind : str
        What is registered, singular, for messages ("format").
    group : str
        Entry-point group of third-party plug-ins, such as ``stcsim.formats``.
    builtins : dict of str to str
        ``{name: "package.module:Attribute"}`` of the built-in plug-ins.
    """

    def __init__(self, kind: str, group: str, builtins: dict[str, str]) -> None:
        self.kind = kind
        self.group = group
        self._paths = dict(builtins)
        self._loaded: dict[str, T] = {}

    def register(self, name: str, plugin: T) -> T:
        """Add `plugin` under `name`; a second registration of a name is a programming error."""
        if name in self._loaded or name in self._paths:
            message = f"{self.kind} {name!r} is registered already"
            raise ValueError(message)
        self._loaded[name] = plugin
        return plugin

    def names(self) -> list[str]:
        """Return every known name, sorted."""
        return sorted(
            {*self._paths, *self._loaded, *(entry.name for entry in entry_points(group=self.group))}
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __getitem__(self, name: str) -> T:
        """Return the plug-in called `name`.

        Raises
        ------
        ConfigError
            If no plug-in has that name; the message lists those that exist.
        """
        if name not in self._loaded:
            path = self._paths.get(name)
            if path is not None:
                module, _, attribute = path.partition(":")
                self._loaded[name] = getattr(importlib.import_module(module), attribute)
            else:
                for entry in entry_points(group=self.group, name=name):
                    self._loaded[name] = entry.load()
        if name not in self._loaded:
            raise ConfigError(unknown(self.kind, name, self.names()))
        return self._loaded[name]
