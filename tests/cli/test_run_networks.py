"""Convolutions and networks through ``stcsim run``: errors in place, totals, and no difference by processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Run = Callable[..., Any]

TABLE = """\
name,kind,N,C,H,W,K,R,S,stride,pad,dilation,groups,macs
conv,conv,1,8,10,10,16,3,3,1,1,1,1,115200
depthwise,dwconv,1,16,10,10,16,3,3,2,1,1,16,3600
pointwise,conv,1,16,5,5,40,1,1,1,0,1,1,16000
first,conv,1,3,20,20,8,5,5,2,2,1,1,60000
fc,fc,3,40,1,1,10,1,1,1,0,1,1,1200
"""
STUDY = """\
name: small
machines:
  - machine: a100-sxm4-40gb
    kernels: [hmma16816_128x128x32, hmma_sp16832_128x128x64]
  - machine: dstc-v100
adapt: prune
workloads:
  - {name: net, network: ./table.csv, sparsity: {weight: 0.3, activation: 0.5}}
  - name: alone
    conv2d: {c: 4, h: 9, w: 12, k: 6, r: 3, s: 3, stride: [1, 2], padding: [0, 1], dilation: 2, groups: 2}
    a: {role: activation, pattern: {generator: uniform, density: 0.4}}
    b: {role: weight, file: weights.npy}
  - name: heads
    gemm: {m: 20, n: 30, k: 16, batch: 3}
    repeat: 2
    a: {role: activation, pattern: {generator: uniform, density: 0.9}}
    b: {role: activation, pattern: {generator: dense}}
"""


@pytest.fixture
def study(tmp_path: Path, rng: np.random.Generator) -> Path:
    (tmp_path / "table.csv").write_text(TABLE)
    np.save(tmp_path / "weights.npy", rng.random((6, 18)) < 0.5)
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def results(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["results"]
    return found


def test_a_networks_edges_and_zeros_are_those_of_all_its_outer_products(stcsim: Run, study: Path) -> None:
    ended = stcsim("run", study)
    lines = [line.split("\t") for line in ended.out.splitlines()]
    header = next(line for line in lines if line[0] == "network")
    totals = [dict(zip(header, line, strict=True)) for line in lines if line[0] == "net"]
    layers = [each for each in results(stcsim("run", study, "--json").out) if each["network"] == "net"]
    counts = [each["outer_products"] for each in layers if each["machine"] == "dstc-v100"]
    whole, inside, executed = (
        sum(each[name] for each in counts) for name in ("whole_tiles", "inside", "executed")
    )
    found = [total["edges x zeros"] for total in totals]
    assert found == ["-", "-", f"{whole / inside:.2f}x, {inside / executed:.2f}x"]


def test_results_do_not_depend_on_the_number_of_processes(stcsim: Run, study: Path) -> None:
    one, two = (stcsim("run", study, "--json", "--threads", threads) for threads in ("1", "2"))
    assert one.status == two.status == 0, one.err + two.err
    assert results(one.out) == results(two.out)
    assert len(results(one.out)) == 7 * 3


def test_layers_are_accounted_for_and_checked(stcsim: Run, study: Path) -> None:
    found = {(row["workload"], row["kernel"]): row for row in results(stcsim("run", study, "--json").out)}
    dstc = "spwmma_128x128x32"
    macs = {name: row["macs_total"] for (name, kernel), row in found.items() if kernel == dstc}
    assert macs == {
        "net/conv": 115_200, "net/depthwise": 3_600, "net/pointwise": 16_000, "net/first": 60_000, "net/fc": 1_200,
        # P = 9 - 4, Q = floor((12 + 2 - 4 - 1) / 2) + 1, 6 filters of 2 channels; 2 times 3 heads.
        "alone": 5 * 5 * 6 * 18, "heads": 2 * 3 * 20 * 30 * 16,
    }  # fmt: skip
    assert all(row["check"]["ok"] for row in found.values())
    assert [row["network"] for (name, kernel), row in found.items() if kernel == dstc] == ["net"] * 5 + [
        "",
        "",
    ]
    heads = found["heads", dstc]
    assert "2 times, one after the other" in heads["notes"]
    assert "3 products of 20 x 30 x 16 in one grid" in heads["notes"]
    # Two activations cannot be pruned: the 2:4 machine runs them dense and says so.
    assert ("heads", "hmma_sp16832_128x128x64") not in found
    assert found["alone", dstc]["density_a"] == pytest.approx(0.4, abs=0.05)


def test_totals_of_a_network_stand_under_the_layers_and_are_weighted_by_time(
    stcsim: Run, study: Path
) -> None:
    lines = [line.split("\t") for line in stcsim("run", study).out.splitlines()]
    start = next(i for i, line in enumerate(lines) if line[0] == "network")
    rows = [dict(zip(lines[start], line, strict=True)) for line in lines[start + 1 : start + 4]]
    assert [(row["network"], row["layers"], row["GMACs"]) for row in rows] == [("net", "5", "0.000")] * 3
    found = [row for row in results(stcsim("run", study, "--json").out) if row["network"] == "net"]
    times = [sum(row["time_us"] for row in found[i::3]) for i in range(3)]
    assert [row["time us"] for row in rows] == [f"{time:,.1f}" for time in times]
    assert [row["speed-up"] for row in rows] == [f"{times[0] / time:.2f}x" for time in times]


def test_the_expanded_study_gives_the_same_results(stcsim: Run, study: Path, tmp_path: Path) -> None:
    first = stcsim("run", study, "--out", tmp_path / "out")
    assert first.status == 0, first.err
    again = stcsim("run", tmp_path / "out" / "study.yaml", "--json")
    assert again.status == 0, again.err
    assert results(again.out) == json.loads((tmp_path / "out" / "results.json").read_text())["results"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("stride: [1, 2]", "stride: [0, 2]",
         "10: workloads.1.conv2d.stride: must be two whole numbers (rows, columns), each 1 or more, not (0, 2)"),
        ("k: 6", "k: 5", "10: workloads.1.conv2d.k: must be a multiple of groups (2), not 5"),
        ("r: 3", "r: 6",
         "10: workloads.1.conv2d.r: must leave a filter that fits into the padded map's 9 rows, not 6 (it spans 11)"),
        ("s: 3", "s: 2", "12: workloads.1.b.file: must hold a 6 x 12 operand, not 6 x 18"),
        ("./table.csv", "resnet81", "8: workloads.0.network: must be a known network ("),
    ],
)  # fmt: skip
def test_a_fault_of_a_convolution_is_told_at_its_line(
    stcsim: Run, study: Path, old: str, new: str, message: str
) -> None:
    study.write_text(STUDY.replace(old, new, 1))
    ended = stcsim("run", study)
    assert ended.status == 2
    # Layers written out shift the numbers of the workloads behind them, not their lines.
    first = ended.err.splitlines()[0].replace("workloads.5.", "workloads.1.")
    assert first.startswith(f"{study}:{message}")


def test_explain_shows_the_sizes_of_every_layer(stcsim: Run, study: Path) -> None:
    ended = stcsim("explain", study)
    assert ended.status == 0, ended.err
    assert "net/depthwise: 16 of 25 x 1 x 9 (3,600 MACs) on dstc-v100" in ended.out.replace("\n", " ")
