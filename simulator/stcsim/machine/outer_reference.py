"""The reference engine of the outer-product SM, cycle by cycle, in plain Python.  It is the specification.

Place in the data flow: `stcsim.machine.outer_simulator` calls it (``engine:
reference``); `stcsim.machine.kernels.outer` is its fast twin, held equal by
`tests/differential`.  Knows nothing of kernels' names, files or operand values.

The rules, each in one place:

* which warp issues: `SubCore.order`; when it may: `SubCore.blocked`;
* an outer product in the accumulator buffer: `Buffer*.ready_at`, `Buffer*.take`;
* the front end: `SubCore.front_end_ready_at`, and what is charged in `SubCore.issue`;
* operands of a slab: loads through the sub-core's share of the port and population counts, `SubCore.fetch`;
* barriers, once a stage: `Sm.release`; a CTA's place goes to the next CTA when its last tile has drained: `Sm.refill`;
* what a cycle went to: `SubCore.cause`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from stcsim.machine.outer_record import (
    MILLI,
    N_OUTER_COUNTERS,
    Buffer,
    IntArray,
    OuterCounter,
    OuterModel,
    OuterWork,
)

NEVER = 2**62


@dataclass
class UnlimitedBuffer:
    """Takes every outer product at once."""

    def ready_at(self) -> int:
        """Cycle from which the buffer takes another outer product."""
        return 0

    def take(self, cycle: int, rows: list[int], columns: list[int]) -> None:
        """Take the products of `rows` by `columns`."""

    def done_at(self, cycle: int) -> int:
        """Cycle in which products taken in `cycle` have been added."""
        return cycle + 1


@dataclass
class WordsBuffer:
    """Adds at most `rate` products a cycle; what is left of a cycle serves the next outer product."""

    rate: int
    busy_until_word: int = 0

    def ready_at(self) -> int:
        """Cycle from which the buffer takes another outer product: the one in which the last ends."""
        return self.busy_until_word // self.rate

    def take(self, cycle: int, rows: list[int], columns: list[int]) -> None:
        """Take the products of `rows` by `columns`."""
        start = max(self.busy_until_word, cycle * self.rate)
        self.busy_until_word = start + len(rows) * len(columns)

    def done_at(self, cycle: int) -> int:
        """Cycle in which products taken in `cycle` have been added."""
        return max(cycle + 1, -(-self.busy_until_word // self.rate))


@dataclass
class BankedBuffer:
    """Banks that serve `accesses_per_cycle` each, in order of arrival; outer products retire in order."""

    model: OuterModel
    free: list[int] = field(default_factory=list)
    drained: deque[int] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.free = [0] * self.model.n_banks
        self.drained = deque([0] * self.model.window, maxlen=self.model.window)

    def ready_at(self) -> int:
        """Cycle in which fewer than `window` earlier outer products are undrained."""
        return self.drained[0]

    def take(self, cycle: int, rows: list[int], columns: list[int]) -> None:
        """Send each product to the bank of its sum; the outer product is drained with its last one."""
        accesses = [0] * self.model.n_banks
        for row in rows:
            for column in columns:
                accesses[self.model.bank_of[row, column]] += 1
        last = self.drained[-1]
        for bank, count in enumerate(accesses):
            if count:
                cycles = -(-count // self.model.accesses_per_cycle)
                self.free[bank] = max(self.free[bank], cycle) + cycles
                last = max(last, self.free[bank])
        self.drained.append(last)

    def done_at(self, cycle: int) -> int:
        """Cycle in which products taken in `cycle` have been added."""
        return max(cycle, self.drained[-1])


def make_buffer(model: OuterModel) -> UnlimitedBuffer | WordsBuffer | BankedBuffer:
    """Return the buffer that the model names."""
    if model.buffer == Buffer.WORDS:
        return WordsBuffer(model.words_per_cycle)
    if model.buffer == Buffer.BANKED:
        return BankedBuffer(model)
    return UnlimitedBuffer()


@dataclass
class Slab:
    """A slab of K that a warp does not skip: its steps, and when its operands are there."""

    stage: int
    index: int
    steps: list[tuple[list[int], list[int]]]
    ready_at: int = NEVER
    late_counts: bool = False


@dataclass
class Warp:
    """One resident warp and the tile that it works on."""

    age: int
    words: int
    slabs: list[Slab]
    started_at: int
    c_ready_at: int = 0
    current: int = 0
    step: int = 0
    repetition: int = 0
    n_fetched: int = 0
    fetch_at: int = NEVER
    arrived_at: int | None = None
    released_at: int = 0
    finished_at: int | None = None
    done_at: int | None = None


@dataclass
class SubCore:
    """One sub-core: its warps, front end, share of the load port, and accumulator buffer."""

    model: OuterModel
    places: list[Warp | None]
    counters: IntArray = field(default_factory=lambda: np.zeros(N_OUTER_COUNTERS, np.int64))
    last_issued: int = 0
    front_end_free: int = 0
    pipe_free_at: int = 0
    port_free_at: int = 0
    integer_free_at: int = 0
    fill_free_at: int = 0
    drain_free_at: int = 0
    events: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.buffer = make_buffer(self.model)

    def start(self, place: int, warp: Warp) -> None:
        """Give a place to a warp: load its C, ask for its first two slabs."""
        self.places[place] = warp
        cycle = warp.started_at
        rate = self.model.load_c_words_per_cycle
        if rate:
            self.fill_free_at = warp.c_ready_at = max(cycle, self.fill_free_at) + -(-warp.words // rate)
        else:
            warp.c_ready_at = cycle
        warp.released_at = cycle
        if warp.slabs:
            warp.fetch_at = cycle
            warp.step = first_step(warp.slabs[0], 0)
        else:
            # A tile without work is written as it is: nothing passes through the buffer.
            drain = self.model.drain_words_per_cycle
            warp.finished_at = warp.c_ready_at
            warp.done_at = warp.c_ready_at + (-(-warp.words // drain) if drain else 0)

    def fetch_what_is_due(self, cycle: int) -> None:
        """Serve the requests of this cycle, places in order; a new warp asks for two slabs, others for one."""
        for warp in self.places:
            if warp is not None and warp.fetch_at == cycle:
                warp.fetch_at = NEVER
                wanted = min(warp.current + 2, len(warp.slabs))
                for slab in warp.slabs[warp.n_fetched : wanted]:
                    self.fetch(slab, cycle)
                warp.n_fetched = max(warp.n_fetched, wanted)

    def fetch(self, slab: Slab, cycle: int) -> None:
        """Load a slab's bitmaps and values through the sub-core's share of the port; count its ones."""
        model = self.model
        ones = [sum(len(step[i]) for step in slab.steps) for i in (0, 1)]
        values = sum(-(-count * model.element_bytes // 128) for count in ones)
        bits_at = max(cycle, self.port_free_at) + model.bitmap_wavefronts * model.load_wavefront_cycles
        self.port_free_at = bits_at + values * model.load_wavefront_cycles
        values_at = self.port_free_at + model.load_latency_cycles
        self.integer_free_at = (
            max(bits_at + model.load_latency_cycles, self.integer_free_at) + model.popc_cycles
        )
        counted_at = self.integer_free_at + model.popc_latency_cycles
        slab.ready_at = max(values_at, counted_at)
        slab.late_counts = counted_at > values_at
        loads = model.bitmap_loads + values
        self.counters[OuterCounter.LOADS] += loads
        self.counters[OuterCounter.WAVEFRONTS] += model.bitmap_wavefronts + values
        self.counters[OuterCounter.POPC] += model.popc_instructions
        self.counters[OuterCounter.SLABS] += 1
        if model.shared_issue:
            self.front_end_free = max(self.front_end_free, cycle * MILLI)
            self.front_end_free += (loads + model.popc_instructions) * MILLI

    def order(self) -> list[int]:
        """Places in the order in which the scheduler looks at them: gto or lrr."""
        n = len(self.places)
        if not self.model.greedy:
            return [(self.last_issued + 1 + i) % n for i in range(n)]

        def oldest_first(place: int) -> int:
            warp = self.places[place]
            return warp.age if warp is not None else NEVER

        others = sorted((place for place in range(n) if place != self.last_issued), key=oldest_first)
        return [self.last_issued, *others]

    def blocked(self, warp: Warp, cycle: int) -> OuterCounter | None:
        """Say what keeps the warp's next outer product from issuing in this cycle, None for nothing."""
        if warp.finished_at is not None:
            draining = warp.done_at is not None and warp.done_at > cycle
            return OuterCounter.EPILOGUE if draining else OuterCounter.IMBALANCE
        if warp.arrived_at is not None or warp.released_at > cycle:
            return OuterCounter.BARRIER
        if warp.c_ready_at > cycle:
            return OuterCounter.PROLOGUE
        slab = warp.slabs[warp.current]
        if slab.ready_at > cycle:
            return OuterCounter.DEPENDENCY if slab.late_counts else OuterCounter.SHARED_MEMORY
        if self.buffer.ready_at() > cycle:
            return OuterCounter.ACCUMULATOR_CONFLICT
        if self.front_end_free // MILLI > cycle:
            return OuterCounter.ISSUE
        return OuterCounter.TENSOR_BUSY if self.pipe_free_at > cycle else None

    def step_once(self, cycle: int) -> None:
        """Issue at most one outer product and account for this cycle."""
        for place in self.order():
            warp = self.places[place]
            if warp is not None and self.blocked(warp, cycle) is None:
                self.issue(place, warp, cycle)
                break
        self.counters[self.cause(cycle)] += 1

    def cause(self, cycle: int) -> OuterCounter:
        """Say what this cycle went to: the first, in order of precedence, over the resident warps."""
        if self.pipe_free_at > cycle:
            return OuterCounter.TENSOR_BUSY
        reasons = [self.blocked(warp, cycle) for warp in self.places if warp is not None]
        return min((reason for reason in reasons if reason is not None), default=OuterCounter.IMBALANCE)

    def issue(self, place: int, warp: Warp, cycle: int) -> None:
        """Issue the warp's next outer product; B's groups go round within each group of A."""
        model = self.model
        slab = warp.slabs[warp.current]
        step = slab.steps[warp.step]
        groups_a, groups_b = self.groups(step)
        i, j = divmod(warp.repetition, groups_b)
        rows = step[0][i * model.m_inst : (i + 1) * model.m_inst]
        columns = step[1][j * model.n_inst : (j + 1) * model.n_inst]
        self.last_issued = place
        self.counters[OuterCounter.OHMMA] += 1
        self.counters[OuterCounter.PRODUCTS] += len(rows) * len(columns)
        self.buffer.take(cycle, rows, columns)
        self.events.append(
            (cycle, place, warp.age, slab.index, warp.step, warp.repetition, self.buffer.done_at(cycle))
        )
        self.pipe_free_at = cycle + model.interval_cycles
        self.charge(model.interval_cycles * MILLI, cycle)
        warp.repetition += 1
        if warp.repetition == groups_a * groups_b:
            self.finish_step(warp, slab, cycle)

    def charge(self, milli: int, cycle: int) -> None:
        """Keep the front end busy for that long, from now or from when it is free."""
        self.front_end_free = max(self.front_end_free, cycle * MILLI) + milli

    def groups(self, step: tuple[list[int], list[int]]) -> tuple[int, int]:
        """Return how many groups of A and of B a step has."""
        return -(-len(step[0]) // self.model.m_inst), -(-len(step[1]) // self.model.n_inst)

    def skipped(self, step: tuple[list[int], list[int]]) -> int:
        """Return the front-end time of a step's predicated-off outer products."""
        groups_a, groups_b = self.groups(step)
        return (self.model.grid_a * self.model.grid_b - groups_a * groups_b) * self.model.skipped_milli

    def finish_step(self, warp: Warp, slab: Slab, cycle: int) -> None:
        """Go on to the next step that executes; the front end pays for the step and for what it skips."""
        warp.repetition = 0
        following = first_step(slab, warp.step + 1)
        passed = slab.steps[warp.step : following]
        self.charge(self.model.step_milli + sum(self.skipped(step) for step in passed), cycle)
        warp.step = following
        if following == len(slab.steps):
            self.finish_slab(warp, cycle + 1)

    def finish_slab(self, warp: Warp, cycle: int) -> None:
        """Begin the next slab, or meet the CTA where a stage ends, or drain; `cycle` is the first one after."""
        here = warp.slabs[warp.current]
        warp.current += 1
        if warp.current == len(warp.slabs):
            self.drain(warp, cycle)
            return
        warp.step = first_step(warp.slabs[warp.current], 0)
        if self.model.barrier_base_cycles >= 0 and warp.slabs[warp.current].stage > here.stage:
            warp.arrived_at = cycle
        elif warp.current + 1 < len(warp.slabs):
            warp.fetch_at = cycle

    def drain(self, warp: Warp, cycle: int) -> None:
        """Empty the warp's tile once its last sum is there; the tile is free when it is out."""
        warp.finished_at = cycle
        last_sum_at = cycle - 1 + self.model.latency_cycles
        rate = self.model.drain_words_per_cycle
        if rate:
            self.drain_free_at = warp.done_at = max(last_sum_at, self.drain_free_at) + -(-warp.words // rate)
        else:
            warp.done_at = last_sum_at


def first_step(slab: Slab, start: int) -> int:
    """Return the first step from `start` on with ones of both operands; the number of steps if none has."""
    return next((i for i in range(start, len(slab.steps)) if all(slab.steps[i])), len(slab.steps))


@dataclass
class Sm:
    """An SM: its sub-cores, its resident CTAs, and those still to come."""

    model: OuterModel
    work: OuterWork
    first: int
    end: int
    cycle: int = 0

    def __post_init__(self) -> None:
        places = -(-self.model.resident_ctas * self.work.warps // self.model.sub_cores)
        self.sub_cores = [SubCore(self.model, [None] * places) for _ in range(self.model.sub_cores)]
        self.slots: list[list[Warp] | None] = [None] * self.model.resident_ctas
        self.next_cta = self.first

    def run(self) -> None:
        """Run until every CTA is done."""
        while True:
            self.refill()
            if all(slot is None for slot in self.slots):
                break
            for sub_core in self.sub_cores:
                self.reopen(sub_core)
                sub_core.fetch_what_is_due(self.cycle)
                sub_core.step_once(self.cycle)
            for slot in self.slots:
                if slot is not None:
                    self.release(slot)
            self.cycle += 1
        for sub_core in self.sub_cores:
            sub_core.counters[OuterCounter.CYCLES] = self.cycle

    def refill(self) -> None:
        """Give the slots of CTAs whose every tile has drained to the next CTAs."""
        for number, slot in enumerate(self.slots):
            while True:
                if slot is not None and all(
                    warp.done_at is not None and warp.done_at <= self.cycle for warp in slot
                ):
                    for sub_core in self.sub_cores:
                        sub_core.places = [None if w in slot else w for w in sub_core.places]
                    self.slots[number] = slot = None
                if slot is not None or self.next_cta == self.end:
                    break
                self.slots[number] = slot = self.start_cta(number, self.next_cta)
                self.next_cta += 1

    def start_cta(self, number: int, cta: int) -> list[Warp]:
        """Start the warps of a CTA in slot `number`."""
        work = self.work
        warps = []
        for i in range(work.warp_offsets[cta], work.warp_offsets[cta + 1]):
            slabs = self.slabs(int(work.tile_m[i]), int(work.tile_n[i]))
            warp = Warp(age=i, words=int(work.words[i]), slabs=slabs, started_at=self.cycle)
            place, sub_core = divmod(number * work.warps + int(work.warp_index[i]), self.model.sub_cores)
            self.sub_cores[sub_core].start(place, warp)
            warps.append(warp)
        return warps

    def slabs(self, tile_m: int, tile_n: int) -> list[Slab]:
        """Return the slabs of a warp tile in which a step has ones of both operands; the others are skipped.

        An empty tile of either operand (its warp bit) is the common case.
        """
        model = self.model
        found = []
        for index in range(model.slabs):
            span = range(index * model.k_slab, min((index + 1) * model.k_slab, model.k))
            steps = [(ones(self.work.bits_a[tile_m, k]), ones(self.work.bits_b[tile_n, k])) for k in span]
            if any(all(step) for step in steps):
                # The barrier stands before the last slab of a stage: what is then fetched is the next stage's.
                found.append(Slab((index + 1) // model.slabs_per_stage, index, steps))
        return found

    def release(self, slot: list[Warp]) -> None:
        """Release the barrier of a CTA when all of its warps wait at one or have finished.

        Warps that skip whole stages wait at a later barrier; those at the earliest one go on.
        """
        waiting = [warp for warp in slot if warp.arrived_at is not None]
        if not waiting or any(warp.arrived_at is None and warp.finished_at is None for warp in slot):
            return
        stage = min(warp.slabs[warp.current].stage for warp in waiting)
        last = max(warp.arrived_at if warp.arrived_at is not None else warp.finished_at or 0 for warp in slot)
        at = last + self.model.barrier_base_cycles + self.model.barrier_warp_cycles * len(slot)
        for warp in waiting:
            if warp.slabs[warp.current].stage == stage:
                warp.arrived_at = None
                warp.released_at = at

    def reopen(self, sub_core: SubCore) -> None:
        """Let warps that a barrier releases in this cycle ask for the slab after their current one."""
        for warp in sub_core.places:
            if (
                warp is not None
                and warp.arrived_at is None
                and warp.finished_at is None
                and warp.released_at == self.cycle > warp.started_at
                and warp.current + 1 < len(warp.slabs)
            ):
                warp.fetch_at = self.cycle


def ones(word: np.uint64) -> list[int]:
    """Return the places of the ones of a bitmap word, lowest first."""
    value = int(word)
    return [i for i in range(64) if value >> i & 1]


def simulate(model: OuterModel, work: OuterWork) -> IntArray:
    """Run every SM of `work` and return the counters of its sub-cores.

    Parameters
    ----------
    model : OuterModel
    work : OuterWork

    Returns
    -------
    counters : ndarray of int64, shape (n_sms, sub_cores, N_OUTER_COUNTERS)
        Columns of `OuterCounter`.
    """
    rows = []
    for first, end in zip(work.offsets[:-1], work.offsets[1:], strict=True):
        sm = Sm(model, work, int(first), int(end))
        sm.run()
        rows.append([sub_core.counters for sub_core in sm.sub_cores])
    return np.array(rows, np.int64).reshape(len(rows), model.sub_cores, N_OUTER_COUNTERS)
