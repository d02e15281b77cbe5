"""What every lowering plug-in states and does, and what several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from stcsim.config.kernel import Kernel
from stcsim.config.machine import ELEMENT_BITS, Dtype, Machine, Section
from stcsim.errors import LoweringError, Problem, must
from stcsim.lowering.lowered import Grid, Lowered
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand

OUTPUT_BYTES: dict[str, int] = {"fp16": 2, "bf16": 2, "tf32": 4, "int8": 4}
"""Bytes of one stored element of C.  ASSUMED: floats are stored in the operands' type, int8 sums as int32."""


class NoOptions(Section):
    """The options of a lowering that has none."""


class Lowering(ABC):
    """A way to run a GEMM on a tensor core.

    Attributes
    ----------
    name : str
        Equals the file's name and the value in kernel files.
    format_a, format_b : str
        Formats in which it stores the operands.
    datapaths : frozenset of str
        Datapaths that execute its instructions.
    sparse_side : "a" or None
        The side that wants the sparse operand; None: it does not matter.
    takes_any_pattern : bool
        Whether every operand pattern fits; False: `misfit` and `prune` say more.
    options : type
        Model of a kernel's ``options``.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    format_a: ClassVar[str]
    format_b: ClassVar[str]
    datapaths: ClassVar[frozenset[str]]
    sparse_side: ClassVar[Literal["a"] | None] = None
    takes_any_pattern: ClassVar[bool] = True
    options: ClassVar[type[Section]] = NoOptions

    @classmethod
    @abstractmethod
    def lower(cls, gemm: Gemm, kernel: Kernel, dtype: Dtype, machine: Machine) -> Lowered:
        """Lower `gemm` to `kernel`.

        Parameters
        ----------
        gemm : Gemm
        kernel : Kernel
            Its ``options`` have been validated by this lowering's model.
        dtype : str
        machine : Machine
            For the shapes that its datapath fixes; nothing of its timing is read.

        Returns
        -------
        lowered : Lowered

        Raises
        ------
        LoweringError
            If the problem or the kernel does not fit.
        FormatError
            If an operand does not fit its format.
        """

    @classmethod
    def of_shape(cls, gemm: Gemm, kernel: Kernel, dtype: Dtype, machine: Machine) -> Lowered:
        """Lower a problem of which only the sizes count: the operands' patterns are taken to fit.

        For times alone; arguments, returns and errors as `lower`.
        """
        return cls.lower(gemm, kernel, dtype, machine)

    @classmethod
    def misfit(cls, gemm: Gemm, kernel: Kernel) -> Problem | None:
        """Return why an operand does not fit its format, or None; the problem's path is "a" or "b"."""
        del gemm, kernel
        return None

    @classmethod
    def prune(cls, gemm: Gemm, kernel: Kernel) -> tuple[Gemm, float]:
        """Project A onto the pattern that the format takes.

        Returns
        -------
        gemm : Gemm
        loss : float
            Fraction of A's non-zeros that were dropped.
        """
        del kernel
        return gemm, 0.0


def require_multiple(kernel: Kernel, axis: str, quantum: int) -> None:
    """Refuse a kernel whose warp tile is not a whole number of instructions along `axis` ("m" or "n")."""
    size = getattr(kernel.tile, f"{axis}_warp")
    if size % quantum:
        message = must(f"must be a multiple of {quantum}, the instruction's {axis}", size)
        raise LoweringError(Problem(message, path=f"kernel {kernel.name}: tile.{axis}_warp"))


def require_k_cta(kernel: Kernel, quantum: int) -> None:
    """Refuse a kernel whose stage is not a whole number of steps of `quantum` along K."""
    if kernel.tile.k_cta % quantum:
        message = must(f"must be a multiple of {quantum}, the K of one step", kernel.tile.k_cta)
        raise LoweringError(Problem(message, path=f"kernel {kernel.name}: tile.k_cta"))


def padded_block(operand: Operand, r0: int, rows: int, c0: int, columns: int) -> npt.NDArray[np.int8]:
    """Return a block of the operand's values, filled up with zeros beyond its edges."""
    block = np.zeros((rows, columns), np.int8)
    values = operand.values(r0, r0 + rows, c0, c0 + columns)
    block[: values.shape[0], : values.shape[1]] = values
    return block


def traffic(
    grid: Grid, bits_a: int, bits_b: int, dtype: Dtype, kernel: Kernel | None = None
) -> dict[str, int]:
    """Return the bytes that all CTAs fetch and write, each CTA fetching its own slabs; no cache.

    Parameters
    ----------
    grid : Grid
    bits_a, bits_b : int
        Stored bits of the whole operands, metadata included.
    dtype : str
    kernel : Kernel, optional
        Says where C is not stored as usual.
    """
    output_bytes = (
        OUTPUT_BYTES[dtype] if kernel is None else kernel.output_bytes.get(dtype, OUTPUT_BYTES[dtype])
    )
    return {
        "operand_a": -(-bits_a // 8) * grid.ctas_n,
        "operand_b": -(-bits_b // 8) * grid.ctas_m,
        "output": grid.m * grid.n * output_bytes,
    }


def dense_bits(operand: Operand, dtype: Dtype) -> int:
    """Return the bits of an operand that is stored dense; padding is stored nowhere."""
    return operand.pattern.n_stored * ELEMENT_BITS[dtype]
