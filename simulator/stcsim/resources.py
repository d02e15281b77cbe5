"""Where the data that stcsim reads lies: configs/, isa/ and workloads/.

Base layer.  In a checkout they stand at the repository's root; in a wheel they
travel as ``stcsim/data/{configs,isa,workloads}``.  `data_path` finds both.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def data_root() -> Path:
    """Return the folder that holds configs/, isa/ and workloads/.

    Raises
    ------
    FileNotFoundError
        If neither the wheel's nor the checkout's folder exists: a broken installation.
    """
    package = Path(__file__).resolve().parent
    for root in (package / "data", package.parent.parent):
        if (root / "configs").is_dir() and (root / "isa").is_dir():
            return root
    message = (
        f"the data folders configs/ and isa/ of stcsim are neither in {package / 'data'} nor in a checkout"
    )
    raise FileNotFoundError(message)


def data_path(*parts: str) -> Path:
    """Return the path of a shipped file or folder, such as ``data_path("configs", "machines")``."""
    return data_root().joinpath(*parts)
