"""stcsim import: other tools' files with the right MACs, or refused in one line; what is written runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_models import SMALL_CNN_MACS, small_cnn
from stcsim.config.loader import load
from stcsim.config.study import Study
from stcsim.config.validation import validate
from stcsim.errors import StcsimError
from stcsim.importing import understand
from stcsim.workload.imported import Imported

Run = Callable[..., Any]

CONV = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,"


def topology(folder: Path, text: str, **options: Any) -> Imported:
    path = folder / "t.csv"
    path.write_bytes(text.encode())
    return understand(path, **options)


def refusal(folder: Path, text: str, name: str = "t.csv", **options: Any) -> str:
    path = folder / name
    path.write_bytes(text.encode())
    with pytest.raises(StcsimError) as caught:
        understand(path, **options)
    return str(caught.value).replace(f"{path}:", "")


# --- SCALE-Sim -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Layer Name, M, N, K,\nTest 1, 256, 128, 256,",
        "Layer Name, M, N, K\nTest 1, 256, 128, 256",
        "Layer,M,N,K,\r\nTest 1,256,128,256,\r\n\r\n,,,,\r\n",
        "\ufeffLayer Name, K, M, N, Sparsity\nTest 1, 256, 256, 128, 1:1\n",
        "a table of products,,,\nLayer Name, M, N, K,Note\nfirst part,,,,\nTest 1, 256, 128, 256, why\n",
    ],
)
def test_products_are_told_from_convolutions_by_their_header(tmp_path: Path, text: str) -> None:
    found = topology(tmp_path, text)
    (layer,) = found.layers
    assert (layer.name, layer.macs_total) == ("Test 1", 8_388_608)
    assert "products" in found.kind


def test_a_trailing_comma_changes_nothing(tmp_path: Path) -> None:
    with_comma, without = (
        topology(tmp_path, f"Layer Name, M, N, K, Sparsity,\nA,16,8,32,2:4{end}\n") for end in (",", "")
    )
    assert with_comma == without
    (layer,) = without.layers
    assert layer.b == {"pattern": {"generator": "nm", "n": 2, "m": 4}}


def test_a_name_changes_nothing(tmp_path: Path) -> None:
    rows = [f"{CONV}\n{name},8,8,3,3,4,8,1,\n" for name in ("DPN1", "plain")]
    one, other = (topology(tmp_path, text).layers for text in rows)
    assert [layer.macs_total for layer in one] == [10_368]
    assert one[0].sizes == other[0].sizes


def test_only_whole_windows_are_counted_and_the_other_count_is_told(tmp_path: Path) -> None:
    found = topology(tmp_path, f"{CONV}\na,8,8,3,3,1,8,3,\nb,7,10,3,3,1,8,2,\n")
    assert [layer.macs_total for layer in found.layers] == [288, 864]
    assert any("SCALE-Sim counts it (ceil), 1,728 MACs in all" in note for note in found.notes)


@pytest.mark.parametrize(
    ("row", "macs"),
    [
        ("a,224,224,7,7,3,64,2", 112 * 112 * 64 * 147),
        ("a,56,56,3,3,64,64,1", 115_605_504),
        ("a,56,56,2,2,64,64,1", 56 * 56 * 64 * 256),
        ("a,55,55,2,2,1,1,2", 28 * 28 * 4),
        ("a,7,7,7,7,512,4096,1", 7 * 7 * 512 * 4096),
        ("a,56,56,1,1,64,64,1", 56 * 56 * 64 * 64),
    ],
)
def test_same_padding_gives_a_quotient_rounded_up(tmp_path: Path, row: str, macs: int) -> None:
    (layer,) = topology(tmp_path, f"{CONV}\n{row},\n", same_padding=True).layers
    assert layer.macs_total == macs


def test_one_filter_over_channels_must_be_explained(tmp_path: Path) -> None:
    text = f"{CONV}\ndw,114,114,3,3,32,1,1,\n"
    assert refusal(tmp_path, text) == (
        "2: num filter: must say what one filter over 32 channels is, since the format cannot: give --single-filter "
        "depthwise (a filter for each channel) or dense (one output channel), not 1"
    )
    assert topology(tmp_path, text, single_filter="depthwise").macs_total == 3_612_672
    assert topology(tmp_path, text, single_filter="dense").macs_total == 3_612_672


def test_a_depthwise_layer_has_an_output_for_each_channel(tmp_path: Path) -> None:
    text = f"{CONV}\ndw,114,114,3,3,32,1,1,\n"
    depthwise, dense = (
        topology(tmp_path, text, single_filter=kind).layers[0].sizes for kind in ("depthwise", "dense")
    )
    assert (depthwise.k, depthwise.groups) == (32, 32)  # type: ignore[union-attr]
    assert (dense.k, dense.groups) == (1, 1)  # type: ignore[union-attr]


@pytest.mark.parametrize("sparsity", ["50%", "50", "0.5", "sparse", "5:4", "0:4", "2/4"])
def test_sparsity_that_could_mean_two_things_is_refused(tmp_path: Path, sparsity: str) -> None:
    assert refusal(tmp_path, f"Layer Name, M, N, K, Sparsity\nA,16,8,32,{sparsity}\n") == (
        "2: sparsity: must be N:M, N of each M weights kept (2:4 keeps half of them, 1:1 all); a share or a "
        f"percentage could mean what is kept or what is zero, not {sparsity}"
    )


def test_a_ragged_last_group_is_told(tmp_path: Path) -> None:
    found = topology(tmp_path, "Layer Name, M, N, K, Sparsity\nA,16,8,30,2:4\n")
    assert "A: K = 30 is not a multiple of 4: its last group holds 2 weights" in found.notes


def test_layers_of_one_name_are_told_apart(tmp_path: Path) -> None:
    found = topology(tmp_path, "Layer Name, M, N, K\nA,1,2,3\nA,4,5,6\n")
    assert [layer.name for layer in found.layers] == ["A", "A#2"]
    assert "a second A is called A#2" in found.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", " must hold something, but is empty"),
        ("A,1,2,3\n", "1: must have a header row first: layer name, ifmap height, ifmap width, filter height, filter "
         "width, channels, num filter, strides, or layer name, M, N, K"),
        ("just words\n", "1: must have a header row: layer name, IFMAP height, ... or layer name, M, N, K"),
        ("Layer Name, M, N, K\n", "1: must have a row for each layer below its header"),
        ("Layer Name, M, N, K\nA,1,x,3\n", "2: n: must be a whole number of 1 or more, not x"),
        ("Layer Name, M, N, K\nA,1,2\n", "2: k: must be a whole number of 1 or more, not nothing"),
        ("Layer Name, M, N, K\nA,1,2,0\n", "2: k: must be a whole number of 1 or more, not 0"),
        ("Layer Name, M, N, K\nA,1,2,3,2:4\n",
         "2: must stand in a column called Sparsity, not in one without a name: 2:4"),
        (f"{CONV}\na,2,2,3,3,1,1,1,\n",
         "2: r: must leave a filter that fits into the padded map's 2 rows, not 3 (it spans 3)"),
        (f"{CONV}\na,8,8,3,3,1,1,0,\n", "2: strides: must be a whole number of 1 or more, not 0"),
        (CONV.replace("Channels, ", ""), "1: must have the columns channels"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_topology_is_told_with_line_and_column(
    tmp_path: Path, text: str, message: str
) -> None:
    assert refusal(tmp_path, text).splitlines()[0] == message


# --- Timeloop ------------------------------------------------------------------------------------

GEMM = """
problem:
  version: 0.4
  shape:
    name: GEMM
    dimensions: [M, N, K]
    {spaces}:
      - {{name: A, projection: [[[M]], [[K]]]}}
      - {{name: B, projection: [[[N]], [[K]]]}}
      - {{name: Z, projection: [[[M]], [[N]]], {written}: true}}
  instance: {{M: 512, N: 1024, K: 256{more}}}
