"""Run the points of a study: what is not in the store yet, over several processes.

Stands above the packages.  `stcsim.points` lists the points, this module gives each
run its key, hands those without an outcome to worker processes and keeps what comes
back; how and where it is kept is a `Sink`'s affair (the store, or memory).

The key of a run is a hash of its machine, kernel and settings written out, the
digests of both operand patterns, the seeds and the model version: equal keys,
equal results.  Runs on the same operands follow each other, and a worker keeps the
operands it made last, so that they are made once or twice and not once a point.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from stcsim import MODEL_VERSION, __version__
from stcsim.errors import StcsimError
from stcsim.points import DesignPoint, DesignSpace, sentence
from stcsim.problem import run_workload
from stcsim.result.result import Result
from stcsim.result.store import Outcome, PlannedRun, Status
from stcsim.run import Settings
from stcsim.study import LoadedStudy, OperandPlan
from stcsim.workload.operand import Operand

KEPT_OPERANDS = 4
"""Operands that a worker keeps: both of the workload it is at, and both of the one before."""


class Sink(Protocol):
    """Where outcomes go, and what is there already."""

    def statuses(self) -> dict[str, Status]:
        """Return the keys that have an outcome."""

    def find(self, key: str) -> Outcome | None:
        """Return the outcome of a run, if there is one."""

    def put(self, outcomes: Sequence[Outcome]) -> None:
        """Keep outcomes."""


@dataclass
class Memory:
    """A sink that forgets when the process ends."""

    kept: dict[str, Outcome] = field(default_factory=dict)

    def statuses(self) -> dict[str, Status]:
        """Return the keys that have an outcome."""
        return {key: outcome.status for key, outcome in self.kept.items()}

    def find(self, key: str) -> Outcome | None:
        """Return the outcome of a run, if there is one."""
        return self.kept.get(key)

    def put(self, outcomes: Sequence[Outcome]) -> None:
        """Keep outcomes."""
        self.kept |= {outcome.key: outcome for outcome in outcomes}


@dataclass(frozen=True)
class Tally:
    """How far a sweep is.

    Parameters
    ----------
    done, failed, total : int
        Runs with an outcome, those of them that failed, and all of them.
    fresh : int
        Outcomes of this call, not found in the store.
    best : str
        The fastest point so far, in words; empty until one can be compared.
    """

    done: int
    failed: int
    total: int
    fresh: int
    best: str


@dataclass(frozen=True)
class Planned:
    """Every run of a design space with its key.

    Parameters
    ----------
    space : DesignSpace
    runs : tuple of PlannedRun
        By point and layer.
    """

    space: DesignSpace
    runs: tuple[PlannedRun, ...]

    def meta(self, study_yaml: str) -> dict[str, str]:
        """Return what a store keeps about the study; `study_yaml` is its expanded text."""
        study = self.space.base.study
        facts = {
            "summary": study.summary,
            "axes": self.space.axis_labels,
            "axis_groups": self.space.axis_groups,
            "axis_defaults": self.space.axis_defaults,
            "metrics": study.metrics,
            "cost": study.cost,
        }
        return {
            "study": study.name,
            "study_yaml": study_yaml,
            "version": __version__,
            "model_version": str(MODEL_VERSION),
            "facts": json.dumps(facts),
        }


def plan(space: DesignSpace, jobs: int = 1) -> Planned:
    """Give every run its key; generated operands are made once for that, by `jobs` processes.

    Parameters
    ----------
    space : DesignSpace
    jobs : int

    Returns
    -------
    planned : Planned
    """
    operands: dict[str, OperandPlan] = {}
    for point in space.points:
        loaded = point.variant.loaded
        for pair in loaded.sources if loaded else ():
            operands |= {_recipe(operand): operand for operand in pair}
    recipes = [recipe for recipe, operand in operands.items() if operand.stored is None]
    digests = {
        recipe: operand.stored.digest for recipe, operand in operands.items() if operand.stored is not None
    }
    with _workers(space, min(jobs, len(recipes)), operands) as workers:
        digests |= dict(zip(recipes, workers.map(_digest, recipes), strict=True))
    runs = []
    texts: dict[int, str] = {}
    for point in space.points:
        for layer, name in enumerate(space.layers):
            about = {
                "workload": name,
                "machine": point.machine_name,
                "kernel": point.kernel_name,
                "repetition": point.repetition,
                "baseline": point.baseline,
                "axes": dict(point.axes),
            }
            runs.append(PlannedRun(point.number, layer, _key(point, layer, digests, texts, about), about))
    return Planned(space, tuple(runs))


def _recipe(operand: OperandPlan) -> str:
    """Return a text that says how an operand is made; equal texts, equal operands."""
    if operand.stored is not None:
        what = operand.stored.digest
    else:
        what = f"{type(operand.options).__name__} {operand.options} {operand.shape} {operand.k_axis}"
    return f"{what} {operand.seed} {operand.stream} {operand.source.role} {operand.source.file} {operand.source.key}"


def _key(
    point: DesignPoint, layer: int, digests: dict[str, str], texts: dict[int, str], about: dict[str, object]
) -> str:
    """Hash everything that decides the result of one layer of a point."""
    content: dict[str, object] = {"model_version": MODEL_VERSION}
    loaded = point.variant.loaded
    if point.error is not None or loaded is None or point.machine is None or point.kernel is None:
        content |= {"error": point.error, "about": about}
    else:
        study = loaded.study
        content |= {
            "machine": _text(point.machine, point.machine.machine, texts),
            "kernel": _text(point.kernel, point.kernel.kernel, texts),
            "settings": [
                study.dtype,
                study.adapt,
                study.sparse_side,
                study.engine,
                study.level,
                study.check_tiles,
            ],
            "workload": study.workloads[layer].model_dump_json(exclude={"a", "b"}),
            "operands": [[digests[_recipe(operand)], _recipe(operand)] for operand in loaded.sources[layer]],
        }
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def _text(entry: object, model: object, texts: dict[int, str]) -> str:
    """Return a machine or kernel written out, with what is assumed of it; made once for each entry."""
    if id(entry) not in texts:
        dumped = model.model_dump_json()  # type: ignore[attr-defined]  # both are pydantic models
        assumed = [item.to_json() for item in entry.assumed]  # type: ignore[attr-defined]
        texts[id(entry)] = json.dumps([dumped, assumed], default=str)
    return texts[id(entry)]


def run(
    planned: Planned,
    sink: Sink,
    *,
    jobs: int = 1,
    retry_failed: bool = False,
    progress: Callable[[Tally], None] | None = None,
) -> Tally:
    """Run what has no outcome yet.

    Parameters
    ----------
    planned : Planned
    sink : Sink
    jobs : int
        Worker processes; 1 runs in this process with two threads.  Results do not depend on it.
    retry_failed : bool
        Whether runs that failed before are tried again.
    progress : callable, optional
        Called after every outcome.

    Returns
    -------
    tally : Tally

    Raises
    ------
    KeyboardInterrupt
        After the runs in flight have been kept.
    StoreError
        If an outcome cannot be kept.
    """
    watch = _Watch(planned, progress)
    known = sink.statuses()
    done = {key: status for key, status in known.items() if status == "done" or not retry_failed}
    todo: dict[str, PlannedRun] = {}
    for planned_run in planned.runs:
        if planned_run.key not in done:
            todo.setdefault(planned_run.key, planned_run)
    watch.found(done)
    points = planned.space.points
    impossible = [item for item in todo.values() if points[item.point].error is not None]
    if impossible:
        outcomes = [Outcome(item.key, "failed", points[item.point].error or "", 0.0) for item in impossible]
        sink.put(outcomes)
        for outcome in outcomes:
            watch.came(outcome)
    rest = [item for item in todo.values() if points[item.point].error is None]
    rest.sort(key=lambda item: _order(points[item.point], item.layer))
    first, rest = _warming(rest, points, jobs)
    for few, processes in ((first, 1), (rest, min(jobs, len(rest)))):
        with _workers(planned.space, processes, {}) as workers:
            for outcome in workers.outcomes(few, sink):
                watch.came(outcome)
    return watch.tally()


def _order(point: DesignPoint, layer: int) -> tuple[int, int, bool]:
    """Return what to sort runs by: those on the same operands together, the baseline first."""
    return point.baseline, layer, point.number != point.baseline


def _warming(
    runs: Sequence[PlannedRun], points: Sequence[DesignPoint], jobs: int
) -> tuple[list[PlannedRun], list[PlannedRun]]:
    """Split off one run of each lowering, to be run before workers are forked.

    They inherit what these runs load and compile.
    """
    if jobs <= 1:
        return [], list(runs)
    first: dict[str, PlannedRun] = {}
    for item in runs:
        kernel = points[item.point].kernel
        first.setdefault(kernel.kernel.lowering if kernel else "", item)
    return list(first.values()), [item for item in runs if item not in first.values()]


class _Watch:
    """Counts outcomes and remembers the fastest point."""

    def __init__(self, planned: Planned, progress: Callable[[Tally], None] | None) -> None:
        self._planned = planned
        self._progress = progress
        self._places: dict[str, list[PlannedRun]] = {}
        for item in planned.runs:
            self._places.setdefault(item.key, []).append(item)
        self._times: dict[tuple[int, int], float] = {}
        self._done = self._failed = self._fresh = 0
        self._best: tuple[float, str] = (0.0, "")

    def found(self, statuses: dict[str, Status]) -> None:
        """Count what was in the store."""
        for key, status in statuses.items():
            self._done += len(self._places.get(key, ()))
            self._failed += len(self._places.get(key, ())) if status == "failed" else 0

    def came(self, outcome: Outcome) -> None:
        """Count an outcome and tell how far the sweep is."""
        places = self._places[outcome.key]
        self._done += len(places)
        self._fresh += len(places)
        self._failed += len(places) if outcome.status == "failed" else 0
        if outcome.status == "done":
            data = json.loads(outcome.content)
            for place in places:
                self._times[place.point, place.layer] = data["time_us"]
                self._compare(place)
        if self._progress is not None:
            self._progress(self.tally())

    def _compare(self, place: PlannedRun) -> None:
        time_us = self._times[place.point, place.layer]
        baseline = self._times.get((place.about["baseline"], place.layer))
        is_other = place.point != place.about["baseline"]
        if is_other and baseline and time_us and baseline / time_us > self._best[0]:
            point = self._planned.space.points[place.point]
            text = f"{baseline / time_us:.2f}x on {place.about['workload']}: point {point.number} ({point.label})"
            self._best = baseline / time_us, text

    def tally(self) -> Tally:
        """Return the counts so far."""
        return Tally(self._done, self._failed, len(self._planned.runs), self._fresh, self._best[1])


# What a worker process knows: set before it is forked, so that nothing of it is sent.
_space: DesignSpace | None = None
_operand_plans: dict[str, OperandPlan] = {}
_operands: OrderedDict[str, Operand] = OrderedDict()
_threads = 1


@contextmanager
def _workers(space: DesignSpace, jobs: int, operands: dict[str, OperandPlan]) -> Iterator[_Workers]:
    """Start `jobs` processes that know `space`; with one or none, everything happens in this process."""
    global _space, _operand_plans, _threads
    _space, _operand_plans = space, operands
    _operands.clear()
    if jobs <= 1:
        _threads = 2
        yield _Workers(None, 1)
        return
    _threads = 1
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        # numpy's idle threads make newer Pythons warn of the fork; no thread of ours runs at this point.
        warnings.simplefilter("ignore", DeprecationWarning)
        pool = ProcessPoolExecutor(
            jobs, mp_context=context, initializer=_begin_worker, initargs=(os.getpid(),)
        )
        try:
            yield _Workers(pool, jobs)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end when the parent has been killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Workers:
    """Worker processes, or this process in their place."""

    def __init__(self, pool: ProcessPoolExecutor | None, jobs: int) -> None:
        self._pool = pool
        self._jobs = jobs

    def map(self, function: Callable[[str], str], items: Sequence[str]) -> Iterator[str]:
        """Apply a function to every item, in order."""
        return map(function, items) if self._pool is None else self._pool.map(function, items)

    def outcomes(self, runs: Sequence[PlannedRun], sink: Sink) -> Iterator[Outcome]:
        """Run everything; keep each outcome in `sink` as it comes, then yield it.

        Only a few runs are handed out ahead, and none that another process has done meanwhile.
        """
        if self._pool is None:
            for item in runs:
                outcome = self._found(item, sink)
                if outcome is None:
                    outcome = _run_one(item.point, item.layer, item.key)
                    sink.put([outcome])
                yield outcome
            return
        waiting = list(reversed(runs))
        flying: set[Future[Outcome]] = set()
        try:
            while waiting or flying:
                while waiting and len(flying) < 2 * self._jobs:
                    item = waiting.pop()
                    elsewhere = self._found(item, sink)
                    if elsewhere is not None:
                        yield elsewhere
                        continue
                    flying.add(self._pool.submit(_run_one, item.point, item.layer, item.key))
                if not flying:
                    return
                finished, flying = wait(flying, return_when=FIRST_COMPLETED)
                outcomes = [future.result() for future in finished]
                sink.put(outcomes)
                yield from outcomes
        except BrokenProcessPool:
            message = (
                "must have memory for every worker, but one was ended by the system: go on with fewer --jobs"
            )
            raise StcsimError(message) from None
        except KeyboardInterrupt:
            finished, _ = wait([future for future in flying if not future.cancel()])
            sink.put([future.result() for future in finished if future.exception() is None])
            raise

    @staticmethod
    def _found(item: PlannedRun, sink: Sink) -> Outcome | None:
        """Return what another process has done meanwhile; a failed run is tried again."""
        outcome = sink.find(item.key)
        return outcome if outcome is not None and outcome.status == "done" else None


def _digest(recipe: str) -> str:
    """Make an operand and return the digest of its pattern."""
    return _operand_plans[recipe].make().pattern.digest


def _operand(operand_plan: OperandPlan) -> Operand:
    """Return an operand, made anew only if it is none of the last few."""
    recipe = _recipe(operand_plan)
    if recipe not in _operands:
        _operands[recipe] = operand_plan.make()
        while len(_operands) > KEPT_OPERANDS:
            _operands.popitem(last=False)
    _operands.move_to_end(recipe)
    return _operands[recipe]


def _run_one(number: int, layer: int, key: str) -> Outcome:
    """Run one layer of one point; what goes wrong in it becomes its outcome."""
    start = time.monotonic()
    if _space is None:
        message = "a worker was started without a design space"
        raise AssertionError(message)
    try:
        content, status = json.dumps(_simulate(_space.points[number], layer).to_json()), "done"
    except StcsimError as error:
        content, status = sentence(error.problems), "failed"
    except Exception as error:  # a fault of the program must not end the sweep either
        content, status = f"{type(error).__name__}: {error}", "failed"
    return Outcome(key, "done" if status == "done" else "failed", content, time.monotonic() - start)


def _simulate(point: DesignPoint, layer: int) -> Result:
    loaded = point.variant.loaded
    if loaded is None or point.machine is None or point.kernel is None:
        message = f"point {point.number} has nothing to run"
        raise AssertionError(message)
    workload = loaded.study.workloads[layer]
    a, b = (_operand(operand_plan) for operand_plan in loaded.sources[layer])
    return run_workload(workload, a, b, point.machine, point.kernel, _settings(loaded))


def _settings(loaded: LoadedStudy) -> Settings:
    study = loaded.study
    return Settings(
        dtype=study.dtype,
        adapt=study.adapt,
        sparse_side=study.sparse_side,
        engine=study.engine,
        check_tiles=study.check_tiles,
        threads=_threads,
        level=study.level,
    )
