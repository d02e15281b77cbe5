"""The expanded study: every default written out, every path made findable, ready to be run again.

Stands above the packages, beside `stcsim.study`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from stcsim.study import LoadedStudy


def study_yaml(loaded: LoadedStudy) -> str:
    """Return the text of a study file that gives the same results.

    Parameters
    ----------
    loaded : LoadedStudy

    Returns
    -------
    text : str
        YAML.  Files that lie beside the study are named by their absolute paths; shipped ones as before.
    """
    folder = Path(loaded.document.file or "").parent
    data = loaded.study.model_dump(mode="json", exclude_none=True)
    for target in data["machines"]:
        target["machine"] = _findable(target["machine"], folder)
        if "kernels" in target:
            target["kernels"] = [_findable(name, folder) for name in target["kernels"]]
    for workload in data["workloads"]:
        for side in ("a", "b"):
            operand: dict[str, Any] = workload[side]
            # The study's folder is looked at first, the shipped data second, as when the study was read.
            if "file" in operand and (folder / operand["file"]).is_file():
                operand["file"] = str((folder / operand["file"]).absolute())
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)


def _findable(name: str, folder: Path) -> str:
    if "/" in name or name.endswith((".yaml", ".yml")):
        return str((folder / name).absolute())
    return name
