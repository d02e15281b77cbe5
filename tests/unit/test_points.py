"""Which points a study has, in which order, and what stands in for a choice that cannot be run."""

from __future__ import annotations

from pathlib import Path

import pytest

from stcsim.errors import ConfigError
from stcsim.points import DesignSpace, axis_override, expand

STUDY = """\
name: small
machines:
  - machine: v100
  - machine: dstc-v100
baseline: {{machine: v100}}
{more}
workloads:
  - name: one
    gemm: {{m: 64, n: 64, k: 32}}
    a: {{role: weight, pattern: {{generator: uniform, density: 0.3}}}}
    b: {{role: activation, pattern: {{generator: uniform, density: 0.6}}}}
"""
TILES = "machine.tensor_core.accumulator.tiles"


def space(tmp_path: Path, more: str, *axes: str) -> DesignSpace:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.format(more=more))
    return expand(path, axis_override(axes, path))


def shown(found: DesignSpace) -> list[tuple[str, list[object], int]]:
    return [(point.machine_name, list(point.axes.values()), point.baseline) for point in found.points]


def test_a_machine_without_the_parameter_is_not_multiplied(tmp_path: Path) -> None:
    found = space(tmp_path, f"axes: [{{path: {TILES}, values: [4, 8]}}]")
    assert shown(found) == [("v100", [None], 0), ("dstc-v100", [4], 0), ("dstc-v100", [8], 0)]


def test_the_baseline_is_not_swept_by_machine_axes_but_by_those_of_the_study(tmp_path: Path) -> None:
    axes = "axes: [{path: machine.clock, values: [1 GHz]}, {path: workloads.0.gemm.k, values: [32, 64]}]"
    assert shown(space(tmp_path, axes)) == [
        ("v100", [None, 32], 0), ("v100", ["1 GHz", 32], 0), ("dstc-v100", ["1 GHz", 32], 0),
        ("v100", [None, 64], 3), ("v100", ["1 GHz", 64], 3), ("dstc-v100", ["1 GHz", 64], 3),
    ]  # fmt: skip


def test_only_restricts_an_axis_to_the_machines_and_kernels_that_it_names(tmp_path: Path) -> None:
    found = space(tmp_path, "axes: [{path: machine.clock, values: [1 GHz], only: [dstc-v100]}]")
    assert shown(found) == [("v100", [None], 0), ("dstc-v100", ["1 GHz"], 0)]


def test_a_constraint_leaves_out_points_and_does_not_bind_where_there_is_no_such_parameter(
    tmp_path: Path,
) -> None:
    more = (
        f"axes: [{{path: {TILES}, values: [4, 8, 16]}}]\n"
        f"constraints: [{{left: {TILES}, compare: at_most, right: kernel.tile.k_cta}}, "
        f"{{left: {TILES}, compare: less_than, right: 16}}]"
    )
    found = space(tmp_path, more)
    assert [axes[0] for _, axes, _ in shown(found)] == [None, 4, 8]
    assert found.left_out == 1


def test_repetitions_follow_the_seed(tmp_path: Path) -> None:
    found = space(tmp_path, "repetitions: 2")
    assert [(point.machine_name, point.repetition, point.baseline) for point in found.points] == [
        ("v100", 0, 0), ("dstc-v100", 0, 0), ("v100", 1, 2), ("dstc-v100", 1, 2),
    ]  # fmt: skip
    seeds = [point.variant.loaded.study.workloads[0].seed for point in found.points if point.variant.loaded]
    assert seeds == [0, 0, 1, 1]


def test_a_choice_that_makes_no_machine_kernel_or_workload_is_a_point_with_an_error(tmp_path: Path) -> None:
    more = "axes: [{path: kernel.tile.m_warp, values: [32, 48], only: [dstc-v100]}]"
    errors = [point.error for point in space(tmp_path, more).points]
    assert errors[:2] == [None, None]
    assert errors[2] is not None
    assert "m_cta must be a multiple of m_warp (48), not 128" in errors[2]
    # 1 tile on each of 4 sub-cores: 4 of the 16 that a CTA takes.
    few = [point.error for point in space(tmp_path, f"axes: [{{path: {TILES}, values: [4, 1]}}]").points]
    assert few[:2] == [None, None]
    assert few[2] is not None
    assert few[2].endswith("but it takes 16 of 4 accumulator tiles")


