"""The reference engine of an SM, cycle by cycle, in plain Python.  It is the specification.

Place in the data flow: `stcsim.machine.sm_simulator` calls it (``engine: reference``) and the
differential tests hold `stcsim.machine.kernels.sm` equal to it in every counter and event.  Knows
nothing of kernels, formats or operand values.

One rule is one method, whose docstring gives the rule's source; docs/sm_engine.md collects them.
The order of a cycle is `Sm.step`: CTAs retire and start, the tag stage and the shared port each take
one request, then every sub-core grants one operand slot, issues one instruction and accounts for the cycle.

Worked example: one warp, an LDSM.x4 (queue latency 4, slot gap 2, return gap 2, load latency 14) issued
in cycle 0 gets its operand slot in cycle 4, the port in cycle 6, and its data are there in cycle
6 + 4 x 2 + 14 = 28.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from stcsim.machine.sm_record import (
    CAUSES,
    N_CAUSES,
    NO_WINDOW,
    NONE,
    Cause,
    EventColumn,
    IntArray,
    Kind,
    Policy,
    SmMachine,
    SmModel,
    SmRun,
    Window,
)

ReleaseKind = Literal["result", "read", "load", "copy"]


@dataclass
class Release:
    """A scoreboard counter held by an instruction: which, what for, and until when (None: not known yet)."""

    barrier: int
    kind: ReleaseKind
    at: int | None = None


@dataclass
class Group:
    """A group of asynchronous copies of one warp."""

    copies_left: int = 0
    complete_at: int = 0


@dataclass(frozen=True)
class Instruction:
    """One row of the program, by name."""

    row: int
    kind: Kind
    opcode: int
    stall: int
    write_barrier: int
    read_barrier: int
    wait_mask: int
    interval: int
    latency: int
    pipe: int
    port: int
    slots: int
    slot_cost: int
    pending: int
    bank: int
    target: int

    @property
    def is_memory(self) -> bool:
        """Whether it goes through the memory queue."""
        return self.kind in (Kind.LOAD, Kind.STORE, Kind.COPY)


@dataclass
class Warp:
    """One resident warp."""

    index: int
    place: int
    cta: int
    age: int
    at: int = 0
    iteration: int = 0
    finished: bool = False
    stalled_until: int = 0
    fetching_until: int = 0
    at_barrier_until: int | None = 0
    outstanding: list[Release] = field(default_factory=list)
    in_flight: int = 0
    results_until: int = 0
    groups: list[Group] = field(default_factory=lambda: [Group()])
    barrier_event: list[int] | None = None

    def holds(self, mask: int, kind: ReleaseKind, cycle: int) -> bool:
        """Whether a counter of `mask` is still held by a release of `kind`."""
        return any(
            mask >> release.barrier & 1
            and release.kind == kind
            and (release.at is None or release.at > cycle)
            for release in self.outstanding
        )

    def groups_pending(self, cycle: int) -> int:
        """Count the closed groups that are not complete; a group is complete only after all earlier ones.

        Source: PTX ISA, cp.async.wait_group (groups complete in order of their commits).
        """
        while (
            len(self.groups) > 1 and self.groups[0].copies_left == 0 and self.groups[0].complete_at <= cycle
        ):
            del self.groups[0]
        return len(self.groups) - 1

    def has_drained(self, cycle: int) -> bool:
        """Whether all results of a finished warp are there."""
        return self.in_flight == 0 and self.results_until <= cycle


@dataclass
class Request:
    """A memory instruction on its way: from the queue to the shared port or the tag stage."""

    instruction: Instruction
    warp: Warp
    ready_at: int
    group: Group
    read: Release | None
    written: Release | None
    event: list[int] | None


@dataclass
class SubCore:
    """A sub-core: its warps, its pipes and its memory queue."""

    index: int
    machine: SmMachine
    warps: list[Warp] = field(default_factory=list)
    last: int = -1
    issue_blocked_until: int = 0
    tensor_busy_until: int = 0
    tensor_free_at: int = 0
    fed_until: int = 0
    slot_cost: int = 0
    integers_beside_mma: int = 0
    pipe_free_at: list[int] = field(default_factory=list)
    queue: deque[Request] = field(default_factory=deque)
    slots_taken: int = 0
    next_slot_at: int = 0
    requests: deque[Request] = field(default_factory=deque)
    return_path_free_at: int = 0
    copies_before_tags: int = 0
    copies_past_tags_at: int = 0
    causes: list[int] = field(default_factory=lambda: [0] * N_CAUSES)
    issued: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pipe_free_at = [0] * self.machine.n_pipes


class Sm:
    """One SM and the CTAs that it runs.

    Parameters
    ----------
    model : SmModel
    n_ctas : int
        CTAs to run, `model.resident_ctas` at a time.
    window : Window
        Which issues are recorded as events.
    n_starts : int
        Iterations whose start is recorded.
    """

    def __init__(self, model: SmModel, n_ctas: int, window: Window, n_starts: int) -> None:
        self.model = model
        self.machine = model.machine
        self.program = [
            Instruction(row, Kind(values[0]), *values[1:])
            for row, values in enumerate(model.program.tolist())
        ]
        self.n_ctas = n_ctas
        self.window = window
        self.cycle = 0
        self.n_started = 0
        self.places: list[list[Warp] | None] = [None] * model.resident_ctas
        self.sub_cores = [SubCore(s, self.machine) for s in range(self.machine.sub_cores)]
        for sub_core in self.sub_cores:
            sub_core.issued = [0] * len(model.mnemonics)
        self.port_free_at = 0
        self.port_turn = 0
        self.tag_queue: deque[Request] = deque()
        self.tags_free_at = 0
        self.starts = np.zeros((model.resident_ctas * model.warps_per_cta, n_starts), np.int64)
        self.events: list[list[int]] = []

    def run(self) -> SmRun:
        """Run until every CTA is done."""
        while self.retire_and_start():
            self.step()
        return SmRun(
            cycles=self.cycle,
            causes=np.array([sub_core.causes for sub_core in self.sub_cores], np.int64),
            issued=np.array([sub_core.issued for sub_core in self.sub_cores], np.int64),
            starts=self.starts,
            events=np.array(self.events, np.int64).reshape(-1, len(EventColumn)),
        )

    # -- CTAs ------------------------------------------------------------------------------------------

    def retire_and_start(self) -> bool:
        """Retire CTAs whose results are all there; the next one takes the place in the same cycle.

        Warp w of place p runs on sub-core (p x warps + w) mod sub_cores.  Source: warps go to sub-cores by
        warp number modulo 4 (Jia et al. 2018; Huerta et al. 2025).  ASSUMED: nothing between two CTAs of a place.
        """
        for p, warps in enumerate(self.places):
            if warps is not None and all(w.finished and w.has_drained(self.cycle) for w in warps):
                self.places[p] = None
            while self.places[p] is None and self.n_started < self.n_ctas:
                self.start(p)
                if self.program:
                    break
                self.places[p] = None
        for sub_core in self.sub_cores:
            sub_core.warps = [
                warp
                for warps in self.places
                if warps is not None
                for warp in warps
                if warp.index % self.machine.sub_cores == sub_core.index
            ]
        return any(warps is not None for warps in self.places)

    def start(self, p: int) -> None:
        """Start the next CTA on place `p`."""
        n = self.model.warps_per_cta
        self.places[p] = [Warp(p * n + w, p, self.n_started, self.n_started * n + w) for w in range(n)]
        self.n_started += 1

    # -- one cycle -------------------------------------------------------------------------------------

    def step(self) -> None:
        """Simulate one cycle."""
        self.serve_tags()
        self.serve_port()
        for sub_core in self.sub_cores:
            self.grant_slot(sub_core)
            self.hand_over(sub_core)
            issued = self.issue_one(sub_core)
            sub_core.causes[CAUSES.index(self.cause(sub_core, issued))] += 1
        self.cycle += 1

    # -- memory ----------------------------------------------------------------------------------------

    def serve_tags(self) -> None:
        """Tag-stage rule: copies pass one at a time, in order, each for its own number of cycles.

        Source: data/h200/mainloop, noHMMA_noLDSM rows; k 64 against k 32 tiles (lines touched by a warp).
        """
        if not self.tag_queue or self.tags_free_at > self.cycle or self.tag_queue[0].ready_at > self.cycle:
            return
        request = self.tag_queue.popleft()
        self.tags_free_at = self.cycle + request.instruction.port
        landed = self.tags_free_at + self.machine.copy_latency
        sub_core = self.sub_cores[request.warp.index % self.machine.sub_cores]
        sub_core.copies_before_tags -= 1
        sub_core.copies_past_tags_at = self.tags_free_at
        request.group.copies_left -= 1
        request.group.complete_at = max(request.group.complete_at, landed)
        self.finish(request, landed)

    def serve_port(self) -> None:
        """Shared-port rule: 128 bytes a cycle; the request that has waited longest goes first, ties go round.

        A wavefront takes a cycle, so an n-way conflict takes n.  A load or store waits until the earlier copies
        of its sub-core have left the tag stage, and until its sub-core's path is free: 64 bytes a cycle.
        Source: data/h200/ldmatrix.csv and smem_conflicts.csv (one warp 2n + 4, SM n cycles for n wavefronts);
        order by age: data/h200/mainloop, ldsmdep_n2 (44 cycles, not 56).
        """
        if self.port_free_at > self.cycle:
            return
        n = self.machine.sub_cores
        in_turn = [self.sub_cores[(self.port_turn + i) % n] for i in range(n)]
        waiting = [s for s in in_turn if self.may_use_port(s)]
        if not waiting:
            return
        sub_core = min(waiting, key=lambda s: s.requests[0].ready_at)
        request = sub_core.requests.popleft()
        self.port_turn = (sub_core.index + 1) % n
        wavefronts = request.instruction.port
        self.port_free_at = self.cycle + wavefronts
        sub_core.return_path_free_at = self.cycle + self.machine.return_gap * wavefronts
        is_load = request.instruction.kind == Kind.LOAD
        done = sub_core.return_path_free_at + (self.machine.load_latency if is_load else 0)
        self.finish(request, done)

    def may_use_port(self, sub_core: SubCore) -> bool:
        """Whether the sub-core's oldest request can go through the shared port in this cycle."""
        return (
            len(sub_core.requests) > 0
            and sub_core.requests[0].ready_at <= self.cycle
            and sub_core.return_path_free_at <= self.cycle
            and sub_core.copies_before_tags == 0
            and sub_core.copies_past_tags_at <= self.cycle
        )

    def finish(self, request: Request, done: int) -> None:
        """Note when the result of a memory instruction is there."""
        request.warp.in_flight -= 1
        request.warp.results_until = max(request.warp.results_until, done)
        if request.written is not None:
            request.written.at = done
        if request.event is not None:
            request.event[EventColumn.EXECUTE] = self.cycle
            request.event[EventColumn.WRITE_BACK] = done

    def grant_slot(self, sub_core: SubCore) -> None:
        """Operand-slot rule: the oldest memory instruction reads one operand of the register file.

        Never while an MMA reads its own (its interval), else every `slot_gap` cycles; the operands of a copy come
        `slot_gap_fed` cycles apart while MMA are being fed.  A slot delays the next MMA by the `SLOT_COST` of the last.
        Source: data/h200/mainloop/micro_coissue.csv: dl_rb and dl_ldsm_after (6 cycles a copy when idle), comp_ldsm
        (1 cycle of the MMA stream a slot), dl_h64_*_slack (starved while MMA issue back to back).
        """
        if not sub_core.queue:
            return
        request = sub_core.queue[0]
        instruction = request.instruction
        if (
            sub_core.slots_taken == instruction.slots
            or request.ready_at > self.cycle
            or sub_core.next_slot_at > self.cycle
            or sub_core.tensor_busy_until > self.cycle
        ):
            return
        sub_core.slots_taken += 1
        fed = sub_core.fed_until > self.cycle or sub_core.tensor_free_at > self.cycle
        gap = self.machine.slot_gap_fed if fed and instruction.kind == Kind.COPY else self.machine.slot_gap
        if instruction.kind == Kind.STORE and sub_core.slots_taken == instruction.slots:
            gap = self.machine.store_gap
        sub_core.next_slot_at = self.cycle + gap
        sub_core.tensor_free_at = max(sub_core.tensor_free_at, self.cycle) + sub_core.slot_cost

    def hand_over(self, sub_core: SubCore) -> None:
        """Memory-queue rule: an instruction with all operands leaves the queue if there is room behind it.

        Source: data/h200/mainloop (one queue in order: LDSM behind k LDGSTS waits 6 k); its depth: Huerta et al. 2025.
        """
        if not sub_core.queue or sub_core.slots_taken < sub_core.queue[0].instruction.slots:
            return
        request = sub_core.queue[0]
        if request.instruction.kind == Kind.COPY:
            if len(self.tag_queue) == self.machine.tag_queue:
                return
            request.ready_at = self.cycle + self.machine.copy_to_tags
            self.tag_queue.append(request)
            sub_core.copies_before_tags += 1
            released = self.cycle + self.machine.copy_release
        else:
            if len(sub_core.requests) == self.machine.requests:
                return
            request.ready_at = self.cycle + self.machine.slot_gap
            sub_core.requests.append(request)
            released = request.ready_at + self.machine.read_release
        if request.read is not None:
            request.read.at = released
        sub_core.queue.popleft()
        sub_core.slots_taken = 0

    # -- issue -----------------------------------------------------------------------------------------

    def issue_one(self, sub_core: SubCore) -> Instruction | None:
        """Issue rule: one instruction a cycle and sub-core, in order in each warp.

        Source: vendor white papers (one scheduler a sub-core, one instruction a clock).
        """
        ready = [warp for warp in sub_core.warps if self.may_issue(sub_core, warp)]
        if not ready:
            return None
        warp = min(ready, key=lambda w: self.rank(sub_core, w))
        instruction = self.program[warp.at]
        self.issue(sub_core, warp, instruction)
        return instruction

    def rank(self, sub_core: SubCore, warp: Warp) -> int:
        """Scheduler policy: the ready warp of the lowest rank issues.

        Source of grr: data/h200/mma_instr.csv, 8 and 16 warps (gto starves warps, lrr is up to 20 % slow).
        """
        n = self.machine.sub_cores
        places = self.model.resident_ctas * self.model.warps_per_cta
        local, n_local = warp.index // n, -(-places // n)
        if self.machine.policy == Policy.GTO:
            return -1 if local == sub_core.last else warp.age
        steps = 1 if self.machine.policy == Policy.LRR else 0
        return (local - sub_core.last - steps) % (n_local + 1)

    def may_issue(self, sub_core: SubCore, warp: Warp) -> bool:
        """Whether nothing holds the warp's next instruction."""
        return not warp.finished and not any(self.conditions(sub_core, warp).values())

    def conditions(self, sub_core: SubCore, warp: Warp) -> dict[Cause, bool]:
        """Say what holds a warp's next instruction in this cycle, by cause.

        * its stall count, and the target of a taken branch;
        * the scoreboard counters of its wait mask;
        * an MMA: the tensor pipe; no interlock on the sums, the compiler's stall counts space dependent ones
          (data/h200/mainloop/README.md);
        * an integer instruction: its pipe (lanes per cycle, data/h200/alu_throughput.csv);
        * a memory instruction: a full queue;
        * a wait for groups of copies; a barrier, which holds everything but MMA (data/h200/mainloop: sync_bar_h16).
        """
        instruction = self.program[warp.at]
        mask, now = instruction.wait_mask, self.cycle
        is_mma = instruction.kind == Kind.MMA
        at_barrier = warp.at_barrier_until is None or warp.at_barrier_until > now
        return {
            Cause.OPERAND_FETCH: sub_core.issue_blocked_until > now
            or (is_mma and sub_core.tensor_free_at > now),
            Cause.DEPENDENCY: warp.stalled_until > now or warp.holds(mask, "result", now),
            Cause.BRANCH: warp.fetching_until > now,
            Cause.INTEGER: instruction.pipe != NONE and sub_core.pipe_free_at[instruction.pipe] > now,
            Cause.MEMORY_QUEUE: warp.holds(mask, "read", now)
            or (instruction.is_memory and len(sub_core.queue) == self.machine.queue_depth),
            Cause.SHARED_MEMORY: warp.holds(mask, "load", now),
            Cause.L2: warp.holds(mask, "copy", now)
            or (instruction.kind == Kind.WAIT_GROUPS and warp.groups_pending(now) > instruction.pending),
            Cause.BARRIER: at_barrier and not is_mma,
        }

    def issue(self, sub_core: SubCore, warp: Warp, instruction: Instruction) -> None:
        """Issue an instruction in this cycle.

        Bank rule: operands of one bank are read one after the other, and nothing issues meanwhile.
        Source: Jia et al. 2018, register bank conflicts; on H200 none was found for MMA (data/h200/mainloop/README.md).
        """
        now = self.cycle
        event = self.record(sub_core, warp, instruction)
        warp.outstanding = [held for held in warp.outstanding if held.at is None or held.at > now]
        sub_core.last = warp.index // self.machine.sub_cores
        sub_core.issued[instruction.opcode] += 1
        sub_core.issue_blocked_until = now + 1 + instruction.bank
        warp.stalled_until = now + instruction.stall
        warp.results_until = max(warp.results_until, now + instruction.latency)
        written = read = None
        if instruction.write_barrier != NONE:
            kind: ReleaseKind = "copy" if instruction.kind == Kind.COPY else "load"
            written = Release(instruction.write_barrier, kind if instruction.is_memory else "result")
            warp.outstanding.append(written)
            if not instruction.is_memory:
                written.at = now + instruction.latency
        if instruction.read_barrier != NONE and instruction.is_memory:
            read = Release(instruction.read_barrier, "read")
            warp.outstanding.append(read)
        match instruction.kind:
            case Kind.MMA:
                self.start_mma(sub_core, instruction)
            case Kind.INTEGER:
                self.start_integer(sub_core, instruction)
            case Kind.LOAD | Kind.STORE | Kind.COPY:
                warp.in_flight += 1
                if instruction.kind == Kind.COPY:
                    warp.groups[-1].copies_left += 1
                entered = now + self.machine.queue_latency
                sub_core.queue.append(
                    Request(instruction, warp, entered, warp.groups[-1], read, written, event)
                )
            case Kind.COMMIT:
                self.commit(warp)
            case Kind.BARRIER:
                warp.barrier_event = event
                self.arrive(warp)
            case _:
                pass
        self.go_on(warp, instruction)

    def start_mma(self, sub_core: SubCore, instruction: Instruction) -> None:
        """Tensor-pipe rule: an MMA occupies the pipe for its interval.  Source: machine file (mma_instr.csv)."""
        sub_core.tensor_busy_until = sub_core.tensor_free_at = self.cycle + instruction.interval
        sub_core.fed_until = self.cycle + self.machine.fed_window
        sub_core.slot_cost = instruction.slot_cost

    def start_integer(self, sub_core: SubCore, instruction: Instruction) -> None:
        """Integer-beside-MMA rule: every n-th integer instruction delays an occupied tensor pipe.

        Source: data/h200/mainloop/micro_coissue.csv, pair_h5_iadd3 (6.25 cycles); onlyHMMA_ALU against onlyHMMA.
        """
        if instruction.pipe != NONE:
            sub_core.pipe_free_at[instruction.pipe] = self.cycle + instruction.interval
        period = self.machine.integer_delay_period
        if period > 0:
            sub_core.integers_beside_mma = (sub_core.integers_beside_mma + 1) % period
            if sub_core.integers_beside_mma == 0 and sub_core.tensor_free_at > self.cycle:
                sub_core.tensor_free_at += self.machine.integer_delay_cycles

    def commit(self, warp: Warp) -> None:
        """Group rule: a commit closes the open group and opens the next.

        Source: PTX ISA, cp.async.commit_group; times: data/h200/barrier_cpasync.csv.
        """
        group = warp.groups[-1]
        group.complete_at = max(group.complete_at, self.cycle + self.machine.commit_latency)
        warp.groups.append(Group())

    def arrive(self, warp: Warp) -> None:
        """Barrier rule: all warps of the CTA go on a fixed time after the last one has arrived.

        Source: data/h200/barrier_cpasync.csv: 13 + 2 x warps (15, 17, 21, 29, 45, 77 cycles for 1 to 32 warps).
        """
        mates = self.places[warp.place]
        if mates is None:
            message = "a warp without a CTA arrived at a barrier"
            raise AssertionError(message)
        warp.at_barrier_until = None
        if any(mate.at_barrier_until is not None for mate in mates):
            return
        released = self.cycle + self.machine.barrier_base + self.machine.barrier_per_warp * len(mates)
        for mate in mates:
            mate.at_barrier_until = released
            mate.results_until = max(mate.results_until, released)
            if mate.barrier_event is not None:
                mate.barrier_event[EventColumn.WRITE_BACK] = released

    def go_on(self, warp: Warp, instruction: Instruction) -> None:
        """Branch rule: the target of a taken branch issues no sooner than `branch_cycles` later.

        Source: data/h200/mainloop/README.md (about 18 cycles); the loops of mma_instr.csv: exact at 15.
        """
        warp.at += 1
        if instruction.kind == Kind.BRANCH and warp.iteration + 1 < self.model.iterations:
            warp.iteration += 1
            warp.fetching_until = self.cycle + self.machine.branch_cycles
            warp.at = instruction.target
            if warp.cta < self.model.resident_ctas and warp.iteration < self.starts.shape[1]:
                self.starts[warp.index, warp.iteration] = max(warp.fetching_until, warp.stalled_until)
        if warp.at == len(self.program):
            warp.finished = True

    # -- accounting ------------------------------------------------------------------------------------

    def cause(self, sub_core: SubCore, issued: Instruction | None) -> Cause:
        """Say what this cycle went to, by the precedence of `Cause`; asked after the cycle's issue."""
        if sub_core.tensor_busy_until > self.cycle:
            return Cause.TENSOR_BUSY
        if issued is not None:
            return Cause.ISSUE
        holding = set()
        for warp in sub_core.warps:
            if not warp.finished:
                holding |= {cause for cause, holds in self.conditions(sub_core, warp).items() if holds}
            elif not warp.has_drained(self.cycle):
                holding.add(Cause.DEPENDENCY)
        for cause in CAUSES:
            if cause in holding:
                return cause
        return Cause.IDLE

    def record(self, sub_core: SubCore, warp: Warp, instruction: Instruction) -> list[int] | None:
        """Add an event if this cycle is in the window; times that are not known yet are filled in later."""
        if not self.window.start <= self.cycle < self.window.start + self.window.length:
            return None
        event = [0] * len(EventColumn)
        event[EventColumn.ISSUE] = event[EventColumn.EXECUTE] = self.cycle
        event[EventColumn.WRITE_BACK] = self.cycle + instruction.latency
        event[EventColumn.SUB_CORE] = sub_core.index
        event[EventColumn.WARP] = warp.index % self.model.warps_per_cta
        event[EventColumn.CTA] = warp.cta
        event[EventColumn.ROW] = instruction.row
        self.events.append(event)
        return event


def simulate(
    model: SmModel,
    ctas: IntArray,
    *,
    window: Window = NO_WINDOW,
    n_starts: int = 0,
) -> list[SmRun]:
    """Run SMs that differ in how many CTAs they get.

    Parameters
    ----------
    model : SmModel
    ctas : ndarray of int64
        CTAs of each SM.
    window : Window
        Which issues are recorded.
    n_starts : int
        Iterations whose start is recorded for the first CTAs.

    Returns
    -------
    runs : list of SmRun
    """
    return [Sm(model, n, window, n_starts).run() for n in ctas.tolist()]
