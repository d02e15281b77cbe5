"""The study of im2col: four ways side by side, labelled as beside the cycles."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]

STUDY = """\
name: ways
machines:
  - machine: dstc-v100
  - machine: v100
workloads:
  - name: layer
    conv2d: {c: 32, h: 14, w: 14, k: 160, r: 3, s: 3, padding: 1}
    a: {role: activation, pattern: {generator: feature_map, density: 0.5, width: 14}}
    b: {role: weight, pattern: {generator: filters, density: 0.2, window: 9}}
"""


def test_the_ways_stand_beside_the_cycles_and_csr_is_the_slowest(stcsim: Run, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    sparse, dense = json.loads(stcsim("run", path, "--json").out)["results"]
    assert list(sparse["im2col_cycles"]) == ["bitmap", "dense_implicit", "dense_explicit", "csr"]
    assert list(dense["im2col_cycles"]) == ["dense_implicit", "dense_explicit"]
    # 2 CTAs along the channels and 2 along the pixels hold 4 SMs of 4 sub-cores.  A column has 14 output rows
    # (13 for the outer taps) of one word: SHF + LOP3 + IADD3 + placing, 5 operations, and 2 POPC at 4 lanes.
    pieces = 2 * 32 * 3 * (13 + 14 + 13)
    assert sparse["im2col_cycles"]["bitmap"] == 2 * pieces // (4 * 16)
    assert sparse["im2col_cycles"]["dense_implicit"] == 2 * 4 * 196 * 9 * 4 // (16 * 16) + 1
    lines = [line.split("\t") for line in stcsim("run", path).out.splitlines()]
    header = next(line for line in lines if line[0] == "convolution")
    row = dict(zip(header, lines[lines.index(header) + 1], strict=True))
    assert (row["on"], row["im2col bitmap"]) == ("dstc-v100", f"{sparse['im2col_cycles']['bitmap']:,}")
    assert float(row["csr / dense"].rstrip("x")) > 8
