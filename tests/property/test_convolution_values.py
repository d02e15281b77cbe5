"""What a lowered convolution computes, and how its work is counted, on every shipped machine and kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from convolution import conv_shapes, convolve, make_conv, values_of
from stcsim.catalog import load_kernel, load_machine, shipped
from stcsim.config.kernel import Kernel
from stcsim.lowering import LOWERINGS, batch
from stcsim.lowering.check import check_values
from stcsim.lowering.lowered import Lowered
from stcsim.machine.simulator import simulate
from stcsim.run import Settings, run_gemm
from stcsim.workload.batch import batch_of
from stcsim.workload.conv2d import Conv2d
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.generator import Nm, generate
from stcsim.workload.operand import Operand

PAIRS = [(name, kernel) for name in shipped("machine") for kernel in load_machine(name)[0].machine.kernels]


def computed(lowered: Lowered) -> NDArray[np.float64]:
    """Execute every warp tile of one product."""
    grid = lowered.grid
    rows = [
        np.concatenate([lowered.execute(i, j) for j in range(grid.tiles_n)], axis=1)
        for i in range(grid.tiles_m)
    ]
    return np.concatenate(rows)[: lowered.gemm.m, : lowered.gemm.n]


def fitting(conv: Conv2d, kernel: Kernel, seed: int) -> Conv2d:
    """Return the convolution with a weight that has the kernel's n:m pattern along its taps."""
    pattern = generate(Nm(**kernel.options), conv.shape.weight_shape, seed=seed)
    return Conv2d(conv.name, conv.shape, conv.input, Operand(pattern, "weight", seed, "n:m"))


@pytest.mark.parametrize(("machine", "kernel"), PAIRS)
@settings(max_examples=6)  # each executes every instruction of a whole convolution
@given(shape=conv_shapes(), turn=st.booleans(), seed=st.integers(0, 99))
def test_every_datapath_computes_the_convolution(
    machine: str, kernel: str, shape: ConvShape, turn: bool, seed: int
) -> None:
    entry, used = load_machine(machine)[0].machine, load_kernel(kernel)[0].kernel
    lowering = LOWERINGS[used.lowering]
    conv = make_conv(shape, 0.5, 0.4, seed)
    if not lowering.takes_any_pattern:
        conv, turn = fitting(conv, used, seed), True
    problem = batch_of(conv.name, conv.gemms())
    lowered = batch.lower(lowering, problem.transposed() if turn else problem, used, "fp16", entry)
    outputs = [computed(part) for part in lowered.products]
    pixels_first = np.concatenate([out.T if turn else out for out in outputs], axis=1)
    got = pixels_first.reshape(shape.n, shape.p, shape.q, shape.k).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(got, convolve(*values_of(conv), shape))
    timing = simulate(lowered, entry)
    assert timing == simulate(lowered, entry, "reference")
    assert lowered.macs_useful == conv.macs_useful <= lowered.macs_executed <= conv.macs_total
    if lowered.steps is not None and not lowered.steps.dense:
        assert timing.products == conv.macs_useful


@given(shape=conv_shapes(), seed=st.integers(0, 99))
@settings(max_examples=4)
def test_a_batch_issues_what_its_products_issue_one_by_one(shape: ConvShape, seed: int) -> None:
    conv = make_conv(shape, 0.5, 0.4, seed)
    for machine, kernel in PAIRS:
        entry, used = load_machine(machine)[0].machine, load_kernel(kernel)[0].kernel
        lowering = LOWERINGS[used.lowering]
        fitted = conv if lowering.takes_any_pattern else fitting(conv, used, seed)
        problem = batch_of("batch", tuple(gemm.transposed() for gemm in fitted.gemms()))
        lowered = batch.lower(lowering, problem, used, "fp16", entry)
        whole = simulate(lowered, entry)
        # Alone in the CTA tile of the whole: the kernel's own would add warps that hold nothing.
        tile = lowered.grid.tile
        alone = [
            simulate(replace(part, grid=replace(part.grid, tile=tile)), entry) for part in lowered.products
        ]
        assert whole.products == sum(timing.products for timing in alone)
        for name, count in whole.instructions.items():
            assert count == sum(timing.instructions[name] for timing in alone)
        assert max(timing.cycles for timing in alone) <= whole.cycles


def test_a_wrong_value_in_any_group_is_found() -> None:
    conv = make_conv(ConvShape(n=1, c=3, h=5, w=5, k=3, r=3, s=3, groups=3), 1.0, 1.0, seed=1)
    entry, used = load_machine("dstc-v100")[0].machine, load_kernel("spwmma_128x128x32")[0].kernel
    lowered = batch.lower(LOWERINGS["sparse_outer"], batch_of("dw", conv.gemms()), used, "fp16", entry)
    assert check_values(lowered, 99, seed=0).fault is None
    last = lowered.parts[2]

    def wrong(i_m: int, i_n: int) -> NDArray[np.float64]:
        out = last.execute(i_m, i_n)
        out[0, 0] += 1
        return out

    damaged = type(lowered)(
        **{**vars(lowered), "parts": (*lowered.parts[:2], type(last)(**{**vars(last), "execute": wrong}))}
    )
    fault = check_values(damaged, 99, seed=0).fault
    assert fault is not None
    assert fault.startswith("product 2: C[0, 0] is ")


def test_a_depthwise_layer_is_one_kernel_over_all_sub_cores() -> None:
    """640 channels of one warp tile each take two tiles a sub-core on 320 sub-cores, not 640 launches."""
    conv = make_conv(ConvShape(n=1, c=640, h=5, w=5, k=640, r=3, s=3, groups=640), 1.0, 1.0, seed=1)
    result = run_gemm(
        batch_of("dw", conv.gemms()), load_machine("dstc-v100")[0], load_kernel("spwmma_128x128x32")[0],
        Settings(check_tiles=3, level="sm"), seed=0,
    )  # fmt: skip
    assert result.check.ok
    assert (result.m, result.n, result.k, result.macs_total) == (9, 640, 9, conv.macs_total)
    # 640 x nine steps of ceil(9 / 8) * ceil(1 / 16) outer products, at work in all sub-cores at once: one
    # launch after the other would take at least 640 x 18 cycles.
    assert result.stalls["tensor_busy"] == 640 * 18
    assert result.cycles < 200
    assert "640 products of 9 x 1 x 9 in one grid" in result.notes
