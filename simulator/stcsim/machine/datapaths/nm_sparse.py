"""2:4 tensor cores: A stored compressed along K with metadata, B dense (A100 mma.sp)."""

from __future__ import annotations

from stcsim.machine.datapaths.datapath import Datapath


class NmSparse(Datapath):
    """Half of A's K is stored; the metadata select the B elements; cycles do not depend on values."""

    name = "nm_sparse"
    summary = "mma.sp: A is 2:4 along K with metadata, B dense; zeros of B do not help"
    families = frozenset({"mma_sparse"})
    formats_a = frozenset({"nm", "k_expanded"})
    formats_b = frozenset({"dense"})
