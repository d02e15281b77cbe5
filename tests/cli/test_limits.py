"""Machines, kernels and sizes that cannot be are one line each, before memory or time is spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
GEMM = ("sim", "gemm", "--m", "64", "--n", "64", "--k", "64", "--density-a", "0.5")

CASES = [
    (("--machine", "dstc-v100", "--set", "machine.tensor_core.macs_per_cycle.fp16=1"),
     "machine dstc-v100: tensor_core.macs_per_cycle.fp16: must be at least 128: OHMMA.8161 computes 128 products in "
     "1 cycles, not 1"),
    (("--machine", "a100-sxm4-40gb", "--set", "machine.tensor_core.macs_per_cycle.fp16=255"),
     "machine a100-sxm4-40gb: tensor_core.macs_per_cycle.fp16: must be at least 256: HMMA.16816.F32 computes 2048 "
     "products in 8 cycles, not 255"),
    (("--machine", "dstc-v100", "--set", "kernel.instructions.fp16=FOO"),
     "kernel spwmma_128x128x32: instructions.fp16: must be OHMMA (here OHMMA.8161: the machine's shape), not FOO"),
    (("--machine", "dstc-v100", "--set", "kernel.tile.k_cta=17"),
     "kernel spwmma_128x128x32: tile.k_cta: must be a multiple of 16, the K of one step, not 17"),
    (("--machine", "a100-sxm4-40gb", "--set", "kernel.tile.k_cta=33"),
     "kernel hmma16816_128x128x32: tile.k_cta: must be a multiple of 16, the K of one step, not 33"),
    (("--machine", "dstc-v100", "--set", "kernel.lowering=dense_inner"),
     "kernel spwmma_128x128x32 on dstc-v100: datapath of lowering dense_inner must be inner_product, "
     "not outer_product"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "message"), CASES, ids=[message[:50] for _, message in CASES])
def test_a_machine_or_kernel_that_cannot_be_is_one_line(
    stcsim: Run, args: tuple[str, ...], message: str
) -> None:
    ended = stcsim(*GEMM, *args)
    assert (ended.status, ended.out, ended.err) == (2, "", f"{message}\n")


@pytest.mark.parametrize(
    ("m", "message"),
    [
        (
            "99999999999999",
            "a generated operand must have at most 4,294,967,296 elements, not 99,999,999,999,999 x 4",
        ),
        ("2147483647", "a generated operand must have at most 4,294,967,296 elements, not 2,147,483,647 x 4"),
    ],
)
def test_a_size_that_cannot_be_held_is_one_line(stcsim: Run, m: str, message: str) -> None:
    ended = stcsim(
        "sim", "gemm", "--m", m, "--n", "4", "--k", "4", "--density-a", "0.5", "--machine", "dstc-v100"
    )
    assert (ended.status, ended.out, ended.err) == (2, "", f"{message}\n")


def test_a_dense_problem_with_too_many_tiles_is_one_line(stcsim: Run) -> None:
    ended = stcsim(
        "sim", "gemm", "--m", "2000000000", "--n", "2000000", "--k", "4", "--machine", "a100-sxm4-40gb"
    )
    assert ended.status == 2
    assert ended.err == "workload gemm: must have at most 67,108,864 warp tiles, not 976,562,500,000\n"


def test_too_many_sms_are_refused_and_not_waited_for(stcsim: Run) -> None:
    ended = stcsim(*GEMM, "--machine", "dstc-v100", "--set", "machine.sms=1000000000")
    assert ended.status == 2
    assert ended.err.endswith("sms: must be at most 65536, not 1000000000\n")


def test_a_folder_that_cannot_be_made_is_one_line(stcsim: Run, root: Path) -> None:
    study = root / "configs" / "studies" / "quickstart.yaml"
    cut = [f"--set=workloads.2.gemm.{axis}=64" for axis in "mnk"]
    ended = stcsim("run", study, "--out", "/proc/stcsim-cannot-write-here", *cut)
    assert ended.status == 2
    assert ended.err.splitlines()[-1].startswith(
        "/proc/stcsim-cannot-write-here: must be a folder that can be "
    )
