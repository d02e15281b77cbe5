"""Traces: what is written is read, one operand at a time; what is wrong with a file is told before memory is spent."""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stcsim.config.trace import LeftOut, TraceLayer
from stcsim.config.workload import Conv2dShape, GemmShape
from stcsim.errors import WorkloadError
from stcsim.workload.trace import Trace, TraceWriter

CONV = TraceLayer(
    name="net/conv.1", op="Conv", conv2d=Conv2dShape(c=4, h=5, w=5, k=6, r=3, s=3, padding=1, groups=2),
    a="activation", b="weight",
)  # fmt: skip
GEMM = TraceLayer(
    name="scores", op="MatMul", gemm=GemmShape(m=3, n=7, k=5, batch=2), a="activation", b="activation"
)


@pytest.fixture
def arrays(rng: np.random.Generator) -> dict[str, np.ndarray]:
    def sparse(*shape: int) -> np.ndarray:
        return np.where(rng.random(shape) < 0.4, rng.standard_normal(shape), 0).astype(np.float32)

    return {
        "net/conv.1.a": sparse(4, 25), "net/conv.1.b": sparse(6, 18),
        "scores.a": sparse(6, 5), "scores.b": sparse(10, 7),
    }  # fmt: skip


@pytest.fixture
def path(tmp_path: Path, arrays: dict[str, np.ndarray]) -> Path:
    return write(tmp_path / "t.npz", arrays, keep_values=True)


def write(path: Path, arrays: dict[str, np.ndarray], *, keep_values: bool = False) -> Path:
    with TraceWriter(path, "tiny") as writer:
        for layer in (CONV, GEMM):
            writer.add(layer, arrays[f"{layer.name}.a"], arrays[f"{layer.name}.b"], keep_values=keep_values)
        writer.finish({"inputs": "random"})
    return path


def test_what_was_written_is_read(path: Path, arrays: dict[str, np.ndarray]) -> None:
    trace = Trace(path)
    assert trace.layers == (CONV, GEMM)
    assert trace.meta.model == "tiny"
    for layer in trace.layers:
        for side in ("a", "b"):
            want = arrays[f"{layer.name}.{side}"]
            np.testing.assert_array_equal(trace.pattern(layer, side).mask(), want != 0)
            np.testing.assert_array_equal(trace.values(layer, side), want)


def test_what_is_left_out_is_told_with_or_without_its_macs(
    tmp_path: Path, arrays: dict[str, np.ndarray]
) -> None:
    left_out = [
        LeftOut(name="if", op="If", reason="why"),
        LeftOut(name="up", op="Resize", macs=7, reason="why"),
    ]
    with TraceWriter(tmp_path / "t.npz", "tiny") as writer:
        writer.add(GEMM, arrays["scores.a"], arrays["scores.b"])
        writer.left_out += left_out
        writer.finish({})
    assert Trace(tmp_path / "t.npz").meta.left_out == tuple(left_out)


def test_values_are_kept_only_when_they_are_wanted(tmp_path: Path, arrays: dict[str, np.ndarray]) -> None:
    trace = Trace(write(tmp_path / "t.npz", arrays))
    assert trace.values(CONV, "a") is None


def test_the_same_layers_give_the_same_bytes(
    tmp_path: Path, path: Path, arrays: dict[str, np.ndarray]
) -> None:
    again = write(tmp_path / "again.npz", arrays, keep_values=True)
    assert again.read_bytes() == path.read_bytes()


def test_an_operand_of_another_shape_is_not_written(tmp_path: Path) -> None:
    with (
        pytest.raises(WorkloadError, match=r"net/conv\.1\.a: must be 4 x 25, not 4 x 24"),
        TraceWriter(tmp_path / "t.npz", "tiny") as writer,
    ):
        writer.add(CONV, np.zeros((4, 24)), np.zeros((6, 18)))
    assert list(tmp_path.iterdir()) == []


# --- files that are not what they should be ------------------------------------------------------


def changed(path: Path, **members: Any) -> Path:
    """Rewrite an archive with some members replaced: arrays, raw bytes, a dict (as meta) or None (gone)."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    for name, new in members.items():
        name = name.replace("__", "/") + ".npy"
        if new is None:
            del content[name]
            continue
        if isinstance(new, dict):
            new = np.frombuffer(json.dumps(new).encode(), np.uint8)
        if isinstance(new, np.ndarray):
            stream = io.BytesIO()
            np.save(stream, new)
            new = stream.getvalue()
        content[name] = new
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def meta(path: Path) -> dict[str, Any]:
    with np.load(path) as arrays:
        found: dict[str, Any] = json.loads(arrays["meta"].tobytes())
    return found


def read_all(path: Path) -> int:
    trace = Trace(path)
    return sum(trace.pattern(layer, side).nnz for layer in trace.layers for side in ("a", "b"))


def refusal(path: Path) -> str:
    """Return what is said of a trace, all of which is read; it must not cost memory."""
    tracemalloc.start()
    try:
        with pytest.raises(WorkloadError) as caught:
            read_all(path)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
    line = str(caught.value)
    assert "\n" not in line
    return line.removeprefix(f"{path}: ")


def header(shape: str) -> bytes:
    """Return an .npy file whose header says that it is enormous."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def test_an_operand_that_is_missing_is_told(path: Path) -> None:
    changed(path, **{"scores.b.bits": None})
    assert refusal(path).startswith(
        "must be a known pattern of this file (net/conv.1.a, net/conv.1.b, scores.a)"
    )


