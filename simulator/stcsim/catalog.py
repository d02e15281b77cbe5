"""Machines and kernels by name: shipped ones, or files of the user's own.

Stands above the packages: it joins the files (`stcsim.config`) with the schemas
that datapath and lowering plug-ins register for their own options, and finds
the parameters that are marked ``ASSUMED:``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from stcsim.config.base import joined, with_base
from stcsim.config.document import Document, format_path
from stcsim.config.kernel import Kernel, compose_kernel
from stcsim.config.loader import load
from stcsim.config.machine import Machine, compose_machine
from stcsim.config.override import apply_overrides
from stcsim.config.validation import validate
from stcsim.errors import ConfigError, Problem, must, unknown
from stcsim.lowering import LOWERINGS
from stcsim.machine.datapaths import DATAPATHS
from stcsim.resources import data_path

Kind = Literal["machine", "kernel"]
AUTO = "auto"
"""What a study says instead of a kernel's name: the fastest of those that the machine lists (`stcsim.auto`)."""
Rejected = Mapping[str, tuple[Problem, ...]]
"""Overrides that have no place in a machine or kernel, each with what is wrong with it."""

_NOWHERE = Problem("")
_SPLIT_K = re.compile(r"(.+)_splitk([1-9]\d{0,3})")
_ASSUMED = re.compile(r"#.*?\bASSUMED:\s*(.*)$")


@dataclass(frozen=True)
class Assumption:
    """A parameter that nobody published.

    Parameters
    ----------
    file : str
        Name of the machine or kernel file.
    path : str
        Dotted path of the parameter.
    value : object
        Its value in this run.
    reason : str
        Why it has that value.
    """

    file: str
    path: str
    value: Any
    reason: str

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"file": self.file, "path": self.path, "value": self.value, "reason": self.reason}


@dataclass(frozen=True)
class MachineEntry:
    """A machine, where it came from, and what is assumed of it."""

    machine: Machine
    document: Document
    assumed: tuple[Assumption, ...]


@dataclass(frozen=True)
class KernelEntry:
    """A kernel, where it came from, and what is assumed of it."""

    kernel: Kernel
    document: Document
    assumed: tuple[Assumption, ...]


def shipped(kind: Kind) -> list[str]:
    """Return the names of the shipped machines or kernels, sorted."""
    names = {path.stem for path in data_path("configs", f"{kind}s").glob("*.yaml")}
    return sorted(names | set(tabulated()) if kind == "kernel" else names)


def _find(
    kind: Kind, name: str, folder: Path | None, place: Problem, above: tuple[Path, ...] = ()
) -> Document:
    """Read the file that `name` stands for, with its base; a name with a slash or .yaml is a path.

    A base's path starts at the folder of the file that names it; ``chips/volta`` and the like are parts that ship.
    """
    if kind == "kernel" and name in tabulated():
        return tabulated()[name]
    file = data_path("configs", f"{kind}s", f"{name}.yaml")
    if not file.exists() and ("/" in name or name.endswith((".yaml", ".yml"))):
        file = (folder or Path()) / name
    elif not file.exists():
        raise ConfigError(replace(place, message=unknown(kind, name, shipped(kind))))
    if file.resolve() in above:
        raise ConfigError(replace(place, message=must("must not lead back to the file itself", name)))
    below = (*above, file.resolve())
    return with_base(load(file), lambda of, where: _find(kind, of, file.parent, where, below))


@cache
def tabulated() -> dict[str, Document]:
    """Return the kernels of the shipped tables: what a table's ``kernel`` says, and each entry's difference."""
    found: dict[str, Document] = {}
    for path in sorted(data_path("configs", "kernels", "tables").glob("*.yaml")):
        table = load(path)
        for name in table.get(("entries",)):
            entry = table.subtree("entries", name)
            own = Document({**entry.data, "name": name}, entry.file, entry.places, entry.prefix)
            found[name] = joined(table.subtree("kernel"), own)
    return found


def kernels_of_table(table: str, place: Problem = _NOWHERE) -> list[str]:
    """Return the names of the kernels of a shipped table, in its order, each with the splits that it lists.

    Raises
    ------
    ConfigError
        If there is no such table.
    """
    names = sorted(path.stem for path in data_path("configs", "kernels", "tables").glob("*.yaml"))
    if table not in names:
        raise ConfigError(replace(place, message=unknown("kernel table", table, names)))
    document = load(data_path("configs", "kernels", "tables", f"{table}.yaml"))
    splits = document.get(("splits",))
    return [
        name if split == 1 else f"{name}_splitk{split}"
        for name in document.get(("entries",))
        for split in splits
    ]


def within(kind: Kind, overrides: Iterable[str]) -> list[str]:
    """Return the overrides of machines or of kernels, as paths within one."""
    return [text.removeprefix(f"{kind}.") for text in overrides if text.startswith(f"{kind}.")]


