"""Pattern files: what is written is read, and whatever is wrong gives one clear error and little memory."""

import io
import json
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from stcsim.errors import WorkloadError
from stcsim.workload import pattern_file
from stcsim.workload.pattern import DensePattern, MaskPattern
from stcsim.workload.pattern_file import load_meta, load_pattern, pattern_names, save_patterns


def refusal(path, key=None, read=load_pattern):
    """Return the message of the error that reading a file gives, without the file's name."""
    with pytest.raises(WorkloadError) as caught:
        read(path, key) if read is load_pattern else read(path)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(str(path))
    return line.removeprefix(str(path))


# --- .smtx ---------------------------------------------------------------------------------------


def smtx(tmp_path, text):
    path = tmp_path / "w.smtx"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "3, 4, 5\n0 2 2 5 \n1 3 0 1 2 \n",
        "3,4,5\n0 2 2 5\n3 1 2 1 0",
        "\r\n3, 4, 5\r\n\r\n0 2 2 5\r\n1 3 0 1 2\r\n\r\n",
        "3 , 4 , 5\n0\t2\t2\t5\n1  3 0   1 2\n",
    ],
)
def test_an_smtx_file_is_three_lines_that_are_not_empty(tmp_path, text):
    pattern = load_pattern(smtx(tmp_path, text))
    assert pattern.mask().tolist() == [
        [False, True, False, True],
        [False, False, False, False],
        [True, True, True, False],
    ]


@pytest.mark.parametrize("text", ["2, 3, 0\n0 0 0\n\n", "2, 3, 0\n0 0 0", "2,3,0\n0 0 0\n   \n"])
def test_an_smtx_file_without_non_zeros_may_lack_its_third_line(tmp_path, text):
    assert load_pattern(smtx(tmp_path, text)) == MaskPattern(np.zeros((2, 3), dtype=bool))


@pytest.mark.parametrize(("text", "shape"), [("0, 5, 0\n0\n", (0, 5)), ("2, 0, 0\n0 0 0\n", (2, 0))])
def test_an_smtx_file_may_have_no_rows_or_columns(tmp_path, text, shape):
    assert load_pattern(smtx(tmp_path, text)).shape == shape


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n \n", ":1: must be three sizes: rows, columns, non-zeros, not an empty line"),
        ("3 4 5\n0\n", ":1: must be three sizes: rows, columns, non-zeros, not 3 4 5"),
        ("3, 4 5\n0\n", ":1: must be three sizes: rows, columns, non-zeros, not 3, 4 5"),
        ("3, 4, 5, 6\n", ":1: must be three sizes: rows, columns, non-zeros, not 3, 4, 5, 6"),
        ("a, 4, 5\n", ":1: must hold whole numbers of 64 bits only, not a"),
        ("-1, 4, 5\n", ":1: sizes must be 0 or more, not -1, 4, 5"),
        ("2, 2, 5\n0 2 5\n", ":1: non-zeros must be at most rows * columns (4), not 5"),
        ("3, 4, 5\n0 2 5\n1 2 0 1 2\n", ":2: must be rows + 1 = 4 row offsets, not 3"),
        ("3, 4, 5\n", ":2: must be rows + 1 = 4 row offsets, not 0"),
        ("3, 4, 5\n1 2 2 5\n1 3 0 1 2\n", ":2: row offsets must start at 0, not 1"),
        (
            "3, 4, 5\n0 3 2 5\n1 3 0 1 2\n",
            ":2: row offsets must not fall: offset 2 must be at least 3, not 2",
        ),
        (
            "3, 4, 5\n0 2 2 4\n1 3 0 1 2\n",
            ":2: the last row offset must be the number of non-zeros (5), not 4",
        ),
        ("3, 4, 5\n0 2 2 5.5\n1 3 0 1 2\n", ":2: must hold whole numbers of 64 bits only, not 5.5"),
        ("3, 4, 5\n0 2 2 5\n1 3 0 1\n", ":3: must be 5 column indices, not 4"),
        ("3, 4, 5\n0 2 2 5\n", ":3: must be 5 column indices, not 0"),
        ("3, 4, 5\n\n0 2 2 5\n1 3 0 1 4\n", ":4: column indices must be 0 to 3, not 4"),
        ("3, 4, 5\n0 2 2 5\n1 3 0 -1 2\n", ":3: column indices must be 0 to 3, not -1"),
        (
            "3, 4, 5\n0 2 2 5\n1 3 0 2 2\n",
            ":3: column indices of a row must all differ: row 2 must have 3 columns, not 2",
        ),
        (
            "3, 4, 5\n0 2 2 5\n1 3\n0 1 2\n",
            ":3: must be 5 column indices, not 2",
        ),
        (
            "3, 4, 2\n0 2 2 2\n1 3\n\n0 1 2\n",
            ":5: must end after the column indices (three lines that are not empty), not 0 1 2",
        ),
        (
            "3, 4, 5\n0 2 2 5\n1 3 0 1 9223372036854775808\n",
            ":3: must hold whole numbers of 64 bits only, not 9223372036854775808",
        ),
        ("3, 4, 1\n0 0 0 1\n1_0\n", ":3: must hold whole numbers of 64 bits only, not 1_0"),
        (
            "99999999999, 99999999999, 1\n",
            ":1: must have at most 1073741824 elements, "
            "not 99999999999 x 99999999999 = 9999999999800000000001",
        ),
        ("x" * 20000, ":1: must be three sizes: rows, columns, non-zeros (is this an .smtx file?)"),
        (
            "%!\u00e9" + "y" * 50 + "\n",
            f":1: must be three sizes: rows, columns, non-zeros, not %!\u00e9{'y' * 34}...",
        ),
    ],
)
def test_every_inconsistency_of_an_smtx_file_is_told_with_its_line(tmp_path, text, message):
    assert refusal(smtx(tmp_path, text)) == message


