"""``stcsim sim gemm``: counts against dense numpy, odd sizes on every kernel, and every error in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stcsim.catalog import shipped

Run = Callable[..., Any]
KERNELS = [
    ("v100", "hmma884_128x128x32"),
    ("a100-sxm4-40gb", "hmma16816_128x128x32"),
    ("a100-sxm4-40gb", "hmma_sp16832_128x128x64"),
    ("dstc-v100", "spwmma_128x128x32"),
    ("dstc-v100", "owmma_128x128x32"),
    ("dstc-a100", "spwmma_128x128x32"),
]


def result(stcsim: Run, *args: str | Path) -> dict[str, Any]:
    ended = stcsim("sim", "gemm", *args, "--json")
    assert ended.status == 0, ended.err
    data: dict[str, Any] = json.loads(ended.out)
    return data


def saved(folder: Path, a: NDArray[Any], b: NDArray[Any]) -> list[str | Path]:
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    return ["--a", folder / "a.npy", "--b", folder / "b.npy"]


def clustered(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.bool_]:
    """A mask whose rows and columns have densities of their own, some of them empty."""
    density = np.outer(rng.random(rows) ** 2, rng.random(columns)) * (rng.random(columns) < 0.8)
    return rng.random((rows, columns)) < density


@pytest.mark.parametrize(
    ("m", "n", "k"), [(33, 31, 65), (1, 1, 1), (257, 129, 97), (96, 64, 48), (5, 7, 2), (64, 32, 16)]
)
def test_ohmma_and_useful_macs_equal_a_dense_numpy_count(
    stcsim: Run, tmp_path: Path, rng: np.random.Generator, m: int, n: int, k: int
) -> None:
    a, b = clustered(rng, m, k), clustered(rng, k, n)
    got = result(stcsim, *saved(tmp_path, a, b), "--machine", "dstc-v100")
    padded_a = np.zeros((-(-m // 32) * 32, k), int)
    padded_a[:m] = a
    padded_b = np.zeros((k, -(-n // 32) * 32), int)
    padded_b[:, :n] = b
    groups_a = np.ceil(padded_a.reshape(-1, 32, k).sum(1) / 8)
    groups_b = np.ceil(padded_b.reshape(k, -1, 32).sum(2) / 16)
    assert got["instructions"]["OHMMA.8161"] == int((groups_a @ groups_b).sum())
    assert got["macs_useful"] == int((a.astype(int) @ b.astype(int)).sum())
    assert got["macs_executed"] == got["macs_useful"]
    assert got["macs_executed"] + got["macs_skipped"] == m * n * k == got["macs_total"]
    assert got["mac_slots"] == 128 * got["instructions"]["OHMMA.8161"]


@pytest.mark.parametrize(("machine", "kernel"), KERNELS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 1, 1), (33, 17, 31), (33, 64, 65), (128, 1, 47), (0, 8, 8), (8, 0, 8), (8, 8, 0), (0, 0, 0)],
)
def test_every_value_is_right_at_odd_sizes(
    stcsim: Run, machine: str, kernel: str, m: int, n: int, k: int
) -> None:
    got = result(
        stcsim, "--m", str(m), "--n", str(n), "--k", str(k), "--density-a", "0.6", "--density-b", "0.7",
        "--machine", machine, "--kernel", kernel, "--adapt", "prune", "--check-tiles", "999",
    )  # fmt: skip
    assert got["check"] == {"share": 1.0, "ok": True}
    assert sum(got["stalls"].values()) == got["cycles"] * got["sub_cores"]
    assert all(0 <= value <= 1 for value in got["utilization"].values())
    assert got["macs_executed"] + got["macs_skipped"] == m * n * k
    assert (got["cycles"] == 0) == (m * n == 0)  # a K of 0 still has C written


@pytest.mark.parametrize("k", range(1, 66, 8))
def test_every_k_tail_is_value_correct_on_dstc(stcsim: Run, k: int) -> None:
    got = result(stcsim, "--m", "33", "--n", "40", "--k", str(k), "--density-a", "0.5", "--machine", "dstc-v100",
                 "--check-tiles", "99")  # fmt: skip
    assert got["check"] == {"share": 1.0, "ok": True}


def test_both_engines_and_any_thread_count_give_the_same_result(stcsim: Run) -> None:
    shape = ["--m", "200", "--n", "100", "--k", "60", "--density-a", "0.3", "--density-b", "0.4"]
    base = result(stcsim, *shape, "--machine", "dstc-v100")
    slow = result(stcsim, *shape, "--machine", "dstc-v100", "--engine", "reference")
    one = result(stcsim, *shape, "--machine", "dstc-v100", "--threads", "1")
    assert one == base
    assert {**slow, "engine": "numba"} == base


def test_a_sparser_operand_on_the_smaller_quantum_is_found_by_auto(stcsim: Run) -> None:
    shape = ["--m", "256", "--n", "256", "--k", "64", "--density-a", "1", "--density-b", "0.3",
             "--machine", "dstc-v100"]  # fmt: skip
    given, other = result(stcsim, *shape), result(stcsim, *shape, "--sparse-side", "b")
    best = result(stcsim, *shape, "--sparse-side", "auto")
    assert given["notes"] == []
    assert other["notes"] == ["transposed: B stands on the sparse side (A)"]
    assert other["cycles"] < given["cycles"]
    assert best["cycles"] == other["cycles"]
    assert best["notes"] == other["notes"]
    assert (other["m"], other["density_b"]) == (256, given["density_b"])


def test_macs_of_a_huge_layer_are_counted_in_64_bits(stcsim: Run) -> None:
    got = result(
        stcsim, "--m", "32", "--n", "8192", "--k", "8192", "--machine", "a100-sxm4-40gb", "--check-tiles", "0"
    )
    assert got["macs_total"] == 2_147_483_648
    assert got["check"] == {"share": 0.0, "ok": None}


def test_a_2_to_4_kernel_refuses_another_pattern_and_names_the_axis(stcsim: Run, tmp_path: Path) -> None:
    # 1100 1100 in each row: right along K, wrong along the other axis.
    mask = np.tile(np.array([1, 1, 0, 0], bool), (8, 2))
    dense = np.ones((8, 8), bool)
    sparse = ["--machine", "a100-sxm4-40gb", "--kernel", "hmma_sp16832_128x128x64"]
    assert result(stcsim, *saved(tmp_path, mask, dense), *sparse)["macs_executed"] == 8 * 8 * 8 // 2
    ended = stcsim("sim", "gemm", *saved(tmp_path, mask.T.copy(), dense), *sparse)
    assert ended.status == 2
    assert ended.out == ""
    assert ended.err == (
        "workload gemm: a: must have at most 2 non-zeros in every 4 consecutive elements along k (axis 1 of A), "
        "not 4 in row 0, columns 0 to 3 (8 of 16 groups have too many) (adapt: dense or adapt: prune would run it)\n"
    )


def test_zeros_beyond_2_to_4_do_not_help_mma_sp_but_help_dstc(stcsim: Run, tmp_path: Path) -> None:
    half = np.tile(np.array([1, 0, 1, 0], bool), (64, 16))
    none = np.zeros_like(half)
    full, thin = np.ones((64, 64), bool), np.eye(64, dtype=bool)
    sparse = ["--machine", "a100-sxm4-40gb", "--kernel", "hmma_sp16832_128x128x64"]
    cycles = {
        (i, j): result(stcsim, *saved(tmp_path, a, b), *sparse)["cycles"]
        for i, a in enumerate((half, none))
        for j, b in enumerate((full, thin))
    }
    assert len(set(cycles.values())) == 1
    dense_b = result(stcsim, *saved(tmp_path, half, full), "--machine", "dstc-v100")["cycles"]
    thin_b = result(stcsim, *saved(tmp_path, half, thin), "--machine", "dstc-v100")["cycles"]
    assert thin_b < dense_b
    # An empty operand leaves nothing but zeros to write: four tiles of 1024 words at 32 a cycle, one a sub-core.
    nothing = result(stcsim, *saved(tmp_path, none, full), "--machine", "dstc-v100", "--level", "sm")
    assert (nothing["cycles"], nothing["instructions"]["OHMMA.8161"]) == (32, 0)


def test_prune_reports_its_loss_and_dense_names_the_kernel_that_ran(stcsim: Run) -> None:
    shape = ["--m", "64", "--n", "64", "--k", "64", "--machine", "a100-sxm4-40gb",
             "--kernel", "hmma_sp16832_128x128x64"]  # fmt: skip
    pruned = result(stcsim, *shape, "--adapt", "prune")
    assert pruned["notes"] == ["adapted: prune, 50.0% of the weight's non-zeros dropped"]
    assert pruned["macs_useful"] == 64 * 64 * 32
    dense = result(stcsim, *shape, "--adapt", "dense")
    assert dense["kernel"] == "hmma16816_128x128x32"
    assert dense["notes"][0].startswith(
        "adapted: dense, run by hmma16816_128x128x32: must have at most 2 non-zeros"
    )


def test_a_k_that_is_no_multiple_of_four_is_padded_and_said(stcsim: Run) -> None:
    got = result(stcsim, "--m", "8", "--n", "8", "--k", "30", "--machine", "a100-sxm4-40gb",
                 "--kernel", "hmma_sp16832_128x128x64", "--adapt", "prune")  # fmt: skip
    assert got["notes"][-1] == "K = 30 stored as 32 (whole groups of 4)"
    # 7 whole groups store 2 each, the last one, 2 wide, stores its 2: 16 of 30.
    assert got["macs_executed"] == 8 * 8 * 16


ERRORS = [
    (["--machine", "dstc-v10", "--m", "1", "--n", "1", "--k", "1"],
     f"--machine: must be a known machine ({', '.join(shipped('machine'))}), not dstc-v10 "
     "(did you mean dstc-v100?)"),
    (["--machine", "v100", "--m", "1", "--n", "1"], "--k: must be given, or come from a file"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--density-a", "70"],
     "--density-a: must be a fraction from 0 to 1, not 70.0"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--density-b", "nan"],
     "--density-b: must be a fraction from 0 to 1, not nan"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--dtype", "fp8"],
     "--dtype: must be one of fp16, bf16, tf32, int8, not fp8"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--dtype", "int8"],
     "kernel hmma884_128x128x32 on v100: operand type must be one of fp16, not int8"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--kernel", "spwmma_128x128x32"],
     "kernel spwmma_128x128x32 on v100: datapath must be one that v100 has (inner_product), not outer_product"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--kernel", "spwma_128x128x32"],
     f"--kernel: must be a known kernel ({', '.join(shipped('kernel'))}), not spwma_128x128x32 "
     "(did you mean spwmma_128x128x32?)"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--set", "machine.clok=1GHz"],
     "--set machine.clok=1GHz: clok: must be a known key (clock, cta_slots_per_sm, gpu, kernel_tables, "
     "kernels, name, registers_per_sm, "
     "registers_per_warp_unit, scheduler, shared_memory, sm, sms, sub_cores_per_sm, summary, tensor_core, "
     "warp_slots_per_sm), not clok (did you mean clock?)"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--set", "kernel.tile.m_ct=1"],
     "--set kernel.tile.m_ct=1: tile.m_ct: must be a known key (k_cta, m_cta, m_warp, n_cta, n_warp), not m_ct "
     "(did you mean m_cta?)"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--set", "machine.clock=1.2GB"],
     "--set machine.clock=1.2GB: clock: must be a frequency with its unit (Hz, kHz, MHz, GHz), such as 1.41 GHz, "
     "not 1.2GB"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--set", "clock=1GHz"],
     "--set clock=1GHz: must be machine.PATH=VALUE or kernel.PATH=VALUE"),
    (["--machine", "v100", "--m", "1", "--n", "1", "--k", "1", "--key-a", "x"],
     "--key-a: must come with --a FILE"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "message"), ERRORS, ids=[message[:40] for _, message in ERRORS])
def test_a_bad_argument_is_one_clear_line(stcsim: Run, args: list[str], message: str) -> None:
    ended = stcsim("sim", "gemm", *args)
    assert (ended.status, ended.out, ended.err) == (2, "", f"{message}\n")


def test_matrices_whose_shapes_disagree_are_refused(stcsim: Run, tmp_path: Path) -> None:
    files = saved(tmp_path, np.ones((4, 5), bool), np.ones((6, 7), bool))
    ended = stcsim("sim", "gemm", *files, "--machine", "v100")
    a, b = tmp_path / "a.npy", tmp_path / "b.npy"
    assert ended.status == 2
    assert ended.err == f"--k: must be the same everywhere, not 5 ({a} columns), 6 ({b} rows)\n"
