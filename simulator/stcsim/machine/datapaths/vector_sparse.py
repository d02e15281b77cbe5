"""Vector-wise sparse tensor cores: A stored as values and offsets, B gathered from an operand buffer.

Source: Zhu et al., MICRO 2019, as isa/vector_wise.yaml says.  ASSUMED: the operand buffer holds the 16 rows of B that
a set needs and is read at random without conflicts, so a step takes what a dense one takes; filling it takes the
register reads of the instruction and no cycles of its own.
"""

from __future__ import annotations

from stcsim.machine.datapaths.datapath import Datapath


class VectorSparse(Datapath):
    """A quarter of A's K is stored; offsets select the rows of B; cycles do not depend on values."""

    name = "vector_sparse"
    summary = "gathering HMMA.884: A keeps 4 of 16 along K with offsets, B dense; zeros of B do not help"
    families = frozenset({"vector_sparse"})
    formats_a = frozenset({"vector_wise"})
    formats_b = frozenset({"dense"})
