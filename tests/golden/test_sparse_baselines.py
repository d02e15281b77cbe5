"""Vector-wise (4 of 16) and K-expanded (6:8) GEMMs: counts, traffic and timelines, by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stcsim.catalog import load_kernel, load_machine
from stcsim.errors import ConfigError, LoweringError
from stcsim.lowering import LOWERINGS
from stcsim.lowering.lowered import Lowered
from stcsim.lowering.main_loop import MainLoop
from stcsim.lowering.warp_code import CodeOp, WarpCode
from stcsim.machine import sm
from stcsim.machine.kernels import sm as fast
from stcsim.machine.simulator import simulate
from stcsim.machine.sm_record import EventColumn, SmRun, Window
from stcsim.machine.sm_schedule import schedule
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand
from stcsim.workload.pattern import DensePattern

VECTOR_WISE, SIX_OF_EIGHT = "hmmavw884_128x128x64", "hmma_sp16832_6to8_128x128x64"
MACHINES = {
    VECTOR_WISE: "vw-v100",
    SIX_OF_EIGHT: "a100-sxm4-40gb",
    "hmma_sp16832_128x128x64": "a100-sxm4-40gb",
}


def lowered(kernel: str, m: int, n: int, k: int) -> Lowered:
    """A dense weight pruned onto the kernel's pattern, times a dense activation."""
    used, machine = load_kernel(kernel)[0].kernel, load_machine(MACHINES[kernel])[0].machine
    lowering = LOWERINGS[used.lowering]
    gemm = Gemm(
        "drawn",
        Operand(DensePattern((m, k)), "weight", 1, "dense"),
        Operand(DensePattern((k, n)), "activation", 2, "dense"),
    )
    return lowering.lower(lowering.prune(gemm, used)[0], used, "fp16", machine)


def test_a_vector_wise_problem_has_a_quarter_of_the_products_and_all_of_b() -> None:
    # 128^3: 8 x 8 tiles of 16 x 16, K = 128 in 2 products of 64, 4 sets each: 512 of every step; dense has 2048.
    result = lowered(VECTOR_WISE, 128, 128, 128)
    timing = simulate(result, load_machine("vw-v100")[0].machine)
    assert timing.instructions == {f"HMMA.VW.884.F32.F32.STEP{step}": 512 for step in range(4)}
    assert result.macs_executed == 128 * 128 * 32
    assert result.macs_executed == 4 * 512 * 256  # no slot is empty
    # A: 128 x 32 values of 2 bytes and as many offsets of 4 bits; B whole; C in fp16.
    assert result.traffic_bytes == {
        "operand_a": 128 * 32 * 2 + 128 * 32 // 2, "operand_b": 128 * 128 * 2, "output": 128 * 128 * 2,
    }  # fmt: skip


def test_a_warp_of_the_vector_wise_kernel_loads_what_its_products_read() -> None:
    code = MainLoop(load_kernel(VECTOR_WISE)[0].kernel, "fp16", load_kernel(VECTOR_WISE)[0].kernel.tile).code(
        64
    )
    counts = Counter(op.mnemonic for op in code.body)
    # 64 x 32 x 64: 4 row blocks x 2 column blocks x 4 sets of each step.
    assert [counts[f"HMMA.VW.884.F32.F32.STEP{step}"] for step in range(4)] == [32] * 4
    # Registers: A 4 blocks x 4 sets x 2, B 2 blocks x 4 sets x 8, offsets 4 blocks x 2; four in a load.
    assert counts["LDS.128"] == (32 + 64 + 8) // 4
    # Stage: 128 x 16 values of A, 128 x 64 of B, 2 bytes each, and 128 x 16 offsets of half a byte: 21,504 bytes,
    # of which a warp of eight copies 16 bytes a lane: 5.25 times.
    assert counts["LDG"] == counts["STS"] == 6
    # A product reads sums, A, both loads of B, offsets; two sets share a register of offsets.
    products = [op for op in code.body if op.mnemonic.endswith("STEP0")]
    assert {len(op.reads) for op in products} == {5}
    assert len({op.reads[-1] for op in products}) == 8


