"""The command line.  Parses, calls the packages below, prints; computes nothing itself."""

from __future__ import annotations

from stcsim.cli.main import main

__all__ = ["main"]
