"""Follow outer products one by one: from the bitmaps of a step to the banks of the accumulator buffer.

Stands above the packages; ``stcsim sim gemm --timeline N`` prints it.  It runs
the reference engine on the first SM, so it is for small problems.
"""

from __future__ import annotations

from collections import Counter

from stcsim.config.machine import Machine
from stcsim.errors import LoweringError, Problem, must
from stcsim.lowering.lowered import Lowered
from stcsim.machine.outer_record import Buffer
from stcsim.machine.outer_reference import Sm, ones
from stcsim.machine.outer_simulator import bind, give_out
from stcsim.machine.simulator import instruction_timing

LARGEST_MACS = 2**22
"""M * N * K up to which a timeline is made: the reference engine is slow."""


def timeline(lowered: Lowered, machine: Machine, count: int) -> list[str]:
    """Return the first outer products of SM 0, one a line, in the order of their cycles.

    Parameters
    ----------
    lowered : Lowered
        On an outer-product datapath.
    machine : Machine
    count : int
        Lines at most.

    Returns
    -------
    lines : list of str
        Cycle, sub-core, warp tile, step; the bitmap words; rows and columns of the group; products; with
        a banked buffer how many banks they go to, the fullest one, and when the last is served.

    Raises
    ------
    LoweringError
        If the problem is too large, or its datapath multiplies no outer products.
    """
    steps = lowered.steps
    if steps is None:
        message = "must run on an outer-product datapath to have a timeline of outer products"
        raise LoweringError(Problem(message, path=f"kernel {lowered.kernel.name}"))
    if lowered.gemm.macs_total > LARGEST_MACS:
        message = must(
            f"must have at most {LARGEST_MACS:,} MACs for a timeline", f"{lowered.gemm.macs_total:,}"
        )
        raise LoweringError(Problem(message, path="--timeline"))
    model = bind(lowered, machine, instruction_timing(lowered, machine), steps)
    work = give_out(lowered.grid, machine.sms, steps, steps.words())
    sm = Sm(model, work, int(work.offsets[0]), int(work.offsets[1]))
    sm.run()
    events = sorted((event, i) for i, sub_core in enumerate(sm.sub_cores) for event in sub_core.events)
    lines = []
    for (cycle, _, warp, slab, step, repetition, drained), sub_core in events[:count]:
        i, j, k = int(work.tile_m[warp]), int(work.tile_n[warp]), slab * model.k_slab + step
        word_a, word_b = int(work.bits_a[i, k]), int(work.bits_b[j, k])
        rows, columns = ones(work.bits_a[i, k]), ones(work.bits_b[j, k])
        group_a, group_b = divmod(repetition, -(-len(columns) // model.n_inst))
        rows = rows[group_a * model.m_inst : (group_a + 1) * model.m_inst]
        columns = columns[group_b * model.n_inst : (group_b + 1) * model.n_inst]
        line = (
            f"cycle {cycle:5d}  sub-core {sub_core}  warp tile ({i}, {j})  k {k:4d}  "
            f"A {word_a:#010x} rows {_spans(rows)}  B {word_b:#010x} columns {_spans(columns)}  "
            f"{len(rows)} x {len(columns)} = {len(rows) * len(columns)} products"
        )
        if model.buffer == Buffer.BANKED:
            hits = Counter(int(model.bank_of[row, column]) for row in rows for column in columns)
            bank, most = min(hits.items(), key=lambda item: (-item[1], item[0]))
            line += f"  -> {len(hits)} banks, {most} to bank {bank}"
        lines.append(f"{line}  in the buffer by cycle {drained}")
    return lines


def _spans(places: list[int]) -> str:
    """Write places as spans: 0-7,12."""
    spans: list[list[int]] = []
    for place in places:
        if spans and place == spans[-1][1] + 1:
            spans[-1][1] = place
        else:
            spans.append([place, place])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
