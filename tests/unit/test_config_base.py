"""A file with ``base:`` is its base and what differs; every value keeps the place where it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from stcsim.catalog import load_kernel, load_machine
from stcsim.errors import ConfigError

BASE = """name: BASE
summary: "of three"   # ASSUMED: for the test
lowering: dense_inner
datapath: inner_product
instructions: {fp16: HMMA.16816.F32}
tile: {m_cta: 64, n_cta: 64, k_cta: 32, m_warp: 32, n_warp: 32}
stages: 4             # ASSUMED: of the base
registers_per_thread: 100
"""


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)


def told(folder: Path, name: str) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_kernel(f"{name}.yaml", folder=folder)
    return str(error.value).splitlines()


def test_a_chain_of_bases_is_joined_key_by_key_and_the_nearest_value_counts(tmp_path: Path) -> None:
    write(
        tmp_path,
        bottom=BASE.replace("BASE", "bottom"),
        middle="base: bottom.yaml\nname: middle\nstages: 3\ntile: {m_cta: 128, n_cta: 128}\n",
        top="base: middle.yaml\nname: top\ntile: {n_cta: 256}\n",
    )
    kernel = load_kernel("top.yaml", folder=tmp_path)[0].kernel
    assert (kernel.name, kernel.summary, kernel.stages) == ("top", "of three", 3)
    assert (kernel.tile.m_cta, kernel.tile.n_cta, kernel.tile.k_cta) == (128, 256, 32)


def test_a_file_may_build_on_a_shipped_one_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, mine="base: a100-pcie-80gb\nname: mine\nsms: 4\n")
    machine = load_machine("mine.yaml", folder=tmp_path)[0].machine
    shipped = load_machine("a100-pcie-80gb")[0].machine
    assert machine == shipped.model_copy(update={"name": "mine", "sms": 4})


def test_a_base_is_looked_for_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(
        tmp_path / "parts", bottom=BASE.replace("BASE", "bottom"), middle="base: bottom.yaml\nname: middle\n"
    )
    write(tmp_path, top="base: parts/middle.yaml\nname: top\nstages: 3\n")
    assert load_kernel("top.yaml", folder=tmp_path)[0].kernel.stages == 3


def test_lists_are_not_joined_but_replaced(tmp_path: Path) -> None:
    write(tmp_path, mine="base: a100-sxm4-40gb\nname: mine\nkernel_tables: [sm80_imma16832]\n")
    assert load_machine("mine.yaml", folder=tmp_path)[0].machine.kernel_tables == ("sm80_imma16832",)


@pytest.mark.parametrize(
    ("texts", "at", "name"),
    [
        ({"mine": "base: mine.yaml\nname: mine\n"}, "mine.yaml", "mine.yaml"),
        ({"mine": "base: b.yaml\nname: mine\n", "b": "base: mine.yaml\nname: b\n"}, "b.yaml", "mine.yaml"),
        ({"mine": "base: b.yaml\nname: mine\n", "b": "base: b.yaml\nname: b\n"}, "b.yaml", "b.yaml"),
    ],
    ids=["itself", "two", "further up"],
)
def test_bases_that_lead_back_are_told_in_one_line(
    tmp_path: Path, texts: dict[str, str], at: str, name: str
) -> None:
    write(tmp_path, **texts)
    (line,) = told(tmp_path, "mine")
    assert line == f"{tmp_path / at}:1: base: must not lead back to the file itself, not {name}"


def test_an_unknown_base_is_told_where_it_is_named_with_the_name_that_was_meant(tmp_path: Path) -> None:
    write(tmp_path, mine="name: mine\nbase: hmma16816_128x128x33\n")
    (line,) = told(tmp_path, "mine")
    assert line.startswith(f"{tmp_path / 'mine.yaml'}:2: base: must be a known kernel (")
    assert line.endswith("), not hmma16816_128x128x33 (did you mean hmma16816_128x128x32?)")


def test_a_base_that_is_no_name_is_told_in_one_line(tmp_path: Path) -> None:
    write(tmp_path, mine="name: mine\nbase: [one, two]\n")
    (line,) = told(tmp_path, "mine")
    assert line == (
        f"{tmp_path / 'mine.yaml'}:2: base: must be the name of a file to build on, not ['one', 'two']"
    )


def test_a_fault_in_the_base_is_told_in_the_bases_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        bottom=BASE.replace("BASE", "bottom").replace("stages: 4", "stages: 0"),
        top="base: bottom.yaml\nname: top\n",
    )
    (line,) = told(tmp_path, "top")
    assert line.startswith(f"{tmp_path / 'bottom.yaml'}:7: stages: ")
    assert line.endswith(", not 0")


def test_a_fault_in_a_value_over_a_base_is_told_in_its_own_file(tmp_path: Path) -> None:
    write(tmp_path, bottom=BASE.replace("BASE", "bottom"), top="base: bottom.yaml\nname: top\n\nstagse: 3\n")
    (line,) = told(tmp_path, "top")
    assert line.startswith(f"{tmp_path / 'top.yaml'}:4: stagse: ")
    assert line.endswith("(did you mean stages?)")


def test_an_override_reaches_a_value_that_stands_in_the_base(tmp_path: Path) -> None:
    write(tmp_path, bottom=BASE.replace("BASE", "bottom"), top="base: bottom.yaml\nname: top\n")
    entry, left = load_kernel("top.yaml", folder=tmp_path, overrides=["stages=7", "tile.k_cta=64"])
    assert not left
    assert (entry.kernel.stages, entry.kernel.tile.k_cta, entry.kernel.tile.m_cta) == (7, 64, 64)
    # What the user says is no assumption any more.
    assert [one.path for one in entry.assumed] == ["summary"]


def test_what_is_assumed_is_told_with_the_file_that_it_stands_in(tmp_path: Path) -> None:
    write(
        tmp_path,
        bottom=BASE.replace("BASE", "bottom"),
        top="base: bottom.yaml\nname: top\nregisters_per_thread: 90   # ASSUMED: of the top\n",
    )
    found = {(one.file, one.path): one.reason for one in load_kernel("top.yaml", folder=tmp_path)[0].assumed}
    assert found == {
        ("bottom.yaml", "summary"): "for the test",
        ("bottom.yaml", "stages"): "of the base",
        ("top.yaml", "registers_per_thread"): "of the top",
    }


def test_what_a_base_assumes_and_the_file_says_is_assumed_no_more(tmp_path: Path) -> None:
    write(tmp_path, bottom=BASE.replace("BASE", "bottom"), top="base: bottom.yaml\nname: top\nstages: 4\n")
    found = [one.path for one in load_kernel("top.yaml", folder=tmp_path)[0].assumed]
    assert found == ["summary"]
