"""Integer instructions as data: how many lane operations of each kind a piece of work takes.

Made by `stcsim.lowering.bitmap_im2col` and `stcsim.lowering.im2col`, for an engine to charge
to the integer pipe beside the tensor pipe.  A lane operation is what one lane of a warp does;
32 of them make one warp instruction.  Knows no machine but the rates it is given.

>>> mix = InstructionMix(SHF=32, LOP3=32, POPC=64, IADD3=32)
>>> mix.total, mix.cycles(IntegerRates())
(160, 16)
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class IntegerRates:
    """Lanes that a sub-core's integer pipes take in a cycle.

    Parameters
    ----------
    lanes_per_cycle : int
        Of shifts, logic, additions, comparisons and selections.  ASSUMED: 16, as measured on an H200.
    popc_lanes_per_cycle : int
        Of POPC, in a pipe of its own.  ASSUMED: 4, as measured on an H200.
    """

    lanes_per_cycle: int = 16
    popc_lanes_per_cycle: int = 4


@dataclass(frozen=True)
class InstructionMix:
    """Lane operations by mnemonic.

    Parameters
    ----------
    SHF, LOP3, POPC, IADD3, ISETP, SEL : int
        Shifts, logic, population counts, additions, comparisons, selections.
    """

    SHF: int = 0
    LOP3: int = 0
    POPC: int = 0
    IADD3: int = 0
    ISETP: int = 0
    SEL: int = 0

    def __add__(self, other: InstructionMix) -> InstructionMix:
        return InstructionMix(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __mul__(self, times: int) -> InstructionMix:
        return InstructionMix(*(getattr(self, f.name) * times for f in fields(self)))

    @property
    def total(self) -> int:
        """All lane operations."""
        return sum(getattr(self, f.name) for f in fields(self))

    def cycles(self, rates: IntegerRates, sub_cores: int = 1) -> int:
        """Return the cycles of the busier pipe, the work spread evenly over `sub_cores`.

        Notes
        -----
        POPC and the others issue to different pipes and overlap: the larger of the two times.
        """
        others = self.total - self.POPC
        return max(
            -(-self.POPC // (rates.popc_lanes_per_cycle * sub_cores)),
            -(-others // (rates.lanes_per_cycle * sub_cores)),
        )
