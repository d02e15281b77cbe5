"""What a kernel file says: one lowering, its tile shapes and what a CTA takes.

A kernel is data.  The part that only one lowering understands stands under
``options`` and is validated by the schema that the lowering registers.  Knows
nothing of simulation.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, create_model, model_validator

from stcsim.config.loop import Loop
from stcsim.config.machine import Dtype, NotNegative, Positive, Section
from stcsim.units import Seconds


class Tile(Section):
    """Tile levels, outer to inner: CTA, warp, instruction; all in elements."""

    m_cta: Positive = Field(description="Rows of C that one CTA computes.")
    n_cta: Positive = Field(description="Columns of C that one CTA computes.")
    k_cta: Positive = Field(description="K that one stage of shared memory holds.")
    m_warp: Positive = Field(description="Rows of C that one warp computes.")
    n_warp: Positive = Field(description="Columns of C that one warp computes.")

    @model_validator(mode="after")
    def _warps_tile_the_cta(self) -> Self:
        for axis in "mn":
            cta, warp = getattr(self, f"{axis}_cta"), getattr(self, f"{axis}_warp")
            if cta % warp:
                message = f"{axis}_cta must be a multiple of {axis}_warp ({warp}), not {cta}"
                raise ValueError(message)
        return self

    @property
    def warps_m(self) -> int:
        """Warps of a CTA along M."""
        return self.m_cta // self.m_warp

    @property
    def warps_n(self) -> int:
        """Warps of a CTA along N."""
        return self.n_cta // self.n_warp

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        return self.warps_m * self.warps_n


class Grid(Section):
    """How the CTAs of a kernel follow each other; acts where the machine has a section ``gpu``."""

    raster_group: Positive = Field(
        default=8, description="Rows of CTA tiles that are gone through together, column by column."
    )
    split_k: Positive = Field(
        default=1, description="CTAs that share a tile of C along K; a second kernel sums their parts."
    )
    persistent: bool = Field(
        default=False, description="As many CTAs as fit, each with a fixed share of the tiles."
    )


class Kernel(Section):
    """One kernel: a lowering with its shapes."""

    name: str = Field(description="Equals the file's name.")
    summary: str = Field(description="One line for listings.")
    lowering: str = Field(description="Name of the lowering plug-in.")
    datapath: str = Field(description="Name of the datapath that it runs on.")
    instructions: dict[Dtype, str] = Field(
        min_length=1, description="Tensor instruction (mnemonic) for each operand type that the kernel takes."
    )
    tile: Tile
    stages: Positive = Field(description="Shared-memory stages of the operand pipeline.")
    registers_per_thread: Positive = Field(description="Registers of one thread; bounds the resident warps.")
    grid: Grid = Field(default=Grid(), description="Order of the CTAs.")
    store_bytes: Positive = Field(
        default=32,
        description="Bytes of a row of C that are stored together: 32 and more fill whole sectors.",
    )
    output_bytes: dict[Dtype, Positive] = Field(
        default_factory=dict,
        description="Bytes of an element of C, where not 2 for fp16 and bf16, 4 for tf32 and int8.",
    )
    launch_overhead: Seconds = Field(
        default=0.0,
        description="What launching it takes beyond an empty kernel, where the machine has a section gpu.",
    )
    serial_cycles: NotNegative = Field(
        default=0,
        description="Cycles of each stage's copies in which a warp issues nothing: divergent code around them.",
    )
    loop: Loop | None = Field(
        default=None,
        description="Measured main loop (configs/kernels/loops, by name): timed in place of code made from the shapes, "
        "where the machine has a section gpu.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the lowering (its own schema)."
    )


def compose_kernel(options: type[Section]) -> type[Kernel]:
    """Return the `Kernel` model whose ``options`` are those of a lowering."""
    return create_model("Kernel", __base__=Kernel, options=(options, Field(default_factory=dict)))


__all__ = ["Grid", "Kernel", "NotNegative", "Tile", "compose_kernel"]
