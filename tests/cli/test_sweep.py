"""``stcsim sweep``, ``results``, ``report`` and ``replay``: sweeps end to end, killed, resumed, compared and drawn."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

STUDY = """\
name: small
machines:
  - machine: v100
    kernels: [hmma884_128x128x32]
  - machine: dstc-v100
    kernels: [spwmma_128x128x32]
baseline: {machine: v100}
check_tiles: 1
axes:
  - {path: machine.tensor_core.accumulator.tiles, label: tiles, values: [4, 8]}
  - {path: workloads.*.a.pattern.density, label: density of A, values: [0.5, 0.1]}
workloads:
  - name: first
    gemm: {m: 64, n: 64, k: 32}
    a: {role: weight, pattern: {generator: uniform, density: 0.3}}
    b: {role: activation, pattern: {generator: uniform, density: 0.6}}
  - name: second
    gemm: {m: 32, n: 96, k: 48}
    a: {role: weight, pattern: {generator: clustered, density: 0.3}}
    b: {role: activation, pattern: {generator: dense}}
"""
KILLED = """\
import os, signal, sys
from stcsim import sweep
from stcsim.cli import main
run_one, left = sweep._run_one, int(sys.argv.pop(1))

def killed(*args):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return run_one(*args)

sweep._run_one = killed
main()
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


@pytest.fixture
def swept(stcsim: Run, study: Path, tmp_path: Path) -> Path:
    """The folder of an undisturbed sweep."""
    assert stcsim("sweep", study, "--out", tmp_path / "swept", "--jobs", "1").status == 0
    return tmp_path / "swept"


def export(stcsim: Run, folder: Path) -> str:
    ended = stcsim("results", "export", folder)
    assert ended.status == 0, ended.err
    return str(ended.out)


def test_a_sweep_has_a_row_for_each_layer_of_each_point_in_the_order_of_the_study(
    stcsim: Run, swept: Path
) -> None:
    rows = list(csv.DictReader(io.StringIO(export(stcsim, swept))))
    density, tiles = "workloads.*.a.pattern.density", "machine.tensor_core.accumulator.tiles"
    assert [(row["point"], row["workload"], row["machine"], row[tiles], row[density]) for row in rows] == [
        (number, layer, machine, value, d)
        for number, machine, value, d in [
            ("0", "v100", "", "0.5"),
            ("1", "dstc-v100", "4", "0.5"),
            ("2", "v100", "", "0.1"),
            ("3", "dstc-v100", "4", "0.1"),
            ("4", "dstc-v100", "8", "0.5"),
            ("5", "dstc-v100", "8", "0.1"),
        ]
        for layer in ("first", "second")
    ]
    assert {row["density_a"] for row in rows if row["workload"] == "first"} == {"0.5", "0.10009765625"}
    assert all(float(row["speed_up"]) == 1 for row in rows if row["point"] == row["baseline_point"])
    by_place = {(row["point"], row["workload"]): int(row["cycles"]) for row in rows}
    last = next(row for row in rows if (row["point"], row["workload"]) == ("5", "second"))
    ratio = by_place["2", "second"] / by_place["5", "second"]
    assert float(last["speed_up"]) == pytest.approx(ratio)  # both machines have one clock


