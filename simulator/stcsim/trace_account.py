"""What a trace holds: multiply-accumulates, densities and exact effectual work of each layer.

Stands above the packages.  Reads one layer at a time, as bits, and simulates nothing; "effectual" is
`macs_useful` of results: both operands non-zero.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stcsim.config.trace import LeftOut, TraceLayer
from stcsim.config.workload import Workload
from stcsim.problem import assemble
from stcsim.workload.operand import Operand
from stcsim.workload.operand_shape import sizes_text
from stcsim.workload.trace import Trace


@dataclass(frozen=True)
class LayerAccount:
    """One layer of a trace.

    Parameters
    ----------
    name, op, sizes : str
    macs_total, macs_useful : int
        Exact.
    density_a, density_b : float
        Shares of the stored elements that are non-zero; padding is not stored.
    role_a, role_b : str
    note : str
    """

    name: str
    op: str
    sizes: str
    macs_total: int
    macs_useful: int
    density_a: float
    density_b: float
    role_a: str
    role_b: str
    note: str


@dataclass(frozen=True)
class TraceAccount:
    """A trace, layer by layer.

    Parameters
    ----------
    path, model : str
    layers : tuple of LayerAccount
    left_out : tuple of LeftOut
    provenance : dict
    file_bytes, bitmap_bytes : int
        Length of the file, and of its bitmaps unpacked.
    """

    path: str
    model: str
    layers: tuple[LayerAccount, ...]
    left_out: tuple[LeftOut, ...]
    provenance: dict[str, Any]
    file_bytes: int
    bitmap_bytes: int

    @property
    def macs_total(self) -> int:
        """Multiply-accumulates of all layers."""
        return sum(layer.macs_total for layer in self.layers)

    @property
    def macs_useful(self) -> int:
        """Effectual multiply-accumulates of all layers."""
        return sum(layer.macs_useful for layer in self.layers)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        data = asdict(self)
        data["left_out"] = [one.model_dump() for one in self.left_out]
        return data | {"macs_total": self.macs_total, "macs_useful": self.macs_useful}


def account(path: str | os.PathLike[str]) -> TraceAccount:
    """Look through a trace.

    Raises
    ------
    WorkloadError
        If it is not a trace, or an operand is damaged.
    """
    trace = Trace(path)
    layers = []
    bitmap_bytes = 0
    for layer in trace.layers:
        found, elements = _layer(trace, layer)
        layers.append(found)
        bitmap_bytes += -(-elements // 8)
    return TraceAccount(
        trace.path,
        trace.meta.model,
        tuple(layers),
        trace.meta.left_out,
        trace.meta.provenance,
        Path(trace.path).stat().st_size,
        bitmap_bytes,
    )


def _layer(trace: Trace, layer: TraceLayer) -> tuple[LayerAccount, int]:
    """Return a layer's account and the number of its operands' elements."""
    a = Operand(trace.pattern(layer, "a"), layer.a, 0, trace.path)
    b = Operand(trace.pattern(layer, "b"), layer.b, 1, trace.path)
    problem = assemble(Workload.model_construct(name=layer.name, gemm=layer.gemm, conv2d=layer.conv2d), a, b)
    found = LayerAccount(
        name=layer.name,
        op=layer.op,
        sizes=sizes_text(layer.sizes),
        macs_total=problem.macs_total,
        macs_useful=problem.macs_useful,
        density_a=a.pattern.density,
        density_b=b.pattern.density,
        role_a=layer.a,
        role_b=layer.b,
        note=layer.note,
    )
    return found, a.pattern.size + b.pattern.size
