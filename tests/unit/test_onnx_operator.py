"""What ONNX operators multiply: sizes from shapes, with and without values; nothing is dropped."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnx_models import SMALL_CNN_MACS, node, onnx, save, small_cnn
from stcsim.config.trace import LeftOut
from stcsim.errors import WorkloadError
from stcsim.workload.import_onnx import read_model
from stcsim.workload.imported import Imported
from stcsim.workload.onnx_graph import OnnxGraph, OnnxOperator, parse_input_shape
from stcsim.workload.onnx_operator import OnnxLayer, understand
from stcsim.workload.operand_shape import macs_total
from stcsim.workload.product import CannotSay, Product, conv, gemm, matmul

LIGHT = {
    "bvlc_alexnet": 654_560_384, "densenet121": 2_834_161_664, "inception_v1": 1_431_556_352,
    "inception_v2": 2_018_851_840, "resnet50": 4_089_184_256, "shufflenet": 124_664_528,
    "squeezenet": 349_151_936, "vgg19": 19_632_062_464, "zfnet512": 1_481_727_008,
}  # fmt: skip
"""MACs of the graphs without weights that the package onnx carries; computed by hand of others."""


def light(name: str) -> Imported:
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return read_model(folder / f"light_{name}.onnx", {})


@pytest.mark.parametrize("name", LIGHT)
def test_the_light_graphs_have_their_macs(name: str) -> None:
    found = light(name)
    assert found.macs_total == LIGHT[name]
    assert found.left_out == ()
    assert {layer.role_b for layer in found.layers} == {"weight"}


def test_the_light_graphs_agree_with_the_recorded_table(shared_data: Path) -> None:
    with (shared_data / "data" / "workloads" / "onnx_light_models_expected.csv").open() as stream:
        rows = {row["file"]: row for row in csv.DictReader(stream)}
    for name in LIGHT:
        row = rows[f"light_{name}.onnx"]
        assert light(name).macs_total == int(row["macs_total"])
        assert len(light(name).layers) == int(row["n_conv"]) + int(row["n_gemm_matmul"])


# --- products against numpy ----------------------------------------------------------------------


def ones(product: Product, a: tuple[int, ...], b: tuple[int, ...], rng: np.random.Generator) -> Any:
    """Return tensors of small whole numbers and the operands that the product makes of them."""
    x, y = (rng.integers(-2, 3, shape).astype(float) for shape in (a, b))
    return x, y, *product.operands(x, y)


@pytest.mark.parametrize(
    ("a", "b", "macs"),
    [
        ((4, 5), (5, 6), 120),
        ((2, 3, 4, 5), (5, 6), 720),
        ((2, 4, 5), (2, 5, 6), 240),
        ((4, 5), (3, 5, 6), 360),
        ((1, 4, 5), (3, 5, 6), 360),
        ((2, 1, 4, 5), (3, 5, 6), 720),
        ((5,), (5, 6), 30),
        ((4, 5), (5,), 20),
        ((5,), (2, 5, 3), 30),
        ((0, 5), (5, 6), 0),
    ],
)
def test_matmul_broadcasts_as_numpy_does(
    a: tuple[int, ...], b: tuple[int, ...], macs: int, rng: np.random.Generator
) -> None:
    product = matmul(a, b)
    x, y, left, right = ones(product, a, b, rng)
    sizes: Any = product.sizes
    assert macs_total(sizes) == macs
    stack = np.matmul(
        left.reshape(sizes.batch, sizes.m, sizes.k), right.reshape(sizes.batch, sizes.k, sizes.n)
    )
    want = np.matmul(x, y)
    if product.layout == "columns":
        want = np.moveaxis(want.reshape(-1, sizes.m, b[-1]), 0, 1)
    np.testing.assert_array_equal(stack.reshape(-1), want.reshape(-1))


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_gemm_may_be_stored_transposed(
    transpose_a: bool, transpose_b: bool, rng: np.random.Generator
) -> None:
    a, b = (5, 4) if transpose_a else (4, 5), (6, 5) if transpose_b else (5, 6)
    product = gemm(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    x, y, left, right = ones(product, a, b, rng)
    np.testing.assert_array_equal(left @ right, (x.T if transpose_a else x) @ (y.T if transpose_b else y))


def convolution(x: tuple[int, ...], w: tuple[int, ...], **attributes: Any) -> OnnxLayer | LeftOut:
    operator = OnnxOperator("c", "Conv", ("x", "w"), ("y",), attributes)
    found = understand(operator, {"x": x, "w": w}, frozenset({"w"}))
    assert isinstance(found, OnnxLayer | LeftOut)
    return found


@pytest.mark.parametrize(
    ("x", "w", "attributes", "macs"),
    [
        # Depthwise: 112 x 112 outputs of 32 channels, 9 taps each.
        ((1, 32, 112, 112), (32, 1, 3, 3), {"group": 32, "pads": [1, 1, 1, 1]}, 3_612_672),
        # A stride for each axis.
        ((1, 16, 32, 64), (32, 16, 3, 3), {"strides": [1, 2], "pads": [1, 1, 1, 1]}, 4_718_592),
        # Whole windows only.
        ((1, 1, 8, 8), (8, 1, 3, 3), {"strides": [3, 3]}, 288),
        ((1, 1, 7, 10), (8, 1, 3, 3), {"strides": [2, 2]}, 864),
        # One axis: 1802 outputs of 7 taps and 8 filters.
        ((1, 1, 3600), (8, 1, 7), {"strides": [2], "pads": [5, 5]}, 100_912),
        # Padded unevenly, as ceil(224 / 2) outputs need.
        ((1, 3, 224, 224), (32, 3, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, 112 * 112 * 32 * 27),
        ((1, 3, 224, 224), (32, 3, 3, 3), {"strides": [2, 2], "pads": [0, 0, 1, 1]}, 112 * 112 * 32 * 27),
        ((0, 3, 8, 8), (4, 3, 3, 3), {}, 0),
    ],
)
def test_convolutions_have_their_macs(
    x: tuple[int, ...], w: tuple[int, ...], attributes: dict[str, Any], macs: int
) -> None:
    found = convolution(x, w, **attributes)
    assert isinstance(found, OnnxLayer)
    assert macs_total(found.product.sizes) == macs


def test_uneven_padding_stores_its_odd_zeros(rng: np.random.Generator) -> None:
    product = conv(
        (1, 1, 4, 4), (1, 1, 3, 3), stride=(2, 2), pads=((0, 1), (1, 0)), dilation=(1, 1), groups=1
    )
    maps, _ = product.operands(np.ones((1, 1, 4, 4)), np.ones((1, 1, 3, 3)))
    np.testing.assert_array_equal(maps.reshape(5, 5), np.pad(np.ones((4, 4)), ((0, 1), (1, 0))))
    assert product.note.startswith("padded unevenly")


def test_three_axes_are_counted_and_left_out() -> None:
    found = convolution((1, 2, 5, 5, 5), (4, 2, 3, 3, 3))
    assert isinstance(found, LeftOut)
    assert (found.macs, found.reason) == (27 * 4 * 54, "convolves 3 axes; stcsim has one and two")


def test_empty_operands_have_no_macs() -> None:
    found = convolution((1, 0, 8, 8), (4, 0, 3, 3))
    assert isinstance(found, LeftOut)
    assert found.macs == 0
    with pytest.raises(CannotSay):
        matmul((2, 0, 3, 4), (2, 0, 4, 5))


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "macs"),
    [
        ("ConvInteger", [(1, 3, 8, 8), (4, 3, 3, 3)], {}, 36 * 4 * 27),
        ("QLinearConv", [(1, 3, 8, 8), (), (), (4, 3, 3, 3)], {}, 36 * 4 * 27),
        ("MatMulInteger", [(2, 3), (3, 4)], {}, 24),
        ("QLinearMatMul", [(2, 3), (), (), (3, 4)], {}, 24),
        ("ConvTranspose", [(1, 3, 8, 8), (3, 5, 2, 2)], {}, 64 * 3 * 5 * 4),
        ("LSTM", [(7, 2, 10), (1, 80, 10), (1, 80, 20)], {}, 7 * 2 * 80 * 30),
        ("Einsum", [(2, 3, 4), (2, 4, 5)], {"equation": "bij,bjk->bik"}, 2 * 3 * 4 * 5),
        ("com.microsoft.FusedConv", [(1, 3, 8, 8), (4, 3, 3, 3)], {}, 36 * 4 * 27),
        ("com.microsoft.QAttention", [(1, 2, 3)], {}, None),
        ("Attention", [(1, 2, 3)], {}, None),
        ("ConvTranspose", [(1, None, 8, 8), (3, 5, 2, 2)], {}, None),
    ],
)
def test_operators_that_are_not_run_are_counted(
    op: str, inputs: list[Any], attributes: dict[str, Any], macs: int | None
) -> None:
    names = [f"t{i}" for i in range(len(inputs))]
    operator = OnnxOperator("one", op, tuple(names), ("y",), attributes)
    found = understand(operator, dict(zip(names, inputs, strict=True)), frozenset())
    assert isinstance(found, LeftOut)
    assert found.macs == macs


def test_operators_without_macs_are_not_layers() -> None:
    assert understand(OnnxOperator("r", "Relu", ("x",), ("y",)), {"x": (1, 2)}, frozenset()) is None


# --- graphs --------------------------------------------------------------------------------------


def test_a_small_network_has_its_layers(tmp_path: Path) -> None:
    found = read_model(small_cnn(tmp_path / "m.onnx"), {})
    assert [layer.name for layer in found.layers] == ["stem/conv", "stem/depthwise", "head"]
    assert found.macs_total == SMALL_CNN_MACS


@pytest.mark.parametrize("batch", ["N", None, 0])
def test_an_open_shape_asks_for_it(tmp_path: Path, batch: Any) -> None:
    path = small_cnn(tmp_path / "m.onnx", batch=batch)
    with pytest.raises(WorkloadError) as caught:
        read_model(path, {})
    assert str(caught.value) == (
        f"{path}: x: must have a fixed shape, not (?, 3, 12, 10): give --input-shape x=1,3,12,10"
    )
    for name in ("x", ""):
        assert read_model(path, {name: (2, 3, 12, 10)}).macs_total == 2 * SMALL_CNN_MACS
    assert read_model(path, {"x": (0, 3, 12, 10)}).macs_total == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"z": (1, 3, 12, 10)}, "--input-shape must name an input of the model (x), not z"),
        ({"x": (1, 4, 12, 10)}, "x: must be of the shape (?, 3, 12, 10), not (1, 4, 12, 10)"),
        ({"x": (1, 3, 12)}, "x: must be of the shape (?, 3, 12, 10), not (1, 3, 12)"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(tmp_path: Path, given: Any, message: str) -> None:
    path = small_cnn(tmp_path / "m.onnx", batch="N")
    with pytest.raises(WorkloadError) as caught:
        read_model(path, given)
    assert str(caught.value) == f"{path}: {message}"


def test_a_weight_is_found_behind_other_operators(tmp_path: Path) -> None:
    weights = np.ones((6, 4), np.float32)
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
    (layer,) = read_model(path, {}).layers
    assert (layer.role_a, layer.role_b, layer.macs_total) == ("activation", "weight", 48)


def test_products_of_activations_have_no_weight(tmp_path: Path) -> None:
    path = save(
        tmp_path / "m.onnx", [node("MatMul", ["q", "k"], ["y"])], {"q": [2, 3, 4], "k": [2, 4, 3]}, {}
    )
    (layer,) = read_model(path, {}).layers
    assert (layer.role_a, layer.role_b) == ("activation", "activation")
    assert layer.name == "y"


def test_nodes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    weights = {"w": np.ones((4, 4), np.float32)}
    nodes = [node("MatMul", ["x", "w"], ["a"], name="mm"), node("MatMul", ["a", "w"], ["y"], name="mm")]
    path = save(tmp_path / "m.onnx", nodes, {"x": [2, 4]}, weights)
    assert [layer.name for layer in read_model(path, {}).layers] == ["mm", "mm#2"]


def test_products_in_subgraphs_are_told(tmp_path: Path) -> None:
    floats = onnx.TensorProto.FLOAT
    out = [onnx.helper.make_tensor_value_info("o", floats, [2, 4])]
    inner = onnx.helper.make_graph([node("MatMul", ["x", "w"], ["o"])], "inner", [], out)
    path = save(
        tmp_path / "m.onnx",
        [
            node("If", ["c"], ["y"], name="if", then_branch=inner, else_branch=inner),
            node("MatMul", ["x", "w"], ["z"], name="mm"),
        ],
        {"x": [2, 4]},
        {"w": np.ones((4, 4), np.float32), "c": np.array(True)},
    )
    (one,) = read_model(path, {}).left_out
    assert (one.name, one.macs) == ("if", None)
    assert one.reason == "2 such operators are in its subgraphs, which are not looked into"


@pytest.mark.parametrize("content", [b"not a model", b"\x08\x07", b""])
def test_what_is_not_a_model_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(WorkloadError) as caught:
        OnnxGraph(path, with_weights=False)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{path}: must ")


def test_a_model_without_products_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx", [node("Relu", ["x"], ["y"])], {"x": [2, 4]}, {})
    with pytest.raises(WorkloadError, match="must have Conv, Gemm or MatMul, not none of them"):
        read_model(path, {})


def test_input_shapes_are_read() -> None:
    assert parse_input_shape("data=1, 3,224,224") == ("data", (1, 3, 224, 224))
    assert parse_input_shape("input:0=1,3") == ("input:0", (1, 3))
    assert parse_input_shape("1,3") == ("", (1, 3))
    for text in ("", "x=", "x=1,-3", "x=1,a", "x=1;3", "x=1e3"):
        with pytest.raises(WorkloadError, match="--input-shape must be NAME=SIZE,SIZE"):
            parse_input_shape(text)
