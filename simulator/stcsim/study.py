"""A study: from its file to results.

Stands above the packages.  `load_study` reads and checks everything that a study
names, before anything runs; `run_study` runs each workload on each machine with
each kernel, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from stcsim.catalog import (
    AUTO,
    Assumption,
    KernelEntry,
    MachineEntry,
    Rejected,
    load_kernel,
    load_machine,
    no_kernel,
    rejected_by_all,
    stand_in,
    within,
)
from stcsim.config.document import Document
from stcsim.config.loader import load
from stcsim.config.override import apply_overrides
from stcsim.config.study import Study
from stcsim.config.validation import validate
from stcsim.config.workload import OperandSource, Workload
from stcsim.errors import ConfigError, Problem, StcsimError, WorkloadError, must
from stcsim.network import expand, find_file
from stcsim.parallel import ordered
from stcsim.problem import run_workload
from stcsim.result.result import Result
from stcsim.run import Settings, require_compatible, require_fit
from stcsim.workload.generation import GeneratorOptions
from stcsim.workload.generator import generate, parse_options
from stcsim.workload.operand import Operand
from stcsim.workload.operand_shape import operand_shapes
from stcsim.workload.stored_pattern import StoredPattern

Progress = Callable[[int, int, str], None]
"""Called before each run (after it, where processes run) with its number, the number of runs, what it is."""

LAYERS_PER_PROCESS = 2
"""Workloads that a process must have before it is worth starting."""


@dataclass(frozen=True)
class Point:
    """One run of a study."""

    workload: int
    machine: MachineEntry
    kernel: KernelEntry


@dataclass(frozen=True)
class LoadedStudy:
    """A study with everything that it names, read and checked.

    Parameters
    ----------
    study : Study
    document : Document
        As read, overrides applied, the layers of networks written out.
    points : tuple of Point
        In the order in which they run: workloads outermost.
    baseline : int
        Which of a workload's points is the baseline.
    sources : tuple of (OperandPlan, OperandPlan)
        How to make the operands of each workload.
    """

    study: Study
    document: Document
    points: tuple[Point, ...]
    baseline: int
    sources: tuple[tuple[OperandPlan, OperandPlan], ...]

    @property
    def points_per_workload(self) -> int:
        """Machine-and-kernel pairs."""
        return len(self.points) // len(self.study.workloads)

    @property
    def assumed(self) -> tuple[Assumption, ...]:
        """Every ASSUMED parameter of every machine and kernel of the study, each once."""
        every = [item for point in self.points for item in (*point.machine.assumed, *point.kernel.assumed)]
        return tuple({(item.file, item.path): item for item in every}.values())

    def varied(self, overrides: Sequence[str]) -> LoadedStudy:
        """Return this study with values of its own replaced; machines and kernels stay as they were read.

        Parameters
        ----------
        overrides : sequence of str
            ``PATH=VALUE``, paths in the study.

        Raises
        ------
        StcsimError
            With every problem that the new values make.
        """
        document = apply_overrides(self.document, overrides, Study)
        study = validate(Study, document).model_copy(update={"overrides": self.study.overrides})
        problems: list[Problem] = []
        sources = _sources(study, document, Path(document.file or "").parent, problems)
        if problems:
            raise ConfigError(problems)
        return replace(self, study=study, document=document, sources=tuple(sources))


@dataclass(frozen=True)
class OperandPlan:
    """How to make one operand: from a file that has been checked, or with a generator."""

    source: OperandSource
    shape: tuple[int, int]
    seed: int
    stream: Literal[0, 1]
    options: GeneratorOptions | None
    stored: StoredPattern | None
    k_axis: Literal[0, 1]

    def make(self) -> Operand:
        """Return the operand."""
        if self.stored is not None:
            key = f"[{self.source.key}]" if self.source.key else ""
            text = f"{self.source.file}{key}"
            return Operand(self.stored.load(), self.source.role, 2 * self.seed + self.stream, text)
        if self.options is None:
            message = "an operand has neither a pattern nor a generator"
            raise AssertionError(message)
        pattern = generate(self.options, self.shape, seed=self.seed, stream=self.stream, k_axis=self.k_axis)
        return Operand(pattern, self.source.role, 2 * self.seed + self.stream, str(self.options))


def load_study(path: str | Path, overrides: Sequence[str] = ()) -> LoadedStudy:
    """Read a study and everything that it names.

    Parameters
    ----------
    path : str or Path
    overrides : sequence of str
        ``PATH=VALUE``: ``machine.PATH`` for every machine and ``kernel.PATH`` for every kernel that has
        such a parameter, any other path for the study itself.

    Returns
    -------
    loaded : LoadedStudy

    Raises
    ------
    StcsimError
        With every problem found.
    """
    document = load(path)
    own = [text for text in overrides if not text.startswith(("machine.", "kernel."))]
    document = apply_overrides(document, own, Study)
    study = validate(Study, document)
    document = expand(document, study.workloads, Path(path).parent)
    study = validate(Study, document)
    settings = (*study.overrides, *(text for text in overrides if text not in own))
    study = study.model_copy(update={"overrides": settings})
    folder = Path(path).parent
    problems = [
        Problem(
            must("must start with machine. or kernel.", text),
            document.file,
            document.line_of(("overrides", i)),
            f"overrides.{i}",
        )
        for i, text in enumerate(settings)
        if not text.startswith(("machine.", "kernel."))
    ]
    points = _pairs(study, document, folder, problems)
    sources = _sources(study, document, folder, problems)
    baseline = _baseline(study, document, points, problems)
    if problems:
        raise ConfigError(dict.fromkeys(problems))  # machines and kernels may share an override's problem
    everything = tuple(
        Point(i, machine, kernel) for i in range(len(study.workloads)) for machine, kernel in points
    )
    return LoadedStudy(study, document, everything, baseline, tuple(sources))


def _pairs(
    study: Study,
    document: Document,
    folder: Path,
    problems: list[Problem],
) -> list[tuple[MachineEntry, KernelEntry]]:
    pairs: list[tuple[MachineEntry, KernelEntry]] = []
    of_machines, of_kernels = within("machine", study.overrides), within("kernel", study.overrides)
    not_of_machines: list[Rejected] = []
    not_of_kernels: list[Rejected] = []
    for i, target in enumerate(study.machines):
        place = document.place_of(("machines", i, "machine"))
        try:
            machine, rejected = load_machine(
                target.machine,
                overrides=of_machines,
                folder=folder,
                place=Problem("", place.file, place.line, f"machines.{i}.machine"),
            )
        except StcsimError as error:
            problems += error.problems
            continue
        not_of_machines.append(rejected)
        for j, name in enumerate(target.kernels or machine.machine.kernels[:1]):
            path = ("machines", i, "kernels", j) if target.kernels else ("machines", i, "machine")
            place = document.place_of(path)
            where = Problem("", place.file, place.line, ".".join(map(str, path)))
            try:
                if name == AUTO:
                    kernel, rejected = stand_in(machine), no_kernel(of_kernels)
                else:
                    kernel, rejected = load_kernel(name, overrides=of_kernels, folder=folder, place=where)
                # An axis may give a machine what its kernel needs: `stcsim.points` asks each point.
                if study.is_sweep:
                    require_compatible(machine.machine, kernel.kernel, study.dtype)
                else:
                    require_fit(machine.machine, kernel.kernel, study.dtype, study.engine)
            except StcsimError as error:
                problems += [
                    problem
                    if problem.file
                    else Problem(problem.message, place.file, place.line, problem.path)
                    for problem in error.problems
                ]
                continue
            not_of_kernels.append(rejected)
            pairs.append((machine, kernel))
    if not problems:
        problems += rejected_by_all("machine", study.overrides, not_of_machines)
        problems += rejected_by_all("kernel", study.overrides, not_of_kernels)
    return pairs


def _baseline(
    study: Study,
    document: Document,
    pairs: list[tuple[MachineEntry, KernelEntry]],
    problems: list[Problem],
) -> int:
    if study.baseline is None or problems:
        return 0
    wanted = study.baseline
    for i, (machine, kernel) in enumerate(pairs):
        if machine.machine.name == wanted.machine and wanted.kernel in (None, kernel.kernel.name):
            return i
    names = sorted({machine.machine.name for machine, _ in pairs})
    if wanted.machine not in names:
        path, value, near = ("baseline", "machine"), wanted.machine, names
    else:
        near = sorted(
            kernel.kernel.name for machine, kernel in pairs if machine.machine.name == wanted.machine
        )
        path, value = ("baseline", "kernel"), str(wanted.kernel)
    message = must(f"must be one that the study runs ({', '.join(near)})", value, near=near)
    problems.append(Problem(message, document.file, document.line_of(path), ".".join(path)))
    return 0


def _sources(
    study: Study, document: Document, folder: Path, problems: list[Problem]
) -> list[tuple[OperandPlan, OperandPlan]]:
    plans = []
    for i, workload in enumerate(study.workloads):
        try:
            plans.append(_operand_plans(workload, ("workloads", i), document, folder))
        except StcsimError as error:
            problems += error.problems
    return plans


def _operand_plans(
    workload: Workload, path: tuple[str | int, ...], document: Document, folder: Path
) -> tuple[OperandPlan, OperandPlan]:
    problems: list[Problem] = []
    patterns: list[StoredPattern | None] = []
    options: list[GeneratorOptions | None] = []
    if workload.a is None or workload.b is None:
        message = f"workload {workload.name} has no operands: is it a network that was not written out?"
        raise AssertionError(message)
    for side, source in (("a", workload.a), ("b", workload.b)):
        pattern: StoredPattern | None = None
        generator: GeneratorOptions | None = None
        try:
            if source.file is not None:
                pattern = _from_file(source, folder, document, (*path, side, "file"))
            else:
                generator = parse_options(document.subtree(*path, side, "pattern"))
        except StcsimError as error:
            problems += error.problems
        patterns.append(pattern)
        options.append(generator)
    if problems:
        raise WorkloadError(problems)
    shape_a, shape_b = _shapes(workload, patterns, document, path)
    # The weight of a convolution stands with its taps, which are K, along its rows.
    k_axis: Literal[0, 1] = 1 if workload.conv2d is not None else 0
    return (
        OperandPlan(workload.a, shape_a, workload.seed, 0, options[0], patterns[0], 1),
        OperandPlan(workload.b, shape_b, workload.seed, 1, options[1], patterns[1], k_axis),
    )


def _shapes(
    workload: Workload,
    patterns: list[StoredPattern | None],
    document: Document,
    path: tuple[str | int, ...],
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the shapes of both operands; where files give them, they must agree with the sizes."""
    a, b = patterns
    sizes = workload.gemm if workload.conv2d is None else workload.conv2d
    if sizes is None:
        if a is None or b is None:
            message = "must be given (sizes m, n and k) unless both operands come from files"
            raise WorkloadError(_problem(message, document, (*path, "gemm"), path))
        if a.shape[1] != b.shape[0]:
            message = (
                f"inner dimensions must agree: A is {a.shape[0]} x {a.shape[1]}, "
                f"B is {b.shape[0]} x {b.shape[1]}"
            )
            raise WorkloadError(_problem(message, document, path, path))
        return a.shape, b.shape
    try:
        shapes = operand_shapes(sizes)
    except WorkloadError as error:
        raise WorkloadError(
            [
                _problem(problem.message, document, (*path, "conv2d", *filter(None, [problem.path])), path)
                for problem in error.problems
            ]
        ) from None
    problems = []
    for side, pattern, want in zip("ab", (a, b), shapes, strict=True):
        if pattern is not None and pattern.shape != want:
            message = must(
                f"must hold a {want[0]} x {want[1]} operand",
                f"{pattern.shape[0]} x {pattern.shape[1]}",
            )
            problems.append(_problem(message, document, (*path, side, "file"), path))
    if problems:
        raise WorkloadError(problems)
    return shapes


