"""``stcsim validate a100-gemm``, ``a100-sxm80-gemm-bf16`` and ``h200-mma-sync`` on tables of a few rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "rows.csv"
        path.write_text(text)
        return path

    return write


def rows(stcsim: Run, name: str, path: Path) -> dict[str, Any]:
    ended = stcsim("validate", name, "--csv", path, "--jobs", "1", "--json")
    assert ended.status == 0, ended.err
    data: dict[str, Any] = json.loads(ended.out)
    return data


def test_a_prediction_needs_no_measurement_and_does_not_read_it(
    stcsim: Run, table: Callable[[str], Path]
) -> None:
    head = "dtype,m,n,k,dense_us,sparse_2of4_us,kexp_2of6_us\n"
    blind = rows(stcsim, "a100-gemm", table(head + "fp16,128,256,512,,,\nint8,300,200,100,,,\n"))
    seen = rows(stcsim, "a100-gemm", table(head + "fp16,128,256,512,5,6,7\nint8,300,200,100,,8,\n"))
    assert len(blind["rows"]) == len(seen["rows"]) == 2
    for one, other in zip(blind["rows"], seen["rows"], strict=True):
        for column in ("dense_us", "sparse_2of4_us", "kexp_2of6_us"):
            for what in ("predicted", "kernel", "bottleneck"):
                assert one[f"{what}_{column}"] == other[f"{what}_{column}"]
            assert one[column] is None
            assert one[f"predicted_{column}"] > 0
    assert blind["summary"] == {}
    assert {name: part["n_measured"] for name, part in seen["summary"].items()} == {
        "dense_us": 1, "sparse_2of4_us": 2, "kexp_2of6_us": 1, "K-expanded, all": 1,
    }  # fmt: skip
    want = abs(seen["rows"][0]["predicted_dense_us"] - 5) / 5
    assert seen["summary"]["dense_us"]["mean_absolute_error_fraction"] == pytest.approx(want)


def test_only_the_columns_that_a_table_has_are_predicted_and_its_others_are_kept(
    stcsim: Run, table: Callable[[str], Path]
) -> None:
    (row,) = rows(stcsim, "a100-gemm", table("dtype,m,n,k,note,dense_us\nbf16,64,64,64,mine,\n"))["rows"]
    assert list(row) == [
        "dtype", "m", "n", "k", "note", "dense_us", "predicted_dense_us", "kernel_dense_us", "bottleneck_dense_us",
    ]  # fmt: skip
    assert row["note"] == "mine"
    assert row["kernel_dense_us"].startswith("hmma16816_")
    assert row["bottleneck_dense_us"] in ("launch", "prologue")


def test_the_sxm_prediction_includes_the_hosts_time(stcsim: Run, table: Callable[[str], Path]) -> None:
    (row,) = rows(stcsim, "a100-sxm80-gemm-bf16", table("m,n,k\n64,64,64\n"))["rows"]
    assert 0.021 < row["predicted_host_ms_incl_21us"] < 0.04


def test_a_kernel_that_is_not_known_gets_empty_predictions_in_its_row(
    stcsim: Run, table: Callable[[str], Path]
) -> None:
    text = "M,N,K,config,cycles_total\n256,256,256,f16_128x128x32_w64x64_s4_lean,\n256,256,256,f16_other,5\n"
    found = rows(stcsim, "h200-mma-sync", table(text))
    known, unknown = found["rows"]
    columns = [name for name in known if name.startswith("predicted_")]
    assert len(columns) == 4
    assert all(known[name] > 0 for name in columns)
    assert all(unknown[name] is None for name in columns)
    assert unknown["config"] == "f16_other"
    assert known["kernel_cycles_total"] == "f16_128x128x32_w64x64_s4_lean"
    assert "bottleneck_cycles_total" in known
    assert found["summary"] == {}


def test_the_text_output_has_a_line_for_each_row_also_where_predictions_are_empty(
    stcsim: Run, table: Callable[[str], Path]
) -> None:
    text = (
        "M,N,K,config,cycles_total\n256,256,256,f16_128x128x32_w64x64_s4_lean,9000\n256,256,256,f16_other,\n"
    )
    ended = stcsim("validate", "h200-mma-sync", "--csv", table(text), "--jobs", "1")
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("cycles_total: 1 measured, mean absolute error ")


@pytest.mark.parametrize(
    ("name", "text", "messages"),
    [
        ("a100-gemm", "m,n,k\n1,2,3\n", [":1: must have the columns m, n, k, dtype, not m, n, k"]),
        ("a100-gemm", "", [":1: must have the columns m, n, k, dtype, not an empty line"]),
        (
            "a100-gemm",
            "dtype,m,n,k\nfp16,x,2,3\n,1,2,-3\n",
            [
                ":2: m: must be a whole number from 0 to 2,147,483,647, not x",
                ":3: k: must be a whole number from 0 to 2,147,483,647, not -3",
                ":3: dtype: must not be empty",
            ],
        ),
        (
            "a100-sxm80-gemm-bf16",
            "m,n,k\n1,,3\n",
            [":2: n: must be a whole number from 0 to 2,147,483,647, not empty"],
        ),
        (
            "a100-gemm",
            "dtype,m,n,k,dense_us,kexp_2of6_us\nfp16,8,8,8,fast,0\n",
            [
                ":2: dense_us: must be a finite number above 0, or empty, not fast",
                ":2: kexp_2of6_us: must be a finite number above 0, or empty, not 0",
            ],
        ),
        (
            "a100-gemm",
            "dtype,m,n,k,dens_us,k\nfp16,8,8,8,5,8\n",
            [
                ":1: must have each column once, not k",
                ":1: must have measured columns of the names known, not dens_us (did you mean dense_us?)",
            ],
        ),
        (
            "a100-gemm",
            "dtype,m,n,k\nfp16,1.5,8,8\nfp16,8,8\nfp16,99999999999999,8,8,1\n\nfp16,99999999999999,8,8\n",
            [
                ":2: m: must be a whole number from 0 to 2,147,483,647, not 1.5",
                ":3: must have 4 cells, as its title, not 3",
                ":4: must have 4 cells, as its title, not 5",
                ":6: m: must be a whole number from 0 to 2,147,483,647, not 99999999999999",
            ],
        ),
        (
            "a100-gemm",
            "dtype,m,n,k\nfp61,8,8,8\n",
            [
                ": dtype: must be an operand type of a100-pcie-80gb's kernels (fp16, bf16, tf32, int8), not fp61 "
                "(did you mean fp16?)"
            ],
        ),
        ("h200-mma-sync", "M,N,K\n1,2,3\n", [":1: must have the columns M, N, K, config, not M, N, K"]),
    ],
)
def test_each_fault_of_a_table_is_one_line(
    stcsim: Run, table: Callable[[str], Path], name: str, text: str, messages: list[str]
) -> None:
    path = table(text)
    ended = stcsim("validate", name, "--csv", path, "--jobs", "1")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.splitlines() == [f"{path}{message}" for message in messages]


def test_a_table_without_rows_gives_no_rows(stcsim: Run, table: Callable[[str], Path]) -> None:
    assert rows(stcsim, "a100-gemm", table("dtype,m,n,k,dense_us\n")) == {"rows": [], "summary": {}}


def test_a_spreadsheets_byte_order_mark_and_whole_numbers_with_a_point_are_read(
    stcsim: Run, table: Callable[[str], Path]
) -> None:
    (row,) = rows(stcsim, "a100-gemm", table("\ufeffdtype,m,n,k,dense_us\r\nbf16,64.0,64,64,\r\n"))["rows"]
    assert row["predicted_dense_us"] > 0
