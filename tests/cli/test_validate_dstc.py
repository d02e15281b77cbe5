"""``stcsim validate dstc-fig21`` and ``dstc-sparseloop``, and the analytic engine beside the cycle engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stcsim.machine.analytic import expected_fraction

Run = Callable[..., Any]


def rows(stcsim: Run, *args: str | Path) -> dict[str, Any]:
    ended = stcsim("validate", *args, "--json")
    assert ended.status == 0, ended.err
    data: dict[str, Any] = json.loads(ended.out)
    return data


def test_a_prediction_needs_no_measurement_and_does_not_read_it(stcsim: Run, tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text("density_a,density_b,time_digitised_arbitrary_unit\n1.0,1.0,\n0.5,0.4,\n")
    blind = rows(stcsim, "dstc-fig21", "--csv", table, "--size", "256")
    table.write_text("density_a,density_b,time_digitised_arbitrary_unit\n1.0,1.0,100\n0.5,0.4,90\n")
    seen = rows(stcsim, "dstc-fig21", "--csv", table, "--size", "256")
    key = "predicted_normalised"
    assert [row[key] for row in blind["rows"]] == [row[key] for row in seen["rows"]]
    assert blind["rows"][0][key] == 1.0
    assert blind["summary"] == {}
    want = abs(seen["rows"][1][key] - 0.9) / 0.9
    (summary,) = seen["summary"].values()
    assert summary["n_measured"] == 2
    assert summary["largest_absolute_error_fraction"] == pytest.approx(want)


def test_the_shipped_points_are_predicted_in_their_order(stcsim: Run) -> None:
    found = rows(stcsim, "dstc-fig21", "--size", "256")["rows"]
    normalised = [row["predicted_normalised"] for row in found]
    assert [(row["density_a"], row["density_b"]) for row in found[:2]] == [(1.0, 1.0), (0.9, 1.0)]
    assert normalised == sorted(normalised, reverse=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("density_a\n0.5\n", ":1: must have the columns density_a, density_b, not density_a"),
        ("density_a,density_b\n0.5,50\n", ":2: density_b: must be a fraction from 0 to 1, not 50"),
        ("density_a,density_b\nx,0.5\n", ":2: density_a: must be a finite number, 0 or more, not x"),
        ("density_a,density_b\n,0.5\n", ":2: density_a: must be a finite number, 0 or more, not empty"),
        (
            "density_a,density_b,time_digitised_arbitrary_unit\n1,1,\n0.5,0.5,-3\n",
            ":3: time_digitised_arbitrary_unit: must be a finite number above 0, or empty, not -3",
        ),
    ],
)
def test_a_bad_table_is_one_line(stcsim: Run, tmp_path: Path, text: str, message: str) -> None:
    table = tmp_path / "points.csv"
    table.write_text(text)
    ended = stcsim("validate", "dstc-fig21", "--csv", table, "--size", "64")
    assert (ended.status, ended.out, ended.err) == (2, "", f"{table}{message}\n")


def test_a_missing_table_and_an_idle_override_are_one_line(stcsim: Run, tmp_path: Path) -> None:
    missing = tmp_path / "none.csv"
    ended = stcsim("validate", "dstc-fig21", "--csv", missing)
    assert (ended.status, ended.err) == (2, f"{missing}: must be a CSV file that can be read\n")
    ended = stcsim(
        "validate", "dstc-fig21", "--size", "64", "--set", "machine.tensor_core.accumulator.bank=3"
    )
    assert ended.status == 2
    wrong = (
        "--set machine.tensor_core.accumulator.bank=3: tensor_core.accumulator.bank: must be a known key ("
    )
    assert ended.err.startswith(wrong)
    assert ended.err.endswith("), not bank (did you mean banks?)\n")


def test_another_models_dense_cycles_are_those_of_its_macs(stcsim: Run, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("m,k,n,density_activation,density_weight,dstc_cycles\n128,64,256,0.5,1.0,\n")
    row = rows(stcsim, "dstc-sparseloop", "--csv", table)["rows"][0]
    # Two CTAs of four warps, 64 steps of 4 x 4 outer products each, and what the first loads and drains take.
    assert 2 * 64 * 16 <= row["predicted_tc_cycles"] < 2 * 64 * 16 + 300
    assert row["predicted_dstc_cycles"] < row["predicted_tc_cycles"]


def test_analytic_counts_are_the_cycle_engines_and_its_cycles_a_bound(stcsim: Run) -> None:
    shape = ["--m", "300", "--n", "200", "--k", "100", "--density-a", "0.4", "--density-b", "0.6"]
    for machine in ("dstc-v100", "a100-sxm4-40gb"):
        found = {}
        for engine in ("numba", "analytic"):
            ended = stcsim("sim", "gemm", *shape, "--machine", machine, "--engine", engine, "--json")
            found[engine] = json.loads(ended.out)
        cycle, closed = found["numba"], found["analytic"]
        for name, count in closed["instructions"].items():
            # The SM engine runs whole CTAs, warps beyond the edge of C included.
            assert cycle["instructions"][name] == count or machine == "a100-sxm4-40gb"
        assert closed["model"].startswith("analytic: ")
        assert closed["cycles"] <= cycle["cycles"]
        assert sum(closed["stalls"].values()) == closed["cycles"] * closed["sub_cores"]


@pytest.mark.parametrize(
    ("density", "edge", "quantum"), [(0.5, 32, 8), (0.1, 32, 16), (1.0, 32, 8), (0.0, 16, 8)]
)
def test_the_expected_fraction_is_the_binomial_mean(density: float, edge: int, quantum: int) -> None:
    weights = [comb(edge, n) * density**n * (1 - density) ** (edge - n) for n in range(edge + 1)]
    want = float(np.dot(weights, np.ceil(np.arange(edge + 1) / quantum))) / np.ceil(edge / quantum)
    assert expected_fraction(density, edge, quantum) == pytest.approx(want)


def test_dense_by_dense_occupies_both_v100_tensor_cores_alike(stcsim: Run) -> None:
    shape = ["--m", "256", "--n", "256", "--k", "64", "--level", "sm"]
    free = "machine.tensor_core.accumulator={tiles: 4, model: unlimited, drain_words_per_cycle: 32}"
    inner = json.loads(stcsim("sim", "gemm", *shape, "--machine", "v100", "--json").out)
    outer = json.loads(stcsim("sim", "gemm", *shape, "--machine", "dstc-v100", "--set", free, "--json").out)
    assert outer["stalls"]["tensor_busy"] == inner["stalls"]["tensor_busy"] == 256 * 256 * 64 // 128
