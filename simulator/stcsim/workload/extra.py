"""Optional packages: imported when they are needed, with one line that says how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from stcsim.errors import WorkloadError


def optional(module: str, extra: str) -> Any:
    """Return a module of an optional package.

    Parameters
    ----------
    module : str
        Such as ``"onnx"``.
    extra : str
        The extra of stcsim that installs it.

    Raises
    ------
    WorkloadError
        If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        message = f"the package {package} must be installed: pip install 'stcsim[{extra}]'"
        raise WorkloadError(message) from None
