"""``stcsim sim loop`` and ``stcsim validate h200``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SMALL = "f16_64x64x32_w32x32_s4"


def test_without_a_name_the_loops_are_listed(stcsim: Run) -> None:
    ended = stcsim("sim", "loop")
    assert ended.status == 0
    assert len(ended.out.splitlines()) == 7
    assert f"{SMALL}          H200 main loop: fp16, CTA 64x64x32" in ended.out


def test_the_cycles_of_an_iteration_are_tiled_by_causes(stcsim: Run) -> None:
    result = json.loads(stcsim("sim", "loop", SMALL, "--json", "--ctas", "2").out)
    assert sum(result["causes"].values()) == 4 * result["cycles"]
    assert result["issued"]["HMMA.16816.F32"] == 16 * 60 * 4 * 2


@pytest.mark.slow
def test_both_engines_print_the_same(stcsim: Run) -> None:
    numba, reference = (
        json.loads(stcsim("sim", "loop", SMALL, "--json", "--engine", engine).out)
        for engine in ("numba", "reference")
    )
    assert {**numba, "engine": ""} == {**reference, "engine": ""}


def test_a_window_is_written_as_a_chrome_trace(stcsim: Run, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    ended = stcsim("sim", "loop", SMALL, "--trace-window", "500:40", "-o", file)
    assert ended.status == 0
    spans = [event for event in json.loads(file.read_text())["traceEvents"] if event["ph"] == "X"]
    assert {span["cat"] for span in spans} == {"issue", "execute", "write-back"}
    issues = [span["ts"] for span in spans if span["cat"] == "issue"]
    assert min(issues) >= 500
    assert max(issues) < 540


def test_a_text_timeline_shows_issue_execution_and_result(stcsim: Run) -> None:
    lines = stcsim("sim", "loop", SMALL, "--timeline", "--trace-window", "0:60").out.splitlines()
    (first,) = [line for line in lines if line.startswith("0.0.0       0 ")]
    assert first.endswith("HMMA.16816.F32  I" + "=" * 23 + "W")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["f16"], "must be a known loop (f16_128x128x32_w64x32_s4, "),
        ([SMALL, "--machine", "v10"], "--machine: must be a known machine ("),
        (
            [SMALL, "--trace-window", "7"],
            "--trace-window: must be START:LEN in cycles, such as 1000:200, not 7",
        ),
        (
            [SMALL, "--trace-window", "0:0"],
            "--trace-window: must be START:LEN in cycles, such as 1000:200, not 0:0",
        ),
    ],
)
def test_a_bad_argument_is_one_clear_line(stcsim: Run, args: list[str], message: str) -> None:
    ended = stcsim("sim", "loop", *args)
    assert ended.status == 2
    assert ended.err.startswith(message)
    assert len(ended.err.splitlines()) == 1


def test_the_validation_page_is_written(stcsim: Run, shared_data: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    ended = stcsim(
        "validate", "h200", "--data", shared_data / "data" / "h200", "--only", "resident", "-o", page
    )
    assert ended.status == 0
    assert "## resident: main loops in whole kernels" in page.read_text()
