"""What ``options.output_density`` refuses, from the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
FLAG = "kernel.options.output_density"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ((f"{FLAG}=1.5",), f"--set {FLAG}=1.5: options.output_density: must be at most 1, not 1.5"),
        (
            (f"{FLAG}=0.5", "--level", "sm"),
            "kernel spwmma_128x128x32: options.output_density: must not be given where SMs alone are timed: "
            "the whole GPU (level: gpu) encodes and writes C",
        ),
    ],
)
def test_what_has_no_effect_or_is_no_share_is_told(stcsim: Run, more: tuple[str, ...], line: str) -> None:
    ended = stcsim(
        "sim", "gemm", "--m", "64", "--n", "64", "--k", "64", "--machine", "dstc-v100", "--set", *more
    )
    assert (ended.status, ended.out, ended.err) == (2, "", line + "\n")
