"""``stcsim run``, ``explain``, ``schema`` and ``list``: studies end to end, files whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stcsim.catalog import shipped

Run = Callable[..., Any]

STUDY = """\
name: small
machines:
  - machine: a100-sxm4-40gb
    kernels: [hmma16816_128x128x32, hmma_sp16832_128x128x64]
  - machine: dstc-v100
baseline: {machine: a100-sxm4-40gb, kernel: hmma16816_128x128x32}
adapt: prune
workloads:
  - name: first
    gemm: {m: 100, n: 64, k: 48}
    a: {role: activation, pattern: {generator: uniform, density: 0.4}}
    b: {role: weight, pattern: {generator: clustered, sparsity: 0.8}}
  - name: second
    a: {role: weight, file: weights.npy}
    b: {role: activation, file: pixels.npy, transpose: true}
"""


@pytest.fixture
def study(tmp_path: Path, rng: np.random.Generator) -> Path:
    np.save(tmp_path / "weights.npy", rng.random((40, 30)) < 0.3)
    np.save(tmp_path / "pixels.npy", rng.random((50, 30)) < 0.6)
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def without_provenance(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    assert set(data) == {"study", "results", "provenance"}
    del data["provenance"]
    return data


def test_a_study_prints_a_row_for_each_layer_machine_and_kernel(stcsim: Run, study: Path) -> None:
    ended = stcsim("run", study)
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()
    header = lines[0].split("\t")
    rows = [dict(zip(header, line.split("\t"), strict=True)) for line in lines[1:7]]
    assert [(row["workload"], row["machine"]) for row in rows] == [
        (name, machine)
        for name in ("first", "second")
        for machine in ("a100-sxm4-40gb", "a100-sxm4-40gb", "dstc-v100")
    ]
    assert rows[0]["speed-up"] == "1.00x (base)"
    # 100 x 64 on tiles of 32 x 32 and quanta of 8 x 16, transposed: rows 64, columns 100 = 3 tiles and 4.
    edges, zeros = rows[2]["edges x zeros"].removesuffix("x").split("x, ")
    assert float(edges) == pytest.approx(8 * 8 / (8 * 7), abs=0.006)
    assert float(zeros) > 1.5
    assert rows[0]["edges x zeros"] == "-"
    assert any("transposed: the weight stands on the sparse side (A)" in line for line in lines)
    assert any("adapted: prune, " in line for line in lines)
    assert any(line.startswith("cycles cover: whole GPU: ") for line in lines)


def test_the_output_folder_is_tidy_and_replays_to_the_same_bytes(
    stcsim: Run, study: Path, tmp_path: Path
) -> None:
    out, again = tmp_path / "out", tmp_path / "again"
    assert stcsim("run", study, "--out", out, "--set", "machine.clock=1.2GHz").status == 0
    assert sorted(path.name for path in out.iterdir()) == ["results.csv", "results.json", "study.yaml"]
    rows = list(csv.DictReader(io.StringIO((out / "results.csv").read_text())))
    assert len(rows) == 6
    assert {row["clock_hz"] for row in rows} == {"1200000000.0"}
    assert float(rows[0]["time_us"]) == pytest.approx(int(rows[0]["cycles"]) / 1200)
    # The expanded study lies elsewhere and still finds its files and its overrides.
    assert stcsim("run", out / "study.yaml", "--out", again).status == 0
    assert (again / "results.csv").read_bytes() == (out / "results.csv").read_bytes()
    assert (again / "study.yaml").read_bytes() == (out / "study.yaml").read_bytes()
    assert without_provenance((again / "results.json").read_text()) == without_provenance(
        (out / "results.json").read_text()
    )


def test_a_folder_that_holds_something_is_refused_without_force(
    stcsim: Run, study: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    ended = stcsim("run", study, "--out", out)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == f"{out}: must be an empty or a new folder (or give --force)\n"
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    assert stcsim("run", study, "--out", out, "--force").status == 0
    assert (out / "mine.txt").read_text() == "mine"
    assert (out / "results.csv").is_file()


def test_results_do_not_depend_on_names_order_or_threads(stcsim: Run, study: Path) -> None:
    base = without_provenance(stcsim("run", study, "--json").out)["results"]
    renamed = study.with_name("renamed.yaml")
    renamed.write_text(STUDY.replace("name: first", "name: DPN1"))
    other = without_provenance(stcsim("run", renamed, "--json", "--threads", "1").out)["results"]
    for row in (*base, *other):
        del row["workload"]
    assert other == base


def test_explain_lists_sizes_an_estimate_and_every_assumed_parameter(stcsim: Run, study: Path) -> None:
    ended = stcsim("explain", study)
    assert ended.status == 0, ended.err
    row = "first: 100 x 64 x 48 (307,200 MACs) on dstc-v100 with spwmma_128x128x32: 8 warp tiles of 32 x 32"
    assert row in ended.out
    assert "6 runs, about " in ended.out
    assert "dstc-v100.yaml: tensor_core.accumulator.tiles = 4: four 32x32 fp32 tiles" in ended.out
    changed = stcsim("explain", study, "--set", "machine.tensor_core.accumulator.tiles=8").out
    assert "tensor_core.accumulator.tiles = " not in changed.partition("# ASSUMED")[2]


def replace(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


ERRORS: list[tuple[Callable[[str], str], str]] = [
    (replace("machine: dstc-v100", "machine: dstc-v10"),
     f"{{study}}:5: machines.1.machine: must be a known machine ({', '.join(shipped('machine'))}), "
     "not dstc-v10 (did you mean dstc-v100?)"),
    (replace("workloads:", "wrkloads:"),
     "{study}:8: wrkloads: must be a known key (adapt, axes, baseline, check_tiles, constraints, cost, dtype, "
     "engine, level, machines, metrics, name, overrides, repetitions, sparse_side, summary, workloads), "
     "not wrkloads (did you mean workloads?)"),
    (replace("density: 0.4", "densty: 0.4"),
     "{study}:11: workloads.0.a.pattern.densty: must be a known key (density, sparsity), not densty "
     "(did you mean density?)"),
    (replace("sparsity: 0.8", "sparsity: 80%"),
     "{study}:12: workloads.0.b.pattern.sparsity: must be a fraction between 0 and 1, such as density: 0.3 or "
     "sparsity: 0.7, not 80% (did you mean 0.8?)"),
    (replace("sparsity: 0.8", "sparsity: 50"),
     "{study}:12: workloads.0.b.pattern.sparsity: must be a fraction between 0 and 1, such as density: 0.3 or "
     "sparsity: 0.7, not 50 (did you mean 0.5?)"),
    (replace("generator: clustered", "generator: clusterd"),
     "{study}:12: workloads.0.b.pattern.generator: must be a known generator "
     "(block, clustered, dense, feature_map, filters, nm, uniform), "
     "not clusterd (did you mean clustered?)"),
    (replace("file: weights.npy", "file: wieghts.npy"),
     "{study}:14: workloads.1.a.file: must be a file, relative to the study's folder or to the shipped data, "
     "not wieghts.npy"),
    (replace("transpose: true", "transpose: false"),
     "{study}:13: workloads.1: inner dimensions must agree: A is 40 x 30, B is 50 x 30"),
    (replace("kernel: hmma16816_128x128x32", "kernel: hmma16816_128x128"),
     "{study}:6: baseline.kernel: must be one that the study runs (hmma16816_128x128x32, hmma_sp16832_128x128x64), "
     "not hmma16816_128x128 (did you mean hmma16816_128x128x32?)"),
    (replace("adapt: prune", "adapt: prune\ndtype: int8"),
     "{study}:5: kernel spwmma_128x128x32 on dstc-v100: operand type must be one of fp16, not int8"),
    (replace("[hmma16816_128x128x32,", "[hmma16816_128x128x32, hmma884_128x128x32,"),
     "{study}:4: kernel hmma884_128x128x32: instructions: must be a known tensor instruction of a100-sxm4-40gb "
     "(HMMA.16816.F32, HMMA.16816.F32.BF16, HMMA.1688.F32.TF32, HMMA.SP.16832.F32, HMMA.SP.16832.F32.BF16, "
     "IMMA.16832.S8, IMMA.SP.16864.S8), not HMMA.884.F32.F32.STEP0 (did you mean HMMA.1688.F32.TF32?)"),
    (replace("adapt: prune", "adapt: prune\noverrides: [machine.tensor_core.accumulator.tiles=2]"),
     "{study}:5: machine dstc-v100: must fit one CTA of kernel spwmma_128x128x32 on an SM, "
     "but it takes 16 of 8 accumulator tiles"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "message"), ERRORS, ids=[message[8:48] for _, message in ERRORS])
def test_a_fault_of_the_study_is_one_line_with_file_line_and_path(
    stcsim: Run, study: Path, spoil: Callable[[str], str], message: str
) -> None:
    study.write_text(spoil(STUDY))
    ended = stcsim("run", study)
    assert ended.status == 2
    assert ended.out == ""
    assert message.format(study=study) in ended.err.splitlines()
    assert len(ended.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("override", "path", "end"),
    [
        # Only dstc-v100 has an accumulator buffer: it knows best what is wrong.
        (
            "machine.tensor_core.accumulator.tles=8",
            "tensor_core.accumulator.tles",
            "tles (did you mean tiles?)",
        ),
        ("machine.clok=1.2GHz", "clok", "clok (did you mean clock?)"),
        ("machine.clock=1.2GB", "clock", "1.2GB"),
        ("kernel.tile.m_ct=8", "tile.m_ct", "m_ct (did you mean m_cta?)"),
    ],
)
def test_an_override_that_no_machine_or_kernel_takes_is_one_line(
    stcsim: Run, study: Path, tmp_path: Path, override: str, path: str, end: str
) -> None:
    ended = stcsim("run", study, "--set", override, "--out", tmp_path / "none")
    assert (ended.status, ended.out) == (2, "")
    (line,) = ended.err.splitlines()
    assert line.startswith(f"--set {override}: {path}: must be ")
    assert line.endswith(f", not {end}")
    assert not (tmp_path / "none").exists()


def test_all_problems_are_told_at_once(stcsim: Run, study: Path) -> None:
    study.write_text(
        STUDY.replace("density: 0.4", "density: 4").replace("dstc-v100", "dstc").replace("weights", "w")
    )
    assert len(stcsim("run", study).err.splitlines()) == 3


@pytest.mark.parametrize("kind", ["study", "machine", "kernel"])
def test_schema_is_json_schema(stcsim: Run, kind: str) -> None:
    schema = json.loads(stcsim("schema", kind).out)
    assert "properties" in schema
    if kind == "machine":
        assert "accumulator" in json.dumps(schema)


@pytest.mark.parametrize(
    ("kind", "some"),
    [
        ("machines", ["v100", "a100-sxm4-40gb", "dstc-v100", "dstc-a100"]),
        ("kernels", ["spwmma_128x128x32", "hmma16816_128x128x32"]),
        ("formats", ["dense", "bitmap", "nm"]),
        ("lowerings", ["dense_inner", "nm_inner", "sparse_outer", "dense_outer"]),
        ("datapaths", ["inner_product", "nm_sparse", "outer_product"]),
        ("generators", ["dense", "uniform", "nm", "block", "clustered"]),
    ],
)
def test_list_names_each_with_a_summary(stcsim: Run, kind: str, some: list[str]) -> None:
    ended = stcsim("list", kind)
    assert ended.status == 0
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in ended.out.splitlines()}
    assert set(some) <= set(lines)
    assert all(len(summary) > 10 for summary in lines.values())


def test_an_unknown_command_names_the_nearest(stcsim: Run) -> None:
    ended = stcsim("rum")
    assert ended.status == 2
    assert ended.err.startswith("command must be one of run, sim, explain, ")
    assert ended.err.endswith(", isa, not rum (did you mean run?)\n")