@pytest.mark.parametrize("engine", [sm, fast], ids=["reference", "numba"])
def test_a_gathering_product_takes_the_cycles_of_hmma_884(engine: ModuleType) -> None:
    # 16 steps, two cycles apart; an isolated product of 16 x 16 x 64 ends at 54, a chain has a period of 35.
    product = [
        CodeOp(f"HMMA.VW.884.F32.F32.STEP{step}", writes=(step,), reads=(step, 100 + k), set_=k, step=step)
        for k in range(4)
        for step in range(4)
    ]
    machine = load_machine("vw-v100")[0].machine

    def run(ops: list[CodeOp]) -> SmRun:
        model = schedule(WarpCode((), (), tuple(ops), 1), machine, warps_per_cta=1, resident_ctas=1)
        result: SmRun = engine.simulate(model, np.array([1]), window=Window(0, 10_000))[0]
        return result

    alone = run(product)
    assert alone.events[:, EventColumn.ISSUE].tolist() == list(range(0, 32, 2))
    assert alone.cycles == 54
    assert run(product * 3).events[::16, EventColumn.ISSUE].tolist() == [0, 35, 70]


def test_a_k_expanded_problem_is_a_2_4_problem_of_the_expanded_k() -> None:
    # 128 x 128 x 256 as 6:8: 32 groups of three windows, K' = 32 x 12 = 384 in 12 products of 32.
    result = lowered(SIX_OF_EIGHT, 128, 128, 256)
    machine = load_machine("a100-sxm4-40gb")[0].machine
    timing = simulate(result, machine)
    assert timing.instructions == {"HMMA.SP.16832.F32": 8 * 16 * 12}
    assert timing == simulate(lowered("hmma_sp16832_128x128x64", 128, 128, 384), machine)
    assert result.macs_executed == 128 * 128 * 192
    assert result.notes[0].startswith("K = 256 expanded to 384: 6:8 as windows of 2:4;")
    # A: 192 values of 2 bytes and 96 codes of 4 bits a row.  B: lifted; the lift reads 256 rows and writes 384.
    assert result.traffic_bytes == {
        "operand_a": 128 * 192 * 2 + 128 * 96 // 2,
        "operand_b": 384 * 128 * 2,
        "output": 128 * 128 * 2,
        "lift": (256 + 384) * 128 * 2,
    }


def test_a_k_that_no_group_divides_is_filled_up() -> None:
    # K = 9: two groups, K' = 24; of the second there is one element, and none of it is left out.
    result = lowered(SIX_OF_EIGHT, 3, 5, 9)
    assert result.macs_executed == 3 * 5 * (6 + 1)
    assert result.program.iterations == 1
    # Nothing is lifted where there is no K.
    assert lowered(SIX_OF_EIGHT, 3, 5, 0).traffic_bytes["lift"] == 0


def lower_nothing(kernel: str, machine: str) -> None:
    """Lower a weight without rows, which every pattern fits."""
    used = load_kernel(kernel)[0].kernel
    empty = Operand(DensePattern((0, 64)), "weight", 1, "dense")
    gemm = Gemm("none", empty, Operand(DensePattern((64, 8)), "activation", 1, "dense"))
    LOWERINGS[used.lowering].lower(gemm, used, "fp16", load_machine(machine)[0].machine)


@pytest.mark.parametrize(
    ("kernel", "old", "new", "error", "message"),
    [
        (SIX_OF_EIGHT, "n: 6, m: 8", "n: 5, m: 8", ConfigError,
         "12: options: K-expanded sparsity must be 4:6, 6:8, 8:10, 10:12, 12:14, 14:16, or 2:2 for dense, not 5:8"),
        (VECTOR_WISE, "n: 4, m: 16", "n: 16, m: 16", ConfigError,
         "11: options: a vector must keep at least 1 of 2 to 256 elements, and not all, not 16 of 16"),
        (VECTOR_WISE, "n: 4, m: 16", "n: 8, m: 32", LoweringError,
         "kernel {name}: options: must keep n = 4 of m = 16 elements, as the kernel's instruction does, not 8 of 32"),
    ],
)  # fmt: skip
def test_a_pattern_that_does_not_fit_is_told_where_it_stands(
    kernel: str, old: str, new: str, error: Any, message: str, tmp_path: Path, root: Path
) -> None:
    text = (root / "configs" / "kernels" / f"{kernel}.yaml").read_text(encoding="utf-8")
    path = tmp_path / f"{kernel}.yaml"
    path.write_text(text.replace(old, new))
    with pytest.raises(error) as caught:
        lower_nothing(str(path), MACHINES[kernel])
    expected = message.format(name=kernel) if error is LoweringError else f"{path}:{message}"
    assert str(caught.value) == expected
