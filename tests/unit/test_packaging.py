"""The wheel carries the data, from a checkout as from a source archive; make installs only when it must."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("setuptools", minversion="77")

DATA = ("configs", "isa", "workloads")
SOURCES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "simulator", *DATA)


def call_backend(folder: Path, what: str, into: Path) -> Path:
    """Build a wheel or a source archive of `folder` as pip would, but without an environment of its own."""
    into.mkdir()
    code = f"from setuptools.build_meta import build_{what}; build_{what}({str(into)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is built, so that building leaves nothing in the checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    left_out = shutil.ignore_patterns("*.egg-info", "__pycache__", ".*")
    for name in SOURCES:
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name, ignore=left_out)
        else:
            shutil.copy(root / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return call_backend(checkout, "wheel", tmp_path_factory.mktemp("built") / "wheel")


def contents(wheel: Path) -> dict[str, int]:
    """Return the size of each file of a wheel, but for its list of files."""
    with zipfile.ZipFile(wheel) as archive:
        return {info.filename: info.file_size for info in archive.infolist() if "RECORD" not in info.filename}


def data_files(checkout: Path) -> Iterator[tuple[str, int]]:
    for folder in DATA:
        for path in (checkout / folder).rglob("*"):
            if path.is_file():
                yield f"stcsim/data/{path.relative_to(checkout).as_posix()}", path.stat().st_size


def test_the_wheel_carries_every_data_file_and_every_module(checkout: Path, wheel: Path) -> None:
    found = contents(wheel)
    expected = dict(data_files(checkout))
    assert {name: size for name, size in found.items() if name.startswith("stcsim/data/")} == expected
    assert any(name.startswith("stcsim/data/configs/machines/") for name in expected)
    modules = {
        path.relative_to(checkout / "simulator").as_posix() for path in (checkout / "simulator").rglob("*.py")
    }
    assert {name for name in found if name.endswith(".py")} == modules


def test_the_source_archive_builds_the_same_wheel(checkout: Path, wheel: Path, tmp_path: Path) -> None:
    archive = call_backend(checkout, "sdist", tmp_path / "sdist")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    assert contents(call_backend(unpacked, "wheel", tmp_path / "wheel")) == contents(wheel)


def test_the_wheel_finds_its_own_data_from_another_folder(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "from stcsim.resources import data_path\n"
        "print(data_path('configs', 'machines', 'v100.yaml').relative_to(sys.path[0]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert result.stdout.strip() == "stcsim/data/configs/machines/v100.yaml"


@pytest.fixture
def dry_make(root: Path, tmp_path: Path) -> tuple[Path, list[str]]:
    """A virtual environment's folder, and a dry ``make`` that would use it."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    (tmp_path / "bin").mkdir()
    return tmp_path, [
        "make",
        "--dry-run",
        "--no-print-directory",
        "--directory",
        str(root),
        f"VENV={tmp_path}",
    ]


def commands(command: list[str], target: str) -> str:
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    return subprocess.run([*command, target], check=True, capture_output=True, text=True, env=alone).stdout


def test_make_makes_the_environment_once(dry_make: tuple[Path, list[str]]) -> None:
    folder, command = dry_make
    fresh = commands(command, "run")
    assert f"-m venv {folder}" in fresh
    assert "--editable ." in fresh
    (folder / "bin" / "python").touch()
    (folder / ".stcsim-run").touch()
    again = commands(command, "run")
    assert again == f"{folder}/bin/stcsim run configs/studies/quickstart.yaml\n"


def test_make_installs_again_after_the_requirements_have_changed(dry_make: tuple[Path, list[str]]) -> None:
    folder, command = dry_make
    (folder / "bin" / "python").touch()
    (folder / ".stcsim-dev").touch()
    assert "pip install" not in commands(command, "test")
    os.utime(folder / ".stcsim-dev", (0, 0))
    assert "pip install" in commands(command, "test")
