"""What a dual-side core does and does not gain on convolutions, and what densities alone cannot tell."""

from __future__ import annotations

import pytest

from convolution import make_conv
from stcsim.catalog import load_kernel, load_machine
from stcsim.config.workload import Conv2dShape, OperandSource, Workload
from stcsim.problem import assemble
from stcsim.resources import data_path
from stcsim.result.result import Result
from stcsim.run import Settings, run_gemm
from stcsim.workload.batch import batch_of
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.gemm import Gemm
from stcsim.workload.generator import generate, parse_options
from stcsim.workload.operand import Operand
from stcsim.workload.operand_shape import operand_shapes
from stcsim.workload.pattern_file import load_pattern

DSTC = (load_machine("dstc-v100")[0], load_kernel("spwmma_128x128x32")[0])
QUICK = Settings(check_tiles=0, sparse_side="weight", level="sm")


def run(shape: ConvShape, density_in: float, density_weight: float, settings: Settings = QUICK) -> Result:
    conv = make_conv(shape, density_in, density_weight, seed=1)
    return run_gemm(batch_of("conv", conv.gemms()), *DSTC, settings, seed=0)


DEPTHWISE = ConvShape(n=1, c=96, h=28, w=28, k=96, r=3, s=3, padding=(1, 1), groups=96)
POINTWISE = ConvShape(n=1, c=96, h=28, w=28, k=64, r=1, s=1)


@pytest.mark.parametrize("shape", [DEPTHWISE, POINTWISE], ids=["depthwise", "pointwise"])
@pytest.mark.parametrize("density", [0.99, 0.96])
def test_a_few_activation_zeros_do_not_help(shape: ConvShape, density: float) -> None:
    """1 to 4 % zeros (HardSwish): hardly a step of 32 pixels loses a whole quantum of 16."""
    sparse, dense = run(shape, density, 1.0), run(shape, 1.0, 1.0)
    assert sparse.macs_useful < dense.macs_useful
    assert 1.0 <= dense.cycles / sparse.cycles <= 1.05


def test_many_activation_zeros_do_help() -> None:
    """The same layer, pruned and behind a ReLU: the claim above is about the layer's zeros, not its shape."""
    assert run(POINTWISE, 1.0, 1.0).cycles / run(POINTWISE, 0.3, 0.2).cycles > 3


def test_a_depthwise_layer_gains_by_its_ragged_tiles_and_not_by_zeros() -> None:
    """One channel fills one column of a tile of 32: three of four quanta hold nothing of C, and K is 9 of 16."""
    result = run(DEPTHWISE, 0.975, 1.0)
    whole, inside, executed = result.outer_products.values()
    # 784 pixels: 24 tiles of 32 and one of 16; 96 groups of one channel; quanta of 8 by 16.
    assert whole == 96 * 25 * (4 * 2) * 16
    assert inside == 96 * (24 * 2 + 1) * 9
    assert executed == result.instructions["OHMMA.8161"]
    assert inside / executed <= 1.05
    v100 = {
        kernel: run_gemm(
            batch_of("conv", make_conv(DEPTHWISE, 0.975, 1.0, seed=1).gemms()),
            load_machine("v100")[0], load_kernel(kernel)[0], QUICK, seed=0,
        )
        for kernel in ("hmma884_128x128x32", "hmma884_64x64x32")
    }  # fmt: skip
    # Neither dense kernel has a tile of one column: the smaller one pads less, and says nothing of zeros either.
    assert result.cycles < v100["hmma884_64x64x32"].cycles < v100["hmma884_128x128x32"].cycles
    assert all(not each.outer_products for each in v100.values())


@pytest.mark.parametrize("shape", [(33, 17, 5), (96, 64, 32), (1, 1, 1), (7, 130, 40), (48, 24, 16)])
@pytest.mark.parametrize("density", [0.1, 0.7])
def test_edges_and_zeros_are_told_apart_by_runs_that_skip_less(
    shape: tuple[int, int, int], density: float
) -> None:
    """Whole tiles are what OWMMA issues, inside is what SpWMMA issues without zeros."""
    m, n, k = shape

    def issued(kernel: str, density: float) -> Result:
        patterns = [
            generate(parse_options({"generator": "uniform", "density": density}), size, seed=3, stream=stream)
            for stream, size in ((0, (m, k)), (1, (k, n)))
        ]  # fmt: skip
        gemm = Gemm("one", Operand(patterns[0], "weight", 0, ""), Operand(patterns[1], "activation", 1, ""))
        return run_gemm(gemm, DSTC[0], load_kernel(kernel)[0], QUICK, seed=0)

    sparse = issued("spwmma_128x128x32", density)
    assert sparse.outer_products == {
        "whole_tiles": issued("owmma_128x128x32", density).instructions["OHMMA.8161"],
        "inside": issued("spwmma_128x128x32", 1.0).instructions["OHMMA.8161"],
        "executed": sparse.instructions.get("OHMMA.8161", 0),
    }
    assert sparse.repeated(3).outer_products["inside"] == 3 * sparse.outer_products["inside"]


