"""What was understood of another tool's file: layers in the words of a study, and what to know about them.

Made by the importers (`stcsim.workload.import_scalesim` and its kin), written down by
`stcsim.importing`.  Knows no file format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stcsim.config.trace import LeftOut
from stcsim.config.workload import Conv2dShape, GemmShape, Role
from stcsim.workload.operand_shape import macs_total

DENSE: Mapping[str, Any] = {"pattern": {"generator": "dense"}}
"""The source of an operand without zeros."""


@dataclass(frozen=True)
class ImportedLayer:
    """One layer.

    Parameters
    ----------
    name : str
        As in the file; nothing follows from it.
    sizes : GemmShape or Conv2dShape
    a, b : mapping
        Where the operands' patterns come from, as a study says it: ``{"pattern": {...}}`` or ``{"file": ...}``.
    role_a, role_b : {"weight", "activation"}
    """

    name: str
    sizes: GemmShape | Conv2dShape
    a: Mapping[str, Any] = field(default_factory=lambda: DENSE)
    b: Mapping[str, Any] = field(default_factory=lambda: DENSE)
    role_a: Role = "activation"
    role_b: Role = "weight"

    @property
    def macs_total(self) -> int:
        """Multiply-accumulates of the dense layer, exact."""
        return macs_total(self.sizes)


@dataclass(frozen=True)
class Imported:
    """All layers of a file.

    Parameters
    ----------
    kind : str
        What the file is.
    layers : tuple of ImportedLayer
    notes : tuple of str
        What was assumed, left aside or could surprise, a sentence each.
    left_out : tuple of LeftOut
        Operators with multiply-accumulates that stcsim does not run.
    """

    kind: str
    layers: tuple[ImportedLayer, ...]
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def macs_total(self) -> int:
        """Multiply-accumulates of all layers, exact."""
        return sum(layer.macs_total for layer in self.layers)


def each_once(layers: Sequence[ImportedLayer]) -> tuple[tuple[ImportedLayer, ...], list[str]]:
    """Return the layers with a number behind a name that was there before, and a note for each such name."""
    taken: set[str] = set()
    notes = []
    unique = []
    for layer in layers:
        name, i = layer.name, 2
        while name in taken:
            name, i = f"{layer.name}#{i}", i + 1
        if name != layer.name:
            notes.append(f"a second {layer.name} is called {name}")
        taken.add(name)
        unique.append(replace(layer, name=name))
    return tuple(unique), notes
