"""Plug-ins that turn a GEMM into per-warp programs.  One file and one line here each; no cycles.

Third parties register theirs under the entry-point group ``stcsim.lowerings``.
"""

from __future__ import annotations

from stcsim.lowering.lowering import Lowering
from stcsim.registry import Registry

LOWERINGS: Registry[type[Lowering]] = Registry(
    "lowering",
    "stcsim.lowerings",
    {
        "dense_inner": "stcsim.lowering.dense_inner:DenseInner",
        "k_expanded_inner": "stcsim.lowering.k_expanded_inner:KExpandedInner",
        "vector_wise_inner": "stcsim.lowering.vector_wise_inner:VectorWiseInner",
        "nm_inner": "stcsim.lowering.nm_inner:NmInner",
        "dense_outer": "stcsim.lowering.dense_outer:DenseOuter",
        "sparse_outer": "stcsim.lowering.sparse_outer:SparseOuter",
    },
)
