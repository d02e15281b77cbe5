"""Plug-ins: the kinds of tensor core.  One file and one line here each.

A datapath says which tensor instructions it executes, which operand formats it
takes, and what options a machine file may give it.  Third parties register
theirs under the entry-point group ``stcsim.datapaths``.
"""

from __future__ import annotations

from stcsim.machine.datapaths.datapath import Datapath
from stcsim.registry import Registry

DATAPATHS: Registry[type[Datapath]] = Registry(
    "datapath",
    "stcsim.datapaths",
    {
        "inner_product": "stcsim.machine.datapaths.inner_product:InnerProduct",
        "nm_sparse": "stcsim.machine.datapaths.nm_sparse:NmSparse",
        "vector_sparse": "stcsim.machine.datapaths.vector_sparse:VectorSparse",
        "outer_product": "stcsim.machine.datapaths.outer_product:OuterProduct",
    },
)
