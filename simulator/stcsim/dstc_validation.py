"""The dual-side core against published figures: Fig. 21 of its paper, and another model's cycles.

Stands above the packages; ``stcsim validate dstc-fig21`` and ``dstc-sparseloop``
call it.  Measured columns serve the summary alone: a prediction never reads
them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stcsim.catalog import load_pair
from stcsim.config.study import Engine
from stcsim.errors import ConfigError, Problem, must
from stcsim.resources import data_path
from stcsim.run import Settings, run_gemm
from stcsim.workload.gemm import Gemm
from stcsim.workload.generator import Dense, Uniform, generate
from stcsim.workload.operand import Operand

FIG21_SIZE = 4096
"""M, N and K of the figure."""
_SEED = 0
Row = dict[str, Any]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Validation:
    """Rows with predictions, and what they come to.

    Parameters
    ----------
    rows : list of dict
        The input's columns, then the predictions.
    summary : dict
        Errors over the rows that have a measured value, and how many those are.
    """

    rows: list[Row]
    summary: Row


def read_table(path: Path | None, name: str, inputs: Sequence[str], texts: Sequence[str] = ()) -> list[Row]:
    """Read a CSV whose `inputs` columns must hold numbers, and `texts` something; other columns may be empty.

    Parameters
    ----------
    path : Path or None
        None: the table that ships under `name`.
    name : str
    inputs, texts : sequence of str
        Columns that a prediction needs: numbers, and words.

    Returns
    -------
    rows : list of dict
        Numbers where a cell holds one, text otherwise; empty cells are None.

    Raises
    ------
    ConfigError
        With every problem: no such file, missing columns, cells that are no numbers.
    """
    file = path or data_path("configs", "validation", f"{name}.csv")
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream)
            columns = reader.fieldnames or []
            raw = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise ConfigError(Problem("must be a CSV file that can be read", file=str(file))) from None
    problems = [
        Problem(
            must("must have the columns " + ", ".join((*inputs, *texts)), ", ".join(columns)),
            file=str(file),
            line=1,
        )
    ]
    if not {*inputs, *texts} <= set(columns):
        raise ConfigError(problems)
    problems = []
    rows = []
    for line, cells in enumerate(raw, start=2):
        row = {key: _number(value) for key, value in cells.items() if key is not None}
        for key in inputs:
            fault = _fault(key, row[key])
            if fault is not None:
                problems.append(Problem(must(fault, cells[key]), str(file), line, key))
        problems += [Problem("must not be empty", str(file), line, key) for key in texts if row[key] is None]
        rows.append(row)
    if problems:
        raise ConfigError(problems)
    return rows


def _fault(column: str, value: float | str | None) -> str | None:
    """Return what a cell must be and is not."""
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        return "must be a finite number, 0 or more"
    return "must be a fraction from 0 to 1" if column.startswith("density") and value > 1 else None


def _number(text: str | None) -> int | float | str | None:
    if text is None or not text.strip():
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


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
    rows = read_table(path, "dstc-fig21", ("density_a", "density_b"))
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
    times = "time_digitised_arbitrary_unit"
    whole = next(
        (row[times] for row in out if row["density_a"] == row["density_b"] == 1 and row.get(times)), None
    )
    pairs = [(row["predicted_normalised"], row[times] / whole) for row in out if whole and row.get(times)]
    return Validation(out, _errors(pairs))


def sparseloop(path: Path | None, progress: Progress | None = None) -> Validation:
    """Predict another model's cycles for ResNet-50 GEMMs on its own machine: a trend, not the truth.

    Parameters
    ----------
    path : Path or None
        CSV with m, k, n, density_activation and density_weight; None: the rows that ship.
    progress : callable, optional
        Called before each row.
    """
    rows = read_table(path, "dstc-sparseloop", ("m", "k", "n", "density_activation", "density_weight"))
    out = []
    for i, row in enumerate(rows):
        if progress is not None:
            progress(i, len(rows), f"{row['m']} x {row['n']} x {row['k']}")
        shape = (int(row["m"]), int(row["n"]), int(row["k"]))
        densities = (float(row["density_activation"]), float(row["density_weight"]))
        sparse = _cycles("dstc-sparseloop", "spwmma_64x64", shape, densities)
        dense = _cycles("dstc-sparseloop", "owmma_64x64", shape, densities)
        out.append({**row, "predicted_dstc_cycles": sparse, "predicted_tc_cycles": dense})
    pairs = [(row["predicted_dstc_cycles"], row["dstc_cycles"]) for row in out if row.get("dstc_cycles")]
    return Validation(out, _errors(pairs))


def _errors(pairs: Sequence[tuple[float, float]]) -> Row:
    errors = sorted(abs(got - want) / want for got, want in pairs)
    return {
        "n_measured": len(errors),
        "mean_absolute_error_fraction": sum(errors) / len(errors) if errors else None,
        "largest_absolute_error_fraction": errors[-1] if errors else None,
    }
