"""The one form of every error that a user can cause.

Base layer: imported by every package, imports none of them.  A message reads
``FILE:LINE: PATH: what must hold, not VALUE (did you mean NAME?)``; parts that
are not known are left out.  Several problems travel in one exception, so that
a user mends a file once and not once per typo.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where.

    Parameters
    ----------
    message : str
        What must hold, and what was found instead (see `must`).
    file : str, optional
        The file, as the user named it.
    line : int, optional
        Line in that file, 1-based.
    path : str, optional
        Dotted path of the value, such as ``machine.tensor_core.clock``.
    """

    message: str
    file: str | None = None
    line: int | None = None
    path: str | None = None

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = f"{self.file}:{self.line}: " if self.line is not None else f"{self.file}: "
        path = f"{self.path}: " if self.path else ""
        return f"{place}{path}{self.message}"


class StcsimError(Exception):
    """A fault of the input, not of the program: printed without a traceback, exit status 2.

    Parameters
    ----------
    problems : str, Problem, or iterable of Problem
        What is wrong.  A bare string is a problem without a place.
    """

    exit_status = 2

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ConfigError(StcsimError):
    """A study, machine or kernel file, or an override, does not hold what it must."""


class WorkloadError(StcsimError):
    """An operand pattern or a workload is malformed, or cannot be read."""


class FormatError(StcsimError):
    """An operand does not fit the format that it is to be stored in."""


class LoweringError(StcsimError):
    """A workload cannot be lowered to the chosen kernel on the chosen machine."""


class IsaError(StcsimError):
    """An instruction, an assembly text or a binary is not valid."""


class CheckError(StcsimError):
    """The values that a simulated program computes are wrong; exit status 1."""

    exit_status = 1


def nearest(name: object, choices: Iterable[str]) -> str | None:
    """Return the choice that `name` was probably meant to be, or None."""
    matches = difflib.get_close_matches(str(name), sorted(choices), n=1, cutoff=0.6)
    return matches[0] if matches else None


def must(what: str, value: object, *, near: Iterable[str] = ()) -> str:
    """Write the sentence of an error.

    Parameters
    ----------
    what : str
        What must hold, such as ``"must be a power of two"``.
    value : object
        What was found; texts are shown as they stand.
    near : iterable of str
        Valid names, among which the nearest is offered.

    Returns
    -------
    sentence : str

    Examples
    --------
    >>> must("must be one of dense, uniform", "unifrom", near=["dense", "uniform"])
    'must be one of dense, uniform, not unifrom (did you mean uniform?)'
    """
    hint = nearest(value, near)
    return f"{what}, not {value}" + (f" (did you mean {hint}?)" if hint else "")


def unknown(kind: str, name: object, choices: Iterable[str]) -> str:
    """Write the sentence for a name that is not among the known ones (listed sorted)."""
    known = sorted(choices)
    return must(f"must be a known {kind} ({', '.join(known) or 'none is registered'})", name, near=known)
