"""Networks as tables: one CSV row a layer, the sizes of a convolution or of a GEMM.

Read from workloads/networks (or a file of the user's own); `stcsim.network` turns the
layers into workloads of a study.  What a layer is follows from its row, never from
its name.  Knows no patterns, no studies and no machines.

Two kinds of header, both with ``name,kind`` first and ``macs`` last:

* convolutions: N,C,H,W,K,R,S,stride,pad,dilation,groups; kinds conv, dwconv (depthwise: groups must
  equal C), fc (a 1 x 1 map) and deconv2x2s2 (stride equal to the filter: each input pixel makes
  its own 2 x 2 outputs, so it is a 1 x 1 convolution to 4 K channels);
* products: M,N,K,count,weight_operand; kinds linear, recurrent (`count` time steps, one after the
  other, on one weight) and attn (`count` independent products, no weight).

Other columns (P, Q, gemm_M and so on) are for readers.  ``macs`` is checked against the sizes.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stcsim.errors import Problem, StcsimError, WorkloadError, must
from stcsim.workload.conv_shape import ConvShape

_CONV_COLUMNS = ("N", "C", "H", "W", "K", "R", "S", "stride", "pad", "dilation", "groups")
_GEMM_COLUMNS = ("M", "N", "K", "count")
_CONV_KINDS = ("conv", "dwconv", "fc", "deconv2x2s2")
_GEMM_KINDS = ("linear", "recurrent", "attn")


@dataclass(frozen=True)
class GemmSizes:
    """Sizes of a GEMM layer.

    Parameters
    ----------
    m, n, k : int
    batch : int
        Independent products.
    repeat : int
        Times that it runs, one after the other.
    has_weight : bool
        Whether B is a weight; False: both operands are activations.
    """

    m: int
    n: int
    k: int
    batch: int
    repeat: int
    has_weight: bool

    @property
    def macs_total(self) -> int:
        """Multiply-accumulates of all products and repetitions."""
        return self.m * self.n * self.k * self.batch * self.repeat

    @property
    def n_weights(self) -> int:
        """Weights of the layer."""
        return self.k * self.n if self.has_weight else 0


@dataclass(frozen=True)
class Layer:
    """One row of a table.

    Parameters
    ----------
    name, kind : str
    sizes : ConvShape or GemmSizes
    """

    name: str
    kind: str
    sizes: ConvShape | GemmSizes

    @property
    def macs_total(self) -> int:
        """Multiply-accumulates of the dense layer."""
        return self.sizes.macs_total

    @property
    def n_weights(self) -> int:
        """Weights of the layer."""
        if isinstance(self.sizes, ConvShape):
            return self.sizes.k * self.sizes.taps
        return self.sizes.n_weights


def load_network(path: Path) -> tuple[Layer, ...]:
    """Read a table.

    Parameters
    ----------
    path : Path

    Returns
    -------
    layers : tuple of Layer
        In the order of the file.

    Raises
    ------
    WorkloadError
        With file and line of every row that does not hold.
    """
    layers = []
    problems = []
    for line, row in read_rows(path, ("name", "kind", "macs")):
        try:
            layer = _layer(row)
            if layer.macs_total != _whole(row, "macs"):
                what = f"must be what the sizes make ({layer.macs_total})"
                raise WorkloadError(Problem(must(what, row["macs"]), path="macs"))
            layers.append(layer)
        except StcsimError as error:
            problems += [Problem(found.message, str(path), line, found.path) for found in error.problems]
    names = [layer.name for layer in layers]
    problems += [
        Problem(must("must name each layer once", name), str(path))
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if not layers and not problems:
        problems.append(Problem("must have a row for each layer", str(path)))
    if problems:
        raise WorkloadError(problems)
    return tuple(layers)


def read_rows(path: Path, needed: tuple[str, ...]) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV file with their line numbers; blank rows are skipped.

    Raises
    ------
    WorkloadError
        If the file cannot be read, lacks a column that is needed, or has a row of another length.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise WorkloadError(Problem(f"must be a table that can be read: {reason}", str(path))) from None
    reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
    header = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = header
    missing = [name for name in needed if name not in header]
    if missing:
        what = f"must have the columns {', '.join(missing)}"
        raise WorkloadError(Problem(must(what, ", ".join(header) or "an empty file"), str(path), 1))
    rows = []
    problems = []
    for row in reader:
        if None in row or None in row.values():
            message = must(f"must have {len(header)} columns", "more" if None in row else "fewer")
            problems.append(Problem(message, str(path), reader.line_num))
        elif any(value.strip() for value in row.values()):
            rows.append((reader.line_num, {name: value.strip() for name, value in row.items()}))
    if problems:
        raise WorkloadError(problems)
    return rows


def _whole(row: Mapping[str, str], column: str) -> int:
    text = row.get(column)
    if text is None or not text.isdecimal():
        raise WorkloadError(Problem(must("must be a whole number", text or "nothing"), path=column))
    return int(text)


def _sizes(row: Mapping[str, str], columns: tuple[str, ...]) -> dict[str, int]:
    problems: list[Problem] = []
    sizes = {}
    for column in columns:
        try:
            sizes[column] = _whole(row, column)
        except WorkloadError as error:
            problems += error.problems
    if problems:
        raise WorkloadError(problems)
    return sizes


def _layer(row: Mapping[str, str]) -> Layer:
    kind = row["kind"]
    if kind in _CONV_KINDS:
        return Layer(row["name"], kind, _conv(kind, _sizes(row, _CONV_COLUMNS)))
    if kind in _GEMM_KINDS:
        sizes = _sizes(row, _GEMM_COLUMNS)
        count = sizes["count"]
        return Layer(
            row["name"],
            kind,
            GemmSizes(
                sizes["M"],
                sizes["N"],
                sizes["K"],
                batch=1 if kind == "recurrent" else count,
                repeat=count if kind == "recurrent" else 1,
                has_weight=kind != "attn",
            ),
        )
    known = (*_CONV_KINDS, *_GEMM_KINDS)
    raise WorkloadError(
        Problem(must(f"must be one of {', '.join(sorted(known))}", kind, near=known), path="kind")
    )


def _conv(kind: str, sizes: Mapping[str, int]) -> ConvShape:
    n, c, h, w, k, r, s, stride, pad, dilation, groups = (sizes[column] for column in _CONV_COLUMNS)
    if kind == "dwconv" and groups != c:
        message = must(f"must equal C ({c}) in a depthwise layer", groups)
        raise WorkloadError(Problem(message, path="groups"))
    if kind == "deconv2x2s2":
        if (r, s, stride, pad, dilation, groups) != (2, 2, 2, 0, 1, 1):
            message = must(
                "must be a 2 x 2 filter of stride 2 without padding, dilation or groups", "another"
            )
            raise WorkloadError(Problem(message, path="kind"))
        return ConvShape(n, c, h, w, 4 * k, 1, 1)
    return ConvShape(n, c, h, w, k, r, s, (stride, stride), (pad, pad), (dilation, dilation), groups)
