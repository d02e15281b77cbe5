"""A pattern that stays in its file until it is needed, checked once before.

Made while a study is loaded, so that whatever is wrong is told before anything runs, and asked for
again layer by layer: a study of many large operands holds those of one layer in memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

from stcsim.errors import Problem, WorkloadError
from stcsim.workload.pattern import Pattern
from stcsim.workload.pattern_file import check_pattern, load_pattern


@dataclass(frozen=True)
class StoredPattern:
    """Where a pattern is.

    Parameters
    ----------
    path : str
    key : str or None
        Name of the pattern in an .npz file.
    is_transposed : bool
        Whether the file holds the transposed pattern.
    shape : tuple of int
        Of the pattern, not of what the file holds.
    """

    path: str
    key: str | None
    is_transposed: bool
    shape: tuple[int, int]

    @classmethod
    def check(
        cls, path: str | os.PathLike[str], key: str | None, *, is_transposed: bool = False
    ) -> StoredPattern:
        """Read a pattern, and keep nothing but its shape.

        Raises
        ------
        WorkloadError
            As `stcsim.workload.pattern_file.load_pattern`.
        """
        shape = check_pattern(path, key)
        return cls(os.fspath(path), key, is_transposed, shape[::-1] if is_transposed else shape)

    def load(self) -> Pattern:
        """Return the pattern, read now.

        Raises
        ------
        WorkloadError
            If the file is no longer what it was.
        """
        pattern = load_pattern(self.path, self.key)
        pattern = pattern.transpose() if self.is_transposed else pattern
        if pattern.shape != self.shape:
            message = "must not change while a study runs"
            raise WorkloadError(Problem(message, self.path))
        return pattern

    @cached_property
    def digest(self) -> str:
        """Hash of the pattern's content."""
        return self.load().digest
