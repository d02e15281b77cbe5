"""What GEMMs share whose A keeps n of every m elements along K: 2:4, vector-wise, K-expanded.

Between `stcsim.lowering.fragment_loop`, whose loop they run with an instruction that picks rows of B, and the
plug-ins, which say what is stored and loaded.  The loop is the dense one; cycles do not depend on values.  K is
filled up with zeros to whole groups and whole instructions; the stored share of the padding is in the slots,
not in the MACs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from stcsim.config.kernel import Kernel
from stcsim.config.machine import ELEMENT_BITS, Dtype, Machine, Positive, Section
from stcsim.errors import FormatError, Problem
from stcsim.formats.group import GroupFormat
from stcsim.lowering.fragment_loop import FragmentLoop, LoadA, LoadB, steps_of
from stcsim.lowering.lowered import Grid, Lowered
from stcsim.lowering.lowering import Lowering, dense_bits, traffic
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand


class GroupOptions(Section):
    """Which n:m pattern A has."""

    form: ClassVar[Callable[..., GroupFormat[Any]]]
    n: Positive = Field(description="Elements of a group that may be non-zero.")
    m: Positive = Field(description="Consecutive elements along K that make a group.")

    @model_validator(mode="after")
    def _is_a_pattern(self) -> Self:
        try:
            self.form(side="a", n=self.n, m=self.m)
        except FormatError as error:
            raise ValueError(error.problems[0].message) from None
        return self


class GroupInner(Lowering):
    """Tiles of C by inner products; the sparse operand is A, and B is dense.

    Attributes
    ----------
    options : type of GroupOptions
        Names the format.
    """

    format_b = "dense"
    sparse_side = "a"
    takes_any_pattern = False
    options: ClassVar[type[GroupOptions]]

    @classmethod
    @abstractmethod
    def loads(cls, gemm: Gemm, loop: FragmentLoop, form: Any, row: int, column: int) -> tuple[LoadA, LoadB]:
        """Return what loads the fragments of the warp tile at (row, column); see `FragmentLoop.run`."""

    @classmethod
    def program_k(cls, form: Any, k: int) -> int:
        """Return the K that the loop runs over for a problem's K of `k`."""
        del form
        return k

    @classmethod
    def notes(cls, form: Any, k: int) -> tuple[str, ...]:
        """Return what to say of a problem's K of `k`."""
        padded = form.groups(k) * form.m
        return (f"K = {k} stored as {padded} (whole groups of {form.m})",) if padded != k else ()

    @classmethod
    def bytes_moved(
        cls, grid: Grid, bits_a: int, b: Operand, form: Any, dtype: Dtype, kernel: Kernel
    ) -> dict[str, int]:
        """Return the traffic; see `stcsim.lowering.lowering.traffic`."""
        del form
        return traffic(grid, bits_a, dense_bits(b, dtype), dtype, kernel)

    @classmethod
    def require(cls, loop: FragmentLoop, form: Any) -> None:
        """Refuse a pattern that the kernel's instruction does not take."""
        del loop, form

    @classmethod
    def format_of(cls, kernel: Kernel) -> GroupFormat[Any]:
        """Return the format of A."""
        return cls.options.form(side="a", n=kernel.options["n"], m=kernel.options["m"])

    @classmethod
    def misfit(cls, gemm: Gemm, kernel: Kernel) -> Problem | None:
        """Return which group of A has too many non-zeros, or None."""
        problem = cls.format_of(kernel).accepts(gemm.a.pattern)
        return None if problem is None else replace(problem, path="a")

    @classmethod
    def prune(cls, gemm: Gemm, kernel: Kernel) -> tuple[Gemm, float]:
        """Keep the n largest values of each group of A."""
        pruned, loss = cls.format_of(kernel).project(gemm.a)
        return replace(gemm, a=pruned), loss

    @classmethod
    def lower(cls, gemm: Gemm, kernel: Kernel, dtype: Dtype, machine: Machine) -> Lowered:
        """Lower `gemm`; see `Lowering.lower`."""
        problem = cls.misfit(gemm, kernel)
        if problem is not None:
            raise FormatError(problem)
        return cls.of_shape(gemm, kernel, dtype, machine)

    @classmethod
    def of_shape(cls, gemm: Gemm, kernel: Kernel, dtype: Dtype, machine: Machine) -> Lowered:
        """Lower a problem whose A is taken to fit; see `Lowering.of_shape`."""
        del machine
        form = cls.format_of(kernel)
        loop = FragmentLoop(kernel, steps_of(kernel, dtype))
        cls.require(loop, form)
        grid = Grid(gemm.m, gemm.n, kernel.tile)
        stored = sum(form.stored_bits(gemm.a.pattern, ELEMENT_BITS[dtype]).values())
        return Lowered(
            gemm=gemm,
            kernel=kernel,
            dtype=dtype,
            grid=grid,
            program=loop.program(cls.program_k(form, gemm.k)),
            steps=None,
            macs_executed=gemm.m * gemm.n * form.stored_k(gemm.k),
            slots_per_instruction=loop.slots_per_instruction(),
            traffic_bytes=cls.bytes_moved(grid, stored, gemm.b, form, dtype, kernel),
            execute=partial(cls._execute, gemm, loop, form),
            notes=cls.notes(form, gemm.k),
        )

    @classmethod
    def _execute(
        cls, gemm: Gemm, loop: FragmentLoop, form: Any, i_m: int, i_n: int
    ) -> npt.NDArray[np.float64]:
        """Run one warp tile for values, A from its compressed form."""
        tile = loop.kernel.tile
        load_a, load_b = cls.loads(gemm, loop, form, i_m * tile.m_warp, i_n * tile.n_warp)
        return loop.run(cls.program_k(form, gemm.k), load_a, load_b)
