"""Imports SCALE-Sim topologies: a CSV row a layer, convolutions or products.

What SCALE-Sim does with its own files (v3, scalesim/topology_utils.py) is followed where it is a format and not
where it is an accident: a trailing comma changes nothing, a layer's name changes nothing, an output is
floor((size - filter) / stride) + 1 and no partial window is counted.  The format has one stride, and no padding,
dilation, groups or batch.

Sparsity is ``N:M``: of each M consecutive weights along K, N are kept.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from stcsim.config.workload import Conv2dShape, GemmShape
from stcsim.errors import Problem, StcsimError, WorkloadError, must
from stcsim.workload.conv_shape import ConvShape
from stcsim.workload.imported import DENSE, Imported, ImportedLayer, each_once
from stcsim.workload.operand_shape import conv_shape

_NAMES = ("layer name", "layer")
_CONV = ("ifmap height", "ifmap width", "filter height", "filter width", "channels", "num filter", "strides")
_GEMM = ("m", "n", "k")
_SPARSITY = "sparsity"
_SAME = {"num filters": "num filter", "stride": "strides", "layer": "layer name"}
"""Other spellings of the columns."""
_LARGEST = 10**12
_N_OF_M = re.compile(r"\s*(\d{1,4})\s*:\s*(\d{1,4})\s*")

SingleFilter = Literal["depthwise", "dense"]


@dataclass(frozen=True)
class _Header:
    """Which column holds what."""

    line: int
    columns: Mapping[str, int]
    is_gemm: bool
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    """A layer's row: its cells by column."""

    line: int
    cells: Mapping[str, str]


def read_topology(
    text: str, file: str, *, same_padding: bool = False, single_filter: SingleFilter | None = None
) -> Imported:
    """Read a topology.

    Parameters
    ----------
    text : str
    file : str
        What messages call it.
    same_padding : bool
        Whether convolutions are padded so that they have ceil(size / stride) outputs; the format cannot say.
    single_filter : {"depthwise", "dense"}, optional
        What one filter over several channels means; the format cannot say, and None refuses it.

    Returns
    -------
    imported : Imported

    Raises
    ------
    WorkloadError
        With file, line and column of everything that does not hold.
    """
    header, rows, titles = _rows(text, file)
    layers = []
    problems: list[Problem] = []
    notes: list[str] = []
    for row in rows:
        try:
            if header.is_gemm:
                layers.append(_product(row, notes))
            else:
                layers.append(
                    _convolution(row, notes, same_padding=same_padding, single_filter=single_filter)
                )
        except StcsimError as error:
            problems += [Problem(one.message, file, row.line, one.path) for one in error.problems]
    if not rows and not problems:
        problems.append(Problem("must have a row for each layer below its header", file, header.line))
    if problems:
        raise WorkloadError(problems)
    if header.unknown:
        notes.append(f"columns that are not known are left aside: {', '.join(header.unknown)}")
    if titles:
        notes.append(f"rows without numbers are left aside: {', '.join(titles)}")
    if not header.is_gemm:
        notes += _about_padding(layers, same_padding=same_padding)
    unique, doubled = each_once(layers)
    kind = "SCALE-Sim topology of " + ("products (M, N, K)" if header.is_gemm else "convolutions")
    return Imported(kind, unique, (*notes, *doubled))


def _rows(text: str, file: str) -> tuple[_Header, list[_Row], list[str]]:
    """Return the header, the layers' rows and the titles between them."""
    header: _Header | None = None
    rows: list[_Row] = []
    titles: list[str] = []
    problems: list[Problem] = []
    for line, cells in _cells(text, file):
        filled = [cell for cell in cells if cell]
        if not filled:
            continue
        if header is None:
            header = _header(line, cells, file)
            if header is None:
                if sum(cell.isdecimal() for cell in cells) > 1:
                    message = f"must have a header row first: {', '.join(_NAMES[:1] + _CONV)}, or layer name, M, N, K"
                    raise WorkloadError(Problem(message, file, line))
                titles.append(filled[0])
        elif len(filled) == 1 and cells[0]:
            titles.append(filled[0])
        else:
            named = {name: cells[i] if i < len(cells) else "" for name, i in header.columns.items()}
            nameless = [cell for i, cell in enumerate(cells) if i not in header.columns.values()]
            hidden = next((cell for cell in nameless if _N_OF_M.fullmatch(cell)), None)
            if hidden:
                message = f"must stand in a column called Sparsity, not in one without a name: {hidden}"
                problems.append(Problem(message, file, line))
            rows.append(_Row(line, named))
    if header is None:
        message = "must have a header row: layer name, IFMAP height, ... or layer name, M, N, K"
        raise WorkloadError(Problem(message, file, 1))
    if problems:
        raise WorkloadError(problems)
    return header, rows, titles


def _cells(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text.splitlines())
    try:
        for row in reader:
            yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        raise WorkloadError(Problem(f"must be a table: {error}", file, reader.line_num)) from None


