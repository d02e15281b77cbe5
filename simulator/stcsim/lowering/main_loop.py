"""The code of a warp of a dense or n:m sparse GEMM kernel: multi-stage copies, matrix loads and products, interleaved.

Place in the data flow: a kernel's shapes in, `WarpCode` out, which `stcsim.machine` times.  The order is that of
the hand-written ``lean`` kernels (data/h200/src/gemm_lean.cu): in every k-step the loads of the next one stand one
behind each product; the copies of a later stage stand behind the first row of products; before the last k-step the
warp waits for the next stage and for the other warps.  On Volta, which has no asynchronous copies, global loads go
to registers and are stored before the last k-step.  Values are not computed here, and nothing of cycles is known.

ASSUMED: two integer instructions a copy and four for the loop (measured lean loops have 47 for 8 copies, most of
them on the uniform datapath); the epilogue stores each fragment of sums once and waits for no memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from stcsim.config.kernel import Kernel, Tile
from stcsim.config.machine import ELEMENT_BITS, Dtype
from stcsim.isa import offset
from stcsim.isa.fragment import Role, operand_layout
from stcsim.lowering.fragment_loop import FragmentLoop, steps_of
from stcsim.lowering.warp_code import CodeOp, WarpCode

_COPY_BYTES = 512
"""Bytes of one copy or load of a warp: 16 a lane."""
_LINE_BYTES = 128
_LOAD_REGISTERS = 4
"""Registers that one matrix load (LDSM.X4, LDS.128) fills; as many wavefronts."""
_STAGED = 4
"""Batch of Volta's global loads; 0 to 3 are those of matrix loads, two for each of two k-steps."""
_METADATA_BITS = {"mma_sparse": 2, "mma_octet_gather": offset.BITS}
"""Bits of metadata for each stored element: 2:4 codes (PTX ISA, mma.sp), offsets."""


@dataclass
class _Registers:
    """Numbers for registers that are known by what they hold."""

    numbers: dict[Hashable, int] = field(default_factory=dict)

    def __call__(self, *key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))