def test_an_smtx_file_far_longer_than_its_header_allows_is_not_read(tmp_path):
    path = smtx(tmp_path, "1, 2, 1\n0 1\n" + "0 " * 50_000)
    message = "must be at most 10060 bytes long for 2 offsets and 1 indices, not 100012"
    assert refusal(path) == f": {message}"


def test_numbers_that_stand_across_two_pieces_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(pattern_file, "_PIECE_BYTES", 5)
    columns = [100, 7, 333, 1, 20, 99999, 12345]
    path = smtx(tmp_path, f"1, 100000, 7\n0 7\n{' '.join(map(str, columns))}\n")
    assert sorted(columns) == np.flatnonzero(load_pattern(path).mask()[0]).tolist()


def test_real_pruned_matrices_load_with_the_counts_of_their_index(shared_data):
    """DLMC: every matrix of the index, parsed here by a loop of its own."""
    lines = (shared_data / "data" / "dlmc" / "index.csv").read_text().splitlines()
    rows = [dict(zip(lines[0].split(","), line.split(","), strict=True)) for line in lines[1:]]
    assert len(rows) > 50
    for row in rows:
        path = shared_data / "data" / "dlmc" / row["file"]
        pattern = load_pattern(path)
        counts = pattern.counts_per_row()
        assert pattern.shape == (int(row["nrows"]), int(row["ncols"]))
        assert pattern.nnz == int(row["nnz"])
        assert (counts.min(), counts.max()) == (int(row["min_row_nnz"]), int(row["max_row_nnz"]))
        assert np.count_nonzero(counts == 0) == int(row["empty_rows"])


def test_a_real_matrix_has_its_columns_where_the_file_says(shared_data):
    path = sorted((shared_data / "data" / "dlmc").glob("*.smtx"))[0]
    _, offsets, indices = (line.split() for line in path.read_text().splitlines() if line.strip())
    mask = load_pattern(path).mask()
    for row in range(0, len(mask), 37):
        columns = sorted(int(index) for index in indices[int(offsets[row]) : int(offsets[row + 1])])
        assert np.flatnonzero(mask[row]).tolist() == columns


# --- .npy ----------------------------------------------------------------------------------------

VALUES = np.array([[0, 1, -2], [3, 0, 0]])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", ">i4", "int64", "float16", "float32", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_any_non_zero_number_of_an_npy_array_counts(tmp_path, dtype, order):
    path = tmp_path / "w.npy"
    np.save(path, np.array(VALUES.astype(bool) if dtype == "uint16" else VALUES, dtype=dtype, order=order))
    assert load_pattern(path).mask().tolist() == (VALUES != 0).tolist()


