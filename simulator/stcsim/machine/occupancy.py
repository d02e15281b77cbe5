"""How many CTAs of a kernel an SM holds at a time.

Place in the data flow: read by `stcsim.machine.simulator`.  Source of the
rules: CUDA occupancy rules (registers in units per warp, shared memory with its
reservation, warp and CTA slots); accumulator tiles are the outer-product
datapath's own limit.
"""

from __future__ import annotations

from stcsim.config.kernel import Kernel
from stcsim.config.machine import ELEMENT_BITS, Dtype, Machine
from stcsim.errors import LoweringError, Problem

WARP_SIZE = 32
"""Threads of a warp on every machine here (CUDA programming guide)."""


def resident_ctas(
    machine: Machine,
    kernel: Kernel,
    dtype: Dtype,
    accumulator_tiles: int | None = None,
    stage_bytes: int | None = None,
) -> int:
    """Return the CTAs of `kernel` that one SM holds.

    Parameters
    ----------
    machine : Machine
    kernel : Kernel
    dtype : str
        Operand type; its stored size sets the shared memory of a stage.
    accumulator_tiles : int, optional
        Warp tiles that the accumulator buffer of one sub-core holds; None: no such limit.
    stage_bytes : int, optional
        Shared memory of one stage; None: of dense slabs of both operands.

    Returns
    -------
    ctas : int, at least 1

    Raises
    ------
    LoweringError
        If not even one CTA fits; the message names all that it lacks, with both numbers.
    """
    tile = kernel.tile
    unit = machine.registers_per_warp_unit
    registers_per_warp = -(-kernel.registers_per_thread * WARP_SIZE // unit) * unit
    if stage_bytes is None:
        stage_bytes = -(-(tile.m_cta + tile.n_cta) * tile.k_cta * ELEMENT_BITS[dtype] // 8)
    cta_bytes = kernel.stages * stage_bytes + machine.shared_memory.reserved_per_cta
    # What one CTA takes and what an SM has, in words that follow both numbers.
    resources = {
        "warp slots": (tile.warps, machine.warp_slots_per_sm),
        "CTA slots": (1, machine.cta_slots_per_sm),
        "registers": (registers_per_warp * tile.warps, machine.registers_per_sm),
        "bytes of shared memory": (cta_bytes, machine.shared_memory.capacity),
    }
    if accumulator_tiles is not None:
        resources["accumulator tiles"] = (tile.warps, accumulator_tiles * machine.sub_cores_per_sm)
    lacking = [f"{need} of {have} {what}" for what, (need, have) in resources.items() if need > have]
    if lacking:
        message = f"must fit one CTA of kernel {kernel.name} on an SM, but it takes {', '.join(lacking)}"
        raise LoweringError(Problem(message, path=f"machine {machine.name}"))
    return min(have // need for need, have in resources.values())
