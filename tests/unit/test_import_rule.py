"""Imports go one way, and importing the package stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import stcsim

PACKAGE = Path(stcsim.__file__).parent

# A package may import those of a lower rank and itself; the base modules stand below all, the rest above all.
BASE = {"errors", "units", "registry", "resources"}
ORDER = ["config", "isa", "workload", "formats", "lowering", "machine", "result", "report"]


def rank(module: str) -> int:
    """Return how far to the right the first part of a module's name below stcsim stands."""
    top = module.partition(".")[0]
    if top in BASE or top == "":
        return 0
    return ORDER.index(top) + 1 if top in ORDER else len(ORDER) + 1


def imported(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Return the modules below stcsim that a module's source imports, wherever in it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = f"stcsim.{module}".split(".")
                kept = parents[: len(parents) - node.level + is_package]
                base = ".".join([*kept, base]).rstrip(".")
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        found += [name.removeprefix("stcsim.") for name in names if name.startswith("stcsim.")]
    return found


def offences(source: str, module: str) -> list[str]:
    """Return the imports of a module that go against the direction of the data."""
    top = module.partition(".")[0]
    return [
        f"{module} imports {name}"
        for name in imported(source, module)
        if name.partition(".")[0] != top and rank(name) >= rank(module) and rank(module) <= len(ORDER)
        if not (top in BASE and name.partition(".")[0] in BASE)
        if not name.startswith("__")
    ]


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def test_no_module_imports_from_a_package_to_its_right() -> None:
    found = [offence for name, path in modules().items() for offence in offences(path.read_text(), name)]
    assert found == []


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("config.study", "from stcsim.machine.gpu import run", ["config.study imports machine.gpu.run"]),
        ("config.study", "def f():\n    import stcsim.isa", ["config.study imports isa"]),
        ("units", "from stcsim import config", ["units imports config"]),
        ("formats.nm", "from ..lowering import tiles", ["formats.nm imports lowering.tiles"]),
        ("machine.gpu", "from stcsim.study import Study", ["machine.gpu imports study.Study"]),
        ("machine.gpu", "from stcsim.errors import must\nfrom stcsim.machine import sm", []),
        ("units", "from stcsim.errors import must", []),
        ("isa.table", "from stcsim.config.loader import load", []),
        ("cli", "from stcsim.report import table\nimport stcsim.study", []),
        ("result.store", "from stcsim import __version__", []),
    ],
)
def test_the_rule_would_notice(module: str, source: str, expected: list[str]) -> None:
    assert offences(source, module) == expected


@pytest.mark.parametrize("module", ["stcsim", "stcsim.config", "stcsim.config.validation"])
def test_import_stays_cheap(module: str) -> None:
    heavy = ("numba", "matplotlib", "scipy", "numpy")
    code = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