def test_an_npy_array_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(pattern_file, "_PIECE_BYTES", 40)
    values = np.random.default_rng(0).integers(0, 2, (23, 7)).astype(np.float32)
    for array in (values, np.asfortranarray(values)):
        np.save(tmp_path / "w.npy", array)
        assert load_pattern(tmp_path / "w.npy").mask().tolist() == (values != 0).tolist()
    values[19, 4] = np.nan
    for array in (values, np.asfortranarray(values)):
        np.save(tmp_path / "w.npy", array)
        message = ": must hold finite numbers only: element (19, 4), not nan"
        assert refusal(tmp_path / "w.npy") == message


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (1, 1)])
def test_an_npy_array_may_have_no_elements(tmp_path, shape):
    np.save(tmp_path / "w.npy", np.ones(shape))
    assert load_pattern(tmp_path / "w.npy") == DensePattern(shape)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[1.0, np.inf]]), "must hold finite numbers only: element (0, 1), not inf"),
        (np.array([[-np.inf], [np.nan]]), "must hold finite numbers only: element (0, 0), not -inf"),
        (np.zeros(3), "must be an array with two dimensions, not the shape (3,)"),
        (np.zeros(()), "must be an array with two dimensions, not the shape ()"),
        (np.zeros((1, 2, 3)), "must be an array with two dimensions, not the shape (1, 2, 3)"),
        (
            np.zeros((2, 2), dtype=complex),
            "must be an array of booleans, integers or floats, not of the dtype <c16",
        ),
        (
            np.zeros((2, 2), dtype="M8[s]"),
            "must be an array of booleans, integers or floats, not of the dtype <M8[s]",
        ),
        (np.array([["a"]]), "must be an array of booleans, integers or floats, not of the dtype <U1"),
        (
            np.zeros((2, 2), dtype=[("x", "f4")]),
            "must be an array of booleans, integers or floats, not of the dtype [('x', '<f4')]",
        ),
    ],
)
def test_an_npy_array_that_is_no_matrix_of_numbers_is_refused(tmp_path, array, message):
    np.save(tmp_path / "w.npy", array)
    assert refusal(tmp_path / "w.npy") == f": {message}"


class Trap:
    """Leaves a trace if anybody unpickles it."""

    def __reduce__(self):
        return (os.mkdir, ("unpickled",))


def test_pickled_objects_are_never_loaded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "w.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    assert refusal(tmp_path / "w.npy") == ": must be an array of numbers: pickled objects are never loaded"
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Trap()))
    assert refusal(tmp_path / "p.npy") == f": {DAMAGED_NPY}"
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
        archive.write(tmp_path / "w.npy", "a.bits.npy")
        archive.write(tmp_path / "w.npy", "a.shape.npy")
    assert refusal(tmp_path / "w.npz") == (
        ": a.shape: must be an array of numbers: pickled objects are never loaded"
    )
    assert not Path("unpickled").exists()


DAMAGED_NPY = "must be an array in .npy format, but its header is cut short or damaged"


