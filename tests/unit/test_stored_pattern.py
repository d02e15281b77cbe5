"""Operands stay in their files between the check and the run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stcsim.errors import WorkloadError
from stcsim.workload.pattern import MaskPattern
from stcsim.workload.pattern_file import check_pattern, save_patterns
from stcsim.workload.stored_pattern import StoredPattern

MASK = np.array([[1, 0, 1], [0, 0, 1]], dtype=bool)


@pytest.fixture(params=["npz", "npy"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"t.{request.param}"
    if request.param == "npz":
        save_patterns(path, {"w": MaskPattern(MASK)}, {})
    else:
        np.save(path, MASK)
    return path


@pytest.mark.parametrize("is_transposed", [False, True])
def test_a_pattern_is_read_when_it_is_needed(path: Path, is_transposed: bool) -> None:
    stored = StoredPattern.check(path, None, is_transposed=is_transposed)
    want = MASK.T if is_transposed else MASK
    assert stored.shape == want.shape
    np.testing.assert_array_equal(stored.load().mask(), want)
    assert stored.digest == MaskPattern(want).digest
    assert check_pattern(path) == MASK.shape


def test_a_file_that_changes_meanwhile_is_told(path: Path) -> None:
    stored = StoredPattern.check(path, None)
    if path.suffix == ".npz":
        save_patterns(path, {"w": MaskPattern(MASK.T)}, {})
    else:
        np.save(path, MASK.T)
    with pytest.raises(WorkloadError) as caught:
        stored.load()
    assert str(caught.value) == f"{path}: must not change while a study runs"


def test_checking_bitmaps_finds_the_same_faults_as_reading_them(tmp_path: Path) -> None:
    save_patterns(tmp_path / "t.npz", {"a": MaskPattern(MASK), "b": MaskPattern(MASK)}, {})
    with pytest.raises(WorkloadError, match="must be read with a key"):
        check_pattern(tmp_path / "t.npz")
    with pytest.raises(WorkloadError, match="must be a known pattern of this file"):
        check_pattern(tmp_path / "t.npz", "c")
