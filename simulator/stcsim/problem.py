"""The problem that a workload of a study describes, put together from its operands and run.

Stands above the packages, below `stcsim.study` and `stcsim.sweep`, which make the operands.
"""

from __future__ import annotations

from dataclasses import replace

from stcsim.catalog import KernelEntry, MachineEntry
from stcsim.config.kernel import Kernel
from stcsim.config.machine import Machine
from stcsim.config.workload import Workload
from stcsim.lowering import LOWERINGS, im2col
from stcsim.lowering.instruction_mix import IntegerRates
from stcsim.result.result import Result
from stcsim.run import Gemms, Settings, run_gemm
from stcsim.workload.batch import batch_of
from stcsim.workload.conv2d import Conv2d
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.gemm import Gemm
from stcsim.workload.operand import Operand
from stcsim.workload.operand_shape import conv_shape
from stcsim.workload.pattern import Pattern
from stcsim.workload.view import rows_of


def product_sizes(
    workload: Workload, shape_a: tuple[int, int], shape_b: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Return how many products a workload runs in one grid, and m, n and k of each."""
    if workload.conv2d is not None:
        shape = conv_shape(workload.conv2d)
        return shape.groups, shape.pixels, shape.k_group, shape.taps
    count = workload.gemm.batch if workload.gemm is not None else 1
    return count, shape_a[0] // count, shape_b[1], shape_a[1]


def assemble(workload: Workload, a: Operand, b: Operand) -> Gemms:
    """Return the products that a workload stands for.

    Parameters
    ----------
    workload : Workload
        Not a network.
    a, b : Operand
        In the shapes of `operand_shapes`.

    Raises
    ------
    WorkloadError
        If the shapes disagree.
    """
    name = workload.name
    if workload.conv2d is not None:
        return batch_of(name, Conv2d(name, conv_shape(workload.conv2d), a, b).gemms())
    if workload.gemm is None or workload.gemm.batch == 1:
        return Gemm(name, a, b)
    m, k = workload.gemm.m, workload.gemm.k
    return batch_of(
        name,
        tuple(Gemm(name, rows_of(a, i * m, m), rows_of(b, i * k, k)) for i in range(workload.gemm.batch)),
    )


def run_workload(
    workload: Workload, a: Operand, b: Operand, machine: MachineEntry, kernel: KernelEntry, settings: Settings
) -> Result:
    """Simulate a workload, all its repetitions counted.

    Raises
    ------
    StcsimError
        As `stcsim.run.run_gemm`.
    """
    if workload.check_tiles is not None:
        settings = replace(settings, check_tiles=min(workload.check_tiles, settings.check_tiles))
    lowerings: dict[str, int] = {}
    if workload.conv2d is not None:
        lowerings = im2col_cycles(conv_shape(workload.conv2d), a.pattern, machine.machine, kernel.kernel)
    result = run_gemm(assemble(workload, a, b), machine, kernel, settings, seed=workload.seed)
    result = replace(result, network=workload.part_of or "", im2col_cycles=lowerings)
    return result.repeated(workload.repeat)


def im2col_cycles(shape: ConvShape, feature_map: Pattern, machine: Machine, kernel: Kernel) -> dict[str, int]:
    """Return the cycles for which the integer pipes would be busy lowering a feature map, by way of doing it.

    Notes
    -----
    Every CTA along the output channels lowers what it needs anew; the work is spread evenly over the sub-cores of
    the SMs that have a CTA (``dense_explicit``, a kernel of its own, over all).  Ways that make bitmaps or indices
    are told only of kernels that read them.  ASSUMED: the lanes of `IntegerRates`, on every machine.
    """
    passes = -(-shape.k_group // kernel.tile.m_cta)
    ctas = passes * shape.groups * -(-shape.pixels // kernel.tile.n_cta)
    is_sparse = LOWERINGS[kernel.lowering].format_a == "bitmap"

    def sub_cores(method: str) -> int:
        sms = machine.sms if method == "dense_explicit" else min(machine.sms, max(1, ctas))
        return sms * machine.sub_cores_per_sm

    return {
        method: im2col.mix(method, shape, feature_map, passes).cycles(IntegerRates(), sub_cores(method))
        for method in im2col.METHODS
        if is_sparse or method.startswith("dense")
    }
