"""How fast the outer-product engines are: 4096^3, warmed up.  Compared, never asserted.

Run with ``make bench``; keep a base with ``--benchmark-save`` and compare with ``--benchmark-compare``.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from stcsim.catalog import load_kernel, load_machine
from stcsim.lowering import LOWERINGS
from stcsim.lowering.lowered import Lowered
from stcsim.machine.simulator import simulate
from stcsim.workload.gemm import Gemm
from stcsim.workload.generator import Uniform, generate
from stcsim.workload.operand import Operand

BANKED = "tensor_core.accumulator={tiles: 4, model: banked, window: WINDOW, drain_words_per_cycle: 32}"
MODELS = {
    "words": (),
    "window-1": (BANKED.replace("WINDOW", "1"),),
    "window-8": (BANKED.replace("WINDOW", "8"),),
}


def lowered(size: int, density: float) -> Lowered:
    operands = [
        Operand(
            generate(Uniform(density=density), (size, size), seed=0, stream=stream), "activation", 0, "bench"
        )
        for stream in (0, 1)
    ]
    kernel, machine = load_kernel("spwmma_128x128x32")[0].kernel, load_machine("dstc-v100")[0].machine
    return LOWERINGS["sparse_outer"].lower(Gemm("bench", *operands), kernel, "fp16", machine)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("density", [1.0, 0.5, 0.1])
def test_outer_products_4096_cubed(benchmark: BenchmarkFixture, density: float, model: str) -> None:
    machine = load_machine("dstc-v100", overrides=MODELS[model])[0].machine
    problem = lowered(4096, density)
    if density == 1.0:
        # Dense SMs are all alike and one stands for all; one zero makes every one of them run.
        assert problem.steps is not None
        ones = problem.steps.ones_a.copy()
        ones[0, 0] -= 1
        problem = replace(problem, steps=replace(problem.steps, ones_a=ones))
    timing = simulate(problem, machine, threads=2)
    benchmark.extra_info["outer_products"] = timing.instructions["OHMMA.8161"]
    benchmark.pedantic(simulate, (problem, machine, "numba", 2), rounds=2)


def test_the_reference_engine(benchmark: BenchmarkFixture) -> None:
    machine = load_machine("dstc-v100")[0].machine
    problem = lowered(128, 0.5)
    benchmark.extra_info["outer_products"] = int(simulate(problem, machine).instructions["OHMMA.8161"])
    benchmark.pedantic(simulate, (problem, machine, "reference"), rounds=1)
