"""The flat records that both SM engines read and write: program, machine, counters, causes, events.

Place in the data flow: `stcsim.machine.sm_binding` makes them from a program and a
machine's ``sm`` section; the reference engine (`stcsim.machine.sm`) and the numba
engine (`stcsim.machine.kernels.sm`) read them.  Every number of the model is in a
record, none in an engine.  Knows no kernels, formats, files or operand values.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields, replace
from enum import IntEnum, StrEnum

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

N_BARRIERS = 6
"""Scoreboard counters of a warp: three bits name one, and 7 names none.  Source: control fields of sm_70 and later."""
NONE = -1
"""No scoreboard counter, no pipe."""


class Kind(IntEnum):
    """What an instruction does to the SM."""

    ISSUE_ONLY = 0
    """Takes an issue slot and nothing else: NOP, uniform datapath, predicated off."""
    INTEGER = 1
    """Occupies one of the sub-core's integer pipes."""
    MMA = 2
    """Occupies the tensor pipe."""
    LOAD = 3
    """LDSM, LDS: memory queue, operand slots, shared port, return path."""
    STORE = 4
    """STS: as a load; nothing comes back."""
    COPY = 5
    """LDGSTS (cp.async): memory queue, operand slots, tag stage, L2."""
    COMMIT = 6
    """LDGDEPBAR: closes the warp's open group of copies."""
    WAIT_GROUPS = 7
    """DEPBAR.LE: waits until at most so many groups of copies are pending."""
    BARRIER = 8
    """BAR.SYNC of all warps of the CTA."""
    BRANCH = 9
    """The loop's backward branch; falls through in the last iteration."""


class Column(IntEnum):
    """Columns of the program table, one row for each instruction."""

    KIND = 0
    OPCODE = 1
    """Index into the list of mnemonics, for counting and naming."""
    STALL = 2
    """Cycles after which the warp's next instruction may issue, at least 1."""
    WRITE_BARRIER = 3
    """Scoreboard counter held until its result is there, or NONE."""
    READ_BARRIER = 4
    """Scoreboard counter held until its operands have been read, or NONE."""
    WAIT_MASK = 5
    """Bit b: waits until counter b is zero."""
    INTERVAL = 6
    """Cycles for which it occupies its pipe (MMA, INTEGER)."""
    LATENCY = 7
    """Cycles from issue to result (MMA, INTEGER, and all that only issue)."""
    PIPE = 8
    """Integer pipe, from 0, or NONE."""
    PORT = 9
    """LOAD, STORE: wavefronts, cycles of the shared port.  COPY: cycles of the tag stage."""
    SLOTS = 10
    """Operand slots that it needs in the memory queue."""
    SLOT_COST = 11
    """MMA: cycles by which an operand slot taken after it delays the next MMA."""
    PENDING = 12
    """WAIT_GROUPS: groups that may still be pending."""
    BANK = 13
    """Further cycles of the register file for its operands (bank conflicts)."""
    TARGET = 14
    """BRANCH: row that it goes to."""


class Policy(IntEnum):
    """Which of several ready warps issues."""

    GTO = 0
    """The warp that issued last, else the one whose CTA started first, then the lowest."""
    LRR = 1
    """The next one after the warp that issued last, round robin."""
    GRR = 2
    """The warp that issued last, else the next one after it, round robin."""


POLICIES = {"gto": Policy.GTO, "lrr": Policy.LRR, "grr": Policy.GRR}
"""The names of the policies in machine files."""


@dataclass(frozen=True)
class SmMachine:
    """The parameters of one SM; the rule that each belongs to is named, `docs/sm_engine.md` gives sources.

    Parameters
    ----------
    sub_cores : int
    policy : int
        `Policy` (issue rule).
    branch_cycles : int
        Branch rule: issue of a taken branch to issue of its target, at least.
    integer_delay_period, integer_delay_cycles : int
        Integer-beside-MMA rule: every so many integer instructions issued while the tensor pipe is occupied delay it
        by so many cycles; a period of 0 switches the rule off.
    queue_depth, queue_latency : int
        Memory-queue rule: entries of a sub-core; cycles from issue to the first operand slot.
    slot_gap, slot_gap_fed, fed_window : int
        Operand-slot rule: cycles between slots; between those of a COPY while the tensor pipe is fed; an MMA issued
        less than `fed_window` cycles ago feeds it.
    store_gap : int
        Operand-slot rule: cycles from the last slot of a STORE to the next slot.
    requests : int
        Shared-port rule: requests of a sub-core that wait for the port with their operands.
    return_gap, load_latency : int
        Return-path rule: cycles of a sub-core's return path for each wavefront; from its last one to the result.
    read_release : int
        Operands of a LOAD or STORE sent to its read barrier released.
    copy_to_tags, tag_queue, copy_release : int
        Tag-stage rule: last operand slot to the tag stage; copies of all sub-cores that may wait for it; last slot to
        the read barrier released.
    copy_latency, commit_latency : int
        Group rule: tag stage to data in shared memory; an empty group is complete so long after its commit.
    barrier_base, barrier_per_warp : int
        Barrier rule: last arrival to release.
    n_pipes : int
        Integer pipes of a sub-core.
    """

    sub_cores: int
    policy: int
    branch_cycles: int
    integer_delay_period: int
    integer_delay_cycles: int
    queue_depth: int
    queue_latency: int
    slot_gap: int
    slot_gap_fed: int
    fed_window: int
    store_gap: int
    requests: int
    return_gap: int
    load_latency: int
    read_release: int
    copy_to_tags: int
    tag_queue: int
    copy_release: int
    copy_latency: int
    commit_latency: int
    barrier_base: int
    barrier_per_warp: int
    n_pipes: int

    def vector(self) -> IntArray:
        """Return the parameters in the order of the fields, as the numba engine takes them."""
        return np.array(astuple(self), np.int64)

    def but(self, **changes: int) -> SmMachine:
        """Return a machine with some parameters changed."""
        return replace(self, **changes)


