"""stcsim trace: capture a model of the user's own, look at the trace, run it in a study."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_models import SMALL_CNN_MACS, node, onnx, save, small_cnn
from stcsim.workload.trace import Trace

runtime = pytest.importorskip("onnxruntime")

Run = Callable[..., Any]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return small_cnn(tmp_path / "cnn.onnx")


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    images = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    images.fromarray(pixels).save(tmp_path / "p.png")
    return tmp_path / "p.png"


def test_a_capture_holds_what_the_model_computes(stcsim: Run, model: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(3).standard_normal((1, 3, 12, 10)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "t.npz"
    ended = stcsim("trace", "capture", model, "--input", tmp_path / "x.npy", "--values", "-o", out)
    assert ended.status == 0, ended.err
    assert f"{SMALL_CNN_MACS:,}" in ended.out
    trace = Trace(out)
    assert trace.meta.model == "cnn"
    stem, depthwise, head = trace.layers
    loaded = onnx.load(model)
    weights = {one.name: onnx.numpy_helper.to_array(one) for one in loaded.graph.initializer}
    loaded.graph.output.extend(onnx.ValueInfoProto(name=name) for name in ("r1", "r2"))
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(
        loaded.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    r1, r2 = session.run(["r1", "r2"], {"x": x})
    np.testing.assert_array_equal(trace.values(stem, "a"), x.reshape(3, 120))
    np.testing.assert_allclose(trace.values(depthwise, "a"), r1.reshape(8, 60), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(trace.pattern(depthwise, "a").mask(), (r1 > 0).reshape(8, 60))
    np.testing.assert_allclose(trace.values(head, "a"), r2.reshape(1, 480), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(trace.values(stem, "b"), weights["w1"].reshape(8, 27))
    np.testing.assert_array_equal(trace.values(head, "b"), weights["w3"].T)
    assert depthwise.conv2d is not None
    assert depthwise.conv2d.groups == 8


def brute_force(trace: Trace) -> int:
    """Return the effectual MACs of the first layer, one multiplication at a time."""
    (layer,) = trace.layers
    sizes: Any = layer.conv2d
    x = trace.pattern(layer, "a").mask().reshape(sizes.c, sizes.h, sizes.w)
    w = trace.pattern(layer, "b").mask().reshape(sizes.k, sizes.c, sizes.r, sizes.s)
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    count = 0
    for p in range(6):
        for q in range(10):
            count += int((padded[:, 2 * p : 2 * p + 3, q : q + 3] & w).sum())
    return count


def test_effectual_macs_are_exact(stcsim: Run, model: Path, tmp_path: Path) -> None:
    x = np.maximum(np.random.default_rng(3).standard_normal((1, 3, 12, 10)), 0).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "t.npz"
    ended = stcsim(
        "trace", "capture", model, "--input", f"x={tmp_path / 'x.npy'}", "--layers", "stem/c*",
        "--prune", "magnitude:0.6", "--name", "mine", "-o", out,
    )  # fmt: skip
    assert ended.status == 0, ended.err
    found = json.loads(stcsim("trace", "info", out, "--json").out)
    assert found["model"] == "mine"
    assert [layer["name"] for layer in found["layers"]] == ["stem/conv"]
    assert found["macs_total"] == 60 * 8 * 27
    assert found["macs_useful"] == brute_force(Trace(out))
    assert found["layers"][0]["density_b"] == pytest.approx(round(0.4 * 216) / 216)
    assert "NOT retrained" in found["provenance"]["pruning"]
    assert found["file_bytes"] == out.stat().st_size


def test_the_same_seed_gives_the_same_bytes(stcsim: Run, model: Path, tmp_path: Path) -> None:
    for name, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        ended = stcsim("trace", "capture", model, "--random", seed, "-o", tmp_path / f"{name}.npz")
        assert ended.status == 0, ended.err
    contents = [(tmp_path / f"{name}.npz").read_bytes() for name in "abc"]
    assert contents[0] == contents[1] != contents[2]


@pytest.mark.parametrize(
    ("way", "low", "high"), [("imagenet", -2.2, 2.7), ("unit", 0, 1), ("caffe", -124, 152)]
)
def test_a_picture_is_prepared(
    stcsim: Run, tmp_path: Path, picture: Path, way: str, low: float, high: float
) -> None:
    model = small_cnn(tmp_path / "m.onnx", batch="N")  # a picture is a batch of one
    out = tmp_path / "t.npz"
    ended = stcsim("trace", "capture", model, "--input", picture, "--prepare", way, "--values", "-o", out)
    assert ended.status == 0, ended.err
    trace = Trace(out)
    values = trace.values(trace.layers[0], "a")
    assert values is not None
    assert values.shape == (3, 120)
    assert low <= values.min() < values.max() <= high
    assert f"p.png, {way}" in ended.out


def test_weights_behind_other_operators_are_recorded_and_pruned(stcsim: Run, tmp_path: Path) -> None:
    weights = np.arange(1, 25, dtype=np.float32).reshape(6, 4)
    path = save(
        tmp_path / "m.onnx",
        [
            node("Constant", [], ["k"], value=onnx.numpy_helper.from_array(weights)),
            node("Identity", ["k"], ["i"]),
            node("Transpose", ["i"], ["t"], perm=[1, 0]),
            node("MatMul", ["x", "t"], ["y"], name="mm"),
        ],
        {"x": [2, 4]},
        {},
    )
    out = tmp_path / "t.npz"
    ended = stcsim(
        "trace", "capture", path, "--random", "0", "--prune", "magnitude:0.5", "--values", "-o", out
    )
    assert ended.status == 0, ended.err
    trace = Trace(out)
    np.testing.assert_array_equal(trace.values(trace.layers[0], "b"), np.where(weights.T > 12, weights.T, 0))


def test_quantised_operators_are_listed_with_their_macs(stcsim: Run, tmp_path: Path) -> None:
    path = save(
        tmp_path / "m.onnx",
        [
            node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            node("MatMulInteger", ["q", "wq", "z"], ["i"], name="quantised"),
            node("MatMul", ["x", "w"], ["y"], name="plain"),
            node("ConvTranspose", ["image", "wt"], ["t"], name="up"),
        ],
        {"x": [2, 4], "image": [1, 3, 4, 4]},
        {
            "wq": np.ones((4, 6), np.uint8),
            "w": np.ones((4, 6), np.float32),
            "wt": np.ones((3, 2, 2, 2), np.float32),
        },
    )
    ended = stcsim("trace", "capture", path, "--random", "0", "-o", tmp_path / "t.npz")
    assert ended.status == 0, ended.err
    told = [line for line in ended.out.splitlines() if line.startswith("not in the trace")]
    assert told == [
        "not in the trace: quantised (MatMulInteger, 48 MACs): stcsim does not run this operator",
        "not in the trace: up (ConvTranspose, 384 MACs): stcsim does not run this operator",
    ]


def test_a_batched_product_of_activations_runs(stcsim: Run, tmp_path: Path) -> None:
    nodes = [node("Relu", ["q"], ["r"]), node("MatMul", ["r", "k"], ["y"], name="scores")]
    path = save(tmp_path / "m.onnx", nodes, {"q": [1, 4, 20, 8], "k": [1, 4, 8, 20]}, {})
    out = tmp_path / "t.npz"
    assert stcsim("trace", "capture", path, "--random", "0", "-o", out).status == 0
    found = study(stcsim, tmp_path, out)
    assert [(one["workload"], one["macs_total"]) for one in found] == [("net/scores", 4 * 20 * 20 * 8)]


def study(stcsim: Run, folder: Path, trace: Path, more: str = "") -> list[dict[str, Any]]:
    """Run a trace on the dual-side core and return its results."""
    text = f"name: s\nmachines: [{{machine: dstc-v100}}]\nworkloads:\n  - {{name: net, trace: {trace.name}{more}}}\n"
    (folder / "s.yaml").write_text(text)
    ended = stcsim("run", folder / "s.yaml", "--json")
    assert ended.status == 0, ended.err
    results: list[dict[str, Any]] = json.loads(ended.out)["results"]
    return results


def test_a_study_runs_the_layers_of_a_trace(stcsim: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.npz"
    assert (
        stcsim("trace", "capture", model, "--random", "0", "--prune", "magnitude:0.5", "-o", out).status == 0
    )
    account = {one["name"]: one for one in json.loads(stcsim("trace", "info", out, "--json").out)["layers"]}
    found = study(stcsim, tmp_path, out)
    assert [one["workload"] for one in found] == [f"net/{name}" for name in account]
    for one in found:
        layer = account[one["workload"].removeprefix("net/")]
        assert (one["macs_total"], one["macs_useful"]) == (layer["macs_total"], layer["macs_useful"])
        assert one["check"]["ok"] in (True, None)
        assert one["network"] == "net"
    (only,) = study(stcsim, tmp_path, out, ", layers: [head]")
    assert only["macs_useful"] == account["head"]["macs_useful"]


def test_a_kept_study_of_a_trace_gives_the_same_results(stcsim: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.npz"
    assert stcsim("trace", "capture", model, "--random", "0", "-o", out).status == 0
    (tmp_path / "s.yaml").write_text(
        "name: s\nmachines: [{machine: dstc-v100}]\nworkloads: [{name: net, trace: t.npz}]\n"
    )
    assert stcsim("run", tmp_path / "s.yaml", "--out", tmp_path / "first").status == 0
    assert stcsim("run", tmp_path / "first" / "study.yaml", "--out", tmp_path / "second").status == 0
    first, second = ((tmp_path / name / "results.csv").read_text() for name in ("first", "second"))
    assert first == second


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("{name: net, trace: t.npz, layers: [nose]}", "layers: must fit a layer of the trace, not nose"),
        (
            "{name: net, trace: u.npz}",
            "trace: must be a file, relative to the study's folder or to the shipped data",
        ),
        ("{name: net, trace: t.npz, network: resnet18}", "trace: must not be given beside network"),
        ("{name: net, trace: t.npz, sparsity: {weight: 0.5}}", "sparsity: must not be given beside trace"),
        ("{name: net, trace: t.npz, gemm: {m: 1, n: 1, k: 1}}", "gemm: must not be given beside trace"),
    ],
)
def test_a_study_is_told_what_is_wrong_with_its_trace(
    stcsim: Run, model: Path, tmp_path: Path, workload: str, message: str
) -> None:
    assert stcsim("trace", "capture", model, "--random", "0", "-o", tmp_path / "t.npz").status == 0
    (tmp_path / "s.yaml").write_text(
        f"name: s\nmachines: [{{machine: dstc-v100}}]\nworkloads:\n  - {workload}\n"
    )
    ended = stcsim("run", tmp_path / "s.yaml")
    assert ended.status == 2
    assert f"s.yaml:4: workloads.0.{message}" in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cnn.onnx", "-o", "t.npz"],
         "cnn.onnx: must have an input for x: give --input NAME=FILE, or --random SEED"),
        (["cnn.onnx", "--random", "0", "-o", "t.npy"], "t.npy: must end in .npz, not .npy"),
        (["cnn.onnx", "--random", "0", "--layers", "stem/konv", "-o", "t.npz"],
         "cnn.onnx: --layers must fit a layer of the model, which has 3, not stem/konv (did you mean stem/conv?)"),
        (["cnn.onnx", "--random", "0", "--prune", "0.8", "-o", "t.npz"],
         "--prune must be magnitude:SHARE, SHARE of each layer's weights set to zero, such as magnitude:0.8, not 0.8"),
        (["cnn.onnx", "--random", "0", "--prune", "magnitude:80", "-o", "t.npz"],
         "--prune must be magnitude:SHARE, SHARE of each layer's weights set to zero, such as magnitude:0.8, "
         "not magnitude:80"),
        (["cnn.onnx", "--input", "wrong.npy", "-o", "t.npz"],
         "wrong.npy: must be of the shape (1, 3, 12, 10) of x, not (3, 12, 10)"),
        (["cnn.onnx", "--input", "words.npy", "-o", "t.npz"],
         "words.npy: must be an array of booleans, integers or floats, not of the dtype <U3"),
        (["cnn.onnx", "--input", "whole.npy", "-o", "t.npz"], "whole.npy: must be an array of float32, not int64"),
        (["cnn.onnx", "--input", "cnn.onnx", "-o", "t.npz"],
         "cnn.onnx: must be a .npy array or a picture that can be read"),
        (["cnn.onnx", "--input", "gone.png", "-o", "t.npz"], "gone.png: must be a file that exists"),
        (["open.onnx", "--random", "0", "-o", "t.npz"],
         "open.onnx: x: must have a fixed shape, not (?, 3, 12, 10): give --input-shape x=1,3,12,10"),
        (["gone.onnx", "--random", "0", "-o", "t.npz"], "gone.onnx: must be a file that exists"),
    ],
)  # fmt: skip
def test_what_cannot_be_captured_is_one_line_and_leaves_nothing(
    stcsim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    small_cnn(tmp_path / "cnn.onnx")
    small_cnn(tmp_path / "open.onnx", batch="N")
    np.save("wrong.npy", np.zeros((3, 12, 10), np.float32))
    np.save("words.npy", np.array(["abc"]))
    np.save("whole.npy", np.zeros((1, 3, 12, 10), np.int64))
    before = sorted(tmp_path.iterdir())
    ended = stcsim("trace", "capture", *arguments)
    assert ended.status == 2
    (line,) = ended.err.splitlines()
    assert line.startswith(message)
    assert sorted(tmp_path.iterdir()) == before


def test_a_file_that_is_there_is_kept(stcsim: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.npz"
    out.write_text("precious")
    ended = stcsim("trace", "capture", model, "--random", "0", "-o", out)
    assert (ended.status, ended.err) == (2, f"{out}: must be a new file (or give --force)\n")
    assert out.read_text() == "precious"
    assert stcsim("trace", "capture", model, "--random", "0", "-o", out, "--force").status == 0


def test_a_missing_package_is_one_line(tmp_path: Path, model: Path) -> None:
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        f"sys.argv = ['stcsim', 'trace', 'capture', {str(model)!r}, '--random', '0', '-o', 't.npz']\n"
        "from stcsim.cli import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == "the package onnx must be installed: pip install 'stcsim[trace]'\n"


def test_info_refuses_what_is_not_a_trace(stcsim: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", x=np.zeros(3))
    ended = stcsim("trace", "info", tmp_path / "t.npz")
    assert ended.status == 2
    assert ended.err.startswith(
        f"{tmp_path / 't.npz'}: must be a trace: an archive whose meta has the format"
    )
