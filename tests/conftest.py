"""What every test shares: hypothesis profiles, a compile cache of this run's own, seeds and recorded data."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import hypothesis
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent

_CACHE = "NUMBA_CACHE_DIR"
_IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if not _IS_WORKER:
    # Before anything imports numba, which reads it once; workers and subprocesses inherit it.
    os.environ[_CACHE] = tempfile.mkdtemp(prefix="stcsim-numba-")

hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_unconfigure() -> None:
    if not _IS_WORKER:
        shutil.rmtree(os.environ[_CACHE], ignore_errors=True)


@pytest.fixture
def rng() -> np.random.Generator:
    """The one source of random data, the same in every test."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Recorded data that lies beside the repository; tests that need it are skipped where it is absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the recorded data beside the repository is not there")
    return folder
