"""Network and sparsity tables: totals as published, rows that hold, and how a network is written out."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from stcsim.config.loader import parse
from stcsim.config.study import Study
from stcsim.config.validation import validate
from stcsim.errors import StcsimError, WorkloadError
from stcsim.network import expand, shipped
from stcsim.resources import data_path
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.network_table import GemmSizes, load_network
from stcsim.workload.sparsity_table import load_sparsity

# GMACs and weights without biases and norms.  "published": torchvision 0.29.1's own `_ops` and parameter counts
# (VGG-16: 138,357,544 with 13,416 biases), IntelLabs/distiller's tables (ResNet-18, ResNet-50, AlexNet, Mask R-CNN,
# exactly); the others follow from the architectures' papers, as their comments say.
TOTALS = {
    "vgg16": (15_470_264_320, 138_344_128),  # published: 15.47 GMACs
    "resnet18": (1_814_073_344, 11_678_912),  # published: 1.814
    "resnet50": (4_089_184_256, 25_502_912),  # published: 4.089
    "mobilenetv2": (300_774_272, 3_469_760),  # published: 0.301
    "alexnet": (714_188_480, 61_090_496),  # published: 0.714
    "alexnet_grouped": (724_406_816, 60_954_656),  # the original of two groups, 227 x 227
    "vit_b16": (17_563_828_224, 86_292_480),  # published: 17.564
    # backbone 87.58 + FPN 60.90 + RPN 53.15 + box head 14.36 + mask head 53.21; the RPN head's 593,664 weights
    # stand in five rows: 44,395,200 (published) + 4 * 593,664
    "maskrcnn_r50fpn_800x1344": (269_193_583_872, 46_769_856),
    "bert_base_128": (11_173_625_856, 84_934_656),  # 12 * (4 * 768^2 + 2 * 768 * 3072) weights
    "bert_base_384": (35_332_816_896, 84_934_656),
    "gpt2_small_prefill": (145_824_153_600, 123_532_032),
    "gpt2_small_decode": (142_406_400, 123_532_032),
    "llama7b_prefill": (14_630_806_093_824, 6_607_077_376),  # 6738 M less the embedding's 131 M
    "llama7b_decode": (7_143_948_288, 6_607_077_376),
    "lstm": (35_700_000_000, 51_000_000),  # 2 x (9.0 + 9.0) M and the decoder's 15.0 M
    "gnmt": (3_134_182_400, None),
}


def test_every_shipped_network_has_its_totals_here() -> None:
    assert shipped("networks") == sorted(TOTALS)


@pytest.mark.parametrize("name", sorted(TOTALS))
def test_macs_and_weights_are_the_published_ones(name: str) -> None:
    layers = load_network(data_path("workloads", "networks", f"{name}.csv"))
    macs, weights = TOTALS[name]
    assert sum(layer.macs_total for layer in layers) == macs
    if weights is not None:
        assert sum(layer.n_weights for layer in layers) == weights


@pytest.mark.parametrize(
    ("network", "sparsity"),
    [
        ("vgg16", "vgg16_han2015"),
        ("resnet18", "resnet18_agp60"),
        ("resnet50", "resnet50_agp80"),
        ("alexnet", "alexnet_agp88"),
        ("maskrcnn_r50fpn_800x1344", "maskrcnn_agp85"),
        ("bert_base_128", "bert_uniform90"),
        ("bert_base_384", "bert_uniform90"),
        ("lstm", "lstm_large90"),
        ("lstm", "lstm_large70"),
        ("mobilenetv2", "mobilenetv2_hardswish"),
    ],
)
def test_a_sparsity_table_fits_every_layer_of_its_network(network: str, sparsity: str) -> None:
    table = load_sparsity(data_path("workloads", "sparsity", f"{sparsity}.csv"))
    for layer in load_network(data_path("workloads", "networks", f"{network}.csv")):
        found = table.of(layer.name)
        assert 0 < found.weight <= 1
        assert 0 < found.activation <= 1


@pytest.mark.parametrize(
    ("network", "sparsity", "density"),
    [
        ("resnet18", "resnet18_agp60", 1 - 0.5992),  # Distiller: 59.92 % of the weights are zero
        ("resnet50", "resnet50_agp80", 1 - 0.7997),  # 79.97 %
        ("alexnet", "alexnet_agp88", 1 - 0.8831),  # 88.31 %
        ("vgg16", "vgg16_han2015", 0.0761),  # Han et al.: 7.5 % remain, 7.61 % by its table's rounded rows
    ],
)
def test_the_weights_that_remain_are_the_published_share(network: str, sparsity: str, density: float) -> None:
    table = load_sparsity(data_path("workloads", "sparsity", f"{sparsity}.csv"))
    layers = load_network(data_path("workloads", "networks", f"{network}.csv"))
    remaining = sum(layer.n_weights * table.of(layer.name).weight for layer in layers)
    assert remaining / sum(layer.n_weights for layer in layers) == pytest.approx(density, abs=5e-4)


def test_output_sizes_of_the_tables_follow_the_floor_rule() -> None:
    for name in shipped("networks"):
        path = data_path("workloads", "networks", f"{name}.csv")
        with path.open() as file:
            rows = {row["name"]: row for row in csv.DictReader(file)}
        for layer in load_network(path):
            if isinstance(layer.sizes, ConvShape) and layer.kind != "deconv2x2s2":
                row = rows[layer.name]
                assert (layer.sizes.p, layer.sizes.q) == (int(row["P"]), int(row["Q"])), (name, layer.name)


CONV = "name,kind,N,C,H,W,K,R,S,stride,pad,dilation,groups,macs\n"
GEMM = "name,kind,M,N,K,count,weight_operand,macs\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONV + "a,conv,1,4,8,8,8,3,3,1,0,1,1,10369\n", ":2: macs: must be what the sizes make (10368), not 10369"),
        (CONV + "a,dwconv,1,4,8,8,1,3,3,1,0,1,1,1\n", ":2: groups: must equal C (4) in a depthwise layer, not 1"),
        (CONV + "a,cnov,1,4,8,8,8,3,3,1,0,1,1,1\n",
         ":2: kind: must be one of attn, conv, deconv2x2s2, dwconv, fc, linear, recurrent, not cnov "
         "(did you mean conv?)"),
        (CONV + "\na,conv,1,4,8,8,8,3,3,0,0,1,1,1\n",
         ":3: stride: must be two whole numbers (rows, columns), each 1 or more, not (0, 0)"),
        (GEMM + "a,linear,2,3,-4,1,B,24\n", ":2: K: must be a whole number, not -4"),
        (GEMM + "a,linear,2,3,4,1,B\n", ":2: must have 8 columns, not fewer"),
        (GEMM + "a,linear,2,3,4,1,B,24\na,linear,2,3,4,1,B,24\n", ": must name each layer once, not a"),
        (GEMM, ": must have a row for each layer"),
        ("name,M\n", ":1: must have the columns kind, macs, not name, M"),
    ],
)  # fmt: skip
def test_a_row_that_does_not_hold_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(WorkloadError) as caught:
        load_network(path)
    assert str(caught.value) == f"{path}{message}"


def test_time_steps_follow_each_other_and_heads_run_together(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(GEMM + "a,recurrent,2,3,4,5,B_shared,120\nb,attn,2,3,4,5,none,120\n")
    recurrent, heads = (layer.sizes for layer in load_network(path))
    assert recurrent == GemmSizes(2, 3, 4, batch=1, repeat=5, has_weight=True)
    assert heads == GemmSizes(2, 3, 4, batch=5, repeat=1, has_weight=False)


def test_the_first_row_that_fits_a_layer_counts(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    header = "layer,weight_density,activation_density,zero_kernels,source\n"
    path.write_text(header + "conv1,1,0.5,,x\nconv*,0.2,0.6,0.4,x\n")
    table = load_sparsity(path)
    assert (table.of("conv1").weight, table.of("conv1").zero_kernels) == (1.0, None)
    assert (table.of("conv2").weight, table.of("conv2").zero_kernels) == (0.2, 0.4)
    with pytest.raises(WorkloadError) as caught:
        table.of("fc")
    assert str(caught.value) == f"{path}: must have a row that fits every layer, not none for fc"
    path.write_text(header + "conv1,20,0.5,,x\n")
    with pytest.raises(WorkloadError) as caught:
        load_sparsity(path)
    assert str(caught.value) == f"{path}:2: weight_density: must be a number from 0 to 1, not 20"


def written_out(workload: str, folder: Path = Path()) -> Study:
    text = f"name: x\nmachines:\n  - machine: v100\nworkloads:\n  - {workload}\n"
    document = parse(text, "study.yaml")
    return validate(Study, expand(document, validate(Study, document).workloads, folder))


def test_a_network_becomes_a_workload_for_each_layer() -> None:
    study = written_out("{name: net, network: resnet18, sparsity: resnet18_agp60, seed: 2}")
    assert len(study.workloads) == 21
    first, second = study.workloads[:2]
    assert (first.name, first.part_of, first.seed, second.seed) == ("net/conv1", "net", 200_000, 200_001)
    assert first.conv2d is not None
    assert (first.conv2d.stride, first.conv2d.padding, first.conv2d.r) == ((2, 2), (3, 3), 7)
    assert second.a is not None
    assert second.b is not None
    assert second.a.pattern == {"generator": "feature_map", "density": 0.828, "width": 56}
    assert second.b.pattern == {
        "generator": "filters", "density": 0.240017, "window": 9, "zero_kernels": 0.342285,
    }  # fmt: skip
    assert (second.a.role, second.b.role) == ("activation", "weight")


def test_layers_chosen_alone_are_those_of_the_whole_network() -> None:
    whole = written_out("{name: net, network: resnet18, sparsity: {weight: 0.3, activation: 0.5}}")
    part = written_out(
        '{name: net, network: resnet18, sparsity: {weight: 0.3, activation: 0.5}, layers: ["layer2.0.*", fc]}'
    )
    assert [layer.name for layer in part.workloads] == [
        "net/layer2.0.conv1", "net/layer2.0.conv2", "net/layer2.0.downsample.0", "net/fc",
    ]  # fmt: skip
    of_whole = {layer.name: layer for layer in whole.workloads}
    for layer in part.workloads:
        same = of_whole[layer.name]
        assert (layer.seed, layer.a, layer.b) == (same.seed, same.a, same.b)


def test_uniform_patterns_are_there_to_see_the_difference() -> None:
    study = written_out(
        "{name: net, network: resnet18, sparsity: resnet18_agp60, patterns: uniform, layers: [layer1.0.conv1]}"
    )
    (layer,) = study.workloads
    assert layer.b is not None
    assert layer.b.pattern == {"generator": "uniform", "density": 0.240017}


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ("{name: net, network: resnet19}", "workloads.0.network: must be a known network ("),
        ("{name: net, network: resnet18, sparsity: resnet18_agp}",
         "workloads.0.sparsity: must be a known sparsity table ("),
        ("{name: net, network: resnet18, layers: [layer9.*]}",
         "workloads.0.layers: must fit a layer of the network, not layer9.*"),
        ("{name: net, network: resnet18, gemm: {m: 1, n: 1, k: 1}}",
         "workloads.0.gemm: must not be given beside network"),
        ("{name: one, sparsity: resnet18_agp60}", "workloads.0.a: must be given"),
    ],
)  # fmt: skip
def test_a_fault_of_a_network_is_told_at_its_line(workload: str, message: str) -> None:
    with pytest.raises(StcsimError) as caught:
        written_out(workload)
    assert str(caught.value).splitlines()[0].startswith(f"study.yaml:5: {message}")


def test_a_table_that_lacks_a_layer_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("layer,weight_density,activation_density,zero_kernels,source\n")
    with pytest.raises(
        WorkloadError, match=r"mine\.csv: must have a row that fits every layer, not none for conv1$"
    ):
        written_out("{name: net, network: resnet18, sparsity: ./mine.csv}", tmp_path)
