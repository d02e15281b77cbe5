"""Whole GEMMs against measurements: A100 boards, and hand-written kernels on an H200.

Stands above the packages; ``stcsim validate a100-gemm``, ``a100-sxm80-gemm-bf16`` and ``h200-mma-sync`` call it.
Measured columns serve the summary alone: a prediction reads sizes, operand types and, where the measurement names
it, the kernel.  One row out for each row in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import get_args

from stcsim.auto import Tried, fastest, listed, race
from stcsim.catalog import KernelEntry, MachineEntry, load_kernel, load_machine
from stcsim.config.machine import Dtype
from stcsim.errors import ConfigError, Problem, StcsimError, must
from stcsim.lowering import LOWERINGS
from stcsim.lowering.lowered import Lowered
from stcsim.machine.simulator import simulate
from stcsim.machine.timing import Timing
from stcsim.parallel import ordered
from stcsim.result.validation import Progress, Row, Validation, measured_pairs, read_table
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern

SPARSE = {
    "sparse_2of4_us": None, "kexp_2of6_us": (4, 6), "kexp_2of8_us": (6, 8), "kexp_2of10_us": (8, 10),
    "kexp_2of12_us": (10, 12), "kexp_2of14_us": (12, 14), "kexp_2of16_us": (14, 16), "dense_via_sparse_us": (2, 2),
}  # fmt: skip
"""Measured columns of mma.sp, each with the pattern whose K-expansion it is; None: plain 2:4."""
HOST_US = 21.0
"""Host time within each row of the SXM measurement, as its authors state (LLMCompass, figure 5)."""
GPU_CAUSES = ("l2", "dram", "prologue", "epilogue", "tail", "launch", "split_k")
"""Causes outside of the SMs; the others together are ``sm``."""


@dataclass(frozen=True)
class _Problem:
    """One prediction of a row: sizes, operand type, and the kernels that race."""

    m: int
    n: int
    k: int
    dtype: Dtype
    kernels: tuple[KernelEntry, ...]


def of_sizes(m: int, n: int, k: int) -> Gemm:
    """Return a product of which only the sizes count."""
    return Gemm(
        "validation",
        Operand(DensePattern((m, k)), "weight", 0, "dense"),
        Operand(DensePattern((k, n)), "activation", 0, "dense"),
    )


def bottleneck(timing: Timing) -> str:
    """Return what most of the time went to: ``sm``, or a cause outside of it."""
    shares = {cause: timing.stalls.get(cause, 0) for cause in GPU_CAUSES}
    shares["sm"] = sum(timing.stalls.values()) - sum(shares.values())
    return max(shares, key=lambda cause: shares[cause])


def _race(problem: _Problem, machine: MachineEntry) -> Tried:
    gemm = of_sizes(problem.m, problem.n, problem.k)

    def lower(entry: KernelEntry) -> Lowered:
        lowering = LOWERINGS[entry.kernel.lowering]
        return lowering.of_shape(gemm, entry.kernel, problem.dtype, machine.machine)

    tried = race(problem.kernels, machine, lower)
    return fastest(tried, f"{problem.m} x {problem.n} x {problem.k}")


def _sparse(kernels: Sequence[KernelEntry], pattern: tuple[int, int] | None) -> tuple[KernelEntry, ...]:
    """Return the 2:4 kernels of a list, running a (2N-2):2N pattern by K-expansion where one is given."""
    plain = [entry for entry in kernels if entry.kernel.lowering == "nm_inner"]
    if pattern is None:
        return tuple(plain)
    changes = {"lowering": "k_expanded_inner", "options": {"n": pattern[0], "m": pattern[1]}}
    return tuple(replace(entry, kernel=entry.kernel.model_copy(update=changes)) for entry in plain)


def _each(
    rows: Sequence[Row], predict: Callable[[Row], Row], processes: int, progress: Progress | None
) -> list[Row]:
    out = []
    for i, found in enumerate(ordered(lambda number: predict(rows[number]), len(rows), processes)):
        if progress is not None:
            row = rows[i]
            progress(i, len(rows), " x ".join(str(row.get(key, row.get(key.upper()))) for key in "mnk"))
        out.append({**rows[i], **found})
    return out


def a100_gemm(
    path: Path | None, machine: str, processes: int = 2, progress: Progress | None = None
) -> Validation:
    """Predict the times of dense, 2:4 and K-expanded GEMMs; the weight (n) stands on mma.sp's sparse side.

    Parameters
    ----------
    path : Path or None
        CSV with dtype, m, n, k, None: what ships; for each column of `SPARSE` and ``dense_us`` that it has, filled
        or empty, a prediction comes out.
    machine : str
    processes : int
    progress : callable, optional
        Called after each row.
    """
    rows = read_table(path, "a100-gemm", ("m", "n", "k"), ("dtype",), ("dense_us", *SPARSE))
    entry, _ = load_machine(machine)
    kernels = {dtype: tuple(listed(entry, dtype)) for dtype in get_args(Dtype)}
    known = [dtype for dtype, found in kernels.items() if found]
    problems = [
        Problem(must(f"must be an operand type of {machine}'s kernels ({', '.join(known)})", dtype, near=known),
                None if path is None else str(path), path="dtype")
        for dtype in dict.fromkeys(str(row["dtype"]) for row in rows)
        if dtype not in known
    ]  # fmt: skip
    if problems:
        raise ConfigError(problems)

    def predict(row: Row) -> Row:
        m, n, k, dtype = int(row["m"]), int(row["n"]), int(row["k"]), row["dtype"]
        found: Row = {}
        for column in row:
            if column == "dense_us":
                dense = tuple(one for one in kernels[dtype] if one.kernel.lowering == "dense_inner")
                problem = _Problem(m, n, k, dtype, dense)
            elif column in SPARSE:
                problem = _Problem(n, m, k, dtype, _sparse(kernels[dtype], SPARSE[column]))
            else:
                continue
            best = _race(problem, entry)
            found |= _told(column, best, best.seconds(entry.machine.clock) * 1e6)
        return found

    out = _each(rows, predict, processes, progress)
    pairs = {column: measured_pairs(out, column) for column in ("dense_us", *SPARSE)}
    pairs["K-expanded, all"] = [
        pair for column in SPARSE if column.startswith("kexp") for pair in pairs[column]
    ]
    return Validation(out, pairs, "us")


def _told(column: str, best: Tried, value: float) -> Row:
    if best.timing is None:
        message = "the winner of a race was run"
        raise AssertionError(message)
    return {
        f"predicted_{column}": value,
        f"kernel_{column}": best.kernel.kernel.name,
        f"bottleneck_{column}": bottleneck(best.timing),
    }


def a100_sxm_bf16(
    path: Path | None, machine: str, processes: int = 2, progress: Progress | None = None
) -> Validation:
    """Predict host times of bf16 GEMMs, host time included; arguments as `a100_gemm`, columns m, n, k."""
    column = "host_ms_incl_21us"
    rows = read_table(path, "a100-sxm80-gemm-bf16", ("m", "n", "k"), measured=(column,))
    entry, _ = load_machine(machine)
    dense = tuple(one for one in listed(entry, "bf16") if one.kernel.lowering == "dense_inner")

    def predict(row: Row) -> Row:
        best = _race(_Problem(int(row["m"]), int(row["n"]), int(row["k"]), "bf16", dense), entry)
        return _told(column, best, best.seconds(entry.machine.clock) * 1e3 + HOST_US / 1e3)

    out = _each(rows, predict, processes, progress)
    return Validation(out, {column: measured_pairs(out, column)}, "ms")


@cache
def _lean(config: str) -> KernelEntry | None:
    """Return the kernel of a measured configuration, None for one that is not in the table."""
    try:
        return load_kernel(config)[0]
    except StcsimError:
        return None


def h200_mma_sync(
    path: Path | None, machine: str, processes: int = 2, progress: Progress | None = None
) -> Validation:
    """Predict cycles of the hand-written kernels; rows of other schedules than ``lean`` get no prediction.

    Parameters
    ----------
    path : Path or None
        CSV with M, N, K and config; None: what ships.
    machine : str
    processes : int
    progress : callable, optional
    """
    measured = ("cycles_total", "mainloop_cycles_per_kiter")
    rows = read_table(path, "h200-mma-sync", ("M", "N", "K"), ("config",), measured)
    entry, _ = load_machine(machine)

    def predict(row: Row) -> Row:
        kernel = _lean(row["config"])
        more = dict.fromkeys(("kernel_cycles_total", "bottleneck_cycles_total"))
        names = ("cycles_total", "mainloop_cycles_per_kiter", "prologue_cycles", "epilogue_cycles")
        if kernel is None:
            return dict.fromkeys((f"predicted_{name}" for name in names), None) | more
        gemm = of_sizes(int(row["M"]), int(row["N"]), int(row["K"]))
        dtype: Dtype = next(iter(kernel.kernel.instructions))
        lowering = LOWERINGS[kernel.kernel.lowering]
        timing = simulate(lowering.of_shape(gemm, kernel.kernel, dtype, entry.machine), entry.machine)
        cta = timing.cta
        values = (
            timing.cycles,
            cta.slab_cycles if cta else None,
            cta.prologue_cycles if cta else None,
            cta.epilogue_cycles if cta else None,
        )
        found: Row = {f"predicted_{name}": value for name, value in zip(names, values, strict=True)}
        return found | {
            "kernel_cycles_total": kernel.kernel.name,
            "bottleneck_cycles_total": bottleneck(timing),
        }

    out = _each(rows, predict, processes, progress)
    return Validation(out, {column: measured_pairs(out, column) for column in measured}, "cycles")
