"""The points of a study: every combination of its axes, in one fixed order, before anything runs.

Stands above the packages, beside `stcsim.study`; `stcsim.sweep` runs what is made
here.  A point is one machine with one kernel under one choice of axis values and
one repetition; each of its workloads (layers) is one run.

Rules: the first axis is outermost; within a choice come the repetitions, then the
machines and kernels as the study lists them.  A machine or kernel that lacks an
axis' parameter is not multiplied by that axis.  The baseline is never swept by
machine and kernel axes: it stands before the points that are compared with it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stcsim.catalog import (
    AUTO,
    Assumption,
    KernelEntry,
    MachineEntry,
    load_kernel,
    load_machine,
    stand_in,
    within,
)
from stcsim.config.axis import Constraint
from stcsim.config.document import format_path
from stcsim.config.loader import parse
from stcsim.config.override import apply_overrides
from stcsim.config.study import Study, Target
from stcsim.errors import ConfigError, Problem, StcsimError, must
from stcsim.run import require_fit
from stcsim.study import LoadedStudy, load_study

MAX_POINTS = 1_000_000
"""Combinations of one study; more is a slip of the pen."""
_OF_STUDY = ("workloads", "dtype", "adapt", "sparse_side", "engine", "level", "check_tiles")


@dataclass(frozen=True)
class Variant:
    """The study under one choice of its own axes (workload sizes, densities, seeds).

    Parameters
    ----------
    loaded : LoadedStudy or None
        None where the choice is not a valid study.
    problems : tuple of Problem
        Why it is not.
    """

    loaded: LoadedStudy | None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class DesignPoint:
    """One machine with one kernel under one choice of axis values.

    Parameters
    ----------
    number : int
        From 0, in the order of the study.
    axes : dict of str to object
        The value of each axis; None where the machine or kernel has no such parameter.
    repetition : int
    machine_name, kernel_name : str
        As the study names them.
    machine, kernel : MachineEntry and KernelEntry, or None
        None where the values do not make a valid one.
    variant : Variant
    baseline : int
        Number of the point that this one is compared with.
    error : str or None
        Why the point cannot run.
    """

    number: int
    axes: Mapping[str, Any]
    repetition: int
    machine_name: str
    kernel_name: str
    machine: MachineEntry | None
    kernel: KernelEntry | None
    variant: Variant
    baseline: int
    error: str | None = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells this point from the others of its study."""
        return (json.dumps(self.axes), self.repetition, self.machine_name, self.kernel_name)

    @property
    def label(self) -> str:
        """The machine, kernel and axis values in words."""
        values = [f"{path} = {value}" for path, value in self.axes.items() if value is not None]
        return f"{self.machine_name} with {self.kernel_name}" + (f", {', '.join(values)}" if values else "")


@dataclass(frozen=True)
class DesignSpace:
    """All points of a study.

    Parameters
    ----------
    base : LoadedStudy
        The study without any axis applied.
    points : tuple of DesignPoint
    left_out : int
        Combinations that a constraint left out.
    """

    base: LoadedStudy
    points: tuple[DesignPoint, ...]
    left_out: int

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the workloads."""
        return tuple(workload.name for workload in self.base.study.workloads)

    @property
    def axis_labels(self) -> dict[str, str]:
        """Short name of each axis path."""
        parts = [part for axis in self.base.study.axes for part in axis.parts]
        return {part.path or "": part.label or _short_name(part.path or "") for part in parts}

    @property
    def axis_groups(self) -> list[list[str]]:
        """The paths that change together, axis by axis."""
        return [[part.path or "" for part in axis.parts] for axis in self.base.study.axes]

    @property
    def axis_defaults(self) -> dict[str, Any]:
        """What each axis' parameter is without the sweep, as its file writes it; None where no file does."""
        return {path: self._default(path) for group in self.axis_groups for path in group}

    def _default(self, path: str) -> Any:
        kind, _, rest = path.partition(".")
        documents = [self.base.document]
        if kind in ("machine", "kernel"):
            documents = [getattr(point, kind).document for point in self.base.points]
        else:
            rest = path.replace("workloads.*.", "workloads.0.")
        items = tuple(int(item) if item.isdecimal() else item for item in rest.split("."))
        for document in documents:
            try:
                return document.get(items)
            except KeyError:
                continue
        return None

    @property
    def assumed(self) -> tuple[Assumption, ...]:
        """Every ASSUMED parameter that acts in some point, each value once."""
        found: dict[tuple[str, str, str], Assumption] = {}
        for point in self.points:
            for entry in (point.machine, point.kernel):
                for item in entry.assumed if entry else ():
                    found.setdefault((item.file, item.path, str(item.value)), item)
        return tuple(found.values())


