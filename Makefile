# Everything a person or CI runs. `make demo` and `make test` need only Python >= 3.11, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers
TORCH := $(VENV)/.torch
WRITER := $(VENV)/.writer

.PHONY: help demo test lint types unit test-browser test-arrays test-portable test-oldest test-newest fuzz bench bench-quick docs look format clean dist
help:               ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 16

# pip compiles every module, on one core; compileall uses all cores and leaves out the packages' own tests.
$(READY): pyproject.toml paper/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coxfield needs Python 3.11 or newer; set PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -e ".[test]" -e ./paper -c constraints.txt
	$(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib src paper/src
	@touch $(READY)

demo: $(READY)      ## the paper's tables and figures from embedded and simulated data: report/index.html
	$(BIN)/coxfield reproduce --quick --output report

test: lint types unit   ## lint, type checks and all tests

lint: $(READY)      ## ruff: rules and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)     ## mypy; and a user's program, strictly
	$(BIN)/mypy
	$(BIN)/mypy --config-file= --strict --ignore-missing-imports --follow-imports=silent tests/typing/user_program.py

# Two processes with one BLAS thread each are faster than one process with two threads.
WORKERS ?= 2
unit: $(READY)      ## pytest: tests, doctests, README and docs (WORKERS=4: four at once)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# Nothing is installed here: without a browser, these tests are skipped in `make unit`, and this says what is missing.
test-browser: $(READY)  ## the studio in a real browser (needs chromium and playwright)
	$(BIN)/python tests/studio_page.py
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/studio/test_page.py

# torch is large, so it is no part of the other tests, which use array-api-strict.
$(TORCH): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	@touch $(TORCH)

test-arrays: $(TORCH)   ## tests of array libraries, with torch, and scikit-learn's own checks
	SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_backends.py tests/dask/test_checks.py tests/estimators/test_array_input.py
	SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest tests/estimators/test_estimator_checks.py -k array_api

test-portable: $(READY) ## all tests again as other CPUs would run them: a table of variants (half an hour)
	$(BIN)/python tools/portable.py

test-oldest: $(READY)   ## all tests with the oldest versions that pyproject.toml allows, in .venv-oldest
	$(BIN)/python tools/portable.py --oldest

test-newest: $(READY)   ## all tests with the newest versions there are, in .venv-newest
	$(BIN)/python tools/portable.py --newest

CASES ?= 20000
FUZZ := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m
fuzz: $(READY)      ## wild data, options and files, stopped commands, memory over time (CASES=100000: more; an hour)
	$(FUZZ) fuzz.run --cases $(CASES)
	$(FUZZ) fuzz.model_files --cases 10000
	$(FUZZ) fuzz.interruptions
	$(FUZZ) fuzz.soak --output report/memory.png

$(PEERS): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]" -e ./paper -c constraints.txt
	@touch $(PEERS)

bench: $(PEERS)     ## benchmarks at full size (COXFIELD_DATA names a folder with mnist.npz; minutes)
	$(BIN)/python -m benchmarks

bench-quick: $(PEERS)   ## the same, small
	$(BIN)/python -m benchmarks --quick

$(WRITER): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]" -e ./paper -c constraints.txt
	@touch $(WRITER)

# Warnings are errors, and so are links that lead nowhere and anything that a browser would load from another host.
docs: $(WRITER)     ## the documentation as a site: site/index.html (minutes; the gallery is run)
	$(BIN)/python -m sphinx -q -W --keep-going -j 2 -b html -c tools/site $(SPHINXOPTS) docs site
	$(BIN)/python tools/check_site.py site

look:               ## every page of the built site in Chromium, at three widths, light and dark
	$(PYTHON) tools/look_at_site.py site

dist: $(READY)      ## wheel and source archive: built twice, compared, installed and tested; in dist/ (minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dist]" -c constraints.txt
	$(BIN)/python tools/check_dist.py

format: $(READY)    ## rewrite the code in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:              ## forget the environment and everything made
	rm -rf $(VENV) .venv-oldest .venv-newest report site docs/gallery docs/api/generated build dist .pytest_cache .mypy_cache .ruff_cache
