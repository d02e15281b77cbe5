"""Traces: the operands of the layers of one model, as bitmaps in an .npz file.

Written by the capture of a model, read by studies and by ``stcsim trace info``.  A trace is an
archive of bitmaps (`stcsim.workload.bitmap_archive`) with ``LAYER.a`` and ``LAYER.b`` for each layer, whose
``meta`` is a `stcsim.config.trace.TraceMeta`.  Opening one reads the description and the shapes alone;
operands are read one at a time.  Knows nothing of models, kernels or machines.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.config.document import Document
from stcsim.config.trace import FORMAT, VERSION, LeftOut, TraceLayer, TraceMeta
from stcsim.config.validation import validate
from stcsim.errors import Problem, StcsimError, WorkloadError, must
from stcsim.workload.bitmap_archive import BitmapArchive, open_archive
from stcsim.workload.bitmap_writer import BitmapWriter
from stcsim.workload.operand_shape import operand_shapes
from stcsim.workload.packed_pattern import PackedPattern
from stcsim.workload.pattern import MaskPattern
from stcsim.workload.untrusted_file import Fault

Side = Literal["a", "b"]


class Trace:
    """A trace that has been looked at, and whose operands can be read.

    Parameters
    ----------
    path : str or path-like
        Messages show it as given here.

    Raises
    ------
    WorkloadError
        If it is not a trace of this version, or an operand is missing or of another shape than its
        layer's sizes make.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with open_archive(self.path) as archive:
            data = archive.meta()
            if data.get("format") != FORMAT:
                what = f"must be a trace: an archive whose meta has the format {FORMAT}"
                raise Fault(must(what, data.get("format", "one without")))
            if data.get("version") != VERSION:
                raise Fault(must(f"must be of version {VERSION}", data.get("version")), path="meta.version")
            self.meta = _described(data, self.path)
            for i, layer in enumerate(self.meta.layers):
                self._check(archive, i, layer)

    @property
    def layers(self) -> tuple[TraceLayer, ...]:
        """Layers, in the order of the model."""
        return self.meta.layers

    def pattern(self, layer: TraceLayer, side: Side) -> PackedPattern:
        """Return an operand's pattern, read now."""
        with open_archive(self.path) as archive:
            return archive.packed(f"{layer.name}.{side}")

    def values(self, layer: TraceLayer, side: Side) -> NDArray[np.float32] | None:
        """Return an operand's values, zeros included, or None where they were not kept.

        Returns
        -------
        values : ndarray of float32 or None
            Of the operand's shape.
        """
        with open_archive(self.path) as archive:
            pattern = archive.packed(f"{layer.name}.{side}")
            kept = archive.values(f"{layer.name}.{side}", pattern.nnz)
        if kept is None:
            return None
        values = np.zeros(pattern.shape, np.float32)
        values[pattern.mask()] = kept
        return values

    def _check(self, archive: BitmapArchive, index: int, layer: TraceLayer) -> None:
        path = f"meta.layers.{index}"
        try:
            wanted = operand_shapes(layer.sizes)
        except StcsimError as error:
            kind = "gemm" if layer.conv2d is None else "conv2d"
            raise WorkloadError(
                [
                    Problem(found.message, self.path, path=f"{path}.{kind}.{found.path}")
                    for found in error.problems
                ]
            ) from None
        for side, want in zip("ab", wanted, strict=True):
            archive.require(f"{layer.name}.{side}")
            found = archive.shape(f"{layer.name}.{side}")
            if found != want:
                what = f"must be {want[0]} x {want[1]}, as the layer's sizes make it"
                raise Fault(must(what, f"{found[0]} x {found[1]}"), path=f"{layer.name}.{side}.shape")


def _described(data: Mapping[str, Any], file: str) -> TraceMeta:
    try:
        return validate(TraceMeta, Document(dict(data), file=file))
    except StcsimError as error:
        problems = [Problem(one.message, file, path=f"meta.{one.path}") for one in error.problems[:5]]
        raise WorkloadError(problems) from None


class TraceWriter:
    """A trace being written, layer by layer; to be used as a context.

    Parameters
    ----------
    path : str or path-like
        The file, which is replaced when `finish` is called; until then nothing stands there.
    model : str
        What the model is called.
    """

    def __init__(self, path: str | os.PathLike[str], model: str) -> None:
        self._writer = BitmapWriter(path)
        self._model = model
        self.layers: list[TraceLayer] = []
        self.left_out: list[LeftOut] = []

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *fault: Any) -> None:
        self._writer.__exit__(*fault)

    def add(self, layer: TraceLayer, a: ArrayLike, b: ArrayLike, *, keep_values: bool = False) -> None:
        """Write a layer.

        Parameters
        ----------
        layer : TraceLayer
        a, b : array_like
            Operands in the shapes that the layer's sizes make; what is not zero is a one.
        keep_values : bool
            Whether the values go along, as float32.

        Raises
        ------
        WorkloadError
            If an operand has another shape.
        """
        for side, array, want in zip("ab", (a, b), operand_shapes(layer.sizes), strict=True):
            found = np.asarray(array)
            if found.shape != want:
                message = must(f"must be {want[0]} x {want[1]}", " x ".join(map(str, found.shape)))
                raise WorkloadError(Problem(message, path=f"{layer.name}.{side}"))
            mask = np.asarray(found != 0)
            self._writer.add(
                f"{layer.name}.{side}", MaskPattern.adopt(mask), found[mask] if keep_values else None
            )
        self.layers.append(layer)

    def finish(self, provenance: Mapping[str, Any]) -> None:
        """Write the description and put the file in its place."""
        meta = TraceMeta(
            format=FORMAT,
            version=VERSION,
            model=self._model,
            layers=tuple(self.layers),
            left_out=tuple(self.left_out),
            provenance=dict(provenance),
        )
        self._writer.finish(meta.model_dump(mode="json", exclude_none=True))
