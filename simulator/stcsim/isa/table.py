"""The instruction tables as data: read from YAML, checked, merged into one `Isa`.

Knows files and rows; an `InstructionSpec` that it returns knows neither.  The reader is a few lines of
its own, since the isa package stands left of `stcsim.config`; rows hold words and whole numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from stcsim.errors import IsaError, Problem, must, unknown
from stcsim.isa.semantics import SEMANTICS
from stcsim.isa.spec import InstructionSpec, Model, OperandSpec
from stcsim.resources import data_path

TABLES = ("volta", "ampere", "dstc", "vector_wise")
"""The shipped tables: isa/<name>.yaml."""


class Variant(Model):
    """One form of an instruction whose row lists several: a suffix, and what it changes."""

    suffix: str
    parameters: dict[str, str | int | bool] = Field(default_factory=dict)
    macs: int | None = None


class Row(InstructionSpec):
    """A row as written: an instruction, and its variants if it has some.

    Variant i has the row's opcode + i, and the row's mnemonic + its suffix.
    """

    opcode: int = Field(ge=0, lt=1 << 12)
    variants: tuple[Variant, ...] = ()

    def expand(self) -> Iterator[InstructionSpec]:
        """Yield each instruction that the row stands for."""
        common = {name: getattr(self, name) for name in InstructionSpec.model_fields}
        for i, variant in enumerate(self.variants or (Variant(suffix=""),)):
            changed = {
                "mnemonic": self.mnemonic + variant.suffix,
                "opcode": self.opcode + i,
                "parameters": {**self.parameters, **variant.parameters},
                "macs": self.macs if variant.macs is None else variant.macs,
            }
            yield InstructionSpec(**{**common, **changed})


class Table(Model):
    """The head of a table file; its rows are checked one by one."""

    table: str
    instructions: list[Any]


class Isa(Mapping[str, InstructionSpec]):
    """Instructions by mnemonic, in the order of the tables.

    Parameters
    ----------
    specs : iterable of InstructionSpec
        With unique mnemonics and opcodes.
    """

    def __init__(self, specs: Mapping[str, InstructionSpec]) -> None:
        self._specs = dict(specs)
        self._opcodes = {spec.opcode: spec for spec in self._specs.values() if spec.opcode is not None}

    def __getitem__(self, mnemonic: str) -> InstructionSpec:
        """Return the instruction called `mnemonic`.

        Raises
        ------
        IsaError
            If there is none; the nearest is named.
        """
        spec = self._specs.get(mnemonic)
        if spec is None:
            raise IsaError(must("instruction must be one of the tables'", mnemonic, near=self._specs))
        return spec

    def __contains__(self, mnemonic: object) -> bool:
        return mnemonic in self._specs

    def get(self, mnemonic: str, default: Any = None) -> Any:
        """Return the instruction called `mnemonic`, or `default`."""
        return self._specs.get(mnemonic, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def by_opcode(self, opcode: int) -> InstructionSpec | None:
        """Return the instruction with that opcode, or None."""
        return self._opcodes.get(opcode)

    def families(self) -> list[str]:
        """Return the names of the families, sorted."""
        return sorted({spec.family for spec in self._specs.values()})


class _TableLoader(yaml.SafeLoader):
    """A SafeLoader that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=must("key must be given once", f"{key} twice"), problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


@cache
def load_isa(*extra: Path) -> Isa:
    """Return the instructions of the shipped tables and of any extra ones.

    Parameters
    ----------
    *extra : Path
        Further table files, such as an architect's own; they may not redefine an instruction.

    Returns
    -------
    isa : Isa
        Cached: the tables are read once.

    Raises
    ------
    IsaError
        If a table is not valid; all its problems at once, each with file, line and path.
    """
    problems: list[Problem] = []
    specs: dict[str, InstructionSpec] = {}
    opcodes: dict[str, str] = {}
    for path in (*(data_path("isa", f"{name}.yaml") for name in TABLES), *extra):
        for spec, line in _read(path, problems):
            place = Problem("", str(path), line, spec.mnemonic)
            opcode = f"{spec.opcode:#x}"
            if spec.mnemonic in specs:
                problems.append(_at(place, must("mnemonic must be unique", f"{spec.mnemonic} again")))
            elif opcode in opcodes:
                problems.append(
                    _at(place, must("opcode must be unique", f"{opcode} of {opcodes[opcode]} again"))
                )
            elif spec.semantics not in SEMANTICS:
                problems.append(_at(place, unknown("semantics", spec.semantics, SEMANTICS)))
            else:
                specs[spec.mnemonic] = spec
                opcodes[opcode] = spec.mnemonic
    if problems:
        raise IsaError(problems)
    return Isa(specs)


def _at(place: Problem, message: str) -> Problem:
    return Problem(message, place.file, place.line, place.path)


def _read(path: Path, problems: list[Problem]) -> Iterator[tuple[InstructionSpec, int]]:
    """Yield each instruction of a table file with its line; add what is wrong to `problems`."""
    file = str(path)
    try:
        text = path.read_text(encoding="utf-8")
        loader = _TableLoader(text)
        node = loader.get_single_node()
        content = loader.construct_document(node) if node is not None else None
        table = Table.model_validate(content)
        (rows,) = [value for key, value in node.value if key.value == "instructions"] if node else []
    except OSError as error:
        problems.append(Problem(must("must be a readable instruction table", error.strerror), file))
        return
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        problems.append(
            Problem(error.problem or "must be YAML", file, None if mark is None else mark.line + 1)
        )
        return
    except ValidationError as error:
        problems.extend(_problems(error, file, 1, ""))
        return
    for row, row_node in zip(table.instructions, rows.value, strict=True):
        line = row_node.start_mark.line + 1
        name = str(row.get("mnemonic", "")) if isinstance(row, dict) else ""
        try:
            fields = {"table": table.table, **row} if isinstance(row, dict) else row
            for spec in Row.model_validate(fields).expand():
                yield spec, line
        except ValidationError as error:
            problems.extend(_problems(error, file, line, name))


def _problems(error: ValidationError, file: str, line: int, name: str) -> list[Problem]:
    """Write pydantic's findings in the form of the house."""
    found = []
    for item in error.errors():
        path = ".".join([name, *map(str, item["loc"])]).strip(".")
        if item["type"] == "extra_forbidden":
            known = {*Row.model_fields, *OperandSpec.model_fields}
            message = must("key must be a known one", item["loc"][-1], near=known)
        elif item["type"] == "missing":
            message = must("key must be given", "missing")
        elif item["type"] == "value_error":
            message = str(item["ctx"]["error"])
        else:
            message = must(item["msg"].replace("Input should be", "must be"), item["input"])
        found.append(Problem(message, file, line, path))
    return found