"""
CNN = """
problem:
  shape: cnn-layer
  R: 3
  S: 3
  P: 56
  Q: 28
  C: 64
  K: 32
  N: 2
  Wstride: 1
  Hstride: 2
"""
GROUPED = """
problem:
  shape:
    dimensions: [C, M, R, S, N, E, F, G]
    coefficients: [{name: Wstride, default: 1}, {name: Hstride, default: 1}]
    data_spaces:
      - {name: Weights, projection: "[G][C][M][R][S]"}
      - {name: Inputs, projection: "[N][G][C][R + E*Hstride][S + F*Wstride]"}
      - {name: Outputs, projection: "[N][G][M][E][F]", read_write: true}
  instance: {C: 1, M: 1, R: 3, S: 3, N: 1, E: 112, F: 112, G: 32}
"""


def problem(folder: Path, text: str) -> Imported:
    path = folder / "p.yaml"
    path.write_text(text)
    return understand(path)


@pytest.mark.parametrize(
    ("spaces", "written"), [("data_spaces", "read_write"), ("data-spaces", "read-write")]
)
def test_a_product_is_read_in_old_and_new_spelling(tmp_path: Path, spaces: str, written: str) -> None:
    more = ", densities: {A: 0.25, B: {distribution: hypergeometric, density: 0.5}, Z: 1.0}"
    found = problem(tmp_path, GEMM.format(spaces=spaces, written=written, more=more))
    (layer,) = found.layers
    assert (layer.macs_total, layer.name) == (512 * 1024 * 256, "p")
    assert layer.a == {"pattern": {"generator": "uniform", "density": 0.25}}
    assert layer.b == {"pattern": {"generator": "uniform", "density": 0.5}}
    assert (layer.role_a, layer.role_b) == ("activation", "weight")
    assert found.notes == ("the density of Z is left aside: it follows from the operands",)


def test_a_shape_that_timeloop_knows_by_name_is_read(tmp_path: Path) -> None:
    (layer,) = problem(tmp_path, CNN).layers
    sizes: Any = layer.sizes
    assert layer.macs_total == 2 * 56 * 28 * 32 * 64 * 9
    # The shape says that P goes with Wstride, Q with Hstride.
    assert (sizes.stride, sizes.h, sizes.w) == ((1, 2), 58, 57)


def test_groups_are_a_dimension_of_all_spaces(tmp_path: Path) -> None:
    (layer,) = problem(tmp_path, GROUPED).layers
    sizes: Any = layer.sizes
    assert (layer.macs_total, sizes.groups, sizes.c, sizes.k) == (3_612_672, 32, 32, 32)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GEMM.format(spaces="data_spaces", written="read_write", more=", densities: {A: 50}"),
         "11: problem.instance.densities.A: must be a density from 0 to 1, the share that is not zero, not 50"),
        (GEMM.format(spaces="data_spaces", written="read_write", more=", densities: {A: 50%}"),
         "11: problem.instance.densities.A: must be a density from 0 to 1, the share that is not zero, not 50%"),
        (GEMM.format(spaces="data_spaces", written="read_write", more=", L: 3"),
         "11: problem.instance.L: must be a known dimension or coefficient (K, M, N), not L"),
        (GEMM.format(spaces="data_spaces", written="read_write",
                     more=", densities: {A: {distribution: banded, density: 0.1}}"),
         "11: problem.instance.densities.A.distribution: must be one of hypergeometric, uniform, fixed_structured, "
         "fixed-structured, not banded"),
        (CNN.replace("  R: 3\n", ""), "2: problem.R: must be a whole number of 1 or more, not nothing"),
        (CNN.replace("Hstride: 2", "Hstride: 0"), "12: problem.Hstride: must be a whole number of 1 or more, not 0"),
        (CNN.replace("cnn-layer", "my_shape.yaml"),
         "3: problem.shape: must be written out, or be cnn-layer, not my_shape.yaml"),
        ("problem:\n  <<<: {{include_text('../problem_base.yaml')}}\n",
         "2: must be plain YAML: write out what Timeloop's templates include"),
        ("architecture:\n  version: 0.4\n", "1: problem: must be a mapping, not nothing"),
        ("- id: 0\n  operator_type: Conv\n",
         "2: must be a Timeloop problem: ZigZag workloads are not imported; write the layers in a study"),
        ("problem: [\n", None),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_problem_is_one_line(tmp_path: Path, text: str, message: str | None) -> None:
    found = refusal(tmp_path, text, "p.yaml")
    assert "\n" not in found
    assert message is None or found == message


# --- the command ---------------------------------------------------------------------------------


def test_what_is_written_runs_and_is_a_network_of_another_study(stcsim: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"{CONV}\n1e9,8,8,3,3,4,8,1,\non,8,8,3,3,8,8,1,\n'x: y',8,8,1,1,8,8,1,\n")
    ended = stcsim("import", tmp_path / "t.csv", "-o", tmp_path / "w.yaml")
    assert ended.status == 0, ended.err
    assert "total" not in ended.out
    assert ended.out.splitlines()[-1].startswith(
        "SCALE-Sim topology of convolutions: 3 layers, 35,200 MACs; written"
    )
    results = json.loads(stcsim("run", tmp_path / "w.yaml", "--json").out)["results"]
    assert [one["workload"] for one in results[::2]] == ["1e9", "on", "'x: y'"]
    assert sum(one["macs_total"] for one in results[::2]) == 35_200
    (tmp_path / "s.yaml").write_text(
        "name: s\nmachines: [{machine: dstc-v100}]\nworkloads:\n"
        "  - {name: net, network: w.yaml, layers: [on], sparsity: {weight: 0.25, activation: 0.5}}\n"
    )
    ended = stcsim("run", tmp_path / "s.yaml", "--json")
    assert ended.status == 0, ended.err
    (one,) = json.loads(ended.out)["results"]
    assert (one["workload"], one["macs_total"]) == ("net/on", 20_736)
    assert one["density_b"] == pytest.approx(0.25)


def test_a_file_without_sparsity_keeps_its_own_as_a_network(stcsim: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Layer Name, M, N, K, Sparsity\nA,16,8,32,2:4\n")
    assert stcsim("import", tmp_path / "t.csv", "-o", tmp_path / "w.yaml").status == 0
    (tmp_path / "s.yaml").write_text(
        "name: s\nmachines: [{machine: dstc-v100}]\nworkloads: [{name: net, network: w.yaml}]\n"
    )
    (one,) = json.loads(stcsim("run", tmp_path / "s.yaml", "--json").out)["results"]
    assert (one["density_a"], one["density_b"]) == (1.0, 0.5)


@pytest.mark.parametrize("suffix", [".smtx", ".mtx", ".npy"])
def test_a_matrix_is_the_weight_of_a_product(stcsim: Run, tmp_path: Path, suffix: str) -> None:
    matrix = tmp_path / f"m{suffix}"
    if suffix == ".smtx":
        matrix.write_text("2, 4, 3\n0 2 3\n0 3 1\n")
    elif suffix == ".mtx":
        matrix.write_text("%%MatrixMarket matrix coordinate pattern general\n2 4 3\n1 1\n1 4\n2 2\n")
    else:
        np.save(matrix, np.array([[1, 0, 0, 1], [0, 1, 0, 0]]))
    ended = stcsim("import", matrix, "--columns", "16", "-o", tmp_path / "w.yaml")
    assert ended.status == 0, ended.err
    assert "2 x 4, 3 non-zeros, density 0.375" in ended.out
    results = json.loads(stcsim("run", tmp_path / "w.yaml", "--json").out)["results"]
    assert {(one["macs_total"], one["macs_useful"]) for one in results} == {(128, 48)}
    assumed = stcsim("import", matrix).out
    assert "128 dense columns are assumed, --columns gives others" in assumed


def test_a_graph_is_imported_and_runs(stcsim: Run, tmp_path: Path) -> None:
    small_cnn(tmp_path / "m.onnx", batch="N")
    ended = stcsim("import", tmp_path / "m.onnx", "--input-shape", "x=1,3,12,10", "-o", tmp_path / "w.yaml")
    assert ended.status == 0, ended.err
    assert f"ONNX graph: 3 layers, {SMALL_CNN_MACS:,} MACs" in ended.out
    study = validate(Study, load(tmp_path / "w.yaml"))
    assert [one.name for one in study.workloads] == ["stem/conv", "stem/depthwise", "head"]
    assert stcsim("explain", tmp_path / "w.yaml").status == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.pdf", "must be a file that ends in .onnx, .csv, .yaml, .yml, .smtx, .mtx, .npy, not .pdf"),
        (
            "x.npz",
            "must be named in a study (trace: FILE, or file: and key:): an archive of bitmaps is not imported",
        ),
        ("x.csv", "must be a file that exists"),
        ("x.onnx", "must be a file that exists"),
    ],
)
def test_what_cannot_be_imported_is_one_line_and_nothing_is_written(
    stcsim: Run, tmp_path: Path, name: str, message: str
) -> None:
    ended = stcsim("import", tmp_path / name, "-o", tmp_path / "w.yaml")
    assert (ended.status, ended.err) == (2, f"{tmp_path / name}: {message}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_kept(stcsim: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Layer Name, M, N, K\nA,16,8,32\n")
    (tmp_path / "w.yaml").write_text("precious")
    ended = stcsim("import", tmp_path / "t.csv", "-o", tmp_path / "w.yaml")
    assert (ended.status, ended.err) == (2, f"{tmp_path / 'w.yaml'}: must be a new file (or give --force)\n")
    assert stcsim("import", tmp_path / "t.csv", "-o", tmp_path / "w.yaml", "--force").status == 0


EXAMPLES = {
    "scalesim__GEMM_mnk__test_mnk_input.csv": 8_388_608,
    "scalesim__GEMM_mnk__gpt2.csv": 20_686_307_328,
    "scalesim__conv_nets__alexnet.csv": 801_320_064,
    "scalesim__conv_nets__Resnet18.csv": 1_438_384_832,
    "scalesim__conv_nets__Resnet50.csv": 3_409_810_112,
    "scalesim__sparsity__conv.csv": 972,
    "scalesim__sparsity__gemm.csv": 320,
    "timeloop__AlexNet_layer1.yaml": 105_415_200,
    "zigzag__resnet18.yaml": None,
    "zigzag__gemm_layer.yaml": None,
}
"""MACs of others' own files; None: refused in one line."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_imported_or_refused(
    stcsim: Run, tmp_path: Path, shared_data: Path, name: str
) -> None:
    macs = EXAMPLES[name]
    file = shared_data / "data" / "workloads" / "examples" / name
    ended = stcsim("import", file, "-o", tmp_path / "w.yaml")
    if macs is None:
        assert ended.status == 2
        assert len(ended.err.splitlines()) == 1
    else:
        assert ended.status == 0, ended.err
        assert f"{macs:,} MACs" in ended.out.splitlines()[-1]
        validate(Study, load(tmp_path / "w.yaml"))


def test_resnet18_with_its_padding_has_its_published_macs(shared_data: Path) -> None:
    file = shared_data / "data" / "workloads" / "examples" / "scalesim__conv_nets__Resnet18.csv"
    assert understand(file, same_padding=True).macs_total == 1_814_073_344
