"""``kernel: auto``: the race finds the fastest kernel without running all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from stcsim.auto import Tried, fastest, listed, race
from stcsim.catalog import KernelEntry, MachineEntry, load_kernel, load_machine
from stcsim.errors import LoweringError
from stcsim.gpu_validation import of_sizes
from stcsim.lowering import LOWERINGS
from stcsim.lowering.lowered import Lowered

Lower = Callable[[KernelEntry], Lowered]
NAMES = [
    "hmma16816_256x128x32_s3", "hmma16816_128x128x32_s5", "hmma16816_64x64x32_s10", "hmma16816_64x64x32_s10_splitk4",
    "hmma16816_128x128x32_s5_splitk2",
]  # fmt: skip


@pytest.fixture(scope="module")
def machine() -> MachineEntry:
    return load_machine("a100-pcie-80gb")[0]


@pytest.fixture(scope="module")
def kernels() -> list[KernelEntry]:
    return [load_kernel(name)[0] for name in NAMES]


def lowering(machine: MachineEntry, m: int, n: int, k: int) -> Lower:
    def lower(entry: KernelEntry) -> Lowered:
        one = LOWERINGS[entry.kernel.lowering]
        return one.of_shape(of_sizes(m, n, k), entry.kernel, "fp16", machine.machine)

    return lower


def names(tried: list[Tried]) -> list[str]:
    return [one.kernel.kernel.name for one in tried]


def too_large(entry: KernelEntry, name: str) -> KernelEntry:
    """The same kernel with more stages than shared memory holds."""
    return replace(entry, kernel=entry.kernel.model_copy(update={"name": name, "stages": 99}))


@pytest.mark.parametrize(
    ("m", "n", "k"), [(64, 64, 8192), (1000, 1000, 300), (4096, 4096, 512), (1, 4096, 4096)]
)
def test_the_race_returns_the_fastest_of_all(
    machine: MachineEntry, kernels: list[KernelEntry], m: int, n: int, k: int
) -> None:
    lower = lowering(machine, m, n, k)
    some, every = race(kernels, machine, lower), race(kernels, machine, lower, every=True)
    clock_hz = machine.machine.clock
    seconds = [one.seconds(clock_hz) for one in every]
    assert seconds == sorted(seconds)
    assert all(one.timing is not None and not one.reason for one in every)
    assert (some[0].kernel, some[0].timing) == (every[0].kernel, every[0].timing)
    assert sorted(names(some)) == sorted(names(every)) == sorted(NAMES)
    of_every = {one.kernel.kernel.name: one for one in every}
    for one in some:
        whole = of_every[one.kernel.kernel.name]
        if one.timing is None:
            assert one.reason == "cannot be the fastest"
            assert whole.seconds(clock_hz) >= one.least_seconds >= seconds[0]
        else:
            assert one.timing == whole.timing


def test_a_kernel_that_cannot_win_is_not_run(machine: MachineEntry, kernels: list[KernelEntry]) -> None:
    tried = race(kernels, machine, lowering(machine, 64, 64, 8192))
    assert any(one.reason == "cannot be the fastest" for one in tried)
    assert [one.timing is None for one in tried] == sorted(one.timing is None for one in tried)


def test_a_kernel_that_does_not_fit_is_listed_with_its_reason(
    machine: MachineEntry, kernels: list[KernelEntry]
) -> None:
    tried = race([too_large(kernels[0], "huge"), *kernels[1:3]], machine, lowering(machine, 300, 300, 300))
    assert sorted(names(tried)) == sorted(["huge", *NAMES[1:3]])
    assert tried[0].timing is not None
    huge = tried[names(tried).index("huge")]
    assert huge.timing is None
    assert huge.reason.startswith("machine a100-pcie-80gb: must fit one CTA of kernel huge on an SM, ")
    assert "\n" not in huge.reason


def test_ties_go_to_the_kernel_that_is_listed_first(
    machine: MachineEntry, kernels: list[KernelEntry]
) -> None:
    twins = [
        replace(kernels[1], kernel=kernels[1].kernel.model_copy(update={"name": name}))
        for name in ("zeta", "alpha", "mid")
    ]
    lower = lowering(machine, 500, 500, 500)
    assert names(race(twins, machine, lower, every=True)) == ["zeta", "alpha", "mid"]
    assert names(race(twins, machine, lower))[0] == "zeta"


def test_the_winner_does_not_depend_on_the_order_of_kernels_that_differ(
    machine: MachineEntry, kernels: list[KernelEntry]
) -> None:
    lower = lowering(machine, 1000, 700, 900)
    assert names(race(kernels, machine, lower))[0] == names(race(kernels[::-1], machine, lower))[0]


def test_where_no_kernel_runs_one_line_tells_why_the_first_does_not(
    machine: MachineEntry, kernels: list[KernelEntry]
) -> None:
    both = [too_large(kernels[0], "huge"), too_large(kernels[1], "larger")]
    tried = race(both, machine, lowering(machine, 100, 100, 100))
    with pytest.raises(LoweringError) as error:
        fastest(tried, "100 x 100 x 100")
    (line,) = str(error.value).splitlines()
    assert line.startswith(
        "100 x 100 x 100: must have a kernel that runs it: machine a100-pcie-80gb: must fit one "
    )
    assert "kernel huge" in line


def test_where_no_kernel_is_listed_one_line_says_so() -> None:
    with pytest.raises(LoweringError) as error:
        fastest([], "here")
    assert str(error.value) == (
        "here: must have a kernel that runs it: the machine lists none for this operand type"
    )


def test_a_machine_lists_only_kernels_of_the_operand_type(machine: MachineEntry) -> None:
    for dtype in ("fp16", "bf16", "tf32", "int8"):
        found = list(listed(machine, dtype))  # type: ignore[arg-type]  # of Dtype
        assert found
        assert all(dtype in entry.kernel.instructions for entry in found)
