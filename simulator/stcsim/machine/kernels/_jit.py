"""The one decorator of jitted functions, and where their machine code is kept.

Numba's cache does not notice that a callee in another file, or a constant
imported from one, has changed; a simulator that does not notice that prints
wrong cycles.  So the cache lies in a folder named after the contents of every
source file of the engines: edit one, and all are compiled anew.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numba


def _source_hash() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).resolve().parent.parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _user_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) if base else Path.home() / ".cache"


if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = str(_user_cache() / "stcsim" / _source_hash())
else:
    numba.config.CACHE_DIR = str(Path(os.environ["NUMBA_CACHE_DIR"]) / _source_hash())

jit = numba.njit(cache=True, nogil=True, error_model="python")
"""Decorate every jitted function with this, and only with this, `inlined` or `borrowing`."""

inlined = numba.njit(cache=True, nogil=True, error_model="python", inline="always")
"""For small helpers of a hot loop: a call with a dozen arrays costs more than what they do."""

borrowing = numba.njit(cache=True, nogil=True, error_model="python", _nrt=False)
"""For hot functions that allocate nothing: without counting references to their arrays, which took half the time."""
