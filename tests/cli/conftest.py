"""Run the command line inside the test process: quick, and everything but the entry point itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from stcsim.cli import main


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str


@pytest.fixture
def stcsim(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ended]:
    """Return a function that runs ``stcsim ARGS``."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*args: str | os.PathLike[str]) -> Ended:
        monkeypatch.setattr(sys, "argv", ["stcsim", *map(os.fspath, args)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Ended(stop.value.code if isinstance(stop.value.code, int) else 0, captured.out, captured.err)

    return run
