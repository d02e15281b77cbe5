"""Import: from another tool's file to a study of ours.

Stands above the packages.  `understand` tells the formats apart by what a file holds, not only by its ending;
`study_text` writes the layers as a study that runs as it is, and that another study may name as a network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from stcsim.config.loader import resolve
from stcsim.config.workload import Conv2dShape
from stcsim.errors import Problem, WorkloadError, must
from stcsim.workload.import_matrix import read_matrix
from stcsim.workload.import_onnx import read_model
from stcsim.workload.import_scalesim import SingleFilter, read_topology
from stcsim.workload.import_timeloop import read_problem
from stcsim.workload.imported import Imported, ImportedLayer
from stcsim.workload.untrusted_file import Fault, length_of, open_file

SUFFIXES = (".onnx", ".csv", ".yaml", ".yml", ".smtx", ".mtx", ".npy")
"""Endings of files that can be imported."""

MACHINES = (
    {"machine": "a100-sxm4-40gb", "kernels": ["hmma16816_128x128x32"]},
    {"machine": "dstc-v100", "kernels": ["spwmma_128x128x32"]},
)
"""What an imported study runs on until its user names machines."""

_LONGEST = 1 << 24
_ZIGZAG = re.compile(r"^\s*-?\s*(operator_type|loop_dims|dimension_relations)\s*:", re.MULTILINE)


def understand(
    path: Path,
    *,
    same_padding: bool = False,
    single_filter: SingleFilter | None = None,
    columns: int | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Imported:
    """Return what a file means.

    Parameters
    ----------
    path : Path
    same_padding, single_filter
        Of a SCALE-Sim topology; see `stcsim.workload.import_scalesim.read_topology`.
    columns : int, optional
        Of a matrix: columns of the dense operand.
    shapes : mapping of str to sequence of int, optional
        Of an ONNX model: shapes of its inputs.

    Raises
    ------
    StcsimError
        If the file is of no known kind, or does not hold what it must.
    """
    file, suffix = str(path), path.suffix.lower()
    if suffix == ".npz":
        message = (
            "must be named in a study (trace: FILE, or file: and key:): an archive of bitmaps is not imported"
        )
        raise WorkloadError(Problem(message, file))
    if suffix not in SUFFIXES:
        known = f"must be a file that ends in {', '.join(SUFFIXES)}"
        raise WorkloadError(Problem(must(known, suffix or "without an ending", near=SUFFIXES), file))
    if suffix == ".onnx":
        return read_model(path, shapes or {})
    if suffix in (".smtx", ".mtx", ".npy"):
        return read_matrix(path, columns)
    text = _text(file)
    if suffix == ".csv":
        return read_topology(text, file, same_padding=same_padding, single_filter=single_filter)
    zigzag = _ZIGZAG.search(text)
    if zigzag is not None:
        line = text.count("\n", 0, zigzag.start(1)) + 1
        message = "must be a Timeloop problem: ZigZag workloads are not imported; write the layers in a study"
        raise WorkloadError(Problem(message, file, line))
    return read_problem(text, file, path.stem)


def _text(file: str) -> str:
    try:
        with open_file(file) as stream:
            if length_of(stream) > _LONGEST:
                raise Fault(must(f"must be at most {_LONGEST} bytes long", length_of(stream)))
            raw = stream.read()
    except Fault as fault:
        raise fault.of(file) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = must("must be UTF-8 text", f"the byte 0x{raw[error.start]:02x}")
        raise WorkloadError(Problem(message, file, line)) from None


class _Dumper(yaml.SafeDumper):
    """Writes what our loader reads: a text that it would take for something else is quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out: people read these files."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists below their key."""
        del indentless
        super().increase_indent(flow, False)


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if resolve(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _in_line(dumper: yaml.SafeDumper, sizes: _Line) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", sizes.items(), flow_style=True)


class _Line(dict[str, Any]):
    """A mapping that is written on one line."""


_Dumper.add_representer(str, _quoted)
_Dumper.add_representer(_Line, _in_line)


def study_text(imported: Imported, name: str, source: str) -> str:
    """Return the study of an imported file as YAML.

    Parameters
    ----------
    imported : Imported
    name : str
        Name of the study.
    source : str
        Name of the file, for its first line.
    """
    kept = " ".join(source.split())
    head = [
        f"# Imported by stcsim from {kept}: {imported.kind},",
        f"# {len(imported.layers)} layers, {imported.macs_total:,} MACs.",
        *(f"# Note: {' '.join(note.split())}." for note in imported.notes),
        *(
            f"# Left out: {' '.join(one.name.split())} ({one.op}, {'unknown' if one.macs is None else one.macs} MACs): "
            f"{one.reason}."
            for one in imported.left_out
        ),
        "# It runs as it is; or name it in a study of your own:  network: THIS FILE, with sparsity and layers.",
    ]
    data = {
        "name": name,
        "machines": [_Line(machine) for machine in MACHINES],
        "adapt": "dense",
        "workloads": [
            _workload(layer) | ({"part_of": name} if len(imported.layers) > 1 else {})
            for layer in imported.layers
        ],
    }
    body = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return "\n".join(head) + f"\n{body}"


def _workload(layer: ImportedLayer) -> dict[str, Any]:
    kind = "conv2d" if isinstance(layer.sizes, Conv2dShape) else "gemm"
    return {
        "name": layer.name,
        kind: _Line(layer.sizes.model_dump(mode="json", exclude_defaults=True)),
        "a": _Line({"role": layer.role_a, **layer.a}),
        "b": _Line({"role": layer.role_b, **layer.b}),
    }
