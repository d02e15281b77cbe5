"""``stcsim validate all``, and the plot that ``--plot`` draws of a validation."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stcsim import gpu_validation, shipped_validation
from stcsim.cli.validate import validate
from stcsim.resources import data_path

Run = Callable[..., Any]
HEAD = "dtype,m,n,k,dense_us,sparse_2of4_us\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(HEAD + "fp16,128,256,512,5,6\nint8,300,200,100,8,\n")
    return path


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch, table: Path) -> None:
    """Put two rows in the place of all that ship, which take a minute."""
    small = {
        "one": lambda jobs, progress: gpu_validation.a100_gemm(table, "a100-pcie-80gb", 1, progress),
        "two": lambda jobs, progress: gpu_validation.a100_gemm(table, "a100-sxm4-80gb", 1, progress),
    }
    monkeypatch.setattr(shipped_validation, "SHIPPED", small)


def test_every_validation_has_a_table_that_ships_and_a_command() -> None:
    tables = {path.stem for path in data_path("configs", "validation").glob("*.csv")}
    assert set(shipped_validation.SHIPPED) == tables
    assert tables <= set(validate.commands)


@pytest.mark.usefixtures("shipped")
def test_all_prints_the_errors_of_each(stcsim: Run, tmp_path: Path) -> None:
    ended = stcsim("validate", "all", "--json", "--plot", tmp_path / "plots")
    assert ended.status == 0, ended.err
    found = json.loads(ended.out)
    assert {name: sorted(part) for name, part in found.items()} == {
        "one": ["dense_us", "sparse_2of4_us"], "two": ["dense_us", "sparse_2of4_us"]
    }  # fmt: skip
    ended = stcsim("validate", "all")
    lines = ended.out.splitlines()
    assert lines[0] == "| validation | quantity | measured | mean | p90 | largest |"
    mean = found["one"]["dense_us"]["mean_absolute_error_fraction"]
    assert lines[2].startswith(f"| one | dense_us | 2 | {mean:.1%} | ")
    assert len(lines) == 6
    assert (tmp_path / "plots" / "validation_two.svg").stat().st_size > 1000


def test_a_plot_comes_with_its_numbers(stcsim: Run, table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plots"
    ended = stcsim("validate", "a100-gemm", "--csv", table, "--jobs", "1", "--json", "--plot", folder)
    rows = json.loads(ended.out)["rows"]
    assert (folder / "validation_a100-gemm.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "validation_a100-gemm.csv").open(newline="") as stream:
        drawn = list(csv.DictReader(stream))
    assert [(row["quantity"], float(row["measured"])) for row in drawn] == [
        ("dense_us", 5), ("dense_us", 8), ("sparse_2of4_us", 6)
    ]  # fmt: skip
    assert float(drawn[2]["predicted"]) == pytest.approx(rows[0]["predicted_sparse_2of4_us"])


def test_there_is_no_plot_without_measurements(stcsim: Run, table: Path, tmp_path: Path) -> None:
    table.write_text(HEAD + "fp16,128,256,512,,\n")
    folder = tmp_path / "plots"
    ended = stcsim("validate", "a100-gemm", "--csv", table, "--jobs", "1", "--plot", folder)
    assert ended.status == 2
    assert ended.out.splitlines()[1].startswith("fp16\t128\t256\t512\t")  # what was computed is not lost
    # On a slow machine a line of progress stands before.
    assert ended.err.splitlines()[-1] == "a100-gemm: must hold measured values: there is nothing to draw"
    assert not folder.exists()