def npy_bytes(header, data=b"", version=(1, 0)):
    text = header.encode() + b"\n"
    size = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x93NUMPY", DAMAGED_NPY),
        (b"not an array", DAMAGED_NPY),
        (npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2"), DAMAGED_NPY),
        (
            npy_bytes("{'descr': 'nonsense', 'fortran_order': False, 'shape': (2, 2)}"),
            "must be an array of booleans, integers or floats, not of the dtype nonsense",
        ),
        (npy_bytes("__import__('os').system('true')"), DAMAGED_NPY),
        (npy_bytes("[" * 5000), DAMAGED_NPY),
        (
            npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), " + "'x': 1, " * 3000 + "}"),
            DAMAGED_NPY,
        ),
        (npy_bytes("{}"), DAMAGED_NPY),
        (npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 2)}"), DAMAGED_NPY),
        (npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': 4}"), DAMAGED_NPY),
        (npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1)}", version=(9, 0)), DAMAGED_NPY),
        (
            npy_bytes("{'descr': '|b1', 'fortran_order': False, 'shape': (-2, -2)}", b"abcd"),
            "must have sizes of 0 or more, not the shape (-2, -2)",
        ),
        (
            npy_bytes("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000, 1000000000)}"),
            "must have at most 1073741824 elements, not 1000000000 x 1000000000 = 1000000000000000000",
        ),
        (
            npy_bytes("{'descr': '<f8', 'fortran_order': False, 'shape': (32768, 32768)}"),
            "must be 8589934668 bytes long, as its header declares, not 76",
        ),
    ],
)
def test_a_damaged_npy_header_is_one_error_and_no_allocation(tmp_path, content, message):
    (tmp_path / "w.npy").write_bytes(content)
    tracemalloc.start()
    try:
        assert refusal(tmp_path / "w.npy") == f": {message}"
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_an_npy_file_cut_short_anywhere_is_refused(tmp_path):
    np.save(tmp_path / "w.npy", VALUES)
    whole = (tmp_path / "w.npy").read_bytes()
    for length in range(1, len(whole)):
        (tmp_path / "w.npy").write_bytes(whole[:length])
        message = refusal(tmp_path / "w.npy")
        assert message in (
            f": {DAMAGED_NPY}",
            f": must be {len(whole)} bytes long, as its header declares, not {length}",
        )
    (tmp_path / "w.npy").write_bytes(whole + b"x")
    assert refusal(tmp_path / "w.npy").startswith(f": must be {len(whole)} bytes long")


def test_every_version_of_the_npy_format_is_read(tmp_path):
    for version in ((1, 0), (2, 0), (3, 0)):
        with (tmp_path / "w.npy").open("wb") as stream:
            np.lib.format.write_array(stream, VALUES, version=version)
        assert load_pattern(tmp_path / "w.npy").nnz == 3


# --- .npz ----------------------------------------------------------------------------------------


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "t.npz"
    rng = np.random.default_rng(1)
    patterns = {
        "conv1.a": MaskPattern(rng.random((5, 9)) < 0.5),
        "conv1.b": MaskPattern(rng.random((9, 8)) < 0.2),
        "full": DensePattern((3, 3)),
        "none": DensePattern((0, 3)),
    }
    save_patterns(path, patterns, {"licence": "own", "layers": [{"name": "conv1"}], "note": "a \u2192 b"})
    return path, patterns


def test_patterns_come_back_as_they_were_saved(trace):
    path, patterns = trace
    assert pattern_names(path) == sorted(patterns)
    for name, pattern in patterns.items():
        assert load_pattern(path, name) == pattern
    assert load_meta(path) == {"licence": "own", "layers": [{"name": "conv1"}], "note": "a \u2192 b"}


def test_bitmaps_are_packbits_of_the_row_major_mask(trace):
    path, patterns = trace
    with np.load(path, allow_pickle=False) as archive:
        assert archive["conv1.a.shape"].tolist() == [5, 9]
        assert archive["conv1.a.shape"].dtype == np.int64
        np.testing.assert_array_equal(
            archive["conv1.a.bits"], np.packbits(patterns["conv1.a"].mask().ravel())
        )
        assert json.loads(bytes(archive["meta"]))["licence"] == "own"


def test_what_numpy_itself_saves_is_read(tmp_path):
    mask = np.random.default_rng(2).random((6, 7)) < 0.5
    arrays = {"only.bits": np.packbits(mask), "only.shape": np.array([6, 7])}
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "n.npz", **arrays)
        assert load_pattern(tmp_path / "n.npz") == MaskPattern(mask)
        assert load_meta(tmp_path / "n.npz") == {}


def test_names_that_a_file_makes_up_do_not_break_the_line_of_an_error(tmp_path):
    write_npz(tmp_path / "n.npz", **{"a\nb.bits": np.zeros(2, np.uint8), "a\nb.shape": np.array([3, 3])})
    assert load_pattern(tmp_path / "n.npz").shape == (3, 3)
    assert refusal(tmp_path / "n.npz", "x") == ": must be a known pattern of this file (a\\nb), not x"
    write_npz(tmp_path / "n.npz", **{"a\nb.bits": np.zeros(1, np.uint8), "a\nb.shape": np.array([3, 3])})
    assert refusal(tmp_path / "n.npz") == ": a\\nb.bits: must be 2 bytes for a 3 x 3 pattern, not 1"


