"""Dual-side sparse tensor cores: outer products of condensed columns and rows (DSTC).

Source: Wang et al., "Dual-side Sparse Tensor Core", ISCA 2021 (arXiv
2105.09564), as published reading notes give it; the accumulator's size is not
published and stands in the machine files as ASSUMED.
"""

from __future__ import annotations

from typing import cast

from pydantic import Field

from stcsim.config.machine import Machine, Positive, Section
from stcsim.machine.datapaths.datapath import Datapath


class OuterShape(Section):
    """Shape of the outer product that one instruction computes: the quanta of zero skipping."""

    m_inst: Positive = Field(description="Elements of A's condensed column that one instruction takes.")
    n_inst: Positive = Field(description="Elements of B's condensed row that one instruction takes.")


class Accumulator(Section):
    """The buffer that products are gathered from, added in and scattered to."""

    tiles: Positive = Field(
        description="Warp tiles of sums that one sub-core holds; bounds the resident warps."
    )


class OuterProductOptions(Section):
    """Keys of ``tensor_core`` that only this datapath has."""

    outer_product: OuterShape
    accumulator: Accumulator


class OuterProduct(Datapath):
    """Each step multiplies a condensed column of A by a condensed row of B."""

    name = "outer_product"
    summary = "DSTC: outer products of condensed columns and rows, zeros of both operands skipped"
    families = frozenset({"outer_product"})
    formats_a = frozenset({"bitmap", "dense"})
    formats_b = frozenset({"bitmap", "dense"})
    options = OuterProductOptions

    @classmethod
    def accumulator_tiles(cls, machine: Machine) -> int | None:
        """Return the warp tiles of the accumulator buffer of one sub-core."""
        return cast("OuterProductOptions", machine.tensor_core).accumulator.tiles
