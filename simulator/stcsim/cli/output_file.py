"""Files that a command writes: refused early where something would be lost, else written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
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


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, each whole or not at all; those with the same names are replaced.

    Raises
    ------
    ConfigError
        If the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            scratch = folder / f".{name}.part"
            scratch.write_bytes(content)
            scratch.replace(folder / name)
    except OSError as error:
        message = f"must be a folder that can be written ({error.strerror})"
        raise ConfigError(Problem(message, str(folder))) from None
