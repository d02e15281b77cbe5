"""n:m sparse GEMM on mma.sp: A stored compressed along K with metadata, B dense.

The loop is the dense one with an instruction that covers twice the K; cycles do
not depend on values.  K is filled up with zeros to whole groups and whole
instructions; the stored share of the padding is in the slots, not in the MACs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from pydantic import Field

from stcsim.config.kernel import Kernel
from stcsim.config.machine import ELEMENT_BITS, Dtype, Machine, Positive, Section
from stcsim.errors import FormatError, Problem
from stcsim.formats.nm import NmFormat
from stcsim.isa import metadata
from stcsim.isa.fragment import pack_a, pack_b
from stcsim.lowering.fragment_loop import FragmentLoop, steps_of
from stcsim.lowering.lowered import Grid, Lowered
from stcsim.lowering.lowering import Lowering, dense_bits, padded_block, traffic
from stcsim.workload.gemm import Gemm


class NmOptions(Section):
    """Which n:m pattern A has."""

    n: Positive = Field(description="Elements of a group that may be non-zero.")
    m: Positive = Field(description="Consecutive elements along K that make a group.")


class NmInner(Lowering):
    """Tiles of C by mma.sp; the sparse operand is A."""

    name = "nm_inner"
    summary = "2:4 sparse GEMM by mma.sp: A compressed along K with metadata, B dense"
    format_a = "nm"
    format_b = "dense"
    datapaths = frozenset({"nm_sparse"})
    sparse_side = "a"
    takes_any_pattern = False
    options = NmOptions

    @classmethod
    def _format(cls, kernel: Kernel) -> NmFormat:
        return NmFormat(side="a", n=kernel.options["n"], m=kernel.options["m"])

    @classmethod
    def misfit(cls, gemm: Gemm, kernel: Kernel) -> Problem | None:
        """Return which group of A has too many non-zeros, or None."""
        problem = cls._format(kernel).accepts(gemm.a.pattern)
        return None if problem is None else replace(problem, path="a")

    @classmethod
    def prune(cls, gemm: Gemm, kernel: Kernel) -> tuple[Gemm, float]:
        """Keep the n largest values of each group of A."""
        pruned, loss = cls._format(kernel).project(gemm.a)
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
        nm = cls._format(kernel)
        loop = FragmentLoop(kernel, steps_of(kernel, dtype))
        grid = Grid(gemm.m, gemm.n, kernel.tile)
        stored = sum(nm.stored_bits(gemm.a.pattern, ELEMENT_BITS[dtype]).values())
        # Of a last group that K cuts short, no more elements than it has go through a multiplier.
        stored_k = gemm.k // nm.m * nm.n + min(nm.n, gemm.k % nm.m)
        padded = nm.groups(gemm.k) * nm.m
        notes = (f"K = {gemm.k} stored as {padded} (whole groups of {nm.m})",) if padded != gemm.k else ()
        return Lowered(
            gemm=gemm,
            kernel=kernel,
            dtype=dtype,
            grid=grid,
            program=loop.program(gemm.k),
            steps=None,
            macs_executed=gemm.m * gemm.n * stored_k,
            slots_per_instruction=loop.slots_per_instruction(),
            traffic_bytes=traffic(grid, stored, dense_bits(gemm.b, dtype), dtype, kernel),
            execute=partial(_execute, gemm, loop, nm),
            notes=notes,
        )


def _execute(gemm: Gemm, loop: FragmentLoop, nm: NmFormat, i_m: int, i_n: int) -> npt.NDArray[np.float64]:
    """Run one warp tile for values, A from its compressed form."""
    spec = loop.steps[0]
    m, n, k = spec.product.m, spec.product.n, spec.product.k
    row, column = i_m * loop.kernel.tile.m_warp, i_n * loop.kernel.tile.n_warp

    def load_a(i: int, k0: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        encoded = nm.encode(padded_block(gemm.a, row + i * m, m, k0, k))
        return pack_a(spec, encoded.values.reshape(m, -1)), metadata.pack(spec, encoded.codes)

    def load_b(j: int, k0: int) -> npt.NDArray[np.uint32]:
        return pack_b(spec, padded_block(gemm.b, k0, k, column + j * n, n))

    return loop.run(gemm.k, load_a, load_b)