def _problem(
    message: str, document: Document, path: tuple[str | int, ...], near: tuple[str | int, ...]
) -> Problem:
    line = document.line_of(path) or document.line_of(near)
    return Problem(message, document.file, line, ".".join(map(str, path)))


def _from_file(
    source: OperandSource, folder: Path, document: Document, path: tuple[str | int, ...]
) -> StoredPattern:
    found = find_file(source.file or "", folder)
    if found is None:
        what = "must be a file, relative to the study's folder or to the shipped data"
        raise WorkloadError(_problem(must(what, source.file), document, path, path))
    return StoredPattern.check(found, source.key, is_transposed=source.transpose)


def run_study(
    loaded: LoadedStudy, *, progress: Progress | None = None, threads: int = 2
) -> Iterator[tuple[Result, Result]]:
    """Run a study, point by point.

    Parameters
    ----------
    loaded : LoadedStudy
    progress : callable, optional
    threads : int
        Processes over which many workloads are spread, or threads of the engine for a few; results do not
        depend on it.

    Yields
    ------
    result, baseline : Result, Result
        In the order of the study; all points of a workload come once its baseline is known.
    """
    study = loaded.study
    per_workload = loaded.points_per_workload
    # Many layers are spread over processes; a few share this one with the engine's threads.
    processes = threads if len(study.workloads) > LAYERS_PER_PROCESS * threads else 1
    settings = Settings(
        dtype=study.dtype,
        adapt=study.adapt,
        sparse_side=study.sparse_side,
        engine=study.engine,
        check_tiles=study.check_tiles,
        threads=threads if processes == 1 else 1,
        level=study.level,
    )

    def points(index: int) -> tuple[Point, ...]:
        return loaded.points[index * per_workload : (index + 1) * per_workload]

    def run(index: int) -> list[Result]:
        plan_a, plan_b = loaded.sources[index]
        workload, a, b = study.workloads[index], plan_a.make(), plan_b.make()
        results = []
        for j, point in enumerate(points(index)):
            if progress is not None and processes == 1:
                progress(index * per_workload + j, len(loaded.points), _what(workload, point))
            results.append(run_workload(workload, a, b, point.machine, point.kernel, settings))
        return results

    for i, results in enumerate(ordered(run, len(study.workloads), processes)):
        if progress is not None and processes > 1:
            progress((i + 1) * per_workload - 1, len(loaded.points), _what(study.workloads[i], points(i)[-1]))
        for result in results:
            yield result, results[loaded.baseline]


def _what(workload: Workload, point: Point) -> str:
    return f"{workload.name} on {point.machine.machine.name} with {point.kernel.kernel.name}"
