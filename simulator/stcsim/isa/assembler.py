"""Assembly text to a program: reads operands as they are written, and lets the rows judge them.

Every fault of a text is told at once, each with file, line, column and the token that is wrong.

A line is ``LABEL:``, a directive (`directive`), or ``[@[!]P] MNEMONIC OPERAND, OPERAND``; ``//`` begins
a comment.  Negative numbers stand for their two's complement where 32 bits are wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stcsim.errors import IsaError, Problem, must, nearest
from stcsim.isa.directive import Directive, parse_directive
from stcsim.isa.instruction import Instruction, guard_fault, operand_faults
from stcsim.isa.operand import (
    TRUE_PREDICATE,
    ZERO_REGISTER,
    Accumulator,
    Address,
    Immediate,
    Operand,
    Predicate,
    Register,
    SpecialRegister,
    Target,
)
from stcsim.isa.program import COMMENT, NO_TEXT, Program
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.table import Isa, load_isa

_NUMBER = r"-?(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})"
_LINE = re.compile(
    r"(?:(?P<label>[A-Za-z_]\w*)\s*:)?\s*(?P<guard>@\S+)?\s*(?P<mnemonic>[^\s,]+)?\s*(?P<rest>.*)"
)
_RESERVED = re.compile(r"!?(?:R[0-9]{1,4}|RZ|P[0-9]{1,4}|PT|ACC[0-9]{1,4}|SR_\w+)")
_ADDRESS = re.compile(
    rf"\[\s*(?:(?P<register>R[0-9]{{1,4}}|RZ)\s*(?:(?P<sign>[+-])\s*(?P<offset>{_NUMBER}))?|(?P<alone>{_NUMBER}))\s*\]"
)


class _Fault(Exception):
    """Something is wrong with a token; carries the sentence."""


class _Labels:
    """Names of places in a program, and the faults of using them."""

    def __init__(self) -> None:
        self.index: dict[str, int] = {}

    def target(self, name: str) -> Target:
        index = self.index.get(name)
        if index is None:
            raise _Fault(must("must be a label of the program", name, near=self.index))
        return Target(index)


def assemble(text: str, *, file: str | None = None, isa: Isa | None = None) -> Program:
    """Assemble a program.

    Parameters
    ----------
    text : str
    file : str, optional
        Its name, for messages.
    isa : Isa, optional
        The shipped one by default.

    Returns
    -------
    program : Program

    Raises
    ------
    IsaError
        With every fault of the text.
    """
    return _Assembler(text, file, load_isa() if isa is None else isa).program()


def assemble_file(path: Path, *, isa: Isa | None = None) -> Program:
    """Assemble the program in a file; see `assemble`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise IsaError(Problem(must("must be a readable file", error.strerror), str(path))) from None
    bad = [match.start()] if (match := NO_TEXT.search(content)) else []
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        bad.append(error.start)
    if bad:
        fault = must("must be assembly text in UTF-8", f"byte {content[min(bad)]:#x}")
        raise IsaError(Problem(fault, str(path)))
    return assemble(text, file=str(path), isa=isa)


