"""The output folder of a run: results.csv, results.json and study.yaml, written whole or not at all.

Knows results and files; nothing of plotting or simulation.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stcsim.errors import ConfigError, Problem
from stcsim.result.result import Result


def check_folder(folder: Path, *, force: bool) -> None:
    """Refuse an output folder that something would be lost in.

    Raises
    ------
    ConfigError
        If it is a file, or is not empty and `force` is not given.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(Problem("must be a folder, not a file", file=str(folder)))
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise ConfigError(Problem("must be an empty or a new folder (or give --force)", file=str(folder)))
    parent = next((path for path in [folder, *folder.absolute().parents] if path.exists()), Path("/"))
    if not os.access(parent, os.W_OK):
        raise ConfigError(Problem("must be a folder that can be written", file=str(folder)))


def csv_text(results: Sequence[Result]) -> str:
    """Return the results as CSV: one row each, units in the column names, causes and mnemonics as columns."""
    flat = [flatten(result) for result in results]
    columns = list(dict.fromkeys(column for row in flat for column in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n", restval=0)
    writer.writeheader()
    writer.writerows(flat)
    return buffer.getvalue()


def flatten(result: Result) -> dict[str, Any]:
    """Return a result as columns, units in their names."""
    data = result.to_json()
    row: dict[str, Any] = {
        key: data[key]
        for key in ("workload", "network", "machine", "kernel", "dtype", "m", "n", "k", "density_a", "density_b",
                    "cycles", "time_us", "clock_hz", "sub_cores", "resident_warps", "macs_total", "macs_executed",
                    "macs_skipped", "macs_useful", "mac_slots")
    }  # fmt: skip
    row |= {f"utilization_{name}_fraction": value for name, value in data["utilization"].items()}
    row |= {f"{name}_sub_core_cycles": value for name, value in data["stalls"].items()}
    row |= {f"{name}_bytes": value for name, value in data["traffic_bytes"].items()}
    if data["dram_bytes"] is not None:
        row["dram_bytes"] = data["dram_bytes"]
    row |= {f"{name}_bytes_per_second": value for name, value in data["memory_bytes_per_second"].items()}
    row |= {f"im2col_{name}_cycles": value for name, value in data["im2col_cycles"].items()}
    row |= {f"outer_products_{name}": value for name, value in data["outer_products"].items()}
    row |= {"check_share_fraction": data["check"]["share"], "check_ok": data["check"]["ok"]}
    row |= {key: data[key] for key in ("seed", "engine", "model", "version", "model_version")}
    row["notes"] = "; ".join(data["notes"])
    row |= {f"{name}_issued": value for name, value in data["instructions"].items()}
    return row


def json_text(study: str, results: Sequence[Result], provenance: dict[str, Any]) -> str:
    """Return the results and where they came from as JSON."""
    document = {"study": study, "results": [result.to_json() for result in results], "provenance": provenance}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_folder(folder: Path, files: dict[str, str], *, force: bool) -> None:
    """Write `files` (name to text) into `folder`, so that it never holds half of them.

    A new folder is made beside its place and renamed into it; into a folder that exists (with
    `force`) every file is renamed over the old one.

    Raises
    ------
    ConfigError
        As `check_folder`.
    """
    check_folder(folder, force=force)
    try:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.absolute().parent))
    except OSError as error:
        message = f"must be a folder that can be made ({error.strerror})"
        raise ConfigError(Problem(message, file=str(folder))) from None
    try:
        for name, text in files.items():
            (scratch / name).write_text(text, encoding="utf-8")
        if folder.is_dir():
            for name in files:
                (scratch / name).replace(folder / name)
            scratch.rmdir()
        else:
            scratch.chmod(0o755)
            scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
