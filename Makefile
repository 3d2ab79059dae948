# Every target works as the first command on a fresh machine with Python 3.11+ and make:
# the virtual environment is created on demand and updated when pyproject.toml changes.
#   make test WORKERS=0            without parallel workers
#   make test ARGS="-k poisson"    any further pytest arguments
#   make PYTHON=python3.12 check   with a particular interpreter (after make clean)

ifdef PYTHON
CANDIDATES := $(PYTHON)
else
CANDIDATES := python3 python3.13 python3.12 python3.11 python
endif

VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
READY := $(VENV)/.ready
WORKERS ?= 2
ARGS ?=
MINUTES ?= 10

BASE ?= HEAD~1

# Tests start hundreds of processes: each would compile every module without cached byte code.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/$(VENV)/pycache

.PHONY: help venv demo test test-fast test-browser test-cluster fuzz lint check goldens bench bench-compare docs fmt dist clean

help:
	@echo "make demo    fit real grocery trips and write a report"
	@echo "make test    run the whole suite: tests, doctests, coverage"
	@echo "make test-fast   run the quick tests of every area in less than a minute"
	@echo "make test-browser   test the explorer in a real browser (installs chromium on Debian)"
	@echo "make test-cluster   kill workers and drivers of local clusters, fill disks (takes minutes)"
	@echo "make fuzz MINUTES=10   feed in damaged files, models, arguments and requests; keep failures"
	@echo "make lint    run ruff, mypy and import-linter"
	@echo "make check   lint and test; CI runs this, then make test-browser"
	@echo "make goldens store the current results of the golden fits as the expected ones"
	@echo "make bench   run the quick version of the benchmarks"
	@echo "make bench-compare BASE=<rev>   time this tree against another revision, in one job"
	@echo "make docs    build the documentation in docs/build/index.html"
	@echo "make fmt     format, and fix what can be fixed automatically"
	@echo "make dist    build wheel and source archive in dist/"
	@echo "make clean   remove everything that make created, including $(VENV)"

venv: $(READY)

$(READY): pyproject.toml
	@found=""; \
	for p in $(CANDIDATES); do \
	  if "$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	  then found="$$p"; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "efemb needs Python 3.11 or newer; tried: $(CANDIDATES)." >&2; \
	  echo "Name one with: make PYTHON=/path/to/python3 ..." >&2; exit 1; \
	fi; \
	echo "== making $(VENV) with $$("$$found" --version) (once; a minute or two)"; \
	"$$found" -m venv $(VENV) || { \
	  echo "This Python cannot make virtual environments (on Debian: install python3-venv)." >&2; \
	  rm -rf $(VENV); exit 1; }
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[dev]"
	@touch $@

demo: $(READY)
	@$(BIN)/efemb demo

test: $(READY)
	@echo "== tests"
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --cov --cov-report=term $(ARGS)

# Doctests, coverage, slow tests and most examples are left to `make test`.
test-fast: $(READY)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow" \
	  --hypothesis-profile=quick tests $(ARGS)

# Playwright drives the chromium of the system, which is installed on Debian only. Types of the page's
# modules are checked if node is installed.
test-browser: $(READY)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check playwright
	@for name in chromium chromium-browser google-chrome; do \
	  command -v $$name >/dev/null 2>&1 && found=1; done; \
	if [ -z "$$found$$CHROMIUM" ] && command -v apt-get >/dev/null 2>&1; then \
	  (apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium) >/dev/null 2>&1; \
	fi; \
	command -v chromium chromium-browser google-chrome $$CHROMIUM >/dev/null 2>&1 || { \
	  echo "no browser: install chromium, or name one with CHROMIUM=/path" >&2; exit 1; }
	@if command -v npx >/dev/null 2>&1; then echo "== types of the page"; \
	  npx --yes --package typescript tsc --project src/efemb/explore/page; \
	else echo "== types of the page are not checked: npx is missing"; fi
	@echo "== browser"
	@EFEMB_BROWSER=1 $(BIN)/python -m pytest -q tests/browser $(ARGS)

# Inputs that fail are kept in tests/fuzz/seeds, which the suite replays.
fuzz: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(MINUTES) $(ARGS)

# Takes minutes; EFEMB_KILLS=50 kills workers at that many random moments.
test-cluster: $(READY)
	@EFEMB_CLUSTER=1 $(BIN)/python -m pytest -q -s tests/cluster tests/shards/test_dask.py $(ARGS)

lint: $(READY)
	@echo "== ruff"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "unformatted files; run: make fmt" >&2; exit 1; }
	@echo "== mypy"
	@$(BIN)/mypy
	@echo "== import layers"
	@report=$$($(BIN)/lint-imports 2>&1) || { echo "$$report" >&2; exit 1; }

check: lint
	@$(MAKE) --no-print-directory test

goldens: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m goldens.make

bench: $(READY)
	@$(BIN)/python -m benchmarks --quick $(ARGS)

bench-compare: $(READY)
	@$(BIN)/python -m benchmarks.compare_revisions $(BASE) $(ARGS)

# Building the site runs the examples, so their requirements are installed first.
docs: $(READY)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[dev,docs]"
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/build
	@echo "open docs/build/index.html"

fmt: $(READY)
	@$(BIN)/ruff check --fix --quiet || true
	@$(BIN)/ruff format --quiet
	@$(BIN)/ruff check

dist: $(READY)
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist .

clean:
	@rm -rf $(VENV) .coverage .coverage.* build dist htmlcov docs/build docs/gallery docs/api docs/live
	@rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
