# make run    the quick-start study          make test   the tests
# make check  lint, format and types         make bench  the benchmarks
# Each makes the virtual environment that it needs, from Python (>= 3.11) and pip alone.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# A stamp says that the environment is up to date with the files that decide what is installed.
RUN_STAMP := $(VENV)/.stcsim-run
DEV_STAMP := $(VENV)/.stcsim-dev
DECIDING := pyproject.toml setup.py

.PHONY: run test check bench
.DELETE_ON_ERROR:

run: $(RUN_STAMP)
	$(BIN)/stcsim run configs/studies/quickstart.yaml

test: $(DEV_STAMP)
	$(BIN)/python -m pytest

check: $(DEV_STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(DEV_STAMP)
	$(BIN)/python -m pytest --override-ini addopts="-q --strict-markers --strict-config" tests/bench

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "stcsim needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && $(PYTHON) -m pip --python $@ install pip; }

$(RUN_STAMP): $(DECIDING) | $(BIN)/python
	$(INSTALL) --editable .
	touch $@

$(DEV_STAMP): $(DECIDING) | $(BIN)/python
	$(INSTALL) --editable '.[dev]'
	touch $@ $(RUN_STAMP)
