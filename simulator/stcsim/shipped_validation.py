"""Every measurement that ships, one after the other: what ``stcsim validate all`` runs.

Stands above `stcsim.dstc_validation` and `stcsim.gpu_validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stcsim import dstc_validation, gpu_validation
from stcsim.result.validation import Progress, Validation

SHIPPED: dict[str, Callable[[int, Progress | None], Validation]] = {
    "dstc-fig21": lambda _, progress: dstc_validation.fig21(None, progress=progress),
    "dstc-sparseloop": lambda _, progress: dstc_validation.sparseloop(None, progress),
    "a100-gemm": lambda jobs, progress: gpu_validation.a100_gemm(None, "a100-pcie-80gb", jobs, progress),
    "a100-sxm80-gemm-bf16": lambda jobs, progress: gpu_validation.a100_sxm_bf16(
        None, "a100-sxm4-80gb", jobs, progress
    ),
    "h200-mma-sync": lambda jobs, progress: gpu_validation.h200_mma_sync(
        None, "h200-mma-sync", jobs, progress
    ),
}
"""Each takes the number of processes and what to call before each row."""


def run_all(processes: int = 2, progress: Progress | None = None) -> Iterator[tuple[str, Validation]]:
    """Yield the name and the outcome of each validation of `SHIPPED`, in its order."""
    for name, run in SHIPPED.items():
        yield name, run(processes, progress)
