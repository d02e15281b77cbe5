"""The results of a sweep, read: rows by point and layer, each with its baseline.

Place in the data flow: made from a `stcsim.result.store.Store` or from outcomes in
memory; read by exports, tables and plots.  Knows nothing of simulation or
plotting.  Rows come in the order of the study, never in that of arrival.
"""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from stcsim.errors import ConfigError, Problem, must, unknown
from stcsim.result.result import Check, Result
from stcsim.result.speed_up import speed_up
from stcsim.result.store import Outcome, PlannedRun, Status, Store
from stcsim.result.writer import flatten

_FIRST = ("point", "status", "error", "workload", "machine", "kernel", "repetition")


@dataclass(frozen=True)
class SweepRow:
    """One layer of one point.

    Parameters
    ----------
    point, layer, repetition, baseline : int
        `baseline` is the number of the point that this one is compared with.
    workload, machine, kernel : str
    axes : dict of str to object
        The value of each axis, None where the point has no such parameter.
    status : "done" or "failed"
    result : Result or None
    error : str
        Why it failed; empty where it did not.
    speed_up : float or None
        Baseline time over time.
    """

    point: int
    layer: int
    repetition: int
    baseline: int
    workload: str
    machine: str
    kernel: str
    axes: Mapping[str, Any]
    status: Status
    result: Result | None
    error: str
    speed_up: float | None

    @property
    def is_baseline(self) -> bool:
        """Whether this row is what others are compared with."""
        return self.point == self.baseline

    def flat(self) -> dict[str, Any]:
        """Return the row as columns, units in their names."""
        row: dict[str, Any] = {name: getattr(self, name) for name in _FIRST}
        row |= {path: _cell(value) for path, value in self.axes.items()}
        row |= {"speed_up": self.speed_up, "baseline_point": self.baseline}
        if self.result is not None:
            row |= {name: value for name, value in flatten(self.result).items() if name not in row}
        return row


@dataclass(frozen=True)
class SweepResults:
    """The rows of a sweep and what is known of its study.

    Parameters
    ----------
    study, summary, version : str
    model_version : int
    axes : dict of str to str
        Path and label of each axis.
    axis_groups : tuple of tuple of str
        Paths that change together.
    axis_defaults : dict of str to object
        What each axis' parameter is without the sweep.
    metrics : tuple of str
    cost : str or None
    rows : tuple of SweepRow
        Those that have an outcome.
    missing : int
        Runs that have none yet.
    """

    study: str
    summary: str
    version: str
    model_version: int
    axes: dict[str, str]
    axis_groups: tuple[tuple[str, ...], ...]
    axis_defaults: dict[str, Any]
    metrics: tuple[str, ...]
    cost: str | None
    rows: tuple[SweepRow, ...]
    missing: int

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    @property
    def results(self) -> list[Result]:
        """The results of the runs that were done."""
        return [row.result for row in self.rows if row.result is not None]

    @property
    def failed(self) -> list[SweepRow]:
        """The rows that failed."""
        return [row for row in self.rows if row.status == "failed"]

    def flat(self) -> list[dict[str, Any]]:
        """Return every row with the same columns, in the order in which they first appear."""
        rows = [row.flat() for row in self.rows]
        columns = dict.fromkeys(column for row in rows for column in row)
        counts = {name for row in rows for name in row if name.endswith(("_cycles", "_bytes", "_issued"))}
        blank = {name: 0 if name in counts else None for name in columns}
        return [
            {name: row.get(name, blank[name] if row["status"] == "done" else None) for name in columns}
            for row in rows
        ]

    def to_frame(self) -> Any:
        """Return the rows as a pandas DataFrame.

        Raises
        ------
        ConfigError
            If pandas is not installed.
        """
        try:
            pandas = importlib.import_module("pandas")  # not a dependency of stcsim
        except ImportError:
            message = "must have pandas for to_frame (pip install pandas)"
            raise ConfigError(Problem(message)) from None
        return pandas.DataFrame(self.flat())

    @classmethod
    def read(cls, folder: Path) -> SweepResults:
        """Read the store in a folder.

        Raises
        ------
        StcsimError
            If it holds no sweep.
        """
        with Store.open(folder) as store:
            return cls.collect(store.meta(), store.plan(), store.outcomes())

    @classmethod
    def collect(
        cls, meta: Mapping[str, str], plan: Sequence[PlannedRun], outcomes: Mapping[str, Outcome]
    ) -> SweepResults:
        """Join a plan with the outcomes that there are."""
        results = {
            key: parse_result(json.loads(outcome.content))
            for key, outcome in outcomes.items()
            if outcome.status == "done"
        }
        by_place = {(run.point, run.layer): run.key for run in plan}
        rows = []
        for run in plan:
            outcome = outcomes.get(run.key)
            if outcome is None:
                continue
            result = results.get(run.key)
            baseline = results.get(by_place[run.about["baseline"], run.layer])
            rows.append(
                SweepRow(
                    point=run.point,
                    layer=run.layer,
                    status=outcome.status,
                    result=result,
                    error=outcome.content if outcome.status == "failed" else "",
                    speed_up=None if result is None else speed_up(result, baseline),
                    **run.about,
                )
            )
        facts = json.loads(meta["facts"])
        return cls(
            study=meta["study"],
            summary=facts["summary"],
            version=meta["version"],
            model_version=int(meta["model_version"]),
            axes=facts["axes"],
            axis_groups=tuple(map(tuple, facts["axis_groups"])),
            axis_defaults=facts["axis_defaults"],
            metrics=tuple(facts["metrics"]),
            cost=facts["cost"],
            rows=tuple(rows),
            missing=len(plan) - len(rows),
        )


def parse_result(data: Mapping[str, Any]) -> Result:
    """Return the result that `Result.to_json` wrote.

    Raises
    ------
    ConfigError
        If it lacks a number that results have now.
    """
    values = {item.name: data[item.name] for item in fields(Result) if item.name in data}
    values |= {
        "check": Check(**data["check"]),
        "notes": tuple(data["notes"]),
        "assumed": tuple(data["assumed"]),
    }
    try:
        return Result(**values)
    except TypeError:
        message = must(
            "must hold results of this version of stcsim", f"of {data.get('version')}: run the sweep anew"
        )
        raise ConfigError(Problem(message, path="result")) from None


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of equal columns as CSV."""
    buffer = io.StringIO()
    if rows:
        writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return buffer.getvalue()


def json_text(results: SweepResults) -> str:
    """Return a sweep as JSON: what is known of its study, then a row for each layer of each point."""
    document = {
        "study": results.study,
        "version": results.version,
        "model_version": results.model_version,
        "axes": results.axes,
        "rows": [
            {
                "point": row.point,
                "layer": row.layer,
                "repetition": row.repetition,
                "baseline_point": row.baseline,
                "axes": row.axes,
                "workload": row.workload,
                "machine": row.machine,
                "kernel": row.kernel,
                "status": row.status,
                "error": row.error or None,
                "speed_up": row.speed_up,
                "result": row.result.to_json() if row.result else None,
            }
            for row in results
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def require_columns(rows: Sequence[Mapping[str, Any]], names: Sequence[str], option: str) -> None:
    """Refuse names that are no columns.

    Raises
    ------
    ConfigError
        With every such name and the nearest column.
    """
    known = list(rows[0]) if rows else []
    problems = [Problem(unknown("column", name, known), path=option) for name in names if name not in known]
    if rows and problems:
        raise ConfigError(problems)


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