WRONG = [
    (f"axes: [{{path: {TILES}, values: [4, x]}}]", "axes.0.values.1: must be a whole number, not x"),
    ("axes: [{path: workloads.*.a.pattern.density, values: [0.5, 7]}]",
     "axes.0.values.1: must be a fraction between 0 and 1, such as density: 0.3 or sparsity: 0.7, not 7 "
     "(did you mean 0.07?)"),
    ("axes: [{path: workloads.0.a.pattern.density, range: {first: 0.5, last: 1.5, step: 0.5}}]",
     "axes.0.range: must be a fraction between 0 and 1, such as density: 0.3 or sparsity: 0.7, not 1.5 "
     "(did you mean 0.015?)"),
    ("axes: [{path: workloads.0.a.pattern.densty, values: [0.5]}]",
     "axes.0.path: must be a known key (density, sparsity), not densty (did you mean density?)"),
    ("axes: [{path: adapt, values: [prun]}]",
     "axes.0.values.0: must be one of dense, error, prune, not prun (did you mean prune?)"),
    ("axes: [{zip: [{path: machine.clock, values: [1 GHz, 1 GB]}, {path: kernel.stages, values: [2, 3]}]}]",
     "axes.0.zip.0.values.1: must be a frequency with its unit (Hz, kHz, MHz, GHz), such as 1.41 GHz, not 1 GB"),
    ("axes: [{path: kernel.options.swizzle, values: [1]}]",
     "axes.0.path: must be the path of a parameter of a kernel of the study, not kernel.options.swizzle "),
    (f"axes: [{{path: {TILES}, values: [1, 2]}}]",
     "machines.1.machine: machine dstc-v100: must fit one CTA of kernel spwmma_128x128x32 on an SM, but it takes "
     "16 of 4 accumulator tiles"),
    ("axes: [{path: kernel.instructions.fp16, values: [HMMA.16816.F32], only: [v100]}]",
     "machines.0.machine: kernel hmma884_128x128x32: instructions: must be a known tensor instruction of v100 "
     "(HMMA.884.F16.F16, HMMA.884.F32.F32), not HMMA.16816.F32 (did you mean HMMA.884.F32.F32?)"),
    ("constraints: [{left: machine.clock, compare: equal, right: 1.2 GHz}]",
     "constraints.0: must compare values of one kind, numbers in the base unit, not 1530000000.0 with 1.2 GHz"),
    ("constraints: [{left: kernel.stages, compare: at_most, right: kernl.stages}]",
     "constraints.0: must compare values of one kind, numbers in the base unit, not 2 with kernl.stages"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "message"), WRONG, ids=[message[:30] for _, message in WRONG])
def test_what_no_point_can_take_is_told_before_any_runs(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        space(tmp_path, more)
    (problem,) = caught.value.problems
    assert problem.line == {"machines.0": 3, "machines.1": 4}.get(message[:10], 6)
    assert f"{problem.path}: {problem.message}".startswith(message)


def test_a_value_that_is_wrong_beside_some_others_only_is_no_fault_of_the_study(tmp_path: Path) -> None:
    more = (
        "axes: [{path: workloads.0.a.pattern.generator, values: [uniform, clustered]}, "
        "{path: workloads.0.a.pattern.row_run, values: [2, 4]}]"
    )
    assert {point.error is None for point in space(tmp_path, more).points} == {True, False}


def test_an_axis_option_replaces_the_axis_of_its_path_or_comes_last(tmp_path: Path) -> None:
    more = f"axes: [{{path: {TILES}, values: [4, 8]}}]"
    found = space(tmp_path, more, f"{TILES}=16", "kernel.stages=2,3")
    assert [list(point.axes) for point in found.points][:1] == [[TILES, "kernel.stages"]]
    assert ("dstc-v100", [16, 3], 0) in shown(found)
    assert not any(axes[0] in (4, 8) for _, axes, _ in shown(found))


@pytest.mark.parametrize("option", ["kernel.stages", "=3", "kernel.stages="])
def test_a_malformed_axis_option_is_told(tmp_path: Path, option: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--axis {option}: must be PATH=VALUE,VALUE,..."):
        space(tmp_path, "", option)
