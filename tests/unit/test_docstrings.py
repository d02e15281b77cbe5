"""The examples in docstrings are true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import stcsim

MODULES = [
    info.name for info in pkgutil.walk_packages(stcsim.__path__, "stcsim.") if "__main__" not in info.name
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