class _Assembler:
    """One text on its way to a program."""

    def __init__(self, text: str, file: str | None, isa: Isa) -> None:
        self._lines = [line.partition(COMMENT)[0].rstrip() for line in text.splitlines()]
        self._file = file
        self._isa = isa
        self._labels = _Labels()
        self._problems: list[Problem] = []

    def program(self) -> Program:
        """Read the labels, then everything else."""
        statements = list(self._statements())
        data: list[Directive] = []
        instructions: list[Instruction] = []
        for number, found in statements:
            if isinstance(found, str):
                try:
                    data.append(parse_directive(found))
                except IsaError as error:
                    column = self._lines[number - 1].index(".") + 1
                    for problem in error.problems:
                        self._blame(number, column, found.split()[0], problem.message)
            else:
                instruction = self._instruction(number, found)
                if instruction is not None:
                    instructions.append(instruction)
        if self._problems:
            raise IsaError(sorted(self._problems, key=lambda problem: problem.line or 0))
        return Program(tuple(instructions), tuple(data))

    def _statements(self) -> Iterator[tuple[int, str | re.Match[str]]]:
        """Yield line numbers and directives (as text) or instructions (as matches); note the labels."""
        n_instructions = 0
        for number, line in enumerate(self._lines, start=1):
            start = len(line) - len(line.lstrip())
            if line.startswith(".", start):
                yield number, line.strip()
                continue
            found = _LINE.fullmatch(line, start)
            if found is None:
                continue
            if found["label"] is not None:
                self._label(number, found, n_instructions)
            if found["mnemonic"] or found["guard"] or found["rest"]:
                n_instructions += 1
                yield number, found

    def _label(self, number: int, found: re.Match[str], index: int) -> None:
        name, column = found["label"], found.start("label") + 1
        if _RESERVED.fullmatch(name):
            self._blame(number, column, name, must("label must not be the name of a register", name))
        elif name in self._labels.index:
            self._blame(number, column, name, must("label must be unique", f"{name} again"))
        else:
            self._labels.index[name] = index

    def _instruction(self, number: int, found: re.Match[str]) -> Instruction | None:
        """Check and build one instruction; None if something is wrong with it."""
        before = len(self._problems)
        mnemonic = found["mnemonic"]
        if mnemonic is None:
            column, token = found.start("rest") + 1, found["rest"] or "end of line"
            self._blame(number, column, token, must("must be an instruction", "missing"))
            return None
        spec: InstructionSpec | None = self._isa.get(mnemonic)
        if spec is None:
            what = must("must be an instruction of the tables", mnemonic, near=self._isa)
            if "(did you mean" not in what and (close := nearest(mnemonic.upper(), self._isa)):
                what = f"{what} (did you mean {close}?)"
            self._blame(number, found.start("mnemonic") + 1, mnemonic, what)
            return None
        guard = self._guard(number, found, spec)
        tokens = list(_split(found["rest"], found.start("rest") + 1))
        operands: list[Operand] = []
        for column, token in tokens:
            try:
                operands.append(_operand(token, self._labels))
            except _Fault as fault:
                self._blame(number, column, token or "end of line", str(fault))
        if len(operands) < len(tokens):
            return None
        operands = [_wrapped(operand, spec, i) for i, operand in enumerate(operands)]
        for i, sentence in operand_faults(spec, tuple(operands)):
            column, token = tokens[i] if i < len(tokens) else (found.end() + 1, "end of line")
            self._blame(number, column, token, sentence)
        if len(self._problems) > before:
            return None
        return Instruction(mnemonic, tuple(operands), guard, spec)

    def _guard(self, number: int, found: re.Match[str], spec: InstructionSpec) -> Predicate | None:
        text = found["guard"]
        if text is None:
            return None
        column = found.start("guard") + 1
        try:
            guard = _operand(text[1:], self._labels) if text[1:] else None
        except _Fault:
            guard = None
        if not isinstance(guard, Predicate):
            self._blame(
                number, column, text, must("guard must be @P0 to @P6, @PT, or one of them negated", text)
            )
            return None
        message = guard_fault(spec, guard)
        if message is not None:
            self._blame(number, column, text, message)
        return guard

    def _blame(self, number: int, column: int, token: str, message: str) -> None:
        self._problems.append(Problem(message, self._file, number, f"column {column}: {token}"))


def _split(text: str, column: int) -> Iterator[tuple[int, str]]:
    """Yield each operand between commas with its column."""
    if not text.strip():
        return
    for part in text.split(","):
        yield column + len(part) - len(part.lstrip()), part.strip()
        column += len(part) + 1


def _operand(token: str, labels: _Labels) -> Operand:
    """Read an operand as it is written."""
    if re.fullmatch(_NUMBER, token):
        return Immediate(_whole(token))
    if re.fullmatch(r"R[0-9]{1,4}|RZ", token):
        return _register(token)
    if re.fullmatch(r"!?(?:P[0-9]{1,4}|PT)", token):
        name = token.removeprefix("!")
        index = TRUE_PREDICATE if name == "PT" else int(name[1:])
        if name == f"P{TRUE_PREDICATE}":
            raise _Fault(must(f"must be a predicate, P0 to P{TRUE_PREDICATE - 1} or PT", token))
        return Predicate(index, token.startswith("!"))
    if re.fullmatch(r"ACC[0-9]{1,4}", token):
        return Accumulator(int(token[3:]))
    if re.fullmatch(r"SR_\w+", token):
        return SpecialRegister(token)
    if token.startswith("["):
        return _address(token)
    if re.fullmatch(r"[A-Za-z_]\w*", token):
        return labels.target(token)
    raise _Fault(
        must("must be an operand (R4, RZ, P0, !P0, ACC0, 12, 0x1F, [R4 + 0x40], a label)", token or "nothing")
    )


def _register(token: str) -> Register:
    if token == f"R{ZERO_REGISTER}":
        raise _Fault(must(f"must be a register, R0 to R{ZERO_REGISTER - 1} or RZ", token))
    return Register(ZERO_REGISTER if token == "RZ" else int(token[1:]))


def _address(token: str) -> Address:
    found = _ADDRESS.fullmatch(token)
    if found is None:
        raise _Fault(must("must be an address such as [R4], [R4 + 0x40] or [0x40]", token))
    if found["register"] is None:
        return Address(None, _whole(found["alone"]))
    offset = 0 if found["offset"] is None else _whole(found["offset"])
    return Address(_register(found["register"]), -offset if found["sign"] == "-" else offset)


def _whole(text: str) -> int:
    return int(text, 16 if "x" in text.lower() else 10)


def _wrapped(operand: Operand, spec: InstructionSpec, i: int) -> Operand:
    """Return the two's complement of a negative number where a 32-bit word is wanted."""
    if (
        isinstance(operand, Immediate)
        and i < len(spec.operands)
        and spec.operands[i].kind == "register_or_immediate"
        and -(1 << 31) <= operand.value < 0
    ):
        return Immediate(operand.value + (1 << 32))
    return operand
