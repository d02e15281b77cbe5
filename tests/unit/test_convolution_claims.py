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
QUICK = Settings(check_tiles=0, sparse_side="weight")


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


def test_auto_tries_both_operands_on_the_side_of_the_small_quantum() -> None:
    shape = ConvShape(n=1, c=32, h=14, w=14, k=64, r=3, s=3, padding=(1, 1))
    as_given, turned, auto = (
        run(shape, 0.15, 0.9, Settings(check_tiles=0, sparse_side=side))  # type: ignore[arg-type]
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
            Settings(adapt="prune", sparse_side="weight", check_tiles=0), seed=0,
        )  # fmt: skip
        note = next(note for note in result.notes if "prune" in note)
        losses[name] = float(note.split("prune, ")[1].split("%")[0])
    assert losses["real"] > 1.5 * losses["uniform"]
