"""What a machine file says of the inside of an SM, beside its tensor core: section ``sm``.

Read by `stcsim.machine.sm_binding`; the rules that the parameters belong to stand in `stcsim.machine.sm`
and in docs/sm_engine.md.  Knows nothing of simulation.
"""

from __future__ import annotations

from pydantic import Field

from stcsim.config.section import NotNegative, Positive, Section


class BarrierTiming(Section):
    """BAR.SYNC: from the last arrival to the release."""

    base_cycles: Positive = Field(description="Part that does not depend on the warps.")
    per_warp_cycles: NotNegative = Field(description="Further cycles for each warp of the CTA.")


class MemoryQueue(Section):
    """The in-order queue of a sub-core's memory instructions, and how they read their operands."""

    depth: Positive = Field(description="Instructions that wait for operands; one more does not issue.")
    latency_cycles: Positive = Field(description="Issue to the first operand slot.")
    slot_gap_cycles: Positive = Field(description="Between two operand slots.")
    slot_gap_fed_cycles: Positive = Field(
        description="Between the operand slots of a copy while the tensor pipe is being fed."
    )
    fed_window_cycles: NotNegative = Field(description="An MMA issued less than this ago feeds the pipe.")
    store_gap_cycles: Positive = Field(description="From the last operand slot of a store to the next slot.")
    load_slots: Positive = Field(description="Operand slots of a load from shared memory.")
    store_slots: Positive = Field(description="Operand slots of a store to shared memory.")
    copy_slots: Positive = Field(description="Operand slots of an asynchronous copy or global load.")


class SharedPort(Section):
    """The port of shared memory, 128 bytes a cycle for the whole SM."""

    requests: Positive = Field(
        description="Requests of a sub-core that wait for the port with their operands."
    )
    return_gap_cycles: NotNegative = Field(
        description="Cycles of a sub-core's return path for each 128-byte wavefront."
    )
    load_latency_cycles: NotNegative = Field(description="End of the return to the result.")
    read_release_cycles: NotNegative = Field(description="Operands sent to the read barrier released.")


class CopyTiming(Section):
    """Asynchronous copies to shared memory, and global loads."""

    to_tags_cycles: NotNegative = Field(description="Last operand slot to the tag stage.")
    tag_queue: Positive = Field(description="Copies of the SM that may wait for the tag stage.")
    tag_base_cycles: NotNegative = Field(description="Tag-stage cycles of a copy, beside those of its lines.")
    lines_per_tag_cycle: Positive = Field(
        description="128-byte lines that the tag stage looks up in a cycle."
    )
    release_cycles: NotNegative = Field(description="Last operand slot to the read barrier released.")
    latency_cycles: NotNegative = Field(description="Tag stage to data in shared memory; fixed, no L2 model.")
    commit_cycles: NotNegative = Field(description="An empty group is complete so long after its commit.")


class Operation(Section):
    """An integer or floating-point instruction that is no MMA."""

    pipe: str = Field(description="Name of the pipe of the sub-core that runs it.")
    lanes_per_cycle: Positive = Field(description="Lanes of a warp that the pipe takes in a cycle.")
    latency_cycles: Positive = Field(description="Issue to the first cycle in which a reader may issue.")


class IntegerUnits(Section):
    """The pipes beside the tensor pipe."""

    delay_period: NotNegative = Field(
        description="Every so many instructions issued beside a busy tensor pipe delay it; 0: never."
    )
    delay_cycles: NotNegative = Field(description="... by so many cycles.")
    operations: dict[str, Operation] = Field(
        min_length=1, description="Pipe, lanes and latency by mnemonic or its leading part."
    )


class Control(Section):
    """How a measured listing's control fields count; scheduled programs use plain stall counts."""

    least_yielding_stall: Positive = Field(
        description="Stall 0, and stall 1 with the yield hint, count as this many cycles."
    )
    long_stalls: tuple[Positive, ...] = Field(
        description="What the largest stall counts (ending with 15) count as without the yield hint; "
        "empty: as written."
    )
    largest_stall: Positive = Field(description="Largest stall count; a longer wait takes a NOP more.")


class RegisterFile(Section):
    """Operand banks."""

    banks: Positive = Field(description="Banks of the register file; register r lies in bank r mod banks.")
    reads_per_bank: NotNegative = Field(
        description="Operands that one bank delivers in a cycle of an instruction; 0: no conflicts."
    )


class Sm(Section):
    """The inside of an SM."""

    branch_cycles: NotNegative = Field(
        description="Issue of a taken branch to issue of its target, at least."
    )
    barrier: BarrierTiming
    memory_queue: MemoryQueue
    shared_port: SharedPort
    copies: CopyTiming
    integer: IntegerUnits
    control: Control
    registers: RegisterFile
