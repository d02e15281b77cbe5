"""Predictions beside measurements: the table they are read from, the errors they come to.

Place in the data flow: `stcsim.dstc_validation` and `stcsim.gpu_validation` make a `Validation`; the command line
and `stcsim.report.plot_validation` show it.  Knows no machine and no kernel.
"""

from __future__ import annotations

import csv
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stcsim.errors import ConfigError, Problem, must
from stcsim.resources import data_path

LARGEST_SIZE = 2**31 - 1
"""Of M, N and K: what a kernel's 32-bit indices hold."""
_SIZES = ("m", "n", "k")
_NEAR = 0.85
"""From this likeness (difflib's) on, a column that nobody reads is taken for a misspelt one."""
Row = dict[str, Any]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Validation:
    """Rows with predictions, and how far those are from what was measured.

    Parameters
    ----------
    rows : list of dict
        The input's columns, then the predictions.
    pairs : dict of str to list of (float, float)
        By measured quantity: measured and predicted value of each row that has both.
    unit : str
        Of the pairs.
    """

    rows: list[Row]
    pairs: Mapping[str, Sequence[tuple[float, float]]]
    unit: str

    @property
    def summary(self) -> dict[str, dict[str, Any]]:
        """How many rows were measured, mean, 90th percentile and largest absolute error, by quantity."""
        return {name: error_figures(pairs) for name, pairs in self.pairs.items() if pairs}


def measured_pairs(rows: Sequence[Row], column: str) -> list[tuple[float, float]]:
    """Return the measured and the predicted value of each row that has both in a column."""
    return [
        (float(row[column]), float(row[f"predicted_{column}"]))
        for row in rows
        if row.get(column) is not None and row.get(f"predicted_{column}") is not None
    ]


def error_figures(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return how many pairs there are, and the mean, 90th percentile and largest of their relative errors.

    Examples
    --------
    >>> error_figures([(10, 11), (10, 7)])["mean_absolute_error_fraction"]
    0.2
    """
    errors = sorted(abs(predicted - measured) / measured for measured, predicted in pairs)
    return {
        "n_measured": len(errors),
        "mean_absolute_error_fraction": sum(errors) / len(errors),
        "p90_absolute_error_fraction": errors[int(0.9 * len(errors))],
        "largest_absolute_error_fraction": errors[-1],
    }


def read_table(
    path: Path | None,
    name: str,
    inputs: Sequence[str],
    texts: Sequence[str] = (),
    measured: Sequence[str] = (),
) -> list[Row]:
    """Read a CSV whose `inputs` columns must hold numbers, and `texts` something; other columns may be empty.

    Parameters
    ----------
    path : Path or None
        None: the table that ships under `name`.
    name : str
    inputs, texts : sequence of str
        Columns that a prediction needs: numbers, and words.
    measured : sequence of str
        Columns that may be left out or empty, and else hold numbers above 0.

    Returns
    -------
    rows : list of dict
        Numbers where a cell holds one, text otherwise; empty cells are None.

    Raises
    ------
    ConfigError
        With every problem: no such file, columns that are missing, doubled or nearly named as a measured
        one, rows of another length, cells that are no numbers, sizes that are not whole.
    """
    file = path or data_path("configs", "validation", f"{name}.csv")
    try:
        # A spreadsheet's CSV begins with a byte order mark, which is not part of its first column's name.
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            lines = [(reader.line_num, cells) for cells in reader if cells]
    except (OSError, UnicodeDecodeError, csv.Error):
        raise ConfigError(Problem("must be a CSV file that can be read", file=str(file))) from None
    columns = [cell.strip() for cell in lines[0][1]] if lines else []
    problems = [Problem(text, str(file), 1) for text in _header_faults(columns, (*inputs, *texts), measured)]
    if problems:
        raise ConfigError(problems)
    rows = []
    for line, values in lines[1:]:
        if len(values) != len(columns):
            what = must(f"must have {len(columns)} cells, as its title", len(values))
            problems.append(Problem(what, str(file), line))
            continue
        cells = dict(zip(columns, values, strict=True))
        row = {key: _number(value) for key, value in cells.items()}
        for key in inputs:
            fault = _fault(key, row[key])
            if fault is not None:
                problems.append(Problem(must(fault, cells[key].strip() or "empty"), str(file), line, key))
        problems += [Problem("must not be empty", str(file), line, key) for key in texts if row[key] is None]
        problems += [
            Problem(must("must be a finite number above 0, or empty", cells[key]), str(file), line, key)
            for key in measured
            if row.get(key) is not None and not _is_measurement(row[key])
        ]
        rows.append(row)
    if problems:
        raise ConfigError(problems)
    return rows


def _header_faults(columns: Sequence[str], needed: Sequence[str], measured: Sequence[str]) -> list[str]:
    """Return what a title must be and is not; columns that are no business of the prediction's may be there."""
    if not set(needed) <= set(columns):
        return [must("must have the columns " + ", ".join(needed), ", ".join(columns) or "an empty line")]
    doubled = sorted({name for name in columns if columns.count(name) > 1})
    faults = [must("must have each column once", name) for name in doubled]
    absent = [name for name in measured if name not in columns]
    return faults + [
        must("must have measured columns of the names known", name, near=absent)
        for name in columns
        if name not in (*needed, *measured) and difflib.get_close_matches(name, absent, 1, _NEAR)
    ]


def _fault(column: str, value: float | str | None) -> str | None:
    """Return what a cell must be and is not."""
    if column.lower() in _SIZES:
        whole = isinstance(value, int | float) and 0 <= value <= LARGEST_SIZE and float(value).is_integer()
        return None if whole else f"must be a whole number from 0 to {LARGEST_SIZE:,}"
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        return "must be a finite number, 0 or more"
    return "must be a fraction from 0 to 1" if column.startswith("density") and value > 1 else None


def _is_measurement(value: float | str | None) -> bool:
    return isinstance(value, int | float) and 0 < value < math.inf


def _number(text: str | None) -> int | float | str | None:
    if text is None or not text.strip():
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
