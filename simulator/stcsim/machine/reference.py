"""The reference engine: one sub-core, cycle by cycle, in plain Python.  It is the specification.

Place in the data flow: `stcsim.machine.simulator` calls it (``engine:
reference``) and the differential tests hold `stcsim.machine.kernels.sub_core`
equal to it.  Knows nothing of kernels, formats or operand values.

The rules, each in one place:

* issue: one instruction per cycle (`SubCore.step`), chosen by `SubCore.order`;
* a warp may issue when `Warp.is_ready`: the slot that it reads is ready, the tensor pipe is free;
* a micro-operation executes `SubCore.repetitions` times; none costs no cycle;
* what a cycle went to: `SubCore.cause`;
* a warp's tile ends when all of its slots are ready, and its place takes the next tile.

Worked example: one warp, two dependent instructions of interval 8 and latency
25 issue in cycles 0 and 25; the result is there in cycle 50; 16 cycles are
tensor_busy and 34 dependency.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stcsim.machine.record import (
    N_COUNTERS,
    Cause,
    Column,
    Counter,
    IntArray,
    Repeat,
    SubCoreModel,
    Work,
)


@dataclass
class Warp:
    """One resident warp: the tile that it works on and how far it is."""

    age: int
    tile_m: int
    tile_n: int
    ready_at: list[int]
    iteration: int = 0
    op: int = 0
    repetition: int = 0
    finished: bool = False


@dataclass
class SubCore:
    """A sub-core with its resident warps and the queue of tiles still to be taken."""

    model: SubCoreModel
    queue: list[tuple[int, int]]
    cycle: int = 0
    warps: list[Warp | None] = field(default_factory=list)
    pipe_free_at: int = 0
    last_issued: int = 0
    n_taken: int = 0
    counters: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    events: list[tuple[int, int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.counters = np.zeros(N_COUNTERS + len(self.model.mnemonics), np.int64)
        self.warps = [None] * self.model.resident_warps

    def run(self) -> None:
        """Run until every tile is done."""
        while True:
            self.refill()
            if all(warp is None for warp in self.warps):
                break
            self.step()
        self.counters[Counter.CYCLES] = self.cycle

    def refill(self) -> None:
        """Retire warps whose results are all there and give their places to the next tiles."""
        for place in range(len(self.warps)):
            while True:
                warp = self.warps[place]
                if warp is not None and warp.finished and max(warp.ready_at, default=0) <= self.cycle:
                    self.warps[place] = warp = None
                if warp is not None or self.n_taken == len(self.queue):
                    break
                tile_m, tile_n = self.queue[self.n_taken]
                self.warps[place] = warp = Warp(self.n_taken, tile_m, tile_n, [0] * self.model.n_slots)
                self.n_taken += 1
                self.skip_what_does_not_execute(warp)

    def step(self) -> None:
        """Issue at most one instruction, account for this cycle, and go to the next one."""
        for place in self.order():
            warp = self.warps[place]
            if warp is not None and self.is_ready(warp):
                self.issue(place, warp)
                break
        self.counters[Counter[self.cause().name]] += 1
        self.cycle += 1

    def order(self) -> list[int]:
        """Places in the order in which the scheduler looks at them."""
        n = len(self.warps)
        if not self.model.greedy:
            return [(self.last_issued + 1 + i) % n for i in range(n)]

        def oldest_first(place: int) -> int:
            warp = self.warps[place]
            return warp.age if warp is not None else len(self.queue)

        others = sorted((place for place in range(n) if place != self.last_issued), key=oldest_first)
        return [self.last_issued, *others]

    def is_ready(self, warp: Warp) -> bool:
        """Whether the warp's next instruction may issue in this cycle."""
        if warp.finished:
            return False
        source = self.model.micro_ops[warp.op][Column.SOURCE]
        operands_are_there = source < 0 or warp.ready_at[source] <= self.cycle
        return operands_are_there and self.pipe_free_at <= self.cycle

    def issue(self, place: int, warp: Warp) -> None:
        """Issue the warp's next instruction in this cycle."""
        op = self.model.micro_ops[warp.op]
        self.events.append((self.cycle, place, warp.age, warp.op, warp.repetition))
        self.counters[N_COUNTERS + op[Column.OPCODE]] += 1
        self.pipe_free_at = self.cycle + int(op[Column.INTERVAL])
        warp.ready_at[op[Column.DESTINATION]] = self.cycle + int(op[Column.LATENCY])
        if op[Column.REPEAT] == Repeat.OUTER_GRID:
            self.counters[Counter.PRODUCTS] += self.products(warp)
        self.last_issued = place
        warp.repetition += 1
        self.skip_what_does_not_execute(warp)

    def repetitions(self, warp: Warp) -> int:
        """How many times the warp's current micro-operation executes in this iteration."""
        if self.model.micro_ops[warp.op][Column.REPEAT] == Repeat.ONCE:
            return 1
        rows = int(self.model.ones_a[warp.tile_m, warp.iteration])
        columns = int(self.model.ones_b[warp.tile_n, warp.iteration])
        return -(-rows // self.model.m_inst) * -(-columns // self.model.n_inst)

    def products(self, warp: Warp) -> int:
        """Products of the current repetition: B's groups go round within each group of A (the ISA's order)."""
        rows = int(self.model.ones_a[warp.tile_m, warp.iteration])
        columns = int(self.model.ones_b[warp.tile_n, warp.iteration])
        groups_b = -(-columns // self.model.n_inst)
        group_a, group_b = warp.repetition // groups_b, warp.repetition % groups_b
        height = min(self.model.m_inst, rows - group_a * self.model.m_inst)
        width = min(self.model.n_inst, columns - group_b * self.model.n_inst)
        return height * width

    def skip_what_does_not_execute(self, warp: Warp) -> None:
        """Go on to the next instruction that executes; skipped ones cost no cycle."""
        while True:
            if warp.iteration == self.model.iterations or len(self.model.micro_ops) == 0:
                warp.finished = True
                return
            if warp.repetition < self.repetitions(warp):
                return
            warp.repetition = 0
            warp.op += 1
            if warp.op == len(self.model.micro_ops):
                warp.op = 0
                warp.iteration += 1

    def cause(self) -> Cause:
        """Say what this cycle went to, by the precedence of `Cause`.

        Asked after this cycle's issue: the cycle of an issue is the first one
        that the instruction occupies.
        """
        if self.pipe_free_at > self.cycle:
            return Cause.TENSOR_BUSY
        return Cause.DEPENDENCY


def simulate(model: SubCoreModel, work: Work) -> IntArray:
    """Run every sub-core of `work` and return its counters.

    Parameters
    ----------
    model : SubCoreModel
    work : Work

    Returns
    -------
    counters : ndarray of int64, shape (n_sub_cores, N_COUNTERS + len(model.mnemonics))
        Columns of `Counter`, then the issued instructions of each mnemonic.
    """
    rows = []
    for first, end in zip(work.offsets[:-1], work.offsets[1:], strict=True):
        tiles = list(zip(work.tile_m[first:end].tolist(), work.tile_n[first:end].tolist(), strict=True))
        sub_core = SubCore(model, tiles)
        sub_core.run()
        rows.append(sub_core.counters)
    return np.array(rows, np.int64).reshape(len(rows), N_COUNTERS + len(model.mnemonics))
