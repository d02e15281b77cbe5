"""The data of a program: sizes of its memories, named matrices, where they lie, what to show.

A directive is a line of assembly text that begins with a dot, and travels in a binary as that text in
its canonical form; ``parse(str(directive)) == directive``.  What it does to a warp's state is in
`loading`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from stcsim.errors import IsaError, must, unknown
from stcsim.isa.fragment import PER_WORD
from stcsim.isa.operand import ZERO_REGISTER, Accumulator, Register
from stcsim.isa.state import LANES

FORMS = ("rows", "columns", "packed_rows", "packed_columns", "bits_rows", "bits_columns")
"""How a matrix can lie as a run of words: whole, its non-zeros alone, or one bitmap word a row or column."""
ROLES = ("a", "b", "c", "e")
"""Operands of an instruction that a matrix can lie as; e is the metadata of a 2:4 one."""
GENERATORS: dict[str, tuple[str, ...]] = {
    "integers": ("least", "largest", "percent", "seed"),
    "two_of_four": ("least", "largest", "seed"),
    "identity": (),
}
"""Matrices given by a rule, and the whole numbers that the rule takes."""
LARGEST_MEMORY = 1 << 24
"""Bytes of a memory, and elements of a matrix."""
LARGEST_NUMBER = (1 << 31) - 1
"""Largest magnitude of a number that a rule takes."""

_NAME = r"[A-Za-z_]\w*"
_NUMBER = r"-?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})"


@dataclass(frozen=True, slots=True)
class Memory:
    """``.shared BYTES`` or ``.global BYTES``: the size of a memory, a multiple of 16."""

    FORM: ClassVar[str] = ".shared BYTES | .global BYTES"

    space: str
    n_bytes: int

    def __str__(self) -> str:
        return f".{self.space} {hex(self.n_bytes)}"


@dataclass(frozen=True, slots=True)
class Words:
    """``.register R4 = WORDS``: what a register holds: one word for all lanes, or 32."""

    FORM: ClassVar[str] = ".register Rn = WORD | .register Rn = 32 WORDS"

    register: Register
    words: tuple[int, ...]

    def __str__(self) -> str:
        return f".register {self.register} = {' '.join(map(hex, self.words))}"


@dataclass(frozen=True, slots=True)
class Matrix:
    """``.matrix A fp16 2x2 = [1 2; 3 4]`` or ``= integers(-4, 4, 50, 1)``: a named matrix.

    Parameters
    ----------
    name, dtype : str
    rows, columns : int
    elements : tuple of str
        Row by row, as written; empty if a rule gives them.
    generator : str
        Name of the rule; empty if the elements are written out.
    arguments : tuple of int
        What the rule takes, see `GENERATORS`.
    """

    FORM: ClassVar[str] = ".matrix NAME DTYPE MxN = [v v; v v] | RULE(numbers)"

    name: str
    dtype: str
    rows: int
    columns: int
    elements: tuple[str, ...] = ()
    generator: str = ""
    arguments: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.generator:
            values = f"{self.generator}({', '.join(map(str, self.arguments))})"
        else:
            lines = (self.elements[i : i + self.columns] for i in range(0, len(self.elements), self.columns))
            values = f"[{'; '.join(' '.join(line) for line in lines)}]"
        return f".matrix {self.name} {self.dtype} {self.rows}x{self.columns} = {values}"


@dataclass(frozen=True, slots=True)
class Place:
    """``.place A R8 a HMMA.16816.F32`` or ``.place A shared[0x40] packed_columns``: where a matrix lies.

    Parameters
    ----------
    matrix : str
    target : Register, or tuple of (space, byte address)
    form : str
        One of `FORMS`, or a role of `ROLES` (then `mnemonic` is given).
    mnemonic : str
        The instruction whose fragment it becomes.
    """

    FORM: ClassVar[str] = ".place NAME Rn|shared[ADDRESS]|global[ADDRESS] FORM | .place NAME Rn ROLE MNEMONIC"

    matrix: str
    target: Register | tuple[str, int]
    form: str
    mnemonic: str = ""

    def __str__(self) -> str:
        target = (
            self.target if isinstance(self.target, Register) else f"{self.target[0]}[{hex(self.target[1])}]"
        )
        return f".place {self.matrix} {target} {self.form} {self.mnemonic}".rstrip()


@dataclass(frozen=True, slots=True)
class Show:
    """``.show D R16 c HMMA.16816.F32`` or ``.show D ACC0 16x16``: a result to print as a matrix."""

    FORM: ClassVar[str] = ".show NAME Rn ROLE MNEMONIC | .show NAME ACCn MxN"

    name: str
    origin: Register | Accumulator
    form: str
    mnemonic: str = ""

    def __str__(self) -> str:
        return f".show {self.name} {self.origin} {self.form} {self.mnemonic}".rstrip()


Directive = Memory | Words | Matrix | Place | Show


def parse_directive(text: str) -> Directive:
    """Read one directive.

    Parameters
    ----------
    text : str
        A line that begins with a dot, without a comment.

    Returns
    -------
    directive : Directive

    Raises
    ------
    IsaError
        If the line is not a directive, or a part of it is not valid.
    """
    keyword, _, rest = text.strip().partition(" ")
    parser = _PARSERS.get(keyword)
    if parser is None:
        raise IsaError(unknown("directive", keyword, _PARSERS))
    return parser(keyword[1:], rest.strip())


def _matched(pattern: str, text: str, form: str) -> tuple[str, ...]:
    found = re.fullmatch(pattern, text)
    if found is None:
        raise IsaError(must(f"directive must have the form {form}", text or "nothing"))
    return tuple(group or "" for group in found.groups())


def _whole(text: str) -> int:
    return int(text, 0 if text.lstrip("-").lower().startswith("0x") else 10)


def _memory(space: str, rest: str) -> Memory:
    (size,) = _matched(rf"({_NUMBER})", rest, Memory.FORM)
    n_bytes = _whole(size)
    if not 0 < n_bytes <= LARGEST_MEMORY or n_bytes % 16:
        what = f"size must be a multiple of 16 up to {LARGEST_MEMORY} bytes"
        raise IsaError(must(what, n_bytes))
    return Memory(space, n_bytes)


def _words(_: str, rest: str) -> Words:
    register, values = _matched(rf"(R[0-9]{{1,4}})\s*=\s*({_NUMBER}(?:\s+{_NUMBER})*)", rest, Words.FORM)
    words = tuple(_whole(value) for value in values.split())
    if len(words) not in (1, LANES):
        raise IsaError(must(f"register must be given 1 word or {LANES}", len(words)))
    for word in words:
        if not -(1 << 31) <= word < 1 << 32:
            raise IsaError(must("word must fit 32 bits", word))
    return Words(_register(register), tuple(word & 0xFFFFFFFF for word in words))


def _matrix(_: str, rest: str) -> Matrix:
    pattern = rf"({_NAME})\s+(\w+)\s+([0-9]{{1,8}})x([0-9]{{1,8}})\s*=\s*(?:\[([^\]]*)\]|(\w+)\(([^)]*)\))"
    name, dtype, rows, columns, values, generator, arguments = _matched(pattern, rest, Matrix.FORM)
    if dtype not in PER_WORD:
        raise IsaError(unknown("dtype", dtype, PER_WORD))
    shape = int(rows), int(columns)
    if not 0 < shape[0] * shape[1] <= LARGEST_MEMORY:
        raise IsaError(must(f"matrix must have 1 to {LARGEST_MEMORY} elements", shape[0] * shape[1]))
    if generator:
        return _generated(name, dtype, shape, generator, arguments)
    lines = [line.split() for line in values.split(";")]
    if len(lines) != shape[0] or any(len(line) != shape[1] for line in lines):
        found = f"{len(lines)} rows of {'/'.join(sorted({str(len(line)) for line in lines}))}"
        raise IsaError(must(f"matrix must be given {shape[0]} rows of {shape[1]} elements", found))
    elements = tuple(element for line in lines for element in line)
    for element in elements:
        try:
            float(element)
        except ValueError:
            raise IsaError(must("element must be a number", element)) from None
    return Matrix(name, dtype, *shape, elements)


def _generated(name: str, dtype: str, shape: tuple[int, int], generator: str, arguments: str) -> Matrix:
    if generator not in GENERATORS:
        raise IsaError(unknown("rule", generator, GENERATORS))
    numbers = [part.strip() for part in arguments.split(",") if part.strip()]
    wanted = GENERATORS[generator]
    if len(numbers) != len(wanted):
        raise IsaError(
            must(f"{generator} must be given {len(wanted)} numbers ({', '.join(wanted)})", len(numbers))
        )
    for number in numbers:
        if not re.fullmatch(_NUMBER, number):
            raise IsaError(must(f"{generator} must be given whole numbers", number))
    values = dict(zip(wanted, (_whole(number) for number in numbers), strict=True))
    for value in values.values():
        if abs(value) > LARGEST_NUMBER:
            raise IsaError(must(f"{generator} must be given numbers up to {LARGEST_NUMBER}", value))
    if generator == "two_of_four" and shape[1] % 4:
        raise IsaError(must("two_of_four must have a multiple of 4 columns", shape[1]))
    if values.get("least", 0) > values.get("largest", 0):
        raise IsaError(must("largest must be at least least", values["largest"]))
    if not 0 <= values.get("percent", 0) <= 100:
        raise IsaError(must("percent of non-zeros must be from 0 to 100", values["percent"]))
    return Matrix(name, dtype, *shape, generator=generator, arguments=tuple(values.values()))


def _place(_: str, rest: str) -> Place:
    pattern = (
        rf"({_NAME})\s+(?:(R[0-9]{{1,4}})|(shared|global)\s*\[\s*({_NUMBER})\s*\])\s+(\w+)(?:\s+([\w.]+))?"
    )
    name, register, space, address, form, mnemonic = _matched(pattern, rest, Place.FORM)
    _check_form(form, mnemonic, FORMS, fragment=bool(register))
    if register:
        return Place(name, _register(register), form, mnemonic)
    if _whole(address) < 0 or _whole(address) % 4:
        raise IsaError(must("address must be a multiple of 4", address))
    return Place(name, (space, _whole(address)), form, mnemonic)


def _show(_: str, rest: str) -> Show:
    pattern = (
        rf"({_NAME})\s+(?:(R[0-9]{{1,4}})\s+(\w+)\s+([\w.]+)|ACC([0-9]{{1,4}})\s+([0-9]{{1,4}}x[0-9]{{1,4}}))"
    )
    name, register, role, mnemonic, tile, shape = _matched(pattern, rest, Show.FORM)
    if tile:
        return Show(name, Accumulator(int(tile)), shape)
    _check_form(role, mnemonic, (), fragment=True)
    return Show(name, _register(register), role, mnemonic)


def _check_form(form: str, mnemonic: str, plain: tuple[str, ...], *, fragment: bool) -> None:
    known = ROLES if mnemonic else plain
    if form not in known:
        raise IsaError(unknown("role" if mnemonic else "form", form, known))
    if mnemonic and not fragment:
        raise IsaError(must("a fragment must be placed in registers", "in memory"))


def _register(text: str) -> Register:
    index = int(text[1:])
    if index >= ZERO_REGISTER:
        raise IsaError(must(f"must be a register, R0 to R{ZERO_REGISTER - 1}", text))
    return Register(index)


_PARSERS: dict[str, Callable[[str, str], Directive]] = {
    ".shared": _memory,
    ".global": _memory,
    ".register": _words,
    ".matrix": _matrix,
    ".place": _place,
    ".show": _show,
}
