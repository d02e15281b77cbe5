"""Control codes of code of ours: stall counts from latencies, counters for loads, waits for what is held."""

from __future__ import annotations

import numpy as np
import pytest

from stcsim.catalog import load_kernel, load_machine
from stcsim.errors import LoweringError
from stcsim.h200 import chain
from stcsim.lowering.main_loop import MainLoop
from stcsim.lowering.warp_code import CodeOp, WarpCode
from stcsim.machine.sm_record import NONE, Column, Kind, SmModel
from stcsim.machine.sm_schedule import schedule

H200 = load_machine("h200-mma-sync")[0].machine
MMA = "HMMA.16816.F32"


def rows(*ops: CodeOp, machine: str = "h200-mma-sync") -> SmModel:
    code = WarpCode((), (), ops, 1)
    return schedule(code, load_machine(machine)[0].machine, warps_per_cta=1, resident_ctas=1)


def stalls(model: SmModel) -> list[int]:
    return model.program[:, Column.STALL].tolist()


def test_a_reader_waits_for_a_fixed_latency_by_the_stall_count_before_it() -> None:
    # LOP3 has a latency of 5 and occupies its pipe for 2: the reader may issue 5 cycles later, others after 2 or 1.
    write, read = CodeOp("LOP3", writes=(1,)), CodeOp("LOP3", writes=(2,), reads=(1,))
    assert stalls(rows(write, read)) == [5, 1]
    assert stalls(rows(write, CodeOp("IMAD", writes=(3,)), read)) == [1, 4, 1]


def test_a_long_wait_takes_a_nop() -> None:
    # Latency 24: stall 15 and a NOP with 9, as ptxas does; a rest of 1 costs 2.
    model = rows(CodeOp(MMA, writes=(1,)), CodeOp(MMA, writes=(1,), reads=(1,)))
    assert stalls(model) == [15, 9, 1]
    assert model.program[1, Column.KIND] == Kind.ISSUE_ONLY
    short = CodeOp("HMMA.1688.F32", writes=(1,), reads=(1,))
    assert stalls(rows(short, short)) == [15, 2, 1]


@pytest.mark.parametrize(
    ("ilp", "round_"), [(1, [15, 9]), (2, [6, 15, 3]), (3, [6, 6, 12]), (4, [6, 6, 6, 6])]
)
def test_chains_are_spaced_as_ptxas_spaces_them(ilp: int, round_: list[int]) -> None:
    # data/h200/src/instr.cu compiled: M15 NOP9 | M6 M15 NOP3 | M6 M6 M12 | M6 ...
    model = schedule(chain(MMA, ilp, 16, 1), H200, warps_per_cta=1, resident_ctas=1)
    middle = stalls(model)[len(round_) * 3 + 2 :]
    assert middle[: len(round_)] in [round_[i:] + round_[:i] for i in range(len(round_))]


def test_a_loop_lets_its_results_arrive_before_it_starts_again() -> None:
    # Last MMA to the target: exactly the latency of 24, as ptxas' M1 NOP8 BRA15.
    code = WarpCode((), (CodeOp(MMA, writes=(1,), reads=(1,)),), (), 3)
    model = schedule(code, H200, warps_per_cta=1, resident_ctas=1)
    assert stalls(model) == [9, 15]


def test_loads_of_a_batch_share_a_counter_that_their_reader_waits_for() -> None:
    loads = [CodeOp("LDSM.X4", writes=(r,), wavefronts=4, batch=b) for r, b in ((1, 0), (2, 0), (3, 1))]
    model = rows(*loads, CodeOp(MMA, writes=(9,), reads=(1,)), CodeOp(MMA, writes=(8,), reads=(2, 3)))
    assert model.program[:, Column.WRITE_BARRIER].tolist() == [0, 0, 1, NONE, NONE]
    assert model.program[:, Column.WAIT_MASK].tolist() == [0, 0, 0, 1, 2]


def test_a_register_is_not_written_while_a_copy_still_reads_it() -> None:
    model = rows(CodeOp("LDGSTS", reads=(1,), lines=8), CodeOp("IADD3", writes=(1,), reads=(1,)))
    assert model.program[0, Column.READ_BARRIER] == 5
    assert model.program[1, Column.WAIT_MASK] == 1 << 5


def test_what_an_iteration_leaves_held_is_waited_for_in_the_next() -> None:
    load = CodeOp("LDSM.X4", writes=(1,), wavefronts=4)
    code = WarpCode((), (CodeOp(MMA, writes=(9,), reads=(1,)), load), (), 3)
    model = schedule(code, H200, warps_per_cta=1, resident_ctas=1)
    assert model.program[0, Column.WAIT_MASK] == 1


def test_an_unknown_instruction_is_refused_with_near_names() -> None:
    with pytest.raises(LoweringError, match="must be a known instruction of h200-mma-sync"):
        rows(CodeOp("IADD4"))


@pytest.mark.parametrize(
    ("kernel", "mmas", "loads", "copies"),
    [
        # 64x64 warps, k 32: 2 k-steps of 4 x 8 products; A 4 and B 4 loads a step; (128 + 128) x 32 fp16 = 16 KiB
        # over 4 warps of 512 bytes: 8 copies: the counts of the measured lean loop (64, 16, 8).
        ("hmma16816_128x128x32", 64, 16, 8),
        # 2:4, k 64: A stored 16 x 16 a product, B 32 x 8: 4 + 8 loads and 4 of metadata a step; 8 + 16 + 1 KiB: 13.
        ("hmma_sp16832_128x128x64", 64, 32, 13),
    ],
)
def test_a_main_loop_has_the_instructions_that_its_tile_needs(
    kernel: str, mmas: int, loads: int, copies: int
) -> None:
    used = load_kernel(kernel)[0].kernel
    code = MainLoop(used, "fp16", used.tile).code(1000)
    model = schedule(code, H200, warps_per_cta=4, resident_ctas=1)
    branch = int(np.flatnonzero(model.program[:, Column.KIND] == Kind.BRANCH)[0])
    kinds = model.program[model.program[branch, Column.TARGET] : branch, Column.KIND].tolist()
    counts = [kinds.count(kind) for kind in (Kind.MMA, Kind.LOAD, Kind.COPY, Kind.BARRIER, Kind.COMMIT)]
    assert counts == [mmas, loads, copies, 1, 1]
    assert code.iterations == -(-1000 // used.tile.k_cta)
