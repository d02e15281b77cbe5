"""C written as the next layer reads it: bitmap-encoded, by the integer pipes, at the end of each CTA.  Off by default.

Place in the data flow: `stcsim.lowering.sparse_outer` takes its option and its bytes, the whole-GPU level its cycles.
Which sums the activation turns to zero is not known of random values, so their share is given.

Per word (one column of 32 rows of a warp tile), a lane for each element (ASSUMED: DSTC's reading notes say that an
operand stands encoded in memory, not who writes it): compare with zero; vote the word together; ones before the
lane's bit (mask, POPC) and the address from it; and of the word, its ones and the next word's offset.  Knows no cycles.
"""

from __future__ import annotations

from pydantic import Field

from stcsim.config.machine import Section
from stcsim.formats.bitmap import OFFSET_BITS
from stcsim.lowering.instruction_mix import InstructionMix

WORD = 32
"""Elements that one word of the bitmap stands for."""
STEPS = 16
"""Words of one tile of the next layer's operand, which has a bit and an offset of its own."""
PER_WORD = InstructionMix(ISETP=32, LOP3=64, POPC=33, IADD3=33)
"""The vote counts as logic."""


class OutputOptions(Section):
    """Whether C is encoded."""

    output_density: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Share of C that is non-zero after the layer's activation: C is written bitmap-encoded, as the "
        "next layer reads it. Not given: dense. Needs the whole GPU (level: gpu).",
    )


def encoded_bytes(elements: int, density: float, value_bits: int) -> int:
    """Return the bytes of C, encoded: values, element bitmap, tile bitmap and offsets.

    >>> encoded_bytes(512, 0.5, 16)
    581
    """
    words = -(-elements // WORD)
    tiles = -(-words // STEPS)
    values = round(elements * density) * value_bits
    return -(-(values + words * WORD + tiles * (1 + OFFSET_BITS)) // 8)
