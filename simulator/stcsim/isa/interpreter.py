"""Runs a program on values, instruction by instruction.

Above everything else in the package.  One warp, program order, no time: what a run computes, never how
long it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import IsaError, Problem, must
from stcsim.isa.instruction import Instruction, execute
from stcsim.isa.operand import Accumulator, Predicate, Register
from stcsim.isa.program import Program
from stcsim.isa.state import LANES, WarpState

_REGISTERS_WRITTEN_OUT = 2
STEP_LIMIT = 1_000_000
"""Instructions after which a program is taken to loop for ever."""


@dataclass(frozen=True)
class Step:
    """What one executed instruction did.

    Parameters
    ----------
    index : int
        Of the instruction in the program.
    instruction : Instruction
    executed : bool
        False if its guard kept it from acting.
    effects : tuple of str
        What it changed, in words; a result equal to what stood there before is no change.
    """

    index: int
    instruction: Instruction
    executed: bool
    effects: tuple[str, ...]

    def __str__(self) -> str:
        what = ", ".join(self.effects) or "no change" if self.executed else "skipped"
        return f"{self.index:4d}  {self.instruction!s:<58} {what}"


def run(program: Program, state: WarpState, observer: Callable[[Step], None] | None = None) -> int:
    """Execute a program from its first instruction until EXIT or its end.

    Parameters
    ----------
    program : Program
    state : WarpState
        Changed in place.
    observer : callable, optional
        Told of each step after it.

    Returns
    -------
    n_steps : int
        Instructions reached, those that a guard kept from acting included.

    Raises
    ------
    IsaError
        If an instruction cannot act on the state, or the program does not end.
    """
    n_steps = 0
    state.pc = 0
    state.exited = False
    while state.pc < len(program.instructions) and not state.exited:
        if n_steps == STEP_LIMIT:
            raise IsaError(must(f"program must end within {STEP_LIMIT} instructions", "running still"))
        index = state.pc
        instruction = program.instructions[index]
        n_steps += 1
        try:
            before = None if observer is None else _written(instruction, state)
            state.pc += 1
            executed = execute(instruction, state)
        except IsaError as error:
            path = f"instruction {index}: {instruction}"
            raise IsaError([Problem(problem.message, path=path) for problem in error.problems]) from None
        if observer is not None and before is not None:
            observer(Step(index, instruction, executed, _effects(before, _written(instruction, state))))
    return n_steps


def _written(instruction: Instruction, state: WarpState) -> dict[str, NDArray[np.generic]]:
    """Copy what an instruction may change: the operands it writes, and the memory behind them."""
    found: dict[str, NDArray[np.generic]] = {}
    for spec, operand in zip(instruction.spec.operands, instruction.operands, strict=True):
        if spec.access == "read":
            continue
        match operand:
            case Register(index):
                rows = state.words(operand, spec.count).reshape(-1, LANES)
                found |= {f"R{index + r}": row.copy() for r, row in enumerate(rows)}
            case Predicate(index):
                found[f"P{index}"] = state.predicates[index].copy()
            case Accumulator(index):
                found[f"ACC{index}"] = state.sums(operand).copy()
            case _:
                pass
    found["shared"] = state.shared.copy()
    found["global"] = state.memory.copy()
    found["next"] = np.array([state.pc])
    return found


def _effects(
    before: dict[str, NDArray[np.generic]], after: dict[str, NDArray[np.generic]]
) -> tuple[str, ...]:
    """Say what differs between two copies of a state."""
    effects = []
    changes = {name: np.argwhere(before[name] != new) for name, new in after.items()}
    registers = [name for name, change in changes.items() if name.startswith("R") and change.size]
    if len(registers) > _REGISTERS_WRITTEN_OUT:
        effects.append(f"{registers[0]} to {registers[-1]}")
        registers = []
    effects += [f"{name} = {lane_words(after[name])}" for name in registers]
    for name, change in changes.items():
        new = after[name]
        if name == "next":
            if int(new[0]) != int(before[name][0]) + 1:
                effects.append(f"goes on at {new[0]}")
        elif name.startswith("R") or not change.size:
            continue
        elif name.startswith("ACC"):
            rows, columns = (_ranges(np.unique(axis)) for axis in change.T)
            effects.append(f"{name}: {len(change)} sums, rows {rows}, columns {columns}")
        elif name.startswith("P"):
            effects.append(f"{name} = {lane_mask(new)}")
        else:
            effects.append(f"{len(change)} bytes of {name} from {hex(int(change[0, 0]))}")
    return tuple(effects)


def lane_words(words: NDArray[np.generic]) -> str:
    """Write a register in short: one word if all lanes agree, else those of the first lanes."""
    values = [hex(int(word)) for word in words.tolist()]
    if len(set(values)) == 1:
        return f"{values[0]} in all lanes"
    return f"{' '.join(values[:4])} .."


def lane_mask(lanes: NDArray[np.generic]) -> str:
    """Write a predicate as a word, lane 0 in the lowest bit."""
    return f"0x{sum(1 << i for i, lane in enumerate(lanes.tolist()) if lane):08x}"


def _ranges(numbers: NDArray[np.generic]) -> str:
    """Write rising whole numbers with runs drawn together: ``1-3 7``."""
    parts: list[list[int]] = []
    for number in numbers.tolist():
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
