"""Plug-ins that encode operands; no timing, no machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stcsim.registry import Registry

if TYPE_CHECKING:
    from stcsim.formats.format import Format

FORMATS: Registry[type[Format[Any]]] = Registry(
    "format",
    "stcsim.formats",
    {
        "bitmap": "stcsim.formats.bitmap:BitmapFormat",
        "dense": "stcsim.formats.dense:DenseFormat",
        "k_expanded": "stcsim.formats.k_expanded:KExpandedFormat",
        "nm": "stcsim.formats.nm:NmFormat",
        "vector_wise": "stcsim.formats.vector_wise:VectorWiseFormat",
    },
)
"""Every operand format by its name."""
