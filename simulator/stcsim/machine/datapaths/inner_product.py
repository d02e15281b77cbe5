"""Dense tensor cores: inner products along K, both operands dense (V100 HMMA.884, A100 mma.sync)."""

from __future__ import annotations

from stcsim.machine.datapaths.datapath import Datapath


class InnerProduct(Datapath):
    """Every instruction occupies the pipe for its interval; sums stand in registers."""

    name = "inner_product"
    summary = "dense mma: inner products along K, sums in registers"
    families = frozenset({"mma", "hmma884"})
    formats_a = frozenset({"dense"})
    formats_b = frozenset({"dense"})