def rejected_by_all(kind: Kind, overrides: Iterable[str], rejected: Sequence[Rejected]) -> list[Problem]:
    """Return what is wrong with the overrides that have a place nowhere.

    Parameters
    ----------
    kind : str
    overrides : iterable of str
        As the user wrote them, those of the other kind too.
    rejected : sequence of Rejected
        One for each machine (or kernel) that was read.

    Returns
    -------
    problems : list of Problem
        Of each override, as that machine or kernel tells it which knows most of its path.
    """
    problems: list[Problem] = []
    for text in dict.fromkeys(within(kind, overrides)):
        told = [each.get(text, ()) for each in rejected]
        if all(told):
            problems += max(told, key=_depth, default=())
    return problems


def _depth(problems: Iterable[Problem]) -> int:
    """Return how far into its path an override came."""
    return max((problem.path or "").count(".") for problem in problems)


def _applicable(
    kind: Kind, document: Document, overrides: Iterable[str], model: type[Any]
) -> tuple[Document, Rejected]:
    """Apply those overrides that the document's model has a place for; return also the others."""
    rejected = {}
    for override in overrides:
        try:
            document = apply_overrides(document, [override], model, prefix=f"{kind}.")
        except ConfigError as error:
            rejected[override] = error.problems
    return document, rejected


