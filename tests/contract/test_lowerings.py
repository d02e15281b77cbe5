"""What every lowering and datapath must hold, over the registries: a new plug-in is picked up by itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stcsim.catalog import kernels_of_table, load_kernel, load_machine, shipped, tabulated
from stcsim.errors import LoweringError
from stcsim.formats import FORMATS
from stcsim.lowering import LOWERINGS
from stcsim.lowering.check import check_values
from stcsim.machine.datapaths import DATAPATHS
from stcsim.machine.simulator import simulate
from stcsim.run import require_compatible
from stcsim.workload.gemm import Gemm
from stcsim.workload.generator import Nm, Uniform, generate
from stcsim.workload.operand import Operand


def pairs() -> list[tuple[str, str]]:
    """Every shipped machine with every kernel that it lists."""
    return [(name, kernel) for name in shipped("machine") for kernel in load_machine(name)[0].machine.kernels]


@pytest.mark.parametrize("name", LOWERINGS.names())
def test_a_lowering_is_named_as_its_file_and_stores_operands_in_known_formats(name: str) -> None:
    lowering = LOWERINGS[name]
    assert lowering.name == name == lowering.__module__.rpartition(".")[2]
    assert lowering.format_a in FORMATS
    assert lowering.format_b in FORMATS
    assert lowering.summary


@pytest.mark.parametrize("name", DATAPATHS.names())
def test_a_datapath_is_named_as_its_file_and_takes_known_formats(name: str) -> None:
    datapath = DATAPATHS[name]
    assert datapath.name == name == datapath.__module__.rpartition(".")[2]
    assert all(item in FORMATS for item in datapath.formats_a | datapath.formats_b)
    assert datapath.families


@pytest.mark.parametrize("name", LOWERINGS.names())
def test_every_lowering_has_a_kernel_that_a_shipped_machine_lists(name: str) -> None:
    assert name in {load_kernel(kernel)[0].kernel.lowering for _, kernel in pairs()}


@pytest.mark.parametrize(("machine", "kernel"), pairs())
@settings(max_examples=12)  # each executes every instruction of a whole problem, twice
@given(
    m=st.integers(0, 140), n=st.integers(0, 140), k=st.integers(0, 70),
    density=st.sampled_from([0.0, 0.2, 1.0]), seed=st.integers(0, 99),
)  # fmt: skip
def test_a_lowered_problem_is_right_in_values_counts_and_engines(
    machine: str, kernel: str, m: int, n: int, k: int, density: float, seed: int
) -> None:
    entry, used = load_machine(machine)[0], load_kernel(kernel)[0].kernel
    lowering = LOWERINGS[used.lowering]
    options = Uniform(density=density) if lowering.takes_any_pattern else Nm(**used.options)
    a = Operand(generate(options, (m, k), seed=seed), "weight", seed, "drawn")
    b = Operand(
        generate(Uniform(density=0.5), (k, n), seed=seed, stream=1, k_axis=0), "activation", 1, "drawn"
    )
    gemm = Gemm("drawn", a, b)
    lowered = lowering.lower(gemm, used, "fp16", entry.machine)
    verdict = check_values(lowered, 999, seed=0)
    assert verdict.fault is None
    assert verdict.share == 1.0
    assert gemm.macs_useful <= lowered.macs_executed <= gemm.macs_total
    timing = simulate(lowered, entry.machine)
    assert timing == simulate(lowered, entry.machine, "reference")
    slots = sum(
        count * lowered.slots_per_instruction.get(name, 0) for name, count in timing.instructions.items()
    )
    assert lowered.macs_executed <= slots
    if lowered.steps is not None and not lowered.steps.dense:
        assert timing.products == gemm.macs_useful


ONE_OF_EACH_TABLE = [
    kernels_of_table(table)[0]
    for table in (
        "sm70_hmma884",
        "sm80_hmma16816",
        "sm80_imma16832",
        "sm80_hmma_sp16832",
        "sm80_imma_sp16864",
    )
]


@pytest.mark.parametrize("machine", shipped("machine"))
@pytest.mark.parametrize("kernel", sorted(set(shipped("kernel")) - set(tabulated())) + ONE_OF_EACH_TABLE)
def test_a_kernel_runs_on_a_machine_exactly_if_it_has_the_datapath(machine: str, kernel: str) -> None:
    entry, used = load_machine(machine)[0].machine, load_kernel(kernel)[0].kernel
    dtype = next(iter(used.instructions))
    if used.datapath in entry.tensor_core.datapaths and dtype in entry.tensor_core.macs_per_cycle:
        require_compatible(entry, used, dtype)
        return
    with pytest.raises(LoweringError) as refusal:
        require_compatible(entry, used, dtype)
    if used.datapath in entry.tensor_core.datapaths:
        return
    # Both sides and what is accepted are named.
    for part in (kernel, machine, used.datapath, *entry.tensor_core.datapaths):
        assert part in str(refusal.value)
