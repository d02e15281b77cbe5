"""Published sparsity as tables: densities of the weight and the input of each layer of a network.

Read from workloads/sparsity (or a file of the user's own) beside a network's layers.
A row names a layer, or several by a pattern (``layer3.*``); the first row that fits
counts, so exceptions stand above the rule.  Knows no patterns of zeros: only how many.

Columns: layer, weight_density, activation_density (of the layer's input, padding left
out), zero_kernels (share of the 2-D filters without any weight; may be empty), source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from stcsim.errors import Problem, WorkloadError, must
from stcsim.workload.network_table import read_rows


@dataclass(frozen=True)
class LayerSparsity:
    """How sparse a layer is.

    Parameters
    ----------
    weight, activation : float
        Densities, 0 to 1.
    zero_kernels : float or None
        Share of the 2-D filters without any weight; None: not known.
    """

    weight: float = 1.0
    activation: float = 1.0
    zero_kernels: float | None = None


@dataclass(frozen=True)
class SparsityTable:
    """The rows of a table.

    Parameters
    ----------
    path : Path
    rows : tuple of (str, LayerSparsity)
        A name or pattern of layers each.
    """

    path: Path
    rows: tuple[tuple[str, LayerSparsity], ...]

    def of(self, layer: str) -> LayerSparsity:
        """Return the sparsity of a layer.

        Raises
        ------
        WorkloadError
            If no row fits it.
        """
        for pattern, sparsity in self.rows:
            if fnmatchcase(layer, pattern):
                return sparsity
        raise WorkloadError(
            Problem(must("must have a row that fits every layer", f"none for {layer}"), str(self.path))
        )


def load_sparsity(path: Path) -> SparsityTable:
    """Read a table.

    Raises
    ------
    WorkloadError
        With file and line of every row that does not hold.
    """
    rows = []
    problems = []
    for line, row in read_rows(
        path, ("layer", "weight_density", "activation_density", "zero_kernels", "source")
    ):
        found: dict[str, float | None] = {}
        for column in ("weight_density", "activation_density", "zero_kernels"):
            try:
                found[column] = _fraction(row, column)
            except ValueError as error:
                problems.append(Problem(str(error), str(path), line, column))
        if len(found) == 3:
            weight, activation, zero_kernels = found.values()
            if weight is not None and activation is not None:
                rows.append((row["layer"], LayerSparsity(weight, activation, zero_kernels)))
    if problems:
        raise WorkloadError(problems)
    return SparsityTable(path, tuple(rows))


def _fraction(row: Mapping[str, str], column: str) -> float | None:
    """Return a number from 0 to 1; None for an empty cell of ``zero_kernels``."""
    text = row[column]
    if not text and column == "zero_kernels":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(must("must be a number from 0 to 1", text or "nothing"))
    return value
