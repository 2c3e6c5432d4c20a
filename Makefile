# Two commands do everything on a fresh machine (python3 with venv, make, gcc): `make demo` and `make test`.
# Java, Maven, Go and Node are used where they are found; with MILLSTREAM_REQUIRE_ALL=1 their absence is a failure.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
# Twice as many as there are processors: most slow tests wait for a process or a session half of the time. A file stays
# together, its brokers serve it in turn; the longest files come first (tests/support/longest_first.py).
WORKERS ?= 4
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
FAST := not slow and not clients and not java

.DEFAULT_GOAL := help
.PHONY: help setup demo check lint test-fast test-all test bench soak reference clean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED)  ## The environment in .venv, native module included

# Again only when what is installed has changed.
$(INSTALLED): pyproject.toml setup.py constraints.txt $(wildcard src/millstream/records/_*.p*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --constraint constraints.txt
	touch $@

demo: setup  ## Orders and payments through Spark pipelines on an embedded broker, in a minute (needs Java 17)
	$(BIN)/python examples/demo.py

check: lint test-fast  ## Everything that is fast: under five minutes

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m millstream.reference --check

test-fast: setup
	$(PYTEST) -m "$(FAST)"

test-all: setup
	$(PYTEST) -m "not ($(FAST))" --durations=40

test: check test-all  ## Everything that CI runs: under forty minutes

bench: setup  ## Ratios to Apache Kafka on this machine
	$(BIN)/python -m bench

soak: setup  ## The long runs: properties, fuzzing, kills, power failures (SOAK="--only fuzz --minutes 60" for a part)
	$(BIN)/python -m tests.soak $(SOAK)

reference: setup  ## Write docs/reference from the declarations
	$(BIN)/python -m millstream.reference

clean:  ## Remove what make has made
	rm -rf $(VENV) build dist src/*.egg-info src/millstream/records/*.so .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
