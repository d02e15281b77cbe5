"""The trace that stcsim ships: what `workloads/README.md` says of it, and what others measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from stcsim.trace_account import LayerAccount, account
from stcsim.workload.trace import Trace

LAYERS = {
    "conv_stage1_block1_branch2a/BiasAdd": (12_845_056, 64 * 256),
    "Conv__514": (28_901_376, 128 * 128 * 9),
    "conv_stage2_block1_branch2c/BiasAdd": (12_845_056, 512 * 128),
}
"""MACs and weights of each layer."""


@pytest.fixture(scope="module")
def file(root: Path) -> Path:
    return root / "workloads" / "traces" / "resnet50thin_china.npz"


@pytest.fixture(scope="module")
def layers(file: Path) -> dict[str, LayerAccount]:
    return {layer.name: layer for layer in account(file).layers}


def test_it_holds_three_layers_and_is_small(file: Path, layers: dict[str, LayerAccount]) -> None:
    assert file.stat().st_size < 300_000
    assert {name: layer.macs_total for name, layer in layers.items()} == {
        name: macs for name, (macs, _) in LAYERS.items()
    }


def test_it_says_how_it_was_made(file: Path) -> None:
    meta = Trace(file).meta
    assert meta.model == "resnet50-thin"
    assert "NOT retrained" in meta.provenance["pruning"]
    assert meta.provenance["inputs"] == {"input:0": "china.jpg, caffe: BGR, 0 to 255, less (104, 117, 123)"}
    assert "/" not in meta.provenance["model_file"]


def test_a_fifth_of_each_layers_weights_is_kept(file: Path) -> None:
    trace = Trace(file)
    for layer in trace.layers:
        assert trace.pattern(layer, "b").nnz == round(0.2 * LAYERS[layer.name][1])


@pytest.mark.parametrize(
    ("layer", "lowest", "highest"),
    [
        ("conv_stage1_block1_branch2a/BiasAdd", 0.402, 0.4628),
        ("Conv__514", 0.5426, 0.5705),
        ("conv_stage2_block1_branch2c/BiasAdd", 0.5202, 0.5678),
    ],
)
def test_its_activations_are_as_sparse_as_was_measured_on_five_photographs(
    layers: dict[str, LayerAccount], layer: str, lowest: float, highest: float
) -> None:
    """Zero fractions of these layers' inputs, measured independently: the picture is one of the five."""
    assert lowest - 5e-5 <= 1 - layers[layer].density_a <= highest + 5e-5


@pytest.mark.parametrize(
    ("key", "layer"), [("L29", "Conv__514"), ("L30", "conv_stage2_block1_branch2c/BiasAdd")]
)
def test_it_equals_an_independent_capture_of_the_same_layer(
    file: Path, layers: dict[str, LayerAccount], shared_data: Path, key: str, layer: str
) -> None:
    recorded = shared_data / "data" / "workloads" / "trace_resnet50thin_china_w80"
    (about,) = [
        one for one in json.loads(recorded.with_suffix(".json").read_text())["layers"] if one["key"] == key
    ]
    trace = Trace(file)
    (mine,) = [one for one in trace.layers if one.name == layer]
    with np.load(recorded.with_suffix(".npz"), allow_pickle=False) as arrays:
        for side, name in (("a", "act_bits"), ("b", "w_bits")):
            np.testing.assert_array_equal(trace.pattern(mine, side).bits, arrays[f"{key}.{name}"])
    assert layers[layer].macs_total == about["dense_macs"]
    assert layers[layer].macs_useful == about["effectual_macs"]
