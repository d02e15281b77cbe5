"""The dual-side core against published figures: Fig. 21 of its paper, and another model's cycles.

Stands above the packages; ``stcsim validate dstc-fig21`` and ``dstc-sparseloop``
call it.  Measured columns serve the summary alone: a prediction never reads
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stcsim.catalog import load_pair
from stcsim.config.study import Engine
from stcsim.result.validation import Progress, Validation, measured_pairs, read_table
from stcsim.run import Settings, run_gemm
from stcsim.workload.gemm import Gemm
from stcsim.workload.generator import Dense, Uniform, generate
from stcsim.workload.operand import Operand

FIG21_SIZE = 4096
"""M, N and K of the figure."""
_SEED = 0


def _cycles(
    machine: str,
    kernel: str,
    shape: tuple[int, int, int],
    densities: tuple[float, float],
    overrides: Sequence[str] = (),
    engine: Engine = "numba",
) -> int:
    """Simulate one GEMM of uniform random patterns, every outer product, values unchecked, on SMs alone.

    The published figure leaves no room for memory: with this model's L2 and DRAM its sparse points are 14 % off on
    average, with SMs alone under 3 % (docs/dstc.md).
    """
    m, n, k = shape
    operands = []
    for stream, (size, density) in enumerate(zip(((m, k), (k, n)), densities, strict=True)):
        options = Dense() if density == 1 else Uniform(density=density)
        pattern = generate(options, size, seed=_SEED, stream=stream)
        operands.append(Operand(pattern, "activation", _SEED, str(options)))
    entry, used = load_pair(machine, kernel, overrides=overrides)
    gemm = Gemm("validation", operands[0], operands[1])
    return run_gemm(gemm, entry, used, Settings(check_tiles=0, engine=engine, level="sm"), seed=_SEED).cycles


def fig21(
    path: Path | None,
    size: int = FIG21_SIZE,
    progress: Progress | None = None,
    overrides: Sequence[str] = (),
    engine: Engine = "numba",
) -> Validation:
    """Predict the paper's Fig. 21: time at each pair of densities over the time of dense by dense.

    Parameters
    ----------
    path : Path or None
        CSV with density_a and density_b; None: the points that ship.
    size : int
        M, N and K.
    progress : callable, optional
        Called before each row.
    overrides : sequence of str
        ``machine.PATH=VALUE`` or ``kernel.PATH=VALUE``.
    engine : str
    """
    times = "time_digitised_arbitrary_unit"
    rows = read_table(path, "dstc-fig21", ("density_a", "density_b"), measured=(times,))
    problem = ("dstc-v100", "spwmma_128x128x32", (size, size, size))
    dense = _cycles(*problem, (1.0, 1.0), overrides, engine)
    out = []
    for i, row in enumerate(rows):
        densities = (float(row["density_a"]), float(row["density_b"]))
        if progress is not None:
            progress(i, len(rows), f"density {densities[0]:g} x {densities[1]:g}")
        cycles = dense
        if densities != (1.0, 1.0):
            cycles = _cycles(*problem, densities, overrides, engine)
        out.append(
            {**row, "predicted_cycles": cycles, "predicted_normalised": cycles / dense if dense else 0.0}
        )
    whole = next(
        (row[times] for row in out if row["density_a"] == row["density_b"] == 1 and row.get(times)), None
    )
    pairs = [(row[times] / whole, row["predicted_normalised"]) for row in out if whole and row.get(times)]
    return Validation(out, {"normalised time": pairs}, "of dense by dense")


def sparseloop(path: Path | None, progress: Progress | None = None) -> Validation:
    """Predict another model's cycles for ResNet-50 GEMMs on its own machine: a trend, not the truth.

    Parameters
    ----------
    path : Path or None
        CSV with m, k, n, density_activation and density_weight; None: the rows that ship.
    progress : callable, optional
        Called before each row.
    """
    inputs = ("m", "k", "n", "density_activation", "density_weight")
    rows = read_table(path, "dstc-sparseloop", inputs, measured=("dstc_cycles",))
    out = []
    for i, row in enumerate(rows):
        if progress is not None:
            progress(i, len(rows), f"{row['m']} x {row['n']} x {row['k']}")
        shape = (int(row["m"]), int(row["n"]), int(row["k"]))
        densities = (float(row["density_activation"]), float(row["density_weight"]))
        sparse = _cycles("dstc-sparseloop", "spwmma_64x64", shape, densities)
        dense = _cycles("dstc-sparseloop", "owmma_64x64", shape, densities)
        out.append({**row, "predicted_dstc_cycles": sparse, "predicted_tc_cycles": dense})
    return Validation(out, {"dstc_cycles": measured_pairs(out, "dstc_cycles")}, "cycles")
