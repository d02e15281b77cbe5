"""Put configs/, isa/ and workloads/ into the wheel as stcsim/data; all else is said in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DATA_FOLDERS = ("configs", "isa", "workloads")


class BuildWithData(build_py):
    """Build the modules, then copy the data folders beside them.

    An editable installation copies nothing: there `stcsim.resources` finds the folders of the checkout.
    """

    def run(self) -> None:
        """Run the build."""
        super().run()
        if self.editable_mode:
            return
        for folder in DATA_FOLDERS:
            target = Path(self.build_lib, "stcsim", "data", folder)
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))


setup(cmdclass={"build_py": BuildWithData})