def test_an_operand_of_another_shape_than_its_layer_is_told(path: Path) -> None:
    changed(path, **{"scores.a.shape": np.array([5, 6])})
    assert refusal(path) == "scores.a.shape: must be 6 x 5, as the layer's sizes make it, not 5 x 6"


def test_bits_that_do_not_fit_the_shape_are_told(path: Path) -> None:
    changed(path, **{"scores.a.bits": np.zeros(3, np.uint8)})
    assert refusal(path) == "scores.a.bits: must be 4 bytes for a 6 x 5 pattern, not 3"


def test_pickled_objects_are_never_loaded(path: Path, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "exploded",)

    stream = io.BytesIO()
    np.save(stream, np.array([Bomb()], dtype=object), allow_pickle=True)
    changed(path, **{"scores.a.bits": stream.getvalue()})
    assert refusal(path) == "scores.a.bits: must be an array of numbers: pickled objects are never loaded"
    changed(path, **{"scores.a.bits": pickle.dumps(Bomb())})
    assert "must be an array in .npy format" in refusal(path)
    assert not (tmp_path / "exploded").exists()


def test_a_bomb_is_unpacked_no_further_than_its_shape(path: Path) -> None:
    changed(path, **{"scores.a.bits": header("(1073741824,)") + bytes(200 << 20)})
    assert refusal(path) == "scores.a.bits: must hold at most 4 bytes, not more"


def test_a_bomb_in_the_description_is_not_unpacked(path: Path) -> None:
    changed(path, meta=header("(209715200,)") + b" " * (200 << 20))
    assert refusal(path) == f"meta: must hold at most {1 << 24} bytes, not more"


def test_an_absurd_header_costs_nothing(path: Path) -> None:
    changed(path, **{"scores.a.bits": header("(999999999999999,)")})
    assert refusal(path) == "scores.a.bits: must hold 999999999999999 bytes, as its header declares, not 0"


def test_absurd_sizes_cost_nothing(path: Path) -> None:
    data = meta(path)
    data["layers"][1]["gemm"]["m"] = 1 << 40
    changed(path, meta=data, **{"scores.a.shape": np.array([1 << 41, 5])})
    assert "scores.a.shape: must have at most 1073741824 elements" in refusal(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"format": "another"},
            "must be a trace: an archive whose meta has the format stcsim-trace, not another",
        ),
        ({"version": 2}, "meta.version: must be of version 1, not 2"),
        ({"layers": 3}, "meta.layers: must be a list, not 3"),
        ({"strange": 1}, "meta.strange: must be a known key"),
    ],
)
def test_a_description_that_does_not_hold_is_told(path: Path, change: dict[str, Any], message: str) -> None:
    changed(path, meta=meta(path) | change)
    assert refusal(path).startswith(message)


def test_geometry_that_cannot_be_is_told(path: Path) -> None:
    data = meta(path)
    data["layers"][0]["conv2d"]["groups"] = 3
    changed(path, meta=data)
    with pytest.raises(WorkloadError) as caught:
        Trace(path)
    assert f"{path}: meta.layers.0.conv2d.c: must be a multiple of groups (3), not 4" in str(caught.value)


def test_a_layer_that_is_there_twice_is_told(path: Path) -> None:
    data = meta(path)
    data["layers"].append(data["layers"][1])
    changed(path, meta=data)
    assert refusal(path) == "meta.layers: must name each layer once, not scores"


def test_every_cut_of_a_trace_is_refused(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    cut = tmp_path / "cut.npz"
    for length in range(0, len(content), 7):
        cut.write_bytes(content[:length])
        refusal(cut)


def test_a_damaged_bit_is_noticed_or_harmless(path: Path, tmp_path: Path, rng: np.random.Generator) -> None:
    content = path.read_bytes()
    bad = tmp_path / "bad.npz"
    told = []
    for at in rng.integers(0, len(content), 300):
        broken = bytearray(content)
        broken[at] ^= 1 << int(rng.integers(8))
        bad.write_bytes(broken)
        try:
            assert read_all(bad) >= 0
        except WorkloadError as error:
            told.append(str(error))
    assert len(told) > 100
    assert all(one.startswith(f"{bad}: ") for one in told)


def test_bitmaps_without_a_description_are_not_a_trace(path: Path) -> None:
    changed(path, meta=None)
    assert refusal(path).startswith("must be a trace")