def _header(line: int, cells: list[str], file: str) -> _Header | None:
    names = [" ".join(cell.lower().split()) for cell in cells]
    names = [_SAME.get(name, name) for name in names]
    for wanted in (_CONV, _GEMM):
        if all(name in names for name in wanted):
            known = [name for name in (_NAMES[0], *wanted, _SPARSITY) if name in names]
            unknown = tuple(
                cell for cell, name in zip(cells, names, strict=True) if cell and name not in known
            )
            return _Header(line, {name: names.index(name) for name in known}, wanted is _GEMM, unknown)
    present = [name for name in _CONV if name in names]
    if len(present) > 2:
        missing = ", ".join(name for name in _CONV if name not in names)
        raise WorkloadError(Problem(f"must have the columns {missing}", file, line))
    return None


def _whole(row: _Row, column: str) -> int:
    text = row.cells.get(column, "")
    if not text.isdecimal() or not 1 <= int(text[:20]) <= _LARGEST:
        raise WorkloadError(
            Problem(must("must be a whole number of 1 or more", text or "nothing"), path=column)
        )
    return int(text)


def _wholes(row: _Row, columns: tuple[str, ...]) -> list[int]:
    problems: list[Problem] = []
    found = []
    for column in columns:
        try:
            found.append(_whole(row, column))
        except WorkloadError as error:
            problems += error.problems
    if problems:
        raise WorkloadError(problems)
    return found


def _weights(row: _Row, k: int, notes: list[str]) -> Mapping[str, Any]:
    text = row.cells.get(_SPARSITY, "")
    if not text:
        return DENSE
    match = _N_OF_M.fullmatch(text)
    n, m = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= n <= m:
        what = "must be N:M, N of each M weights kept (2:4 keeps half of them, 1:1 all); a share or a percentage "
        raise WorkloadError(
            Problem(must(f"{what}could mean what is kept or what is zero", text), path=_SPARSITY)
        )
    if n == m:
        return DENSE
    if k % m:
        notes.append(f"{_name(row)}: K = {k} is not a multiple of {m}: its last group holds {k % m} weights")
    return {"pattern": {"generator": "nm", "n": n, "m": m}}


def _name(row: _Row) -> str:
    return row.cells.get(_NAMES[0]) or f"line {row.line}"


def _product(row: _Row, notes: list[str]) -> ImportedLayer:
    m, n, k = _wholes(row, _GEMM)
    return ImportedLayer(_name(row), GemmShape(m=m, n=n, k=k), b=_weights(row, k, notes))


def _convolution(
    row: _Row, notes: list[str], *, same_padding: bool, single_filter: SingleFilter | None
) -> ImportedLayer:
    h, w, r, s, c, k, stride = _wholes(row, _CONV)
    groups = 1
    if k == 1 and c > 1 and r * s > 1:
        if single_filter is None:
            what = (
                f"must say what one filter over {c} channels is, since the format cannot: give --single-filter "
                "depthwise (a filter for each channel) or dense (one output channel)"
            )
            raise WorkloadError(Problem(must(what, k), path="num filter"))
        if single_filter == "depthwise":
            k = groups = c
    pads = [0, 0]
    if same_padding and (r, s) != (h, w):
        pads = [(r - 1) // 2, (s - 1) // 2]
        # An even filter needs one zero more behind the map than before it.
        h, w = h + (r % 2 == 0), w + (s % 2 == 0)
    sizes = Conv2dShape(
        c=c, h=h, w=w, k=k, r=r, s=s, stride=stride, padding=(pads[0], pads[1]), groups=groups
    )
    shape = conv_shape(sizes)
    return ImportedLayer(_name(row), sizes, b=_weights(row, shape.taps, notes))


def _about_padding(layers: list[ImportedLayer], *, same_padding: bool) -> list[str]:
    shapes = [conv_shape(layer.sizes) for layer in layers if isinstance(layer.sizes, Conv2dShape)]
    wide = [shape for shape in shapes if shape.r * shape.s > 1]
    if not wide:
        return []
    if same_padding:
        text = "convolutions are padded to ceil(size / stride) outputs, as --assume-same-padding asks"
        return [text + "; filters as large as their map are not"]
    notes = [
        "this format has no padding, and none is assumed: --assume-same-padding gives ceil(size / stride) outputs"
    ]
    partial = [
        shape
        for shape in wide
        if (shape.h - shape.r) % shape.stride[0] or (shape.w - shape.s) % shape.stride[1]
    ]
    if partial:
        ceil = sum(_ceil_macs(shape) for shape in shapes)
        notes.append(
            f"{len(partial)} layers end in a window that hangs over the edge: it is not computed here, but SCALE-Sim "
            f"counts it (ceil), {ceil:,} MACs in all"
        )
    return notes


def _ceil_macs(shape: ConvShape) -> int:
    """Return the multiply-accumulates by SCALE-Sim's own count of outputs, ceil((size - filter) / stride) + 1."""
    p = -(-(shape.h - shape.r) // shape.stride[0]) + 1
    q = -(-(shape.w - shape.s) // shape.stride[1]) + 1
    return p * q * shape.k * shape.taps
