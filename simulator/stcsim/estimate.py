"""How long a study will take and how much memory, before it runs.

Stands above the packages, beside `stcsim.study`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stcsim.points import DesignSpace
from stcsim.problem import product_sizes
from stcsim.study import LoadedStudy, Point

STEPS_PER_SECOND = 2.5e8
"""Outer-product steps (a popcount pair) that the fast engine simulates a second on two cores (measured)."""
INSTRUCTIONS_PER_SECOND = 8e7
"""Other tensor instructions a second on two cores (measured)."""
BASE_BYTES = 200 * 2**20
"""Interpreter, numpy and the compiled engine (measured)."""
SECONDS_PER_RUN = 0.3
"""Lowering, value check and accounting of one run (measured)."""


@dataclass(frozen=True)
class Estimate:
    """What a study costs.

    Parameters
    ----------
    seconds : float
        On two cores, compiled.
    bytes : int
        Peak memory.
    lines : tuple of str
        One for each run, with its sizes.
    """

    seconds: float
    bytes: int
    lines: tuple[str, ...]


def estimate(loaded: LoadedStudy) -> Estimate:
    """Estimate a study from its sizes alone."""
    seconds = 0.0
    largest = 0
    lines = []
    for point in loaded.points:
        plan_a, plan_b = loaded.sources[point.workload]
        workload = loaded.study.workloads[point.workload]
        count, m, n, k = product_sizes(workload, plan_a.shape, plan_b.shape)
        kernel, machine = point.kernel.kernel, point.machine.machine
        tile = kernel.tile
        warp_tiles = count * -(-m // tile.m_warp) * -(-n // tile.n_warp)
        if kernel.datapath == "outer_product":
            here = warp_tiles * k / STEPS_PER_SECOND
        else:
            sub_cores = machine.sms * machine.sub_cores_per_sm
            # Equal sub-cores are simulated once, and there are at most two kinds of them.
            macs = 2 * -(-warp_tiles // sub_cores) * tile.m_warp * tile.n_warp * k
            here = macs / 256 / INSTRUCTIONS_PER_SECOND
        seconds += here + SECONDS_PER_RUN
        largest = max(largest, sum(plan.shape[0] * plan.shape[1] for plan in (plan_a, plan_b)))
        sizes = f"{m} x {n} x {k}" if count == 1 else f"{count} of {m} x {n} x {k}"
        lines.append(
            f"{workload.name}: {sizes} ({count * workload.repeat * m * n * k:,} MACs) on "
            f"{machine.name} with {kernel.name}: {warp_tiles:,} warp tiles of {tile.m_warp} x {tile.n_warp}"
        )
    return Estimate(seconds, BASE_BYTES + 4 * largest, tuple(lines))


def estimate_sweep(space: DesignSpace) -> Estimate:
    """Estimate all points of a study, on two cores; points that cannot run cost nothing."""
    seconds = 0.0
    largest = 0
    lines: list[str] = []
    for variant in {id(point.variant): point.variant for point in space.points}.values():
        if variant.loaded is None:
            continue
        mine = [point for point in space.points if point.variant is variant and point.error is None]
        points = tuple(
            Point(i, point.machine, point.kernel)
            for point in mine
            if point.machine is not None and point.kernel is not None
            for i in range(len(space.layers))
        )
        part = estimate(replace(variant.loaded, points=points))
        seconds += part.seconds
        largest = max(largest, part.bytes)
        lines += part.lines
    return Estimate(seconds, 2 * largest, tuple(lines))
