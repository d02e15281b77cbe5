"""Dual-side sparse tensor cores: outer products of condensed columns and rows (DSTC).

Source: Wang et al., "Dual-side Sparse Tensor Core", ISCA 2021 (arXiv
2105.09564), as published reading notes give it.  Nobody published the
accumulator buffer's size, banks and bandwidth, the front end's cost, or how
operands reach the registers: those are parameters, and ASSUMED where a machine
file gives them.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, cast

from pydantic import Field, model_validator

from stcsim.config.machine import Machine, NotNegative, Positive, Section
from stcsim.machine.datapaths.datapath import Datapath
from stcsim.units import BytesPerCycle

Mapping = Literal["row_column", "linear", "xor"]
_ONLY_BANKED = ("banks", "mapping", "accesses_per_cycle", "window")


class OuterShape(Section):
    """Shape of the outer product that one instruction computes: the quanta of zero skipping."""

    m_inst: Positive = Field(description="Elements of A's condensed column that one instruction takes.")
    n_inst: Positive = Field(description="Elements of B's condensed row that one instruction takes.")


class Accumulator(Section):
    """The buffer that sums are gathered from, added in and scattered to."""

    tiles: Positive = Field(
        description="Warp tiles of sums that one sub-core holds; bounds the resident warps."
    )
    model: Literal["unlimited", "words_per_cycle", "banked"] = Field(
        description="What limits its bandwidth: nothing, products per cycle, or banks."
    )
    words_per_cycle: Positive | None = Field(
        default=None, description="Products that it adds per cycle (model words_per_cycle)."
    )
    banks: Positive = Field(default=128, description="Banks, a power of two (model banked).")
    mapping: Mapping = Field(
        default="row_column",
        description="Bank of a sum (model banked). row_column: (row mod R, column mod C) with R x C banks, R the "
        "lower square power of two; linear: (row x n_warp + column) mod banks; xor: row_column with the row "
        "and the column each exclusive-ored with the other's higher bits.",
    )
    accesses_per_cycle: Positive = Field(
        default=1, description="Read-modify-writes that one bank serves per cycle (model banked)."
    )
    window: Positive = Field(
        default=1,
        description="Outer products that may be undrained at a time, retiring in order; 1: no operand collector "
        "(model banked).",
    )
    load_c_words_per_cycle: NotNegative = Field(
        default=0, description="Rate at which C is loaded before a warp tile; 0: sums start at zero."
    )
    drain_words_per_cycle: NotNegative = Field(
        description="Rate at which a finished warp tile leaves the buffer; 0: at once."
    )

    @model_validator(mode="after")
    def _keys_have_an_effect(self) -> Self:
        if (self.words_per_cycle is None) == (self.model == "words_per_cycle"):
            state = "be given" if self.words_per_cycle is None else "not be given"
            message = f"words_per_cycle must {state} with model {self.model}"
            raise ValueError(message)
        idle = [name for name in _ONLY_BANKED if name in self.model_fields_set]
        if self.model != "banked" and idle:
            message = f"{', '.join(idle)} must not be given unless model is banked: it would have no effect"
            raise ValueError(message)
        if self.banks & (self.banks - 1):
            message = f"banks must be a power of two, not {self.banks}"
            raise ValueError(message)
        return self


class FrontEnd(Section):
    """How outer products get to the tensor core: predicates, sequencing, issue slots."""

    cycles_per_step: Annotated[float, Field(ge=0, le=1000, multiple_of=0.001)] = Field(
        description="Cycles of the sequencer for each executed step beyond one for each outer product."
    )
    predicated_off_cycles: Annotated[float, Field(ge=0, le=1000, multiple_of=0.001)] = Field(
        default=0, description="Cycles of the sequencer for each outer product that its predicate turns off."
    )
    bohmma_cycles: Annotated[float, Field(ge=0, le=1000, multiple_of=0.001)] = Field(
        default=0, description="Cycles of the sequencer for the bitmap product of each executed step."
    )
    popc: Literal["per_spwmma", "per_step"] = Field(
        default="per_spwmma",
        description="Population counts: one warp-wide POPC for all bitmap words of a SpWMMA, or two a step.",
    )
    popc_lanes_per_cycle: Positive = Field(
        description="Lanes of POPC that a sub-core's integer pipe serves per cycle."
    )
    popc_latency_cycles: NotNegative = Field(description="From the last lane to the predicates.")
    issue: Literal["beside", "shared"] = Field(
        description="beside: loads and POPC issue beside the sequencer; shared: each takes a slot from outer products."
    )


class OperandFetch(Section):
    """How bitmaps, offsets and condensed values reach a sub-core's registers."""

    bandwidth: BytesPerCycle = Field(description="A sub-core's share of the shared-memory port.")
    latency_cycles: NotNegative = Field(description="From the last wavefront to the values in registers.")


class StageBarrier(Section):
    """The barrier at which the warps of a CTA meet once in each stage of shared memory."""

    base_cycles: NotNegative = Field(
        description="From the last arrival to the release, without the warps' part."
    )
    cycles_per_warp: NotNegative = Field(description="More of it for each warp of the CTA.")


class OuterProductOptions(Section):
    """Keys of ``tensor_core`` that only this datapath has."""

    outer_product: OuterShape
    accumulator: Accumulator
    front_end: FrontEnd
    operand_fetch: OperandFetch
    stage_barrier: StageBarrier | None = Field(
        default=None, description="Left out: warps run ahead of each other as far as they can."
    )


class OuterProduct(Datapath):
    """Each step multiplies a condensed column of A by a condensed row of B."""

    name = "outer_product"
    summary = "DSTC: outer products of condensed columns and rows, zeros of both operands skipped"
    families = frozenset({"outer_product"})
    formats_a = frozenset({"bitmap", "dense"})
    formats_b = frozenset({"bitmap", "dense"})
    options = OuterProductOptions

    @classmethod
    def of(cls, machine: Machine) -> OuterProductOptions:
        """Return the machine's options of this datapath."""
        return cast("OuterProductOptions", machine.tensor_core)

    @classmethod
    def accumulator_tiles(cls, machine: Machine) -> int | None:
        """Return the warp tiles of the accumulator buffer of one sub-core."""
        return cls.of(machine).accumulator.tiles
