"""What differs between two sweeps, run by run; reads results only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from stcsim.result.sweep_results import SweepResults, SweepRow


@dataclass(frozen=True)
class Comparison:
    """Two sweeps side by side.

    Parameters
    ----------
    changed : tuple of (SweepRow, SweepRow)
        Runs of both whose cycles, status or error differ.
    only_first, only_second : tuple of SweepRow
        Runs of one alone.
    n_equal : int
    model_versions : (int, int)
    """

    changed: tuple[tuple[SweepRow, SweepRow], ...]
    only_first: tuple[SweepRow, ...]
    only_second: tuple[SweepRow, ...]
    n_equal: int
    model_versions: tuple[int, int]

    @property
    def is_equal(self) -> bool:
        """Whether both hold the same runs with the same outcome."""
        return not (self.changed or self.only_first or self.only_second)

    def lines(self, first: str, second: str) -> Iterator[str]:
        """Yield what differs, in words; `first` and `second` name the two."""
        if len(set(self.model_versions)) > 1:
            yield f"model versions differ: {self.model_versions[0]} in {first}, {self.model_versions[1]} in {second}"
        for old, new in self.changed:
            yield f"{_name(old)}: {_outcome(old)} -> {_outcome(new)}{_ratio(old, new)}"
        for where, rows in ((first, self.only_first), (second, self.only_second)):
            for row in rows:
                yield f"only in {where}: {_name(row)}: {_outcome(row)}"
        yield (
            f"{self.n_equal} runs equal, {len(self.changed)} differ, "
            f"{len(self.only_first)} only in {first}, {len(self.only_second)} only in {second}"
        )


def compare(first: SweepResults, second: SweepResults) -> Comparison:
    """Match the rows of two sweeps by what was run, and compare their outcomes."""
    others = {_identity(row): row for row in second}
    changed, only_first, n_equal = [], [], 0
    for row in first:
        other = others.pop(_identity(row), None)
        if other is None:
            only_first.append(row)
        elif _outcome(row) != _outcome(other):
            changed.append((row, other))
        else:
            n_equal += 1
    versions = (first.model_version, second.model_version)
    return Comparison(tuple(changed), tuple(only_first), tuple(others.values()), n_equal, versions)


def _identity(row: SweepRow) -> tuple[object, ...]:
    return row.workload, row.machine, row.kernel, row.repetition, json.dumps(dict(row.axes), sort_keys=True)


def _name(row: SweepRow) -> str:
    values = [f"{path} = {value}" for path, value in row.axes.items() if value is not None]
    return ", ".join([f"{row.workload} on {row.machine} with {row.kernel}", *values])


def _outcome(row: SweepRow) -> str:
    return f"failed ({row.error})" if row.result is None else f"{row.result.cycles:,} cycles"


def _ratio(old: SweepRow, new: SweepRow) -> str:
    if old.result is None or new.result is None or not old.result.cycles:
        return ""
    return f" ({new.result.cycles / old.result.cycles - 1:+.2%})"
