"""The inputs of a model that is captured: from .npy files, from pictures, or drawn at random.

Between the command line and `stcsim.workload.onnx_capture`.  It knows names, shapes and dtypes of inputs,
and no operators.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import Problem, WorkloadError, must
from stcsim.workload.onnx_graph import GraphInput, OnnxGraph
from stcsim.workload.picture import PREPARATIONS, load_picture
from stcsim.workload.untrusted_file import Fault, length_of, npy_header, open_file

Feeds = dict[str, NDArray[Any]]


def model_inputs(
    graph: OnnxGraph,
    files: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
    *,
    seed: int | None,
    preparation: str,
) -> tuple[Feeds, dict[str, str]]:
    """Return an array for every input of a model.

    Parameters
    ----------
    graph : OnnxGraph
    files : sequence of str
        ``FILE`` or ``NAME=FILE``: a .npy array or a picture.
    shapes : mapping of str to sequence of int
        Shapes that the user gives, by name of the input (empty: of the only one).
    seed : int or None
        For inputs without a file; None: each must have one.
    preparation : str
        How pictures are prepared: one of `stcsim.workload.picture.PREPARATIONS`.

    Returns
    -------
    feeds : dict of str to ndarray
    described : dict of str to str
        What each input is, for people.

    Raises
    ------
    WorkloadError
        With what is missing or does not fit.
    """
    by_name = {one.name: one for one in graph.inputs}
    chosen: dict[str, str] = {}
    for text in files:
        name, file = _named(text, by_name, graph)
        if name in chosen:
            raise graph.error(must("must be given once", text), f"--input {name}")
        chosen[name] = file
    given = {
        name or (next(iter(by_name)) if len(by_name) == 1 else name): dims for name, dims in shapes.items()
    }
    missing = [name for name in by_name if name not in chosen]
    if missing and seed is None:
        message = f"must have an input for {', '.join(missing)}: give --input NAME=FILE, or --random SEED"
        raise graph.error(message)
    feeds: Feeds = {}
    described = {}
    for name, file in chosen.items():
        one = by_name[name]
        if name in given:
            one = GraphInput(name, one.dtype, tuple(given[name]))
        feeds[name], described[name] = _from_file(one, file, preparation)
    known = {name: array.shape for name, array in feeds.items()}
    fixed = graph.fixed({name: dims for name, dims in given.items() if name not in known} | known)
    for i, name in enumerate(missing):
        feeds[name] = _random(by_name[name], fixed[name], np.random.default_rng([seed or 0, i]))
        described[name] = f"random, seed {seed}"
    return feeds, described


def _named(text: str, inputs: Mapping[str, GraphInput], graph: OnnxGraph) -> tuple[str, str]:
    """Return the input's name and the file of an option ``[NAME=]FILE``."""
    name, equals, file = text.partition("=")
    if equals and name in inputs:
        return name, file
    if len(inputs) != 1:
        what = f"--input must be NAME=FILE, since the model has the inputs {', '.join(inputs)}"
        raise graph.error(must(what, text, near=inputs))
    return next(iter(inputs)), text


def _from_file(one: GraphInput, file: str, preparation: str) -> tuple[NDArray[Any], str]:
    if Path(file).suffix.lower() == ".npy":
        array, text = _array(file), Path(file).name
    else:
        try:
            with open_file(file):
                pass
        except Fault as fault:
            raise fault.of(file) from None
        array = load_picture(file, one.dims, preparation)
        text = f"{Path(file).name}, {preparation}: {PREPARATIONS[preparation].summary}"
    agree = len(array.shape) == len(one.dims) and all(
        want in (None, found) for want, found in zip(one.dims, array.shape, strict=True)
    )
    if one.dims and not agree:
        shown = tuple("?" if size is None else size for size in one.dims)
        message = must(f"must be of the shape ({', '.join(map(str, shown))}) of {one.name}", array.shape)
        raise WorkloadError(Problem(message, file))
    if one.dtype is not None and array.dtype != one.dtype:
        if array.dtype.kind != one.dtype.kind:
            raise WorkloadError(Problem(must(f"must be an array of {one.dtype}", array.dtype), file))
        array = array.astype(one.dtype)
    return array, text


def _array(file: str) -> NDArray[Any]:
    """Read a .npy array of any number of dimensions."""
    try:
        with open_file(file) as stream:
            shape, is_fortran, dtype = npy_header(stream)
            declared = stream.tell() + math.prod(shape) * dtype.itemsize
            if declared != length_of(stream):
                raise Fault(must(f"must be {declared} bytes long, as its header declares", length_of(stream)))
            data = np.frombuffer(stream.read(), dtype=dtype)
    except Fault as fault:
        raise fault.of(os.fspath(file)) from None
    return data.reshape(shape[::-1]).T if is_fortran else data.reshape(shape)


def _random(one: GraphInput, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    """Return standard normal floats, or whole numbers of 0 and 1, which are valid tokens, masks and flags alike."""
    dtype = one.dtype or np.dtype(np.float32)
    if dtype.kind == "f":
        return np.asarray(rng.standard_normal(shape), dtype=dtype)
    if dtype.kind not in "iub":
        message = must("--random can only draw numbers; give --input for it", f"an input of {dtype}")
        raise WorkloadError(Problem(message, path=one.name))
    return np.asarray(rng.integers(0, 2, shape), dtype=dtype)
