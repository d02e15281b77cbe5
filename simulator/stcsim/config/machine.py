"""What a machine file says: an SM, its tensor core and how many there are.

Every field has a unit in its value (`stcsim.units`) or in its name.  The part
of ``tensor_core`` that only one datapath understands (the accumulator buffer
of the outer product, say) is described by the options that the datapath
registers, so that an option without its datapath is an error.  Knows nothing
of simulation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, cast

from pydantic import Field, create_model

from stcsim.config.gpu import Gpu
from stcsim.config.section import NotNegative, Positive, Section
from stcsim.config.sm import Sm
from stcsim.units import Bytes, Hertz

Dtype = Literal["fp16", "bf16", "tf32", "int8"]
"""Operand types; `stcsim.config.machine.ELEMENT_BITS` gives their stored size."""

ELEMENT_BITS: dict[str, int] = {"fp16": 16, "bf16": 16, "tf32": 32, "int8": 8}
"""Bits of one stored operand element.  tf32 operands are stored as fp32 words."""


class InstructionTiming(Section):
    """When an instruction may follow another, and when its result is there."""

    interval_cycles: Positive = Field(
        description="Cycles for which one issue occupies its pipe (initiation interval)."
    )
    latency_cycles: Positive = Field(
        description="Cycles from issue to the first cycle in which an instruction that reads the result may issue."
    )
    slot_cost_cycles: NotNegative = Field(
        default=1,
        description="Cycles by which the operand of a memory instruction, read after this one, delays the next. "
        "SM engine only.",
    )
    relative_power: Annotated[float, Field(gt=0, le=4)] = Field(
        default=1.0,
        description="Power of the tensor pipe that executes it, over that of dense fp16; for gpu.sustained_clock.",
    )


class SharedMemory(Section):
    """Shared memory of one SM, as far as it bounds how many CTAs are resident."""

    capacity: Bytes = Field(description="Largest shared memory of one SM.")
    reserved_per_cta: Bytes = Field(description="Taken by the system for each resident CTA.")


class TensorCore(Section):
    """The tensor cores of one sub-core, taken together, since one warp instruction drives them together."""

    datapaths: tuple[str, ...] = Field(min_length=1, description="Datapaths that this tensor core has.")
    macs_per_cycle: dict[Dtype, Positive] = Field(
        min_length=1, description="Physical multipliers of one sub-core by operand type, in MACs per cycle."
    )
    instructions: dict[str, InstructionTiming] = Field(
        min_length=1, description="Interval and latency of every tensor instruction, by mnemonic."
    )


class Machine(Section):
    """A GPU."""

    name: str = Field(description="Equals the file's name.")
    summary: str = Field(description="One line for listings.")
    clock: Hertz = Field(description="SM clock; cycles are primary, time is derived from it.")
    sms: Annotated[int, Field(ge=1, le=65536)] = Field(description="Streaming multiprocessors.")
    sub_cores_per_sm: Annotated[int, Field(ge=1, le=64)] = Field(
        description="Sub-cores (SM sub-partitions), one warp issue per cycle each."
    )
    warp_slots_per_sm: Positive = Field(description="Most resident warps of one SM.")
    cta_slots_per_sm: Positive = Field(description="Most resident CTAs of one SM.")
    registers_per_sm: Positive = Field(description="32-bit registers of one SM.")
    registers_per_warp_unit: Positive = Field(
        description="Registers are given to warps in multiples of this."
    )
    shared_memory: SharedMemory
    scheduler: Literal["gto", "lrr", "grr"] = Field(
        description="Which ready warp issues: gto stays with the last one, else takes the oldest; lrr goes round; "
        "grr stays with the last one, else goes round (SM engine only; elsewhere as lrr)."
    )
    tensor_core: TensorCore
    sm: Sm | None = Field(
        default=None,
        description="Inside of the SM, for the SM engine; without it warp tiles run on sub-cores alone.",
    )
    gpu: Gpu | None = Field(
        default=None,
        description="The chip around the SMs; without it L2, DRAM, CTA starts and launch take no time.",
    )
    kernels: tuple[str, ...] = Field(
        min_length=1, description="Kernels to run when none is named, best first."
    )
    kernel_tables: tuple[str, ...] = Field(
        default=(), description="Tables (configs/kernels/tables) whose kernels `auto` tries beside those."
    )


def compose_machine(options: Iterable[type[Section]]) -> type[Machine]:
    """Return the `Machine` model whose tensor core also takes the given datapath options.

    Parameters
    ----------
    options : iterable of type
        The options models of the datapaths that the machine's file lists, each a `Section`.

    Returns
    -------
    model : type
        A subclass of `Machine`; its ``tensor_core`` is an instance of every options model too.
    """
    bases = tuple(dict.fromkeys(options))
    if not bases:
        return Machine
    tensor_core: type[Section] = create_model("TensorCore", __base__=cast("Any", (TensorCore, *bases)))
    return create_model("Machine", __base__=Machine, tensor_core=(tensor_core, Field()))


__all__ = [
    "ELEMENT_BITS", "Dtype", "InstructionTiming", "Machine", "NotNegative", "Positive", "Section", "SharedMemory",
    "TensorCore", "compose_machine",
]  # fmt: skip
