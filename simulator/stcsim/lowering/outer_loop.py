"""The registers of a warp that multiplies by outer products, and how a tile gets into them.

Shared by the sparse and the dense outer-product lowering.  Sums stand in tile 0
of the accumulator buffer; condensed values and bitmap words stand in registers
as loads of the encoded tile leave them (`stcsim.isa.semantics.outer_product`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel
from stcsim.config.machine import Machine
from stcsim.errors import IsaError, LoweringError, Problem, must
from stcsim.formats.bitmap import BitmapFormat
from stcsim.isa import Accumulator, Immediate, Instruction, Operand, Register, WarpState
from stcsim.isa.expansion import OuterProductRows, outer_product_rows
from stcsim.isa.fragment import encode
from stcsim.isa.semantics.outer_product import STEPS, VALUES_PER_REGISTER
from stcsim.lowering.lowering import require_k_cta

TILE = Accumulator(0)
"""Accumulator tile of the one warp that is executed."""


@dataclass(frozen=True)
class OuterLoop:
    """Geometry and register map.

    Parameters
    ----------
    kernel : Kernel
    m_inst, n_inst : int
        Shape of one outer product, which the machine fixes.
    """

    kernel: Kernel
    m_inst: int
    n_inst: int

    def __post_init__(self) -> None:
        try:
            _ = self.rows
        except IsaError as error:
            path = f"kernel {self.kernel.name}: tile"
            raise LoweringError([Problem(p.message, path=path) for p in error.problems]) from None

    @staticmethod
    def of(kernel: Kernel, machine: Machine) -> OuterLoop:
        """Return the loop of `kernel` on a machine whose tensor core has an outer-product shape."""
        shape = getattr(machine.tensor_core, "outer_product", None)
        if shape is None:
            message = "must have a tensor core with an outer_product shape"
            raise LoweringError(Problem(message, path=f"machine {machine.name}"))
        loop = OuterLoop(kernel, shape.m_inst, shape.n_inst)
        require_k_cta(kernel, STEPS)
        mnemonic = loop.rows.outer_product.mnemonic
        for dtype, name in kernel.instructions.items():
            if name not in ("OHMMA", mnemonic):
                what = f"must be OHMMA (here {mnemonic}: the machine's shape)"
                raise LoweringError(
                    Problem(must(what, name), path=f"kernel {kernel.name}: instructions.{dtype}")
                )
        return loop

    @cached_property
    def rows(self) -> OuterProductRows:
        """The instructions of this geometry."""
        tile = self.kernel.tile
        return outer_product_rows(self.m_inst, self.n_inst, tile.m_warp, tile.n_warp)

    @cached_property
    def _registers(self) -> dict[str, Register]:
        """First register of each operand of the warp product, one after the other."""
        registers = {}
        free = 0
        for operand in self.rows.warp_product.operands:
            if operand.kind == "register":
                free = -(-free // operand.align) * operand.align
                registers[operand.name] = Register(free)
                free += operand.count
        return registers

    @cached_property
    def warp_product(self) -> Instruction:
        """The SpWMMA of one 16-deep slab."""
        operands: tuple[Operand, ...] = (TILE, *self._registers.values())
        return Instruction(self.rows.warp_product.mnemonic, operands, row=self.rows.warp_product)

    def outer_product(self, k: int, i: int, j: int) -> Instruction:
        """Return the outer product of group i of A's column k and group j of B's row k."""
        names = ("a", "b", "bits_a", "bits_b")
        place = (Immediate(k), Immediate(i), Immediate(j))
        operands: tuple[Operand, ...] = (TILE, *(self._registers[name] for name in names), *place)
        return Instruction(self.rows.outer_product.mnemonic, operands, row=self.rows.outer_product)

    def slots_per_instruction(self) -> dict[str, int]:
        """Multiplier slots of one outer product."""
        return {self.rows.outer_product.mnemonic: self.rows.outer_product.macs}

    def state(self) -> WarpState:
        """Return a warp with cleared sums."""
        tile = self.kernel.tile
        return WarpState(np.zeros(0, np.uint8), n_accumulator_tiles=1, m_warp=tile.m_warp, n_warp=tile.n_warp)

    def load(
        self, state: WarpState, side: str, words: npt.NDArray[np.uint64], values: npt.NDArray[np.int8]
    ) -> None:
        """Put one operand's bitmap words and packed values into registers.

        Parameters
        ----------
        state : WarpState
        side : "a" or "b"
        words : ndarray of uint64, shape (16,)
            One word for each k of the slab.
        values : ndarray of int8, shape (ones,)
            Condensed values in the order of the bits.
        """
        first_bits = self._registers[f"bits_{side}"].index
        for r in range(-(-self._edge(side) // 32)):
            part = words >> np.uint64(32 * r) & np.uint64(0xFFFF_FFFF)
            state.registers[first_bits + r, :STEPS] = part.astype(np.uint32)
        count = -(-max(1, values.size) // VALUES_PER_REGISTER)
        padded = np.zeros(count * VALUES_PER_REGISTER, np.int8)
        padded[: values.size] = values
        first = self._registers[side].index
        state.registers[first : first + count] = encode(padded, "fp16").reshape(count, -1)

    def _edge(self, side: str) -> int:
        return self.kernel.tile.m_warp if side == "a" else self.kernel.tile.n_warp

    def word_bits(self, side: str) -> int:
        """Bits of a bitmap word: the warp tile's edge, filled up to a word size."""
        return next(bits for bits in (8, 16, 32, 64) if bits >= self._edge(side))

    def format(self, side: str) -> BitmapFormat:
        """Return the format of operand `side`: tiles of a warp's edge by 16."""
        return BitmapFormat(side="a" if side == "a" else "b", outer_tile=self.word_bits(side), k_tile=STEPS)
