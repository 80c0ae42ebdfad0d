# Everything a person or CI runs. `make demo` and `make test` need only Python >= 3.11, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers

.PHONY: help demo test lint types unit bench bench-quick format clean
help:               ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coxfield needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]" -c constraints.txt
	@touch $(READY)

demo: $(READY)      ## the paper's tables and figures from embedded and simulated data: report/index.html
	$(BIN)/coxfield reproduce --quick --output report

test: lint types unit   ## lint, type checks and all tests

lint: $(READY)      ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)     ## mypy
	$(BIN)/mypy

unit: $(READY)      ## pytest: tests, doctests, README and docs
	$(BIN)/python -m pytest

$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]" -c constraints.txt
	@touch $(PEERS)

bench: $(PEERS)     ## benchmarks at full size (COXFIELD_DATA names a folder with mnist.npz; minutes)
	$(BIN)/python -m benchmarks

bench-quick: $(PEERS)   ## the same, small
	$(BIN)/python -m benchmarks --quick

format: $(READY)    ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:              ## forget the environment and everything made
	rm -rf $(VENV) report build dist .pytest_cache .mypy_cache .ruff_cache