def _short_name(path: str) -> str:
    return path.split(".")[-1].replace("_", " ")


def axis_override(axes: Sequence[str], path: str | Path, overrides: Sequence[str] = ()) -> list[str]:
    """Turn ``--axis PATH=V1,V2`` into an override of the study's list of axes.

    Parameters
    ----------
    axes : sequence of str
        One for each option; it replaces the axis of the same path, or comes after all others.
    path : str or Path
        The study's file.
    overrides : sequence of str
        Other overrides of the study.

    Returns
    -------
    overrides : list of str
        Empty if there are no such options.

    Raises
    ------
    ConfigError
        If an option is malformed.
    """
    if not axes:
        return []
    given = load_study(path, overrides).study.model_dump(mode="json", exclude_none=True)["axes"]
    problems = []
    for text in axes:
        name, equals, values = text.partition("=")
        option = f"--axis {text}"
        if not equals or not name.strip() or not values.strip():
            message = "must be PATH=VALUE,VALUE,..., such as machine.tensor_core.accumulator.tiles=4,8"
            problems.append(Problem(message, option))
            continue
        try:
            listed = parse(f"[{values}]", option).data
        except ConfigError as error:
            problems += [replace(problem, line=None) for problem in error.problems]
            continue
        axis = {"path": name.strip(), "values": listed}
        at = next((i for i, other in enumerate(given) if other.get("path") == axis["path"]), len(given))
        given[at : at + 1] = [axis]
    if problems:
        raise ConfigError(problems)
    return [f"axes={json.dumps(given)}"]


def expand(path: str | Path, overrides: Sequence[str] = ()) -> DesignSpace:
    """Read a study and list its points.

    Parameters
    ----------
    path : str or Path
    overrides : sequence of str
        As for `stcsim.study.load_study`.

    Returns
    -------
    space : DesignSpace

    Raises
    ------
    StcsimError
        If the study itself, an axis' path or a constraint's path is wrong; if a value of an axis is wrong
        whatever the others are; if a kernel can run on its machine in no point.  Any other choice of
        values that makes no valid machine, kernel or workload is a point with an error instead.
    """
    base = load_study(path, overrides)
    return _Expansion(base).space()


