"""What one run of one workload on one machine with one kernel returns.

Place in the data flow: made by `stcsim.study`, read by reports and writers.
Frozen; every derived number (time, utilisations, skipped MACs) is defined here
once.  Knows nothing of plotting.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any


class InvariantError(AssertionError):
    """A result breaks a law that holds in every run: a fault of the simulator, never of the user."""


@dataclass(frozen=True)
class Check:
    """How much of the output was executed for values and compared.

    Parameters
    ----------
    share : float
        Fraction of the elements of C that were compared, 0 for off, 1 for all.
    ok : bool or None
        Whether all of them were right; None where nothing was compared.
    """

    share: float
    ok: bool | None


@dataclass(frozen=True)
class Result:
    """One row of a study.

    Parameters
    ----------
    workload, machine, kernel, dtype, engine : str
        What ran; `model` says what the cycles cover.
    m, n, k : int
        Sizes of the problem as it was given.
    density_a, density_b : float
        Densities of the operands as they were given.
    cycles : int
    clock_hz : float
    sub_cores : int
    macs_total, macs_executed, macs_useful, mac_slots : int
        The problem's m*n*k; those that went through a multiplier; those with both operands
        non-zero; multiplier slots of all issued tensor instructions, idle lanes included.
    multipliers : int
        Physical multipliers of the machine for this operand type.
    instructions, stalls, traffic_bytes : dict of str to int
        Issued tensor instructions by mnemonic; sub-core cycles by cause (they sum to
        cycles * sub_cores); bytes fetched and written by CTAs.
    check : Check
    dram_bytes : int or None
        Moved from and to DRAM; None: not modelled.
    seed : int
    notes : tuple of str
        What was done to the problem: transposed, pruned, run dense.
    outer_products : dict of str to int
        On a datapath that skips them: those of ``whole_tiles`` (padded rows, columns and K included), those with
        rows and columns ``inside`` C, those ``executed``.  Empty elsewhere.
    network : str
        The network whose layer it is; empty for a workload of its own.
    im2col_cycles : dict of str to int
        For a convolution, cycles for which the integer pipes would be busy lowering the feature map, by way of
        doing it; beside the tensor work and in no other number.  Empty for other workloads.
    memory_bytes_per_second : dict of str to float
        Most that the SMs can fetch from ``l2`` at this clock, and that ``dram`` sustains; empty at ``level: sm``.
    assumed : tuple of dict
        Every ASSUMED parameter of the machine and kernel: path, value, reason.
    version : str
    model_version : int
    """

    workload: str
    machine: str
    kernel: str
    dtype: str
    engine: str
    model: str
    m: int
    n: int
    k: int
    density_a: float
    density_b: float
    cycles: int
    clock_hz: float
    sub_cores: int
    resident_warps: int
    macs_total: int
    macs_executed: int
    macs_useful: int
    mac_slots: int
    multipliers: int
    instructions: dict[str, int]
    stalls: dict[str, int]
    traffic_bytes: dict[str, int]
    check: Check
    seed: int
    version: str
    model_version: int
    dram_bytes: int | None = None
    notes: tuple[str, ...] = ()
    assumed: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    network: str = ""
    im2col_cycles: dict[str, int] = field(default_factory=dict)
    outer_products: dict[str, int] = field(default_factory=dict)
    memory_bytes_per_second: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        laws = {
            "busy + stalls = total": sum(self.stalls.values()) == self.cycles * self.sub_cores,
            "useful <= executed <= total": self.macs_useful <= self.macs_executed <= self.macs_total,
            "executed <= slots": self.macs_executed <= self.mac_slots,
            "executed <= inside <= whole tiles": list(self.outer_products.values())
            == sorted(self.outer_products.values(), reverse=True),
            "utilisations within 0 and 1": all(0 <= value <= 1 for value in self.utilization.values()),
        }
        broken = [law for law, holds in laws.items() if not holds]
        if broken:
            message = f"{self.workload} on {self.machine} with {self.kernel} breaks: {'; '.join(broken)}"
            raise InvariantError(message)

    def repeated(self, times: int) -> Result:
        """Return the result of running this `times` times, one after the other."""
        if times == 1:
            return self
        return replace(
            self,
            cycles=times * self.cycles,
            macs_total=times * self.macs_total,
            macs_executed=times * self.macs_executed,
            macs_useful=times * self.macs_useful,
            mac_slots=times * self.mac_slots,
            instructions={name: times * count for name, count in self.instructions.items()},
            stalls={name: times * count for name, count in self.stalls.items()},
            traffic_bytes={name: times * count for name, count in self.traffic_bytes.items()},
            dram_bytes=None if self.dram_bytes is None else times * self.dram_bytes,
            im2col_cycles={name: times * count for name, count in self.im2col_cycles.items()},
            outer_products={name: times * count for name, count in self.outer_products.items()},
            notes=(*self.notes, f"{times} times, one after the other"),
        )

    @property
    def time_us(self) -> float:
        """Cycles over the clock, in microseconds."""
        return self.cycles / self.clock_hz * 1e6

    @property
    def macs_skipped(self) -> int:
        """MACs of the problem that did not go through a multiplier."""
        return self.macs_total - self.macs_executed

    @property
    def utilization(self) -> dict[str, float]:
        """The three utilisations, each in [0, 1].

        lane: useful MACs over the slots of issued instructions; issue: cycles with the tensor pipe
        occupied over all cycles; effective: useful MACs over physical multipliers times cycles.
        """
        capacity = self.multipliers * self.cycles
        total = self.cycles * self.sub_cores
        return {
            "lane": self.macs_useful / self.mac_slots if self.mac_slots else 0.0,
            "issue": self.stalls["tensor_busy"] / total if total else 0.0,
            "effective": self.macs_useful / capacity if capacity else 0.0,
        }

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data, in a fixed order of keys."""
        return {
            "workload": self.workload,
            "network": self.network,
            "machine": self.machine,
            "kernel": self.kernel,
            "dtype": self.dtype,
            "m": self.m,
            "n": self.n,
            "k": self.k,
            "density_a": self.density_a,
            "density_b": self.density_b,
            "cycles": self.cycles,
            "time_us": self.time_us,
            "clock_hz": self.clock_hz,
            "sub_cores": self.sub_cores,
            "resident_warps": self.resident_warps,
            "macs_total": self.macs_total,
            "macs_executed": self.macs_executed,
            "macs_skipped": self.macs_skipped,
            "macs_useful": self.macs_useful,
            "mac_slots": self.mac_slots,
            "multipliers": self.multipliers,
            "instructions": self.instructions,
            "stalls": self.stalls,
            "utilization": self.utilization,
            "traffic_bytes": self.traffic_bytes,
            "dram_bytes": self.dram_bytes,
            "memory_bytes_per_second": self.memory_bytes_per_second,
            "im2col_cycles": self.im2col_cycles,
            "outer_products": self.outer_products,
            "check": {"share": self.check.share, "ok": self.check.ok},
            "seed": self.seed,
            "engine": self.engine,
            "model": self.model,
            "notes": list(self.notes),
            "assumed": [dict(item) for item in self.assumed],
            "version": self.version,
            "model_version": self.model_version,
        }