def test_the_same_patterns_give_the_same_bytes(trace, tmp_path):
    path, patterns = trace
    save_patterns(tmp_path / "again.npz", dict(reversed(patterns.items())), load_meta(path))
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_a_key_is_needed_and_checked_where_there_are_several_patterns(trace):
    path, _ = trace
    message = ": must be read with a key, since it holds several patterns: conv1.a, conv1.b, full, none"
    assert refusal(path) == message
    assert refusal(path, "conv1.c") == (
        ": must be a known pattern of this file (conv1.a, conv1.b, full, none), "
        "not conv1.c (did you mean conv1.b?)"
    )


def write_npz(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"w": np.zeros((2, 2))}, "must hold bitmaps: arrays NAME.bits and NAME.shape, not w"),
        ({}, "must hold bitmaps: arrays NAME.bits and NAME.shape, not nothing"),
        ({"a.bits": np.zeros(1, np.uint8)}, "must hold bitmaps: arrays NAME.bits and NAME.shape, not a.bits"),
        (
            {"a.bits": np.zeros(1, np.uint8), "a.shape": np.array([1, 2, 3])},
            "a.shape: must be two sizes of 0 or more, not [1, 2, 3]",
        ),
        (
            {"a.bits": np.zeros(1, np.uint8), "a.shape": np.array([4])},
            "a.shape: must be two sizes of 0 or more, not [4]",
        ),
        (
            {"a.bits": np.zeros(1, np.uint8), "a.shape": np.array([-2, -2])},
            "a.shape: must be two sizes of 0 or more, not [-2, -2]",
        ),
        (
            {"a.bits": np.zeros(1, np.uint8), "a.shape": np.array([2.0, 2.0])},
            "a.shape: must be an array of int64 with one dimension, not float64 with the shape (2,)",
        ),
        (
            {"a.bits": np.zeros(1, np.uint8), "a.shape": np.array([1 << 40, 1 << 40])},
            "a.shape: must have at most 1073741824 elements, "
            "not 1099511627776 x 1099511627776 = 1208925819614629174706176",
        ),
        (
            {"a.bits": np.zeros(1, np.uint8), "a.shape": np.array([3, 3])},
            "a.bits: must be 2 bytes for a 3 x 3 pattern, not 1",
        ),
        (
            {"a.bits": np.zeros((1, 1), np.uint8), "a.shape": np.array([2, 2])},
            "a.bits: must be an array of uint8 with one dimension, not uint8 with the shape (1, 1)",
        ),
        (
            {"a.bits": np.array([0b11111000], np.uint8), "a.shape": np.array([2, 2])},
            "a.bits: must have zeros after its last element",
        ),
    ],
)
def test_an_npz_file_that_holds_no_sound_bitmap_is_refused(tmp_path, arrays, message):
    assert refusal(write_npz(tmp_path / "n.npz", **arrays)) == f": {message}"


DAMAGED_NPZ = ": must be an .npz archive, but is cut short or damaged"


def test_an_npz_file_cut_short_anywhere_or_with_a_flipped_byte_is_one_error_or_sound(trace, tmp_path):
    path, patterns = trace
    whole = path.read_bytes()
    broken = tmp_path / "b.npz"
    for length in range(1, len(whole), 7):
        broken.write_bytes(whole[:length])
        assert refusal(broken, "full") == DAMAGED_NPZ
    for position in range(len(whole)):
        broken.write_bytes(whole[:position] + bytes([whole[position] ^ 0x41]) + whole[position + 1 :])
        try:
            found = load_pattern(broken, "conv1.a")
        except WorkloadError:
            continue
        assert found == patterns["conv1.a"]


def bomb(path, name, size):
    """Write an archive whose member `name` unpacks to `size` zeros from a few kilobytes."""
    content = io.BytesIO()
    np.save(content, np.zeros(0, np.uint8))
    header = npy_bytes(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},)}}")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        shape = io.BytesIO()
        np.save(shape, np.array([8, 8]))
        if name != "a.shape":
            archive.writestr("a.shape.npy", shape.getvalue())
        with archive.open(f"{name}.npy", "w") as member:
            member.write(header)
            for _ in range(size >> 20):
                member.write(bytes(1 << 20))
        if name == "a.shape":
            archive.writestr("a.bits.npy", content.getvalue())
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.bits", "a.bits: must hold at most 8 bytes, not more"),
        ("a.shape", "a.shape: must hold at most 16 bytes, not more"),
    ],
)
def test_a_zip_bomb_is_refused_without_unpacking_it(tmp_path, name, message):
    path = bomb(tmp_path / "bomb.npz", name, 200 << 20)
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        assert refusal(path) == f": {message}"
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()


