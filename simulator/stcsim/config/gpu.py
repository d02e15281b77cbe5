"""What a machine file says of the chip around its SMs: L2, DRAM, CTA dispatch, launch, clock under load.

Section ``gpu`` of a machine.  Read by `stcsim.machine.gpu_simulator`; the rules stand in `stcsim.machine.gpu` and in
docs/gpu.md.  Knows nothing of simulation.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stcsim.config.section import NotNegative, Section
from stcsim.units import Bytes, BytesPerCycle, BytesPerSecond, Seconds

Fraction = Annotated[float, Field(gt=0, le=1)]
CyclesAsFloat = Annotated[float, Field(ge=0, le=1e6)]


class L2(Section):
    """The cache that all SMs share; both partitions together."""

    capacity: Bytes = Field(description="Largest footprint that is read at the cache's bandwidth.")
    edge_fraction: Fraction = Field(
        description="Share of the capacity by which a block must be older than it for 1/e of it to be left."
    )
    read_bandwidth: BytesPerCycle = Field(description="To all SMs together, by SM clock.")
    write_bandwidth: BytesPerCycle = Field(description="From all SMs together, by SM clock.")
    sm_bandwidth: BytesPerCycle = Field(description="Into one SM.")
    cta_outstanding: Annotated[Bytes, Field(ge=1)] = Field(
        description="Most bytes on their way to one CTA; over the latency, a bound of its bandwidth (Little's law)."
    )
    latency_cycles: NotNegative = Field(
        description="Request to data in shared memory, mean of near and far partition."
    )


class Dram(Section):
    """The memory behind L2."""

    bandwidth: BytesPerSecond = Field(description="Of the data sheet.")
    sustained_fraction: Fraction = Field(description="Share of it that kernels reach.")
    latency_cycles: NotNegative = Field(description="Request to data in shared memory.")


class Cta(Section):
    """Starting a CTA."""

    start_cycles: NotNegative = Field(description="Entry code: start to the first request.")
    dispatch_cycles: CyclesAsFloat = Field(description="Between the starts of the first CTAs.")


class Stores(Section):
    """Writing C from an SM, in sectors of 32 bytes."""

    full_sector_cycles: CyclesAsFloat = Field(description="Time of an SM for a sector that is written whole.")
    partial_sector_cycles: CyclesAsFloat = Field(description="For one that is written in part.")
    buffered_sectors: NotNegative = Field(description="Sectors that are taken without waiting.")
    latency_cycles: NotNegative = Field(description="Last store issued to the CTA's end.")


class Launch(Section):
    """Launching a kernel."""

    time: Seconds = Field(description="What an empty kernel takes, one launched behind the other.")
    dependent: Seconds | None = Field(
        default=None,
        description="What the kernel that sums split-K's parts takes beyond moving them; None: `time`.",
    )
    repeated: bool = Field(
        default=True,
        description="Whether the same kernel ran before, so that L2 holds what is left of its operands.",
    )


class SustainedClock(Section):
    """The clock under load: ``clock * min(1, (onset_fraction / activity) ** exponent)``.

    Activity is the share of the kernel's time in which tensor pipes are occupied, weighted by the instruction's
    ``relative_power``.  A board that holds its power does so by its clock: at constant power f V(f)^2 falls as the
    inverse of activity, which over a limited range is this power law.
    """

    onset_fraction: Fraction = Field(description="Activity up to which the full clock is held.")
    exponent: Annotated[float, Field(gt=0, le=1)] = Field(
        description="1: energy per cycle does not depend on the clock; 1/3: voltage is proportional to it."
    )


class Gpu(Section):
    """The chip around its SMs."""

    l2: L2
    dram: Dram
    cta: Cta
    stores: Stores
    launch: Launch
    sustained_clock: SustainedClock | None = Field(default=None, description="None: the clock is held.")
