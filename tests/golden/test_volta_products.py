"""HMMA.884 on a V100: a 16x16x16 product of 16 (fp32 sums) or 8 (fp16 sums) steps, by hand.

Raihan et al., ISPASS 2019: an isolated product ends at cycle 54 with fp32 sums and at 64 with fp16 sums; a sub-core
does one in 32 cycles; a chain of products on the same sums has a period of about 35 cycles (35.3 on a TITAN V).
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from stcsim.catalog import load_machine
from stcsim.isa import load_isa
from stcsim.lowering.warp_code import CodeOp, WarpCode
from stcsim.machine import sm
from stcsim.machine.kernels import sm as fast
from stcsim.machine.sm_record import EventColumn, SmRun, Window
from stcsim.machine.sm_schedule import schedule

STEPS = {"F32": 4, "F16": 2}


@pytest.fixture(params=[sm, fast], ids=["reference", "numba"])
def engine(request: pytest.FixtureRequest) -> ModuleType:
    """Each engine in turn."""
    module: ModuleType = request.param
    return module


def product(sums: int, dtype: str) -> list[CodeOp]:
    """One product: four sets, A and B of each set in registers of their own."""
    return [
        CodeOp(
            f"HMMA.884.{dtype}.{dtype}.STEP{step}", writes=(sums + step,), reads=(sums + step, 100 + k, 200 + k),
            set_=k, step=step,
        )
        for k in range(4)
        for step in range(STEPS[dtype])
    ]  # fmt: skip


def run(engine: ModuleType, ops: list[CodeOp], warps: int = 1) -> SmRun:
    model = schedule(
        WarpCode((), (), tuple(ops), 1), load_machine("v100")[0].machine, warps_per_cta=warps, resident_ctas=1
    )
    result: SmRun = engine.simulate(model, np.array([1]), window=Window(0, 10_000))[0]
    return result


@pytest.mark.parametrize(("dtype", "cycles"), [("F32", 54), ("F16", 64)])
def test_an_isolated_product_ends_when_the_paper_says(engine: ModuleType, dtype: str, cycles: int) -> None:
    result = run(engine, product(0, dtype))
    # Steps issue 2 (fp32 sums) or 4 (fp16 sums) cycles apart; the last is the 16th or 8th.
    spacing = 32 // (4 * STEPS[dtype])
    assert result.events[:, EventColumn.ISSUE].tolist() == list(range(0, 32, spacing))
    published = [
        cycle
        for row in load_isa()[f"HMMA.884.{dtype}.{dtype}.STEP0"].sequence.complete_cycles
        for cycle in row
    ]
    assert result.events[:, EventColumn.WRITE_BACK].tolist() == published
    assert result.cycles == cycles


@pytest.mark.parametrize("dtype", STEPS)
def test_a_chain_of_products_has_a_period_of_35_cycles(engine: ModuleType, dtype: str) -> None:
    # The last set's first step issues at 24 and hands its sums on after 11: the next product starts at 35, 70, 105.
    result = run(engine, product(0, dtype) * 4)
    issues = result.events[:, EventColumn.ISSUE].tolist()
    assert issues[:: 4 * STEPS[dtype]] == [0, 35, 70, 105]


@pytest.mark.parametrize("dtype", STEPS)
def test_independent_products_take_32_cycles_each(engine: ModuleType, dtype: str) -> None:
    # In one warp on sums of their own, and by four warps of a sub-core in chains of two.
    result = run(engine, [*product(0, dtype), *product(10, dtype), *product(20, dtype)])
    assert result.events[:: 4 * STEPS[dtype], EventColumn.ISSUE].tolist() == [0, 32, 64]
    result = run(engine, product(0, dtype) * 2, warps=16)
    assert (result.causes[:, 0] == 8 * 32).all()
    assert result.cycles < 8 * 32 + 54


def test_a_reader_that_is_no_product_waits_for_the_result(engine: ModuleType) -> None:
    # The first step of the last set issues at 24; its sums can be read at 40, those of the last step at 54.
    ops = [
        *product(0, "F32"),
        CodeOp("IADD3", writes=(300,), reads=(0,)),
        CodeOp("IADD3", writes=(301,), reads=(3,)),
    ]
    assert run(engine, ops).events[-2:, EventColumn.ISSUE].tolist() == [40, 54]