MACHINE_FIELDS = tuple(field.name for field in fields(SmMachine))
"""Names of the elements of `SmMachine.vector`."""


class Cause(StrEnum):
    """What a cycle of a sub-core went to.

    The order of the members is the order of precedence: where several hold in one cycle, the first
    counts (the resource nearest to the tensor pipe first).  A condition holds in a cycle if it holds
    for any resident warp of the sub-core, asked after the cycle's issue.  Both engines and
    docs/sm_engine.md, which has an example of each, take the order from here.
    """

    TENSOR_BUSY = "tensor_busy"
    """The tensor pipe is occupied by an MMA."""
    ISSUE = "issue"
    """The pipe is free and an instruction that is no MMA issued."""
    OPERAND_FETCH = "operand_fetch"
    """The next MMA is held off, or all issue is, because the register file serves other operands."""
    DEPENDENCY = "dependency"
    """A warp waits for its stall count, or for a result of its own that comes from no memory."""
    BRANCH = "branch"
    """A warp waits for the target of a taken branch."""
    INTEGER = "integer"
    """A warp waits for an integer pipe."""
    MEMORY_QUEUE = "memory_queue"
    """The memory queue is full, or a warp waits until queued instructions have read their operands."""
    SHARED_MEMORY = "shared_memory"
    """A warp waits for data of a load from shared memory."""
    L2 = "l2"
    """A warp waits for a group of asynchronous copies."""
    BARRIER = "barrier"
    """A warp waits at the barrier of its CTA."""
    IDLE = "idle"
    """No resident warp has anything left to do; the caller says whether that is imbalance or tail."""


CAUSES = tuple(Cause)
N_CAUSES = len(CAUSES)


class EventColumn(IntEnum):
    """Columns of the event list, one row for each instruction issued in the window."""

    ISSUE = 0
    EXECUTE = 1
    """Memory: the cycle in which the shared port or the tag stage takes it; others: as ISSUE."""
    WRITE_BACK = 2
    """The cycle from which its result counts."""
    SUB_CORE = 3
    WARP = 4
    """Warp within its CTA."""
    CTA = 5
    """How many CTAs the SM started before."""
    ROW = 6
    """Row of the program."""


@dataclass(frozen=True)
class SmModel:
    """All that an engine must know of an SM and of the program that its warps run.

    Parameters
    ----------
    program : ndarray of int64, shape (n_rows, len(Column))
        Run once by every warp of every CTA, but for the rows from the branch's target to the branch, which run
        `iterations` times.  At most one BRANCH.
    mnemonics : tuple of str
    machine : SmMachine
    iterations : int, at least 1
    warps_per_cta : int
    resident_ctas : int
        CTAs that the SM holds at a time.
    """

    program: IntArray
    mnemonics: tuple[str, ...]
    machine: SmMachine
    iterations: int
    warps_per_cta: int
    resident_ctas: int


@dataclass(frozen=True)
class Window:
    """Which cycles are traced: issues from `start` on, for `length` cycles."""

    start: int = 0
    length: int = 0


NO_WINDOW = Window()


@dataclass(frozen=True)
class SmRun:
    """What one SM did.

    Parameters
    ----------
    cycles : int
        Cycles until the last CTA is done.
    causes : ndarray of int64, shape (sub_cores, N_CAUSES)
        Cycles of each sub-core by cause; each row sums to `cycles`.
    issued : ndarray of int64, shape (sub_cores, n_mnemonics)
        Instructions issued.
    starts : ndarray of int64, shape (resident warps, n_starts)
        Cycle from which each warp of the first CTAs may start its i-th iteration (0 for those not reached).
    events : ndarray of int64, shape (n_events, len(EventColumn))
        In order of issue; sub-cores in order within a cycle.
    """

    cycles: int
    causes: IntArray
    issued: IntArray
    starts: IntArray
    events: IntArray
