"""mma.sync and mma.sp: D = A B + C on register fragments, dense and 2:4.

Products are exact in fp32; they are summed in fp32 and C is added last.  Integers are exact: an int8
or int4 product of these shapes stays below 2**24, where fp32 holds every whole number; C is added in
64 bits, then wrapped to int32, or clipped where the row says ``saturate``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stcsim.isa import metadata
from stcsim.isa.fragment import FragmentLayout, decode, operand_layout
from stcsim.isa.semantics.registry import Active, Operands, semantic
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import WarpState

_INT32_LEAST, _INT32_LARGEST = -(1 << 31), (1 << 31) - 1


@lru_cache(maxsize=512)
def _layouts(spec: InstructionSpec) -> tuple[FragmentLayout, FragmentLayout, FragmentLayout]:
    """Return the layouts of A, B and C, looked up once per instruction."""
    return operand_layout(spec, "a"), operand_layout(spec, "b"), operand_layout(spec, "c")


@semantic("mma")
def multiply(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = A B + C; operands D, A, B, C."""
    layouts = _layouts(spec)
    a, b = _factors(layouts, operands, state)
    with np.errstate(over="ignore", invalid="ignore"):
        _accumulate(spec, layouts[2], operands, state, a @ b)


@semantic("mma_sparse")
def multiply_sparse(spec: InstructionSpec, operands: Operands, state: WarpState, active: Active) -> None:
    """D = A B + C with A stored as half and metadata; operands D, A, B, C, metadata, selector.

    Each stored element of A meets the row of B that its metadata name; rows that no element of A
    names are not read, so that an infinity in them does no harm.
    """
    layouts = _layouts(spec)
    a, b = _factors(layouts, operands, state)
    codes = metadata.unpack(spec, state.words(operands[4]), operands[5].value)
    chosen = b.take(metadata.stored_columns(spec, codes), axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        _accumulate(spec, layouts[2], operands, state, np.matmul(a[:, None, :], chosen)[:, 0, :])


def _factors(
    layouts: tuple[FragmentLayout, FragmentLayout, FragmentLayout], operands: Operands, state: WarpState
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read A and B."""
    a, b, _ = layouts
    return (
        decode(state.words(operands[1], a.n_registers), a.dtype, a.element),
        decode(state.words(operands[2], b.n_registers), b.dtype, b.element),
    )


def _accumulate(
    spec: InstructionSpec, layout: FragmentLayout, operands: Operands, state: WarpState, product: NDArray[Any]
) -> None:
    """Add C to the product and write D."""
    total = product.reshape(-1).take(layout.tile)
    words = state.words(operands[3], layout.n_registers)
    if layout.dtype == "fp32":
        total += words.view(np.float32)
        state.write(operands[0], total.view(np.uint32))
    elif layout.dtype == "fp16":
        total += words.view(np.float16)
        state.write(operands[0], total.astype(np.float16).view(np.uint32))
    else:
        exact = total.astype(np.int64)
        exact += words.view(np.int32)
        if spec.parameters["saturate"]:
            np.clip(exact, _INT32_LEAST, _INT32_LARGEST, out=exact)
        state.write(operands[0], exact.astype(np.int32).view(np.uint32))