def test_auto_tries_both_operands_on_the_side_of_the_small_quantum() -> None:
    shape = ConvShape(n=1, c=32, h=14, w=14, k=64, r=3, s=3, padding=(1, 1))
    as_given, turned, auto = (
        run(shape, 0.15, 0.9, Settings(check_tiles=0, sparse_side=side, level="sm"))  # type: ignore[arg-type]
        for side in ("as_given", "b", "auto")
    )
    # The sparser operand, here the map, leaves fewer outer products where the quantum is 8 ...
    assert sum(as_given.instructions.values()) < sum(turned.instructions.values())
    # ... but which side is faster also depends on how the tiles fall on the sub-cores, so both are run.
    assert auto.cycles == min(as_given.cycles, turned.cycles) < max(as_given.cycles, turned.cycles)


def trace(name: str) -> Gemm:
    file = data_path("workloads", "traces", "resnet50thin_china.npz")
    a, b = (load_pattern(file, f"conv_{name}/BiasAdd.{side}").transpose() for side in "ab")
    return Gemm(name, Operand(a, "activation", 0, ""), Operand(b, "weight", 0, ""))


@pytest.mark.parametrize(
    ("layer", "error"), [("stage1_block1_branch2a", -0.059), ("stage2_block1_branch2c", -0.030)]
)
def test_the_product_of_densities_is_not_the_useful_share_of_a_real_layer(layer: str, error: float) -> None:
    gemm = trace(layer)
    useful = gemm.macs_useful / gemm.macs_total
    assert gemm.density_a * gemm.density_b / useful - 1 == pytest.approx(error, abs=1e-3)


def test_padding_makes_the_useful_share_fall_below_the_product_of_densities() -> None:
    """A dense 3 x 3 layer on 7 x 7: (19 / 21)^2 of the taps lie on the map."""
    conv = make_conv(ConvShape(n=1, c=8, h=7, w=7, k=8, r=3, s=3, padding=(1, 1)), 1.0, 1.0, seed=0)
    (gemm,) = conv.gemms()
    assert gemm.density_a == gemm.density_b == 1.0
    assert gemm.macs_useful / gemm.macs_total == pytest.approx((19 / 21) ** 2)


def test_real_filters_lose_more_when_pruned_to_two_of_four_than_uniform_ones() -> None:
    """A pruned ResNet-18 layer: 24 % of the weights, 34 % zero kernels, so the others are crowded."""
    shape = Conv2dShape(c=64, h=14, w=14, k=64, r=3, s=3, padding=1)
    losses = {}
    for name, generator in (
        ("real", {"generator": "filters", "density": 0.24, "window": 9, "zero_kernels": 0.342}),
        ("uniform", {"generator": "uniform", "density": 0.24}),
    ):
        workload = Workload(
            name=name, conv2d=shape,
            a=OperandSource(role="activation", pattern={}), b=OperandSource(role="weight", pattern={}),
        )  # fmt: skip
        shape_a, shape_b = operand_shapes(shape)
        weight = generate(parse_options(generator), shape_b, seed=1)
        dense = generate(parse_options({"generator": "dense"}), shape_a, seed=1)
        problem = assemble(
            workload, Operand(dense, "activation", 0, "dense"), Operand(weight, "weight", 1, name)
        )
        result = run_gemm(
            problem, load_machine("a100-sxm4-40gb")[0], load_kernel("hmma_sp16832_128x128x64")[0],
            Settings(adapt="prune", sparse_side="weight", check_tiles=0, level="sm"), seed=0,
        )  # fmt: skip
        note = next(note for note in result.notes if "prune" in note)
        losses[name] = float(note.split("prune, ")[1].split("%")[0])
    assert losses["real"] > 1.5 * losses["uniform"]