@dataclass(frozen=True)
class MainLoop:
    """What one warp of a kernel does.

    Parameters
    ----------
    kernel : Kernel
    dtype : str
    tile : Tile
        As the kernel's, or smaller along M or N where a batch's products are.
    """

    kernel: Kernel
    dtype: Dtype
    tile: Tile
    register: _Registers = field(default_factory=_Registers)

    def code(self, k: int) -> WarpCode:
        """Return the code for a K of `k`; without a K there is none."""
        iterations = -(-k // self.tile.k_cta)
        if iterations == 0:
            return WarpCode((), (), (), 1)
        after = tuple(
            CodeOp("STG", reads=tuple(self.sums(i, j, step) for step in range(len(self.loop.steps))))
            for i in range(self.loop.blocks_m)
            for j in range(self.loop.blocks_n)
        )
        return WarpCode(tuple(self.before()), tuple(self.body()), after, iterations)

    @cached_property
    def loop(self) -> FragmentLoop:
        """The tensor instructions of the kernel."""
        return FragmentLoop(self.kernel, steps_of(self.kernel, self.dtype))

    @property
    def is_volta(self) -> bool:
        """Whether the kernel is of a generation without asynchronous copies and matrix loads (HMMA.884)."""
        return self.loop.steps[0].sequence is not None

    @property
    def k_steps(self) -> int:
        """Steps over the K of one stage."""
        return max(1, self.tile.k_cta // self.loop.k_step)

    @property
    def stage_bytes(self) -> int:
        """Bytes of one stage: A's and B's slab as stored, and metadata."""
        bits, spec = ELEMENT_BITS[self.dtype], self.loop.steps[0]
        stored = self.tile.m_cta * self.tile.k_cta * operand_layout(spec, "a").shape[1] // spec.product.k
        metadata = stored * _METADATA_BITS.get(spec.semantics, 0)
        return -(-((stored + self.tile.n_cta * self.tile.k_cta) * bits + metadata) // 8)

    @property
    def copies(self) -> int:
        """Copies of a warp for one stage, which the warps share."""
        return -(-self.stage_bytes // (_COPY_BYTES * self.tile.warps))

    @property
    def lines(self) -> int:
        """128-byte lines that a copy touches: rows of a slab are not contiguous."""
        row_bytes = self.tile.k_cta * ELEMENT_BITS[self.dtype] // 8
        return _COPY_BYTES // min(_LINE_BYTES, max(_COPY_BYTES // 32, row_bytes))

    def sums(self, i: int, j: int, step: int) -> int:
        """Register of the sums of row block i and column block j that a step writes."""
        return self.register("sums", i, j, step)

    def fragment(self, role: Role, k_step: int, i: int, s: int) -> list[int]:
        """Return the registers of a fragment (row or column block i, set s), one for each load that fills it."""
        n_registers = operand_layout(self.loop.steps[0], role).n_registers
        return [self.register(role, k_step, i, s, part) for part in range(-(-n_registers // _LOAD_REGISTERS))]

    def metadata(self, k_step: int, i: int) -> list[int]:
        """Return the registers of the metadata of row block i, by set; none where A is dense."""
        if not self.loop.has_metadata:
            return []
        return [self.register("metadata", k_step, self.loop.metadata(i, s)) for s in range(self.loop.sets)]

    def products(self, k_step: int, i: int) -> Iterator[CodeOp]:
        """Products of one row of instruction tiles in a k-step."""
        loop = self.loop
        for j in range(loop.blocks_n):
            for s in range(loop.sets):
                for step, spec in enumerate(loop.steps):
                    sums = self.sums(i, j, step)
                    a, b = self.fragment("a", k_step, i, s), self.fragment("b", k_step, j, s)
                    reads = (sums, *a, *b, *self.metadata(k_step, i)[s : s + 1])
                    yield CodeOp(spec.mnemonic, writes=(sums,), reads=reads, set_=s, step=step)

    def loads(self, k_step: int) -> list[CodeOp]:
        """Return the loads of a k-step: those that its first row needs as one batch, then the others."""
        loop, spec = self.loop, self.loop.steps[0]
        name = "LDS.128" if self.is_volta else "LDSM.X4"
        first, later = k_step % 2 * 2, k_step % 2 * 2 + 1

        def fragments(role: Role, blocks: range, batch: int) -> Iterator[CodeOp]:
            together = max(1, _LOAD_REGISTERS // operand_layout(spec, role).n_registers)
            parts = [
                part for i in blocks for s in range(loop.sets) for part in self.fragment(role, k_step, i, s)
            ]
            yield from together_loaded(parts, together, batch)

        def together_loaded(registers: list[int], together: int, batch: int) -> Iterator[CodeOp]:
            for at in range(0, len(registers), together):
                writes = tuple(registers[at : at + together])
                yield CodeOp(name, writes=writes, wavefronts=_LOAD_REGISTERS, batch=batch)

        ops = [*fragments("a", range(1), first), *fragments("b", range(loop.blocks_n), first)]
        codes = list(dict.fromkeys(code for i in range(loop.blocks_m) for code in self.metadata(k_step, i)))
        if self.is_volta:
            ops += together_loaded(codes, _LOAD_REGISTERS, first)
        else:
            ops += [CodeOp("LDS", writes=(code,), wavefronts=1, batch=first) for code in codes]
        return [*ops, *fragments("a", range(1, loop.blocks_m), later)]

    def fetch(self) -> Iterator[CodeOp]:
        """Ask for a later stage: copies with their addresses, and their commit; on Volta, loads to registers."""
        for c in range(self.copies):
            address = self.register("address", c)
            yield CodeOp("IADD3", writes=(address,), reads=(address,))
            yield CodeOp("LOP3", writes=(self.register("shared", c),))
            if self.is_volta:
                yield CodeOp(
                    "LDG",
                    writes=(self.register("staged", c),),
                    reads=(address,),
                    lines=self.lines,
                    batch=_STAGED,
                )
            else:
                yield CodeOp("LDGSTS", reads=(address,), lines=self.lines)
        if self.kernel.serial_cycles:
            yield CodeOp("NOP", wait_cycles=self.kernel.serial_cycles)
        if not self.is_volta:
            yield CodeOp("LDGDEPBAR")

    def arrival(self) -> Iterator[CodeOp]:
        """Wait for the next stage, of this warp's and of the other warps' parts."""
        if self.is_volta:
            for c in range(self.copies):
                yield CodeOp("STS", reads=(self.register("staged", c),), wavefronts=_LOAD_REGISTERS)
        else:
            yield CodeOp("DEPBAR", pending=max(0, self.kernel.stages - 2))
        yield CodeOp("BAR")

    def before(self) -> Iterator[CodeOp]:
        """Fill the stages and load the first fragments."""
        for _ in range(1 if self.is_volta else max(1, self.kernel.stages - 1)):
            yield from self.fetch()
        yield from self.arrival()
        yield from self.loads(0)

    def body(self) -> Iterator[CodeOp]:
        """One iteration."""
        last = self.k_steps - 1
        for k_step in range(self.k_steps):
            if k_step == last:
                yield from self.arrival()
            loads = self.loads((k_step + 1) % self.k_steps)
            # With a single k-step its fragments are still being read: their loads stand at the end.
            waiting = [] if self.k_steps == 1 else loads
            for i in range(self.loop.blocks_m):
                yield from _interleaved(list(self.products(k_step, i)), waiting)
                if k_step == 0 and i == 0:
                    yield from self.fetch()
            yield from loads if self.k_steps == 1 else waiting
        yield CodeOp("ISETP")
        yield from [CodeOp("UIADD3")] * 3


def _interleaved(products: Sequence[CodeOp], loads: list[CodeOp]) -> Iterator[CodeOp]:
    """Put one load behind each product, taking it from `loads`."""
    for op in products:
        yield op
        if loads:
            yield loads.pop(0)