@dataclass
class _Expansion:
    """The work of `expand`: entries and variants are read once for each distinct choice."""

    base: LoadedStudy
    _machines: dict[tuple[str, tuple[str, ...]], tuple[MachineEntry, set[str]] | StcsimError] = field(
        default_factory=dict
    )
    _kernels: dict[tuple[str, tuple[str, ...]], tuple[KernelEntry, set[str]] | StcsimError] = field(
        default_factory=dict
    )
    _variants: dict[tuple[str, ...], Variant] = field(default_factory=dict)
    _fits: dict[tuple[int, int, str, str], tuple[Problem, ...]] = field(default_factory=dict)
    _faults: dict[tuple[str, str], Problem | None] = field(default_factory=dict)
    """Of each axis path and value (as JSON): what is wrong with it, None once a point takes it."""
    _misfits: dict[tuple[str, str], tuple[Problem, ...]] = field(default_factory=dict)
    """Of each machine and kernel: why they do not fit, empty once they do in a point."""

    @property
    def study(self) -> Study:
        return self.base.study

    @property
    def folder(self) -> Path:
        return Path(self.base.document.file or "").parent

    def space(self) -> DesignSpace:
        """Return every point."""
        problems = [*self._axis_problems(), *self._constraint_problems()]
        if problems:
            raise ConfigError(problems)
        points: list[DesignPoint] = []
        numbers: dict[object, int] = {}
        left_out = 0
        pairs = self._pairs()
        for values in self._choices():
            for repetition in range(self.study.repetitions):
                variant = self._variant(values, repetition)
                base = self._make(values, repetition, pairs[self.base.baseline], variant, swept=False)
                for pair in (None, *pairs):
                    made = base if pair is None else self._make(values, repetition, pair, variant, swept=True)
                    if pair is not None and not self._allowed(made):
                        left_out += 1
                        continue
                    if made.identity not in numbers:
                        numbers[made.identity] = len(points)
                        baseline = numbers[base.identity]
                        points.append(replace(made, number=len(points), baseline=baseline))
                    if len(points) > MAX_POINTS:
                        message = must(f"must have at most {MAX_POINTS} points", "more")
                        raise ConfigError(Problem(message, self.base.document.file, path="axes"))
        problems = self._value_problems() or self._misfit_problems()
        if problems:
            raise ConfigError(problems)
        return DesignSpace(self.base, tuple(points), left_out)

    def _choices(self) -> Iterator[dict[str, Any]]:
        for choice in itertools.product(*(axis.settings() for axis in self.study.axes)):
            yield {path: value for part in choice for path, value in part.items()}

    def _pairs(self) -> list[tuple[Target, str]]:
        """Return each target with the name of one kernel, as often as the study runs it."""
        pairs = []
        for target in self.study.machines:
            found = self._read_machine(target.machine, ())
            if isinstance(found, StcsimError):
                raise found  # not reached: the base study has read it
            pairs += [(target, kernel) for kernel in target.kernels or found[0].machine.kernels[:1]]
        return pairs

    def _make(
        self,
        values: Mapping[str, Any],
        repetition: int,
        pair: tuple[Target, str],
        variant: Variant,
        *,
        swept: bool,
    ) -> DesignPoint:
        """Return a point whose number and baseline are still to be set."""
        target, kernel_name = pair
        texts = {
            path: f"{path}={json.dumps(value)}"
            for path, value in values.items()
            if swept and self._is_for(path, pair)
        }
        machine = self._read_machine(target.machine, tuple(within("machine", texts.values())))
        kernel: tuple[KernelEntry, set[str]] | StcsimError
        if kernel_name == AUTO and not isinstance(machine, StcsimError):
            kernel = stand_in(machine[0]), set()
        else:
            kernel = self._read_kernel(kernel_name, tuple(within("kernel", texts.values())))
        used: set[str] = set()
        problems: list[Problem] = []
        for kind, found in (("machine", machine), ("kernel", kernel)):
            if isinstance(found, StcsimError):
                problems += found.problems
                used |= {text for text in texts.values() if text.startswith(f"{kind}.")}
            else:
                used |= {f"{kind}.{text}" for text in found[1]}
        axes = {
            path: value if _is_of_study(path) or texts.get(path) in used else None
            for path, value in values.items()
        }
        machine_entry = None if isinstance(machine, StcsimError) else machine[0]
        kernel_entry = None if isinstance(kernel, StcsimError) else kernel[0]
        problems += variant.problems
        if machine_entry and kernel_entry and variant.loaded:
            misfit = self._misfit(machine_entry, kernel_entry, variant.loaded.study)
            problems += misfit
            if swept:
                names = (target.machine, kernel_name)
                self._misfits[names] = misfit and self._misfits.get(names, misfit)
        if swept:
            self._judge({path: value for path, value in axes.items() if value is not None}, problems)
        return DesignPoint(
            number=-1,
            axes=axes,
            repetition=repetition,
            machine_name=machine_entry.machine.name if machine_entry else Path(target.machine).stem,
            kernel_name=kernel_entry.kernel.name if kernel_entry else Path(kernel_name).stem,
            machine=machine_entry,
            kernel=kernel_entry,
            variant=variant,
            baseline=-1,
            error=sentence(problems) or None,
        )

    def _misfit(self, machine: MachineEntry, kernel: KernelEntry, study: Study) -> tuple[Problem, ...]:
        """Return why a kernel cannot run on a machine at all; asked once of each pair."""
        key = (id(machine), id(kernel), study.dtype, study.engine)
        if key not in self._fits:
            try:
                require_fit(machine.machine, kernel.kernel, study.dtype, study.engine)
                self._fits[key] = ()
            except StcsimError as error:
                self._fits[key] = error.problems
        return self._fits[key]

    def _judge(self, axes: Mapping[str, Any], problems: Sequence[Problem]) -> None:
        """Take down which of a point's values are wrong in themselves: those that a problem names as its place."""
        for path, value in axes.items():
            text = json.dumps(value)
            places = {f"--set {concrete}={text}" for concrete in self._concrete(path)}
            found = next((problem for problem in problems if problem.file in places), None)
            self._faults[path, text] = found and self._faults.get((path, text), found)

    def _value_problems(self) -> list[Problem]:
        """Return the values that are wrong whatever the other axes are; a wrong path is told once."""
        problems = []
        for i, axis in enumerate(self.study.axes):
            for j, part in enumerate(axis.parts):
                where: tuple[str | int, ...] = ("axes", i) if axis.zip is None else ("axes", i, "zip", j)
                values = part.expanded()
                faults = [self._faults.get((part.path or "", json.dumps(value))) for value in values]
                messages = {fault.message for fault in faults if fault is not None}
                if len(messages) == 1 and None not in faults and str(values[0]) not in min(messages):
                    problems.append(self._problem(messages.pop(), (*where, "path")))
                    continue
                for n, fault in enumerate(faults):
                    if fault is not None:
                        source = ("values", n) if part.values else ("range" if part.range else "log_range",)
                        problems.append(self._problem(fault.message, (*where, *source)))
        return list(dict.fromkeys(problems))

    def _misfit_problems(self) -> list[Problem]:
        """Return the machines and kernels that do not fit in any point."""
        problems = []
        for i, target in enumerate(self.study.machines):
            for j, kernel in enumerate(target.kernels or [None]):
                where = ("machines", i, "machine") if kernel is None else ("machines", i, "kernels", j)
                misfit = next(
                    (
                        found
                        for (machine, name), found in self._misfits.items()
                        if machine == target.machine and kernel in (None, name)
                    ),
                    (),
                )
                if misfit:
                    problems.append(self._problem(sentence(misfit), where))
        return problems

    def _is_for(self, path: str, pair: tuple[Target, str]) -> bool:
        """Tell whether an axis varies this machine or kernel."""
        only = next(axis.only for axis in self.study.axes if path in [part.path for part in axis.parts])
        return only is None or bool({pair[0].machine, pair[1]} & set(only))

    def _read_machine(self, name: str, texts: tuple[str, ...]) -> tuple[MachineEntry, set[str]] | StcsimError:
        if (name, texts) not in self._machines:
            settings = [*within("machine", self.study.overrides), *texts]
            try:
                entry, rejected = load_machine(name, overrides=settings, folder=self.folder)
                self._machines[name, texts] = entry, set(texts) - set(rejected)
            except StcsimError as error:
                self._machines[name, texts] = error
        return self._machines[name, texts]

    def _read_kernel(self, name: str, texts: tuple[str, ...]) -> tuple[KernelEntry, set[str]] | StcsimError:
        if (name, texts) not in self._kernels:
            settings = [*within("kernel", self.study.overrides), *texts]
            try:
                entry, rejected = load_kernel(name, overrides=settings, folder=self.folder)
                self._kernels[name, texts] = entry, set(texts) - set(rejected)
            except StcsimError as error:
                self._kernels[name, texts] = error
        return self._kernels[name, texts]

    def _variant(self, values: Mapping[str, Any], repetition: int) -> Variant:
        texts = [
            f"{concrete}={json.dumps(value)}"
            for path, value in values.items()
            if _is_of_study(path)
            for concrete in self._concrete(path)
        ]
        if repetition:
            texts += [
                f"workloads.{i}.seed={workload.seed + repetition}"
                for i, workload in enumerate(self.study.workloads)
            ]
        key = tuple(texts)
        if key not in self._variants:
            try:
                self._variants[key] = Variant(self.base.varied(texts) if texts else self.base)
            except StcsimError as error:
                self._variants[key] = Variant(None, error.problems)
        return self._variants[key]

    def _concrete(self, path: str) -> list[str]:
        """Return the paths that a path with * for the workload stands for."""
        if not path.startswith("workloads.*."):
            return [path]
        rest = path.removeprefix("workloads.*.")
        return [f"workloads.{i}.{rest}" for i in range(len(self.study.workloads))]

    def _axis_problems(self) -> list[Problem]:
        problems = []
        for i, axis in enumerate(self.study.axes):
            for j, part in enumerate(axis.parts):
                where: tuple[str | int, ...] = (
                    ("axes", i, "path") if axis.zip is None else ("axes", i, "zip", j, "path")
                )
                message = self._path_fault(part.path or "", axis.settings()[0][part.path or ""])
                if message:
                    problems.append(self._problem(message, where))
            for j, name in enumerate(axis.only or ()):
                known = sorted(
                    {each for target, kernel in self._pairs() for each in (target.machine, kernel)}
                )
                if name not in known:
                    message = must(
                        f"must be a machine or kernel of the study ({', '.join(known)})", name, near=known
                    )
                    problems.append(self._problem(message, ("axes", i, "only", j)))
        return problems

    def _problem(self, message: str, where: tuple[str | int, ...]) -> Problem:
        document = self.base.document
        return Problem(message, document.file, document.line_of(where), format_path(where))

    def _path_fault(self, path: str, value: Any) -> str | None:
        """Return what is wrong with the path of an axis, or None."""
        kind = path.partition(".")[0]
        if kind in ("machine", "kernel"):
            text = f"{path}={json.dumps(value)}"
            for target, kernel in self._pairs():
                found = (
                    self._read_machine(target.machine, tuple(within("machine", [text])))
                    if kind == "machine"
                    else self._read_kernel(kernel, tuple(within("kernel", [text])))
                )
                if isinstance(found, StcsimError) or found[1]:
                    return None
            what = f"must be the path of a parameter of a {kind} of the study"
            return must(what, path, near=self._parameters(kind))
        if kind not in _OF_STUDY:
            choices = ("machine", "kernel", *_OF_STUDY)
            return must(f"must start with one of {', '.join(choices)}", path, near=choices)
        try:
            for concrete in self._concrete(path):
                apply_overrides(self.base.document, [f"{concrete}={json.dumps(value)}"], Study)
        except ConfigError as error:
            return error.problems[0].message
        return None

    def _parameters(self, kind: str) -> list[str]:
        """Return the paths that the machines or kernels of the study write out."""
        entries: list[MachineEntry | KernelEntry] = []
        for target, kernel in self._pairs():
            found = (
                self._read_machine(target.machine, ()) if kind == "machine" else self._read_kernel(kernel, ())
            )
            if not isinstance(found, StcsimError):
                entries.append(found[0])
        return sorted(
            {f"{kind}.{format_path(path)}" for entry in entries for path in entry.document.places if path}
        )

    def _constraint_problems(self) -> list[Problem]:
        problems = []
        for i, constraint in enumerate(self.study.constraints):
            sides = {"left": constraint.left, "right": constraint.right}
            named = {side: text for side, text in sides.items() if is_parameter(text)}
            if not named:
                message = (
                    "must have the path of a parameter (machine.PATH, kernel.PATH, workloads...) on one side"
                )
                problems.append(self._problem(message, ("constraints", i)))
            for side, text in named.items():
                if not any(self._value(point, text) is not None for point in self._unswept()):
                    known = [*self._parameters("machine"), *self._parameters("kernel")]
                    message = must("must be the path of a parameter of the study", text, near=known)
                    problems.append(self._problem(message, ("constraints", i, side)))
        return problems

    def _unswept(self) -> list[DesignPoint]:
        variant = Variant(self.base)
        return [self._make({}, 0, pair, variant, swept=False) for pair in self._pairs()]

    def _allowed(self, point: DesignPoint) -> bool:
        """Tell whether a point satisfies every constraint that binds it."""
        return all(self._satisfies(point, i, each) for i, each in enumerate(self.study.constraints))

    def _satisfies(self, point: DesignPoint, i: int, constraint: Constraint) -> bool:
        sides = [self._value(point, side) for side in (constraint.left, constraint.right)]
        if any(side is None for side in sides):
            return True
        number = [isinstance(side, int | float) for side in sides]
        try:
            if number[0] == number[1]:
                return constraint.holds(*sides)
        except TypeError:
            pass
        what = f"must compare values of one kind, numbers in the base unit, not {sides[0]} with {sides[1]}"
        raise ConfigError(self._problem(what, ("constraints", i)))

    def _value(self, point: DesignPoint, side: int | float | str) -> Any:
        """Return the number, or the parameter's value in a point in its base unit; None where there is none."""
        if not is_parameter(side):
            return side
        path = str(side)
        kind, _, rest = path.partition(".")
        if kind == "machine":
            return _look_up(point.machine.machine, rest) if point.machine else None
        if kind == "kernel":
            return _look_up(point.kernel.kernel, rest) if point.kernel else None
        loaded = point.variant.loaded
        return _look_up(loaded.study, self._concrete(path)[0]) if loaded else None


def is_parameter(side: object) -> bool:
    """Tell whether a side of a constraint is the path of a parameter."""
    return isinstance(side, str) and side.partition(".")[0] in ("machine", "kernel", *_OF_STUDY)


def sentence(problems: Iterable[Problem]) -> str:
    """Return problems in one line, without their files."""
    return "; ".join(
        dict.fromkeys(
            f"{problem.path}: {problem.message}" if problem.path else problem.message for problem in problems
        )
    )


def _is_of_study(path: str) -> bool:
    return path.partition(".")[0] not in ("machine", "kernel")


def _look_up(model: Any, path: str) -> Any:
    """Return the value at a dotted path of a model, or None."""
    for name in path.split("."):
        if isinstance(model, Mapping):
            model = model.get(name)
        elif isinstance(model, tuple):
            model = model[int(name)] if name.isdecimal() and int(name) < len(model) else None
        else:
            model = getattr(model, name, None)
        if model is None:
            return None
    return model