def test_an_array_that_declares_more_than_it_holds_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "n.npz", "w") as archive:
        shape = io.BytesIO()
        np.save(shape, np.array([30000, 30000]))
        archive.writestr("a.shape.npy", shape.getvalue())
        archive.writestr(
            "a.bits.npy", npy_bytes("{'descr': '|u1', 'fortran_order': False, 'shape': (112500000,)}")
        )
    message = ": a.bits: must hold 112500000 bytes, as its header declares, not 0"
    assert refusal(tmp_path / "n.npz") == message


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_compression_is_refused(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "n.npz", "w", method) as archive:
        archive.writestr("a.shape.npy", b"x")
        archive.writestr("a.bits.npy", b"x")
    assert refusal(tmp_path / "n.npz") == ": a.shape: must be stored or deflated, as numpy writes it"


@pytest.mark.parametrize("content", [b"[1]", b"{", b"\xff\xfe", b"[" * 100_000])
def test_meta_that_is_no_json_object_is_refused(tmp_path, content):
    path = write_npz(tmp_path / "n.npz", meta=np.frombuffer(content, np.uint8))
    assert refusal(path, read=load_meta) == ": meta: must be a JSON object in UTF-8"


# --- any file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".smtx", ".npy", ".npz"])
def test_a_file_that_is_missing_empty_or_no_file_is_one_error(tmp_path, suffix):
    path = tmp_path / f"weights{suffix}"
    assert refusal(path) == ": must be a file that exists"
    path.touch()
    assert refusal(path) == ": must hold something, but is empty"
    assert refusal(tmp_path / f"wieghts{suffix}") == f": must be a file that exists (did you mean {path}?)"
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    assert refusal(folder) == ": must be a file, not a directory"
    assert refusal(f"{tmp_path}/a\0b{suffix}") == ": must be a file that can be read (embedded null byte)"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "w.npy")
    assert refusal(tmp_path / "w.npy") == ": must be a file, not a device or a pipe"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("w.mxt", "must be a file that ends in .mtx, .npy, .npz, .smtx, not .mxt (did you mean .mtx?)"),
        ("w.csv", "must be a file that ends in .mtx, .npy, .npz, .smtx, not .csv"),
        ("weights", "must be a file that ends in .mtx, .npy, .npz, .smtx, not one without an ending"),
    ],
)
def test_an_unknown_kind_of_file_is_refused(tmp_path, name, message):
    assert refusal(tmp_path / name) == f": {message}"


def test_a_key_belongs_to_npz_files_only(tmp_path):
    assert (
        refusal(smtx(tmp_path, "1, 1, 0\n0 0\n"), "x")
        == ": must be an .npz file where a key is given, not .smtx"
    )


def test_the_ending_may_be_in_capitals(tmp_path):
    np.save(tmp_path / "w.npy", VALUES)
    (tmp_path / "w.npy").rename(tmp_path / "W.NPY")
    assert load_pattern(str(tmp_path / "W.NPY")).nnz == 3


def test_an_archive_whose_directory_is_absurd_is_not_opened(tmp_path):
    path = tmp_path / "t.npz"
    save_patterns(path, {"w": MaskPattern(np.eye(3, dtype=bool))}, {})
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x05\x06")
    content[at + 12 : at + 16] = (1 << 31).to_bytes(4, "little")
    path.write_bytes(content)
    assert refusal(path, "w") == f": must list its arrays in at most {1 << 24} bytes, not {1 << 31}"


def test_a_fault_while_an_archive_is_written_leaves_nothing_behind(tmp_path):
    with pytest.raises(TypeError):
        save_patterns(tmp_path / "t.npz", {"w": MaskPattern(np.eye(3, dtype=bool))}, {"x": object()})
    assert list(tmp_path.iterdir()) == []
