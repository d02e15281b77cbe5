"""What a kernel file says: one lowering, its tile shapes and what a CTA takes.

A kernel is data.  The part that only one lowering understands stands under
``options`` and is validated by the schema that the lowering registers.  Knows
nothing of simulation.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, create_model, model_validator

from stcsim.config.machine import Dtype, NotNegative, Positive, Section


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
    options: dict[str, Any] = Field(
        default_factory=dict, description="Options of the lowering (its own schema)."
    )


def compose_kernel(options: type[Section]) -> type[Kernel]:
    """Return the `Kernel` model whose ``options`` are those of a lowering."""
    return create_model("Kernel", __base__=Kernel, options=(options, Field(default_factory=dict)))


__all__ = ["Kernel", "NotNegative", "Tile", "compose_kernel"]
