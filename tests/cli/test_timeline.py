"""``stcsim sim gemm --timeline``: one outer product followed from its bitmaps to its banks, by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Run = Callable[..., Any]
BANKED = "machine.tensor_core.accumulator={tiles: 4, model: banked, banks: 128, window: 1, drain_words_per_cycle: 32}"


def test_an_outer_product_is_followed_from_bitmap_to_bank(stcsim: Run, tmp_path: Path) -> None:
    # Column 0 of A: rows 0 to 8; row 0 of B: columns 0, 16 and 17.  Groups of A: rows 0-7 and row 8.
    a, b = np.zeros((32, 1), bool), np.zeros((1, 32), bool)
    a[:9, 0] = b[0, [0, 16, 17]] = True
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    ended = stcsim("sim", "gemm", "--a", tmp_path / "a.npy", "--b", tmp_path / "b.npy", "--machine", "dstc-v100",
                   "--set", BANKED, "--timeline", "9")  # fmt: skip
    assert ended.status == 0, ended.err
    first, second = [line for line in ended.out.splitlines() if line.startswith("cycle ")]
    # Banks (row mod 8, column mod 16): columns 0 and 16 share one: 8 x 2 banks, two products each to 8 of them.
    assert (
        "sub-core 0  warp tile (0, 0)  k    0  A 0x000001ff rows 0-7  B 0x00030001 columns 0,16-17" in first
    )
    assert "8 x 3 = 24 products  -> 16 banks, 2 to bank 0" in first
    assert "rows 8  B 0x00030001 columns 0,16-17  1 x 3 = 3 products  -> 2 banks, 2 to bank 0" in second
    # Window 1: the second issues when the first is drained, two cycles later, and takes two itself.
    cycles = [int(line.split()[1]) for line in (first, second)]
    drained = [int(line.rsplit(maxsplit=1)[1]) for line in (first, second)]
    assert cycles[1] == drained[0] == cycles[0] + 2
    assert drained[1] == cycles[1] + 2


def test_a_timeline_that_cannot_be_made_is_one_line(stcsim: Run) -> None:
    large = stcsim(
        "sim", "gemm", "--m", "512", "--n", "512", "--k", "512", "--machine", "dstc-v100", "--timeline", "3"
    )
    assert large.status == 2
    assert large.err == "--timeline: must have at most 4,194,304 MACs for a timeline, not 134,217,728\n"
    inner = stcsim("sim", "gemm", "--m", "8", "--n", "8", "--k", "8", "--machine", "v100", "--timeline", "3")
    assert inner.status == 2
    assert "must run on an outer-product datapath to have a timeline of outer products" in inner.err
