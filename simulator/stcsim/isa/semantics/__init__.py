"""What each instruction computes: one function per family, found by the name in the table row.

Values only.  A function reads and writes a `WarpState`, and is told which lanes a guard left
active; that a unit is busy, or when a result arrives, is not known here.  New semantics are one
function under `semantic("name")`; a row of a table then names it.
"""

from __future__ import annotations

from stcsim.isa.semantics import control, integer, matrix, memory, octet, outer_product
from stcsim.isa.semantics.registry import SEMANTICS, semantic

__all__ = ["SEMANTICS", "control", "integer", "matrix", "memory", "octet", "outer_product", "semantic"]
