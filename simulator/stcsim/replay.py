"""Run again what a result says it came from, and tell whether it comes out the same.

Stands above the packages.  A folder of ``stcsim run`` holds its expanded study and its
results; that of a sweep holds both in its store.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stcsim.errors import ConfigError, Problem, must
from stcsim.points import expand
from stcsim.result.store import FILE_NAME, Store
from stcsim.study import load_study, run_study
from stcsim.sweep import Memory, Planned, plan, run


@dataclass(frozen=True)
class Replay:
    """What came of it.

    Parameters
    ----------
    n_equal : int
        Results that came out the same, to the last digit.
    differences : tuple of str
        What differs, in words.
    """

    n_equal: int
    differences: tuple[str, ...]


def replay(result: Path, points: Collection[int] = (), jobs: int = 1) -> Replay:
    """Run a result again.

    Parameters
    ----------
    result : Path
        The folder of a run or of a sweep, or a run's ``results.json``.
    points : collection of int
        Points of a sweep; empty: all that have an outcome.
    jobs : int
        Worker processes for a sweep.

    Returns
    -------
    replay : Replay

    Raises
    ------
    StcsimError
        If there is nothing to replay, or a file that the study names is gone.
    """
    folder = result.parent if result.name == "results.json" else result
    if (folder / FILE_NAME).is_file():
        return _replay_sweep(folder, points, jobs)
    if points:
        message = "must be the folder of a sweep, whose points can be chosen"
        raise ConfigError(Problem(message, str(folder)))
    study, kept = folder / "study.yaml", folder / "results.json"
    if not (study.is_file() and kept.is_file()):
        message = "must be a folder that stcsim run --out or stcsim sweep wrote (study.yaml and results.json)"
        raise ConfigError(Problem(message, str(folder)))
    try:
        document = json.loads(kept.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(Problem(f"must be JSON ({error})", str(kept))) from None
    if "rows" in document:
        return _replay_rows(study, document["rows"], jobs)
    again = [result.to_json() for result, _ in run_study(load_study(study))]
    names = [f"{old['workload']} on {old['machine']} with {old['kernel']}" for old in document["results"]]
    return _compared(names, document["results"], again)


def _replay_rows(study: Path, rows: list[dict[str, Any]], jobs: int) -> Replay:
    """Replay a study with axes that ``stcsim run`` wrote."""
    planned = plan(expand(study), jobs)
    sink = Memory()
    run(planned, sink, jobs=jobs)
    again = [_content(sink, item.key) for item in planned.runs]
    names = [f"point {row['point']}, {row['workload']}" for row in rows]
    return _compared(
        names, [row["result"] if row["result"] is not None else row["error"] for row in rows], again
    )


def _replay_sweep(folder: Path, points: Collection[int], jobs: int) -> Replay:
    with Store.open(folder) as store:
        meta, stored, outcomes = store.meta(), store.plan(), store.outcomes()
    known = {item.point for item in stored}
    unknown = sorted(set(points) - known)
    if unknown:
        what = must(
            f"must be points of the sweep (0 to {max(known, default=0)})", ", ".join(map(str, unknown))
        )
        raise ConfigError(Problem(what, path="--point"))
    with tempfile.TemporaryDirectory() as scratch:
        study = Path(scratch) / "study.yaml"
        study.write_text(meta["study_yaml"], encoding="utf-8")
        planned = plan(expand(study), jobs)
    chosen = [item for item in planned.runs if not points or item.point in points]
    sink = Memory()
    run(Planned(planned.space, tuple(chosen)), sink, jobs=jobs)
    by_place = {(item.point, item.layer): item for item in stored}
    names, old, new = [], [], []
    for item in chosen:
        before = by_place.get((item.point, item.layer))
        if before is None or before.key not in outcomes:
            continue
        outcome = outcomes[before.key]
        names.append(f"point {item.point}, {item.about['workload']}")
        old.append(json.loads(outcome.content) if outcome.status == "done" else outcome.content)
        new.append(_content(sink, item.key))
    return _compared(names, old, new)


def _content(sink: Memory, key: str) -> Any:
    outcome = sink.kept[key]
    return json.loads(outcome.content) if outcome.status == "done" else outcome.content


def _compared(names: list[str], old: list[Any], new: list[Any]) -> Replay:
    differences = []
    if len(old) != len(new):
        differences.append(f"{len(old)} results before, {len(new)} now")
    n_equal = 0
    for name, before, after in zip(names, old, new, strict=False):
        if before == after:
            n_equal += 1
        elif isinstance(before, dict) and isinstance(after, dict):
            keys = [key for key in before if before.get(key) != after.get(key)]
            shown = f"{keys[0]} {before[keys[0]]} -> {after.get(keys[0])}" if keys else "new keys"
            differences.append(f"{name}: {shown}" + (f", and {len(keys) - 1} more" if len(keys) > 1 else ""))
        else:
            differences.append(f"{name}: {_kind(before)} before, {_kind(after)} now")
    return Replay(n_equal, tuple(differences))


def _kind(outcome: Any) -> str:
    return "done" if isinstance(outcome, dict) else f"failed ({outcome})"
