"""The math loop of a warp whose sums stand in registers: fragments of A meet fragments of B.

Shared by the dense lowering and those whose A keeps n of m.  Register map of a warp, from R0: the
sums of every (row block, column block), then A's fragments, then B's, then
metadata (2:4 codes, offsets).  One iteration consumes the K of one instruction; HMMA.884 has K = 4
and is issued in sets of steps, so an iteration is four sets (K = 16).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel
from stcsim.config.machine import Dtype
from stcsim.errors import LoweringError, Problem, must
from stcsim.isa import Immediate, Instruction, InstructionSpec, Register, WarpState, execute, load_isa
from stcsim.isa.fragment import operand_layout
from stcsim.lowering.lowered import MicroOp, WarpProgram
from stcsim.lowering.lowering import require_k_cta, require_multiple

_SETS = 4
"""Sets of an HMMA.884 product 16 x 16 x 16.  Source: Raihan et al., ISPASS 2019."""

LoadA = Callable[[int, int], tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32] | None]]
LoadB = Callable[[int, int], npt.NDArray[np.uint32]]


def steps_of(kernel: Kernel, dtype: Dtype) -> tuple[InstructionSpec, ...]:
    """Return the instructions that make one product of fragments: one, or the steps of a set.

    Raises
    ------
    LoweringError
        If the kernel does not take the type, or the ISA has no such instruction.
    """
    where = f"kernel {kernel.name}: instructions"
    if dtype not in kernel.instructions:
        message = must(
            f"must take one of {', '.join(sorted(kernel.instructions))}", dtype, near=kernel.instructions
        )
        raise LoweringError(Problem(message, path=where))
    mnemonic = kernel.instructions[dtype]
    isa = load_isa()
    if mnemonic in isa:
        return (isa[mnemonic],)
    steps = tuple(isa[name] for name in sorted(isa) if name.startswith(f"{mnemonic}.STEP"))
    if not steps:
        message = must("must be an instruction of the ISA tables", mnemonic, near=isa)
        raise LoweringError(Problem(message, path=where))
    return steps


@dataclass(frozen=True)
class FragmentLoop:
    """The loop body and its register map.

    Parameters
    ----------
    kernel : Kernel
    steps : tuple of InstructionSpec
        See `steps_of`.
    """

    kernel: Kernel
    steps: tuple[InstructionSpec, ...]

    def __post_init__(self) -> None:
        require_multiple(self.kernel, "m", self.steps[0].product.m)
        require_multiple(self.kernel, "n", self.steps[0].product.n)
        require_k_cta(self.kernel, self.k_step)
        registers = self._metadata + self.blocks_m * self.sets
        if registers > 255:
            message = must("must leave the sums and fragments of a warp within 255 registers", registers)
            raise LoweringError(Problem(message, path=f"kernel {self.kernel.name}: tile"))

    @property
    def sets(self) -> int:
        """Instruction products along K in one iteration."""
        return _SETS if len(self.steps) > 1 else 1

    @property
    def k_inst(self) -> int:
        """K of one instruction."""
        return self.steps[0].product.k

    @property
    def k_step(self) -> int:
        """K of one iteration."""
        return self.k_inst * self.sets

    @property
    def blocks_m(self) -> int:
        """Instruction tiles of the warp along M."""
        return self.kernel.tile.m_warp // self.steps[0].product.m

    @property
    def blocks_n(self) -> int:
        """Instruction tiles of the warp along N."""
        return self.kernel.tile.n_warp // self.steps[0].product.n

    @cached_property
    def _counts(self) -> tuple[int, int, int]:
        """Registers of one fragment of C, A and B."""
        spec = self.steps[0]
        counts = tuple(operand_layout(spec, role).n_registers for role in ("c", "a", "b"))
        return counts[0], counts[1], counts[2]

    @cached_property
    def _first_a(self) -> int:
        return self.blocks_m * self.blocks_n * self._counts[0]

    @cached_property
    def _first_b(self) -> int:
        return self._first_a + self.blocks_m * self.sets * self._counts[1]

    @cached_property
    def _metadata(self) -> int:
        return self._first_b + self.blocks_n * self.sets * self._counts[2]

    def sums(self, i: int, j: int) -> int:
        """First register of the sums of row block i and column block j."""
        return (i * self.blocks_n + j) * self._counts[0]

    def fragment_a(self, i: int, s: int) -> int:
        """First register of A's fragment of row block i in set s."""
        return self._first_a + (i * self.sets + s) * self._counts[1]

    def fragment_b(self, j: int, s: int) -> int:
        """First register of B's fragment of column block j in set s."""
        return self._first_b + (j * self.sets + s) * self._counts[2]

    @property
    def has_metadata(self) -> bool:
        """Whether A is stored, and a register says which elements are."""
        return any(operand.name == "e" for operand in self.steps[0].operands)

    def selector(self, s: int) -> int:
        """Return the selector of a set's metadata: two sets share a register."""
        return s % 2

    def metadata(self, i: int, s: int) -> int:
        """Return the register of the metadata of row block i in set s."""
        return self._metadata + i * self.sets + s // 2

    @cached_property
    def body(self) -> tuple[MicroOp, ...]:
        """One iteration: row blocks outermost, then column blocks, sets and steps."""
        ops = []
        sums_per_step = self._counts[0] // len(self.steps)
        for i in range(self.blocks_m):
            for j in range(self.blocks_n):
                for s in range(self.sets):
                    for step, spec in enumerate(self.steps):
                        sums = Register(self.sums(i, j) + step * sums_per_step)
                        a, b = Register(self.fragment_a(i, s)), Register(self.fragment_b(j, s))
                        e = (Register(self.metadata(i, s)), Immediate(self.selector(s)))
                        more = e if self.has_metadata else ()
                        ops.append(MicroOp(Instruction(spec.mnemonic, (sums, a, b, sums, *more))))
        return tuple(ops)

    def program(self, k: int) -> WarpProgram:
        """Return the loop over a K of `k`."""
        return WarpProgram(self.body, self.k_step, -(-k // self.k_step))

    def slots_per_instruction(self) -> dict[str, int]:
        """Multiplier slots of one issue of each instruction."""
        return {spec.mnemonic: spec.macs for spec in self.steps}

    def run(self, k: int, load_a: LoadA, load_b: LoadB) -> npt.NDArray[np.float64]:
        """Execute the loop for values and return the warp tile's sums.

        Parameters
        ----------
        k : int
            K of the problem.
        load_a : callable
            ``load_a(i, k0)``: registers of A's fragment of row block i from K = k0 on, and its metadata
            (zeros where another selector's stand) or None.
        load_b : callable
            ``load_b(j, k0)``: registers of B's fragment of column block j.

        Returns
        -------
        sums : ndarray of float64, shape (m_warp, n_warp)
        """
        state = WarpState(np.zeros(0, np.uint8))
        spec = self.steps[0]
        for k0 in range(0, k, self.k_step):
            for s in range(self.sets):
                at = k0 + s * self.k_inst
                for i in range(self.blocks_m):
                    fragment, codes = load_a(i, at)
                    first = self.fragment_a(i, s)
                    state.registers[first : first + len(fragment)] = fragment
                    if codes is not None:
                        register = self.metadata(i, s)
                        state.registers[register] = codes | state.registers[register] * self.selector(s)
                for j in range(self.blocks_n):
                    fragment = load_b(j, at)
                    first = self.fragment_b(j, s)
                    state.registers[first : first + len(fragment)] = fragment
            for op in self.body:
                execute(op.instruction, state)
        layout = operand_layout(spec, "c")
        out = np.zeros((self.kernel.tile.m_warp, self.kernel.tile.n_warp))
        for i in range(self.blocks_m):
            for j in range(self.blocks_n):
                first = self.sums(i, j)
                tile = layout.unpack(state.registers[first : first + layout.n_registers])
                m, n = spec.product.m, spec.product.n
                out[i * m : (i + 1) * m, j * n : (j + 1) * n] = tile
        return out