def test_a_sweep_killed_at_any_run_and_resumed_exports_the_same_bytes(
    stcsim: Run, study: Path, swept: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "killed"
    for n_runs in (0, 1, 4):
        words = [str(n_runs), "sweep", str(study), "--out", str(folder), "--jobs", "1", "--resume"]
        ended = subprocess.run([sys.executable, "-c", KILLED, *words], capture_output=True, check=False)
        assert ended.returncode == -signal.SIGKILL
    with sqlite3.connect(folder / "results.sqlite") as store:
        assert store.execute("SELECT count(*) FROM results").fetchone() == (5,)
    store.close()
    assert stcsim("sweep", study, "--out", folder, "--jobs", "1", "--resume").status == 0
    assert export(stcsim, folder) == export(stcsim, swept)


def test_two_jobs_give_the_bytes_of_one(stcsim: Run, study: Path, swept: Path, tmp_path: Path) -> None:
    assert stcsim("sweep", study, "--out", tmp_path / "two", "--jobs", "2").status == 0
    assert export(stcsim, tmp_path / "two") == export(stcsim, swept)


def test_a_sweep_that_is_done_runs_nothing_again(
    stcsim: Run, study: Path, swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stcsim.sweep._run_one", None)
    assert stcsim("sweep", study, "--out", swept, "--jobs", "1", "--resume").status == 0


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(
    stcsim: Run, study: Path, swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stcsim import sweep

    run_one, folder, count = sweep._run_one, tmp_path / "stopped", 0

    def interrupted(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return run_one(*args)

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "_run_one", interrupted)
        ended = stcsim("sweep", study, "--out", folder, "--jobs", "1", "--set", "machine.clock=1.53 GHz")
    assert ended.status == 130
    words = f"stcsim sweep {study} --set 'machine.clock=1.53 GHz' --out {folder}"
    assert ended.err == f"stopped: 3 results are kept; go on with: {words} --resume\n"


def test_an_impossible_point_is_told_and_the_others_are_run(stcsim: Run, study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    ended = stcsim(
        "sweep", study, "--out", folder, "--jobs", "1", "--axis", "machine.tensor_core.accumulator.tiles=1,4"
    )
    assert ended.status == 1
    assert "4 of 12 runs failed" in ended.err
    assert "failed: point 1, first on dstc-v100 with spwmma_128x128x32, tiles = 1" in ended.err
    assert "takes 16 of 4 accumulator tiles" in ended.err
    rows = list(csv.DictReader(io.StringIO(export(stcsim, folder))))
    assert [row["status"] for row in rows] == [*["done"] * 2, *["failed"] * 2] * 2 + ["done"] * 4
    shown = stcsim("results", "query", folder, "--failed").out.splitlines()
    assert len(shown) == 5
    assert stcsim("sweep", study, "--out", folder, "--resume", "--axis",
                  "machine.tensor_core.accumulator.tiles=1,4").status == 1  # fmt: skip


def test_a_fault_of_the_program_in_one_run_does_not_end_the_sweep(
    stcsim: Run, study: Path, swept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stcsim import sweep

    simulate = sweep._simulate

    def faulty(point: Any, layer: int) -> Any:
        if (point.number, layer) == (3, 1):
            message = "no such thing"
            raise ZeroDivisionError(message)
        return simulate(point, layer)

    with monkeypatch.context() as patch:
        patch.setattr(sweep, "_simulate", faulty)
        ended = stcsim("sweep", study, "--out", tmp_path / "faulty", "--jobs", "1")
    assert ended.status == 1
    assert "ZeroDivisionError: no such thing" in ended.err
    again = stcsim("sweep", study, "--out", tmp_path / "faulty", "--jobs", "1", "--resume", "--retry-failed")
    assert again.status == 0
    assert export(stcsim, tmp_path / "faulty") == export(stcsim, swept)


def test_a_folder_with_anything_in_it_needs_resume_and_the_same_study(
    stcsim: Run, study: Path, swept: Path, tmp_path: Path
) -> None:
    hint = "must be an empty or a new folder (give --resume to continue its sweep)"
    assert stcsim("sweep", study, "--out", swept).err == f"{swept}: {hint}\n"
    other = stcsim("sweep", study, "--out", swept, "--resume", "--set", "check_tiles=2", "--jobs", "1")
    assert other.status == 2
    assert other.err.startswith(f"{swept}: must belong to this very study: small here has other points")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    ended = stcsim("sweep", study, "--out", tmp_path / "notes", "--resume")
    assert (
        ended.err
        == f"{tmp_path / 'notes'}: must be the folder of a sweep to be resumed (no results.sqlite in it)\n"
    )
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["mine.txt"]


def test_results_of_another_model_version_are_never_mixed(
    stcsim: Run, study: Path, swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stcsim.sweep.MODEL_VERSION", 999)
    ended = stcsim("sweep", study, "--out", swept, "--resume", "--jobs", "1")
    assert ended.status == 2
    assert "must hold results of model version 999, not " in ended.err
    assert "versions are never mixed" in ended.err


def test_a_dry_run_lists_the_points_and_writes_nothing(stcsim: Run, study: Path, tmp_path: Path) -> None:
    ended = stcsim("sweep", study, "--dry-run", "--out", tmp_path / "dry")
    assert ended.status == 0
    assert ended.out.splitlines()[-1] == "6 points of 2 layers: 12 runs"
    assert not (tmp_path / "dry").exists()


def test_explain_lists_points_time_memory_and_assumptions(stcsim: Run, study: Path) -> None:
    out = stcsim("explain", study).out
    assert "point 5: dstc-v100 with spwmma_128x128x32, machine.tensor_core.accumulator.tiles = 8" in out
    assert "12 runs, about " in out
    assert "MiB" in out
    assert "volta.yaml: scheduler = gto" in out


ERRORS = [
    ("path: machine.tensor_core.accumulator.tiles", "path: machine.tensor_core.accumulator.tles",
     "{study}:10: axes.0.path: must be the path of a parameter of a machine of the study, "
     "not machine.tensor_core.accumulator.tles (did you mean machine.tensor_core.accumulator.tiles?)"),
    ("path: machine.tensor_core", "path: machin.tensor_core",
     "{study}:10: axes.0.path: must start with one of machine, kernel, workloads, dtype, adapt, sparse_side, "
     "engine, level, check_tiles, not machin.tensor_core.accumulator.tiles"),
    ("values: [4, 8]", "range: {first: 4, last: 2}",
     "{study}:10: axes.0.range.last: must be at least first (4), not 2"),
    ("values: [4, 8]", "values: [4, 4]", "{study}:10: axes.0.values.1: must differ from the values before it, not 4"),
    ("values: [4, 8]", "values: [4, 8], only: [dstc]",
     "{study}:10: axes.0.only.0: must be a machine or kernel of the study (dstc-v100, hmma884_128x128x32, "
     "spwmma_128x128x32, v100), not dstc"),
    ("check_tiles: 1", "constraints: [{left: machine.smss, compare: at_least, right: 4}]",
     "{study}:8: constraints.0.left: must be the path of a parameter of the study, not machine.smss "
     "(did you mean machine.sms?)"),
    ("check_tiles: 1", "cost: kernel.stages",
     "{study}:8: cost: must be the path of an axis (machine.tensor_core.accumulator.tiles, "
     "workloads.*.a.pattern.density), not kernel.stages"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), ERRORS, ids=[new[:30] for _, new, _ in ERRORS])
def test_a_fault_of_an_axis_is_one_line_and_nothing_is_written(
    stcsim: Run, study: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    study.write_text(STUDY.replace(old, new, 1))
    ended = stcsim("sweep", study, "--out", tmp_path / "none")
    assert ended.status == 2
    assert ended.err.splitlines()[0].startswith(message.format(study=study))
    assert not (tmp_path / "none").exists()


def test_run_on_a_study_with_axes_gives_the_rows_of_the_sweep(
    stcsim: Run, study: Path, swept: Path, tmp_path: Path
) -> None:
    ended = stcsim("run", study, "--out", tmp_path / "ran", "--threads", "1")
    assert ended.status == 0, ended.err
    assert (tmp_path / "ran" / "results.csv").read_text() == export(stcsim, swept)
    assert stcsim("replay", tmp_path / "ran").out == "12 results the same, 0 different\n"


def test_query_chooses_rows_columns_and_order(stcsim: Run, swept: Path) -> None:
    ended = stcsim(
        "results", "query", swept, "--where", "machine=dstc-v100", "--where", "workload=second", "--sort=-cycles",
        "--columns", "point,cycles", "--top", "2",
    )  # fmt: skip
    header, *lines = [line.split("\t") for line in ended.out.splitlines()]
    assert header == ["point", "cycles"]
    assert {line[0] for line in lines} == {"1", "4"}
    ended = stcsim("results", "query", swept, "--columns", "speedup")
    assert ended.status == 2
    assert "not speedup (did you mean speed_up?)" in ended.err


def test_json_holds_every_result_whole(stcsim: Run, swept: Path, tmp_path: Path) -> None:
    assert stcsim("results", "export", swept, "--format", "json", "-o", tmp_path / "all.json").status == 0
    document = json.loads((tmp_path / "all.json").read_text())
    assert len(document["rows"]) == 12
    assert all(sum(row["result"]["stalls"].values()) > 0 for row in document["rows"])


def test_diff_names_the_runs_whose_cycles_differ(
    stcsim: Run, study: Path, swept: Path, tmp_path: Path
) -> None:
    assert stcsim("results", "diff", swept, swept).out.endswith(
        f"0 differ, 0 only in {swept}, 0 only in {swept}\n"
    )
    other = tmp_path / "other"
    latency = "machine.tensor_core.instructions.OHMMA.latency_cycles=40"
    assert stcsim("sweep", study, "--out", other, "--jobs", "1", "--set", latency).status == 0
    ended = stcsim("results", "diff", swept, other)
    assert ended.status == 1
    assert ended.out.splitlines()[-1].startswith("4 runs equal, 8 differ")


def test_replay_gives_the_same_results_and_notices_another(stcsim: Run, swept: Path) -> None:
    assert stcsim("replay", swept, "--point", "3").out == "2 results the same, 0 different\n"
    with sqlite3.connect(swept / "results.sqlite") as store:
        store.execute("UPDATE results SET content = replace(content, '\"cycles\": ', '\"cycles\": 9')")
    store.close()
    ended = stcsim("replay", swept, "--point", "3")
    assert ended.status == 1
    assert "point 3, first: cycles 9" in ended.out


def test_a_report_has_its_plots_and_is_the_same_every_time(stcsim: Run, swept: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert stcsim("report", swept, "-o", tmp_path / name).status == 0
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    stems = ["cycle_breakdown", "pareto", "roofline", "speed_up", "tornado", "utilization"]
    assert names == sorted(
        ["README.md", *(f"{stem}.{kind}" for stem in stems for kind in ("csv", "png", "svg"))]
    )
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    page = (tmp_path / "one" / "README.md").read_text()
    assert "Baseline: v100 with hmma884_128x128x32." in page
    assert all(f"({stem}.png)" in page for stem in stems)


def test_no_layer_stands_above_a_roof(stcsim: Run, root: Path, tmp_path: Path) -> None:
    study = root / "configs" / "studies" / "quickstart.yaml"
    for level in ("gpu", "sm"):
        assert stcsim("sweep", study, "--out", tmp_path / level, "--set", f"level={level}").status == 0
        assert stcsim("report", tmp_path / level, "-o", tmp_path / f"{level}-report").status == 0
        with (tmp_path / f"{level}-report" / "roofline.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 12
        for row in rows:
            rate = float(row["useful_tmacs_per_second"])
            assert rate <= float(row["peak_tmacs_per_second"])
            if level == "gpu":
                assert rate <= float(row["useful_macs_per_byte"]) * float(row["l2_tbytes_per_second"])
        page = (tmp_path / f"{level}-report" / "README.md").read_text()
        assert ("there is no memory roof" in page) == (level == "sm")
        assert {row["dram_tbytes_per_second"] != "" for row in rows} == {level == "gpu"}


def test_reports_and_exports_of_no_sweep_are_told(stcsim: Run, tmp_path: Path) -> None:
    for words in (
        ["report", tmp_path],
        ["results", "export", tmp_path],
        ["results", "diff", tmp_path, tmp_path],
    ):
        ended = stcsim(*words)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err == f"{tmp_path}: must be the folder of a sweep (no results.sqlite in it)\n"


def test_the_commands_of_the_tutorial_run_as_they_stand(
    stcsim: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (root / "docs" / "tutorial.md").read_text(encoding="utf-8")
    study = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    found = re.findall(r"^    stcsim (.*?)(?:  +#.*)?$", text, re.MULTILINE)
    assert study is not None
    assert [command.split()[0] for command in found] == [
        "explain",
        "sweep",
        "sweep",
        "results",
        "results",
        "report",
    ]
    monkeypatch.chdir(tmp_path)
    Path("sweep.yaml").write_text(study[1])
    for command in found:
        ended = stcsim(*shlex.split(command))
        assert ended.status == 0, f"{command}: {ended.err}"
    assert Path("out.csv").is_file()
    assert Path("out/report/speed_up.png").is_file()


def test_results_that_lack_a_number_are_told_and_not_guessed(stcsim: Run, swept: Path) -> None:
    with sqlite3.connect(swept / "results.sqlite") as store:
        store.execute("UPDATE results SET content = replace(content, '\"cycles\": ', '\"cicles\": ')")
    store.close()
    ended = stcsim("results", "export", swept)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("result: must hold results of this version of stcsim, not of ")
