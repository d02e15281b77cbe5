"""Names of semantics, and the functions that they stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import WarpState

Active = NDArray[np.bool_] | None
"""Lanes that a guard left active, shape (32,); None for all."""
Operands = tuple[Any, ...]
"""The operands of an instruction in the order of its row, already checked against it."""
Semantic = Callable[[InstructionSpec, Operands, WarpState, Active], None]

SEMANTICS: dict[str, Semantic] = {}
"""Every known semantics by name."""


def semantic(name: str) -> Callable[[Semantic], Semantic]:
    """Register a function as the semantics called `name`; a name taken already is a programming error."""

    def register(function: Semantic) -> Semantic:
        if name in SEMANTICS:
            message = f"semantics {name!r} are registered already"
            raise ValueError(message)
        SEMANTICS[name] = function
        return function

    return register
