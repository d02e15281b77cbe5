"""One instruction with its operands, checked against its row; and what executing it does.

Above the tables and the semantics, below the assembler and the lowerings.  Values only, no timing.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field

from stcsim.errors import IsaError, Problem, must
from stcsim.isa.operand import TRUE_PREDICATE, Operand, Predicate
from stcsim.isa.semantics import SEMANTICS
from stcsim.isa.semantics.outer_product import guard_lane
from stcsim.isa.spec import InstructionSpec
from stcsim.isa.state import WarpState
from stcsim.isa.table import load_isa


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of a program.

    Parameters
    ----------
    mnemonic : str
        Of a row of the tables.
    operands : tuple of Operand
        In the order of the row.
    guard : Predicate, optional
        Executes where it holds; ``@PT`` is no guard.
    row : InstructionSpec, optional
        The row, where it is not one of the shipped tables'; takes no part in comparisons.

    Attributes
    ----------
    spec : InstructionSpec
        The row.

    Raises
    ------
    IsaError
        If the row does not exist, or an operand does not fit it: all faults at once.

    Examples
    --------
    >>> from stcsim.isa.operand import Register
    >>> str(Instruction("POPC", (Register(5), Register(4)), guard=Predicate(0, negated=True)))
    '@!P0 POPC R5, R4'
    """

    mnemonic: str
    operands: tuple[Operand, ...] = ()
    guard: Predicate | None = None
    row: InitVar[InstructionSpec | None] = None
    spec: InstructionSpec = field(init=False, compare=False, repr=False)

    def __post_init__(self, row: InstructionSpec | None) -> None:
        object.__setattr__(self, "spec", load_isa()[self.mnemonic] if row is None else row)
        if self.guard == Predicate(TRUE_PREDICATE):
            object.__setattr__(self, "guard", None)
        faults = [fault for _, fault in operand_faults(self.spec, self.operands)]
        if self.guard is not None and (fault := guard_fault(self.spec, self.guard)):
            faults.append(fault)
        if faults:
            raise IsaError([Problem(fault, path=self.mnemonic) for fault in faults])

    def __str__(self) -> str:
        guard = "" if self.guard is None else f"@{self.guard} "
        return f"{guard}{self.mnemonic} {', '.join(map(str, self.operands))}".rstrip()


def operand_faults(spec: InstructionSpec, operands: tuple[Operand, ...]) -> list[tuple[int, str]]:
    """Say what is wrong with the operands of an instruction.

    Parameters
    ----------
    spec : InstructionSpec
    operands : tuple of Operand

    Returns
    -------
    faults : list of (int, str)
        Index of the operand, and the sentence; a wrong number of operands is told of the last index.
    """
    want, found = len(spec.operands), len(operands)
    if want != found:
        names = ", ".join(operand.name for operand in spec.operands) or "none"
        return [(min(want, found), must(f"must have {want} operands ({names})", found))]
    faults = []
    for i, (operand_spec, operand) in enumerate(zip(spec.operands, operands, strict=True)):
        fault = operand_spec.fault(operand)
        if fault is not None:
            faults.append((i, f"operand {operand_spec.name}: {fault}"))
    return faults


def guard_fault(spec: InstructionSpec, guard: Predicate) -> str | None:
    """Say why `guard` cannot guard the instruction, or return None."""
    if spec.guard == "none":
        return must(f"must stand without a guard: {spec.mnemonic} cannot be predicated", f"@{guard}")
    if not 0 <= guard.index <= TRUE_PREDICATE:
        return must(f"guard must be P0 to P{TRUE_PREDICATE - 1} or PT", guard)
    return None


def execute(instruction: Instruction, state: WarpState) -> bool:
    """Do what one instruction does to a warp's state.

    Parameters
    ----------
    instruction : Instruction
    state : WarpState
        Changed in place.

    Returns
    -------
    executed : bool
        False if its guard kept it from acting at all.

    Raises
    ------
    IsaError
        If an access is outside the state, or a guard that must hold for the whole warp differs
        between lanes.
    """
    spec = instruction.spec
    active = None
    guard = instruction.guard
    if guard is not None:
        holds = state.predicates[guard.index]
        if spec.guard == "step":
            k, _, j = instruction.operands[-3:]
            if bool(holds[guard_lane(k.value, j.value)]) == guard.negated:  # type: ignore[union-attr]
                return False
        else:
            active = ~holds if guard.negated else holds
            n_active = int(active.sum())
            if n_active == 0:
                return False
            if n_active == active.size:
                active = None
            elif spec.guard == "warp":
                what = f"{instruction}: guard must be alike in all lanes"
                raise IsaError(must(what, f"true in {n_active} of {active.size}"))
    SEMANTICS[spec.semantics](spec, instruction.operands, state, active)
    return True
