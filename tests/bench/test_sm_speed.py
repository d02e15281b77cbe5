"""How fast the SM engine is: simulated instructions a second, warmed up.  Compared, never asserted."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from stcsim.h200 import load_loop, machine
from stcsim.machine import sm
from stcsim.machine.kernels import sm as fast
from stcsim.machine.sm_listing import bind_listing
from stcsim.machine.sm_record import SmModel

LOOP = "f16_128x128x32_w64x64_s4"


def loop(iterations: int) -> SmModel:
    return bind_listing(load_loop(LOOP), machine(), iterations=iterations, resident_ctas=2)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("skipping", [False, True], ids=["every instruction", "skipping periods"])
def test_main_loop(benchmark: BenchmarkFixture, threads: int, skipping: bool) -> None:
    model, ctas = loop(2000), np.array([2, 2])
    runs = fast.simulate(model, ctas, threads=threads, skipping=skipping)
    benchmark.extra_info["instructions"] = sum(int(run.issued.sum()) for run in runs)
    benchmark(fast.simulate, model, ctas, threads=threads, skipping=skipping)


def test_the_reference_engine(benchmark: BenchmarkFixture) -> None:
    model = loop(2)
    benchmark.extra_info["instructions"] = 2 * 142 * 8
    benchmark(sm.simulate, model, np.array([2]))