def load_machine(
    name: str,
    *,
    overrides: Sequence[str] = (),
    folder: Path | None = None,
    place: Problem = _NOWHERE,
) -> tuple[MachineEntry, Rejected]:
    """Read a machine.

    Parameters
    ----------
    name : str
        A shipped machine's name or a path.
    overrides : sequence of str
        ``PATH=VALUE``, the path within the machine; those that have no place in it are left.
    folder : Path, optional
        Where a relative path starts.
    place : Problem
        Where the name stands, for messages.

    Returns
    -------
    entry : MachineEntry
    rejected : Rejected
        The overrides that were left.

    Raises
    ------
    ConfigError
        With every problem of the file.
    """
    document = _find("machine", name, folder, place)
    original = document
    core = document.data.get("tensor_core") if isinstance(document.data, dict) else None
    listed = core.get("datapaths", []) if isinstance(core, dict) else []
    names = [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []
    problems = [
        Problem(
            unknown("datapath", item, DATAPATHS.names()),
            file=document.file,
            line=document.line_of(("tensor_core", "datapaths", i)),
            path=f"tensor_core.datapaths.{i}",
        )
        for i, item in enumerate(names)
        if item not in DATAPATHS
    ]
    if problems:
        raise ConfigError(problems)
    options = [DATAPATHS[item].options for item in names]
    model = compose_machine(option for option in options if option is not None)
    document, rejected = _applicable("machine", document, overrides, model)
    machine = validate(model, document)
    _require_name(document, machine.name)
    return MachineEntry(machine, document, _assumptions(original, document)), rejected


def load_kernel(
    name: str,
    *,
    overrides: Sequence[str] = (),
    folder: Path | None = None,
    place: Problem = _NOWHERE,
) -> tuple[KernelEntry, Rejected]:
    """Read a kernel; arguments, returns and errors as `load_machine`."""
    name, split = _split_k(name)
    document = _find("kernel", name, folder, place)
    original = document
    if split is not None:
        document = apply_overrides(document, [f"grid.split_k={split}", f"name={name}_splitk{split}"], Kernel)
    document = _with_loop(document)
    lowering = document.data.get("lowering") if isinstance(document.data, dict) else None
    known = isinstance(lowering, str) and lowering in LOWERINGS
    model = compose_kernel(LOWERINGS[str(lowering)].options) if known else Kernel
    document, rejected = _applicable("kernel", document, overrides, model)
    kernel = validate(Kernel, document)
    if split is None and name not in tabulated():
        _require_name(document, kernel.name)
    for kind, key, registry in (("lowering", "lowering", LOWERINGS), ("datapath", "datapath", DATAPATHS)):
        value = getattr(kernel, key)
        if value not in registry:
            message = unknown(kind, value, registry.names())
            raise ConfigError(Problem(message, document.file, document.line_of((key,)), key))
    if "options" in document.data:
        options = validate(LOWERINGS[kernel.lowering].options, document.subtree("options"))
    else:
        options = validate(LOWERINGS[kernel.lowering].options, Document({}, file=document.file))
    kernel = kernel.model_copy(update={"options": options.model_dump()})
    return KernelEntry(kernel, document, _assumptions(original, document)), rejected


def load_pair(
    machine: str, kernel: str | None = None, *, overrides: Sequence[str] = (), option: str = ""
) -> tuple[MachineEntry, KernelEntry]:
    """Read one machine with one kernel.

    Parameters
    ----------
    machine : str
        A shipped machine's name or a path.
    kernel : str, optional
        As `machine`; left out: the machine's first.
    overrides : sequence of str
        ``machine.PATH=VALUE`` and ``kernel.PATH=VALUE``; each must have its place.
    option : str
        What stands before ``machine`` and ``kernel`` where the names were given, for messages.

    Raises
    ------
    ConfigError
        With every problem of the files, or of the overrides.
    """
    of_machine, of_kernel = within("machine", overrides), within("kernel", overrides)
    place = Problem("", path=f"{option}machine")
    machine_entry, not_of_machine = load_machine(machine, overrides=of_machine, place=place)
    if kernel == AUTO:
        kernel_entry, not_of_kernel = stand_in(machine_entry), no_kernel(of_kernel)
    else:
        kernel_entry, not_of_kernel = load_kernel(
            kernel or machine_entry.machine.kernels[0],
            overrides=of_kernel,
            place=Problem("", path=f"{option}kernel"),
        )
    what = "must be machine.PATH=VALUE or kernel.PATH=VALUE"
    problems = [
        Problem(what, file=f"--set {text}")
        for text in overrides
        if not text.startswith(("machine.", "kernel."))
    ]
    problems += rejected_by_all("machine", overrides, [not_of_machine])
    problems += rejected_by_all("kernel", overrides, [not_of_kernel])
    if problems:
        raise ConfigError(problems)
    return machine_entry, kernel_entry


def stand_in(machine: MachineEntry) -> KernelEntry:
    """Return what stands for the kernel until the race is run: the machine's first one, under the name ``auto``."""
    first, _ = load_kernel(machine.machine.kernels[0])
    return replace(first, kernel=first.kernel.model_copy(update={"name": AUTO}), assumed=())


def no_kernel(overrides: Iterable[str]) -> Rejected:
    """Refuse overrides of a kernel that is chosen later."""
    return {
        text: (Problem(f"must name the kernel that it changes, not {AUTO}", f"--set kernel.{text}"),)
        for text in overrides
    }


def loops() -> list[str]:
    """Return the names of the measured main loops that ship."""
    return sorted(path.stem for path in data_path("configs", "kernels", "loops").glob("*.yaml"))


def loop_document(name: str, place: Problem = _NOWHERE) -> Document:
    """Read a measured main loop's file, by its shipped name or as a path (a name with a slash or .yaml).

    Raises
    ------
    ConfigError
        If there is no such loop.
    """
    if "/" in name or name.endswith(".yaml"):
        return load(name)
    if name not in loops():
        raise ConfigError(replace(place, message=unknown("loop", name, loops())))
    return load(data_path("configs", "kernels", "loops", f"{name}.yaml"))


def _with_loop(document: Document) -> Document:
    """Put a main loop in the place of its name."""
    name = document.data.get("loop") if isinstance(document.data, dict) else None
    if not isinstance(name, str):
        return document
    where = document.place_of(("loop",))
    return document.replaced(("loop",), loop_document(name, Problem("", where.file, where.line, "loop")))


def _split_k(name: str) -> tuple[str, str | None]:
    """Take ``_splitkN`` off a kernel's name: the same kernel with so many CTAs along K."""
    match = _SPLIT_K.fullmatch(name)
    return (name, None) if match is None else (match[1], match[2])


def _require_name(document: Document, name: str) -> None:
    stem = Path(document.file or "").stem
    if name != stem:
        message = f"must be the file's name ({stem}), not {name}"
        raise ConfigError(Problem(message, document.file, document.line_of(("name",)), "name"))


def _assumptions(original: Document, document: Document) -> tuple[Assumption, ...]:
    """Find the parameters whose line says ``ASSUMED:``; one that was overridden is the user's own."""
    by_line: dict[tuple[str, int], list[tuple[str | int, ...]]] = {}
    for path, place in original.places.items():
        if path and place.line is not None and place.file is not None:
            by_line.setdefault((place.file, place.line), []).append(path)
    found = []
    for file in dict.fromkeys(file for file, _ in by_line):
        for number, line in enumerate(Path(file).read_text(encoding="utf-8").splitlines(), start=1):
            match = _ASSUMED.search(line)
            if match is None or (file, number) not in by_line:
                continue
            path = min(by_line[file, number], key=len)
            value = original.get(path)
            if _holds(document, path, value):
                found.append(Assumption(Path(file).name, format_path(path), value, match[1]))
    return tuple(found)


def _holds(document: Document, path: tuple[str | int, ...], value: object) -> bool:
    """Tell whether the document still has this value; an override may have taken the key away."""
    try:
        return bool(document.get(path) == value)
    except (KeyError, IndexError, TypeError):
        return False
