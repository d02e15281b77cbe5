"""A file that a command is about to write: refused early where something would be lost."""

from __future__ import annotations

import os
from pathlib import Path

from stcsim.errors import ConfigError, Problem, must


def check_file(path: Path, suffixes: tuple[str, ...], *, force: bool) -> None:
    """Refuse a file that cannot be written, or stands there already.

    Raises
    ------
    ConfigError
        If its ending is another, its folder does not exist, or it exists and `force` is not given.
    """
    if path.suffix not in suffixes:
        message = must(f"must end in {' or '.join(suffixes)}", path.suffix or "without an ending")
    elif path.is_dir():
        message = must("must be a file", "a folder")
    elif path.exists() and not force:
        message = "must be a new file (or give --force)"
    elif not os.access(path.absolute().parent, os.W_OK):
        message = "must be in a folder that exists and can be written"
    else:
        return
    raise ConfigError(Problem(message, str(path)))
