"""Kernels that stand in tables: each loads, and fits the machines whose tables list it."""

from __future__ import annotations

import pytest

from stcsim.auto import listed
from stcsim.catalog import kernels_of_table, load_kernel, load_machine, shipped, tabulated
from stcsim.config.loader import load
from stcsim.errors import ConfigError, LoweringError
from stcsim.lowering.main_loop import MainLoop
from stcsim.machine.occupancy import resident_ctas
from stcsim.resources import data_path
from stcsim.run import require_fit

TABLES = sorted(path.stem for path in data_path("configs", "kernels", "tables").glob("*.yaml"))
PAIRS = [
    (name, table)
    for name in shipped("machine")
    for table in load_machine(name)[0].machine.kernel_tables
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(tabulated()))
def test_every_tabulated_kernel_loads_under_its_own_name_and_its_warps_tile_the_cta(name: str) -> None:
    kernel = load_kernel(name)[0].kernel
    assert kernel.name == name
    tile = kernel.tile
    assert tile.warps_m * tile.m_warp == tile.m_cta
    assert tile.warps_n * tile.n_warp == tile.n_cta
    assert kernel.grid.split_k == 1


def test_no_name_stands_in_two_tables_or_beside_a_file_of_its_own() -> None:
    tables = data_path("configs", "kernels", "tables")
    names = [name for path in tables.glob("*.yaml") for name in load(path).get(("entries",))]
    names += [path.stem for path in data_path("configs", "kernels").glob("*.yaml")]
    assert sorted(names) == shipped("kernel")


@pytest.mark.parametrize("name", ["hmma16816_128x64x32_s6", "hmma16816_128x128x32"])
def test_a_name_that_ends_in_splitk3_is_the_kernel_with_three_ctas_along_k(name: str) -> None:
    plain, split = load_kernel(name)[0].kernel, load_kernel(f"{name}_splitk3")[0].kernel
    assert split.grid.split_k == 3
    grid = split.grid.model_copy(update={"split_k": 1})
    assert split.model_copy(update={"name": name, "grid": grid}) == plain


def test_splitting_an_unknown_kernel_tells_the_name_that_was_meant() -> None:
    with pytest.raises(ConfigError) as error:
        load_kernel("hmma16816_128x64x32_s7_splitk3")
    (line,) = str(error.value).splitlines()
    assert line.endswith("not hmma16816_128x64x32_s7 (did you mean hmma16816_128x64x32_s6?)")


def test_an_unknown_table_is_told_in_one_line() -> None:
    with pytest.raises(ConfigError) as error:
        kernels_of_table("sm80_hmma16817")
    known = ", ".join(TABLES)
    assert str(error.value) == (
        f"must be a known kernel table ({known}), not sm80_hmma16817 (did you mean sm80_hmma16816?)"
    )


def test_a_table_lists_each_kernel_with_each_of_its_splits_in_order() -> None:
    names = kernels_of_table("sm80_hmma16816")
    assert len(names) == 4 * 16
    assert names[:5] == [
        *(f"hmma16816_256x128x32_s3{split}" for split in ("", "_splitk2", "_splitk3", "_splitk4")),
        "hmma16816_128x256x32_s3",
    ]
    assert kernels_of_table("h200_lean")[0] == "f16_128x128x32_w64x64_s4_lean"


# GA102's SM holds 100 KiB: of sm_80's tables it runs what fits, which CUTLASS's sm_86 kernels are too.
SMALLER = "rtx-3090"


@pytest.mark.parametrize(
    ("machine", "table"),
    [pair for pair in PAIRS if pair[0] != SMALLER],
    ids=["-".join(pair) for pair in PAIRS if pair[0] != SMALLER],
)
def test_every_kernel_of_a_machines_tables_fits_it(machine: str, table: str) -> None:
    on = load_machine(machine)[0].machine
    for name in kernels_of_table(table):
        kernel = load_kernel(name)[0].kernel
        for dtype in kernel.instructions:
            require_fit(on, kernel, dtype, "numba")
            stage_bytes = MainLoop(kernel, dtype, kernel.tile).stage_bytes
            assert resident_ctas(on, kernel, dtype, None, stage_bytes) >= 1


@pytest.mark.parametrize("table", load_machine(SMALLER)[0].machine.kernel_tables)
def test_the_smaller_ampere_runs_a_kernel_of_each_table_and_refuses_what_its_shared_memory_cannot_hold(
    table: str,
) -> None:
    on = load_machine(SMALLER)[0].machine
    runs = 0
    for name in kernels_of_table(table):
        kernel = load_kernel(name)[0].kernel
        for dtype in kernel.instructions:
            stage_bytes = MainLoop(kernel, dtype, kernel.tile).stage_bytes
            fits = (
                kernel.stages * stage_bytes + on.shared_memory.reserved_per_cta <= on.shared_memory.capacity
            )
            if fits:
                runs += resident_ctas(on, kernel, dtype, None, stage_bytes)
                continue
            with pytest.raises(LoweringError, match="of 102400 bytes of shared memory"):
                resident_ctas(on, kernel, dtype, None, stage_bytes)
    assert runs > 0


def test_a_machine_lists_its_named_kernels_before_its_tables_each_once() -> None:
    names = [entry.kernel.name for entry in listed(load_machine("a100-pcie-80gb")[0], "int8")]
    assert names[0] == "hmma16816_128x128x32"
    assert names.index("imma16832_256x128x64_s3") < names.index("imma_sp16864_128x64x128_s3")
    assert len(names) == len(set(names))
