"""Warp-level instructions taken apart, and DSTC's rows for other shapes than the paper's.

SpWMMA and OWMMA are what a kernel is written in; `expand` gives the machine instructions that they
stand for.  `outer_product_rows` derives the rows of an outer product of another shape, or of another
warp tile, from the shipped ones: both are parameters that architects sweep.  Values and order only;
what the front end costs is the machine's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from typing import cast

from stcsim.errors import IsaError, must
from stcsim.isa.instruction import Instruction
from stcsim.isa.operand import (
    TRUE_PREDICATE,
    Accumulator,
    Immediate,
    Predicate,
    Register,
)
from stcsim.isa.semantics.outer_product import STEPS, VALUES_PER_REGISTER
from stcsim.isa.spec import InstructionSpec, Shape
from stcsim.isa.state import LANES
from stcsim.isa.table import load_isa

LARGEST_EDGE = 64
"""Largest edge of a warp tile: two bitmap registers.  ASSUMED: enough for any sweep."""
_GROUPS_PER_PREDICATE = 2


@dataclass(frozen=True)
class OuterProductRows:
    """The rows of a sparse outer-product machine of one geometry.

    Parameters
    ----------
    outer_product : InstructionSpec
        The m_inst x n_inst outer product.
    predicates : InstructionSpec
        Sets its predicates from population counts.
    warp_product : InstructionSpec
        The warp-level m_warp x n_warp x 16 product of them.
    """

    outer_product: InstructionSpec
    predicates: InstructionSpec
    warp_product: InstructionSpec


@cache
def outer_product_rows(
    m_inst: int = 8, n_inst: int = 16, m_warp: int = 32, n_warp: int = 32
) -> OuterProductRows:
    """Return the rows for an outer product of m_inst x n_inst and warp tiles of m_warp x n_warp.

    Parameters
    ----------
    m_inst, n_inst : int
    m_warp, n_warp : int
        At most 64, and at most 16 groups of m_inst or n_inst.

    Returns
    -------
    rows : OuterProductRows
        The shipped ones for the defaults.  Others have mnemonics of their own, such as ``OHMMA.4321``,
        and no encoding: they stand in no table.

    Raises
    ------
    IsaError
        If an edge or a number of groups is out of range.
    """
    isa = load_isa()
    shipped = OuterProductRows(isa["OHMMA.8161"], isa["OSETP.8161"], isa["SpWMMA"])
    if (m_inst, n_inst, m_warp, n_warp) == (8, 16, 32, 32):
        return shipped
    most = 1 << cast("int", shipped.outer_product.operands[6].bits)
    for inst, warp, axis in ((m_inst, m_warp, "m"), (n_inst, n_warp, "n")):
        if not 1 <= warp <= LARGEST_EDGE:
            raise IsaError(must(f"{axis}_warp must be from 1 to {LARGEST_EDGE}", warp))
        if not 1 <= inst <= warp or -(-warp // inst) > most:
            raise IsaError(must(f"{axis}_inst must make 1 to {most} groups of {axis}_warp = {warp}", inst))
    bits = {"bits_a": -(-m_warp // LANES), "bits_b": -(-n_warp // LANES)}
    counts = {
        "a": -(-m_warp * STEPS // VALUES_PER_REGISTER),
        "b": -(-n_warp * STEPS // VALUES_PER_REGISTER),
        **bits,
        "counts_a": bits["bits_a"],
        "counts_b": bits["bits_b"],
        "counts": 2 * max(bits.values()),
    }
    suffix = "" if (m_warp, n_warp) == (32, 32) else f".W{m_warp}X{n_warp}"
    inst_name = f"{m_inst}{n_inst}1{suffix}"

    def derive(spec: InstructionSpec, mnemonic: str, shape: Shape, macs: int) -> InstructionSpec:
        operands = tuple(
            operand.model_copy(update={"count": counts.get(operand.name, operand.count)})
            for operand in spec.operands
        )
        return spec.model_copy(
            update={"mnemonic": mnemonic, "opcode": None, "shape": shape, "macs": macs, "operands": operands}
        )

    step = Shape(m=m_inst, n=n_inst, k=1)
    whole = Shape(m=m_warp, n=n_warp, k=STEPS)
    n_issues = STEPS * -(-m_warp // m_inst) * -(-n_warp // n_inst)
    return OuterProductRows(
        derive(shipped.outer_product, f"OHMMA.{inst_name}", step, m_inst * n_inst),
        derive(shipped.predicates, f"OSETP.{inst_name}", step, 0),
        derive(shipped.warp_product, f"SpWMMA.{inst_name}", whole, n_issues * m_inst * n_inst),
    )


def expand(
    instruction: Instruction,
    rows: OuterProductRows | None = None,
    *,
    bits_a: Sequence[int] | None = None,
    bits_b: Sequence[int] | None = None,
) -> Iterator[Instruction]:
    """Yield the machine instructions that a SpWMMA or an OWMMA stands for.

    A SpWMMA becomes POPC of the bitmap words, OSETP for the predicates, and for each step k one BOHMMA
    and the predicated OHMMAs of all groups (i, j).  One predicate register holds group i against two
    groups j; geometries that need more than the seven registers take further rounds of OSETP and steps.
    An OWMMA becomes one MOV of the all-ones bitmap word and its OHMMAs, unguarded.

    Parameters
    ----------
    instruction : Instruction
    rows : OuterProductRows, optional
        The geometry of a SpWMMA; the paper's by default.
    bits_a, bits_b : sequence of 16 int, optional
        Bitmap words of A's columns and B's rows.  With them, only the OHMMAs whose predicate will
        hold are yielded: what the front end issues.

    Yields
    ------
    step : Instruction

    Raises
    ------
    IsaError
        If the instruction is not a warp-level one.
    """
    if instruction.spec.semantics == "dense_warp_product":
        yield from _expand_dense(instruction)
    elif instruction.spec.semantics == "sparse_warp_product":
        yield from _expand_sparse(instruction, rows or outer_product_rows(), bits_a, bits_b)
    else:
        raise IsaError(must("instruction must be SpWMMA or OWMMA", instruction.mnemonic))


def _expand_dense(instruction: Instruction) -> Iterator[Instruction]:
    tile, a, b, bits = instruction.operands
    whole = instruction.spec.product
    spec = load_isa()["OHMMA.8161"]
    yield Instruction("MOV", (bits, Immediate((1 << whole.m) - 1)))
    groups = product(range(whole.k), range(whole.m // spec.product.m), range(whole.n // spec.product.n))
    for k, i, j in groups:
        yield Instruction(
            spec.mnemonic, (tile, a, b, bits, bits, Immediate(k), Immediate(i), Immediate(j)), row=spec
        )


def _expand_sparse(
    instruction: Instruction,
    rows: OuterProductRows,
    words_a: Sequence[int] | None,
    words_b: Sequence[int] | None,
) -> Iterator[Instruction]:
    tile, a, b, bits_a, bits_b, counts, positions = cast(
        "tuple[Accumulator, Register, Register, Register, Register, Register, Register]",
        instruction.operands,
    )
    inst, warp = rows.outer_product.product, rows.warp_product.product
    n_a, n_b = rows.outer_product.operands[3].count, rows.outer_product.operands[4].count
    paired = bits_a == bits_b
    if paired and max(n_a, n_b) > 1:
        what = f"bits of a {warp.m} x {warp.n} tile must be in separate registers"
        raise IsaError(must(what, f"both in {bits_a}"))
    counts_a, counts_b = counts, counts if paired else Register(counts.index + max(n_a, n_b))
    for r in range(n_a):
        yield Instruction("POPC", (Register(counts_a.index + r), Register(bits_a.index + r)))
    for r in range(0 if paired else n_b):
        yield Instruction("POPC", (Register(counts_b.index + r), Register(bits_b.index + r)))

    groups_a, groups_b = -(-warp.m // inst.m), -(-warp.n // inst.n)
    pairs = list(product(range(0, groups_b, _GROUPS_PER_PREDICATE), range(groups_a)))
    for first in range(0, len(pairs), TRUE_PREDICATE):
        table = [(Predicate(p), i, j) for p, (j, i) in enumerate(pairs[first : first + TRUE_PREDICATE])]
        for predicate, i, j in table:
            operands = (predicate, counts_a, counts_b, Immediate(i), Immediate(j))
            yield Instruction(rows.predicates.mnemonic, operands, row=rows.predicates)
        for k in range(warp.k):
            if first == 0:
                for r_a, r_b in product(range(n_a), range(n_b)):
                    quarter = (Register(bits_a.index + r_a), Register(bits_b.index + r_b))
                    yield Instruction("BOHMMA.32321", (positions, *quarter, Immediate(k)))
            for predicate, i, first_j in table:
                for j in range(first_j, min(first_j + _GROUPS_PER_PREDICATE, groups_b)):
                    if _has_work(words_a, k, inst.m * i) and _has_work(words_b, k, inst.n * j):
                        registers = (tile, a, b, bits_a, bits_b)
                        yield _outer_product(rows.outer_product, registers, (k, i, j), predicate)


@lru_cache(maxsize=4096)
def _outer_product(
    spec: InstructionSpec,
    registers: tuple[Accumulator | Register, ...],
    place: tuple[int, int, int],
    predicate: Predicate,
) -> Instruction:
    """Return the outer product (k, i, j); a slab has at most 128 of them, and a value check thousands of slabs."""
    operands = (*registers, *(Immediate(number) for number in place))
    return Instruction(spec.mnemonic, operands, predicate, spec)


def _has_work(words: Sequence[int] | None, k: int, n_before: int) -> bool:
    """Tell whether the bitmap word of step k has more ones than `n_before`; unknown words may have."""
    return words is None or int(words[k]).bit_count() > n_before
