"""Matrix Market files: every kind of them, and what is wrong with the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stcsim.errors import WorkloadError
from stcsim.workload.pattern_file import load_pattern


def write(folder: Path, text: str) -> Path:
    path = folder / "m.mtx"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        (
            "%%MatrixMarket matrix coordinate real general\n% c\n2 3 3\n1 1 1.5\n2 3 -2\n2 1 0\n",
            ["100", "001"],
        ),
        ("%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n", ["001", "100"]),
        ("%%MatrixMarket matrix coordinate integer symmetric\n3 3 2\n2 1 4\n3 3 1\n", ["010", "100", "001"]),
        ("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", ["01", "10"]),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 5\n", ["01", "10"]),
        ("%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 3\n1 1 -3\n", ["00"]),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n3\n", ["10", "01"]),
        ("%%MatrixMarket matrix array real symmetric\n2 2\n0\n5\n1\n", ["01", "11"]),
        ("%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n0\n2\n", ["010", "101", "010"]),
        ("%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 0 0\n2 1 0 3\n", ["01", "10"]),
        ("%%MatrixMarket matrix coordinate real general\n2 2 0\n", ["00", "00"]),
    ],
)
def test_a_file_is_the_pattern_of_its_non_zeros(tmp_path: Path, text: str, mask: list[str]) -> None:
    found = load_pattern(write(tmp_path, text)).mask()
    assert ["".join(map(str, row)) for row in found.astype(int)] == mask


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 3\n", ":1: must start with %%MatrixMarket (is this a Matrix Market file?)"),
        (
            "%%MatrixMarket matrix coordinate pattern general\n99999999 99999999 1\n1 1\n",
            ":2: must have at most 1073741824 elements, not 99999999 x 99999999 = 9999999800000001",
        ),
        (
            "%%MatrixMarket matrix coordinate pattern general\n2 2 99999999999\n1 1\n",
            ": must be at least 399999999995 bytes long for the 99999999999 entries that its header declares, not 69",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan\n",
            ":3: must hold 3 finite numbers, not 1 1 nan",
        ),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(WorkloadError) as caught:
        load_pattern(path)
    assert str(caught.value) == f"{path}{message}"


@pytest.mark.parametrize(
    "text",
    [
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n",
        "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 x 1\n",
        "%%MatrixMarket matrix coordinate real strange\n2 2 1\n1 1 1\n",
        "%%MatrixMarket",
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(WorkloadError) as caught:
        load_pattern(path)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{path}:")
    assert "must " in line


def test_a_file_that_is_cut_short_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    """A trailing blank without a line's end is enough to crash other readers."""
    text = "%%MatrixMarket matrix coordinate real symmetric\n% c\n4 4 3\n1 1 2.5 \n4 1 -1\n2 2 1e3 \n"
    for length in range(1, len(text) + 1):
        path = write(tmp_path, text[:length])
        try:
            pattern = load_pattern(path)
        except WorkloadError:
            continue
        assert length > len(text) - 8
        assert pattern.nnz == 4


def test_it_reads_what_scipy_writes(tmp_path: Path, rng: np.random.Generator) -> None:
    scipy_io, sparse = pytest.importorskip("scipy.io"), pytest.importorskip("scipy.sparse")
    matrix = sparse.coo_array(np.where(rng.random((40, 30)) < 0.1, rng.random((40, 30)), 0))
    scipy_io.mmwrite(tmp_path / "m.mtx", matrix)
    np.testing.assert_array_equal(load_pattern(tmp_path / "m.mtx").mask(), matrix.toarray() != 0)


def test_a_real_graph_is_read_if_it_is_at_hand(shared_data: Path) -> None:
    files = sorted(shared_data.rglob("*.mtx"))
    if not files:
        pytest.skip("no .mtx file beside the repository")
    assert np.all([load_pattern(path).nnz > 0 for path in files])
