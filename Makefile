PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests are split over the cores; one core too many would only slow the others down.
JOBS ?= auto

# Without compiled files every start of dryrack would compile itself anew; pip compiles what it
# installs, and a clone is not installed.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## What can be made here
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(VENV)" >&2
	@$(PYTHON) -c 'import sys; sys.exit("dryrack needs Python 3.11 or newer; this is " + sys.version.split()[0] + "; run: make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,real]'
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## A local environment in .venv with all that is needed

.PHONY: demo
demo: setup ## Set up, then show what dryrack does, on files and on control planes
	@$(BIN)/dryrack demo

.PHONY: test
test: setup ## Set up, then run the tests that need nothing but Python
	@$(BIN)/python -m pytest -q -n $(JOBS) -m "not real"

.PHONY: check
check: setup ## Formatting, lint, types, room contracts and house rules
	@$(BIN)/ruff format --check src tests
	@$(BIN)/ruff check src tests
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pytest -q tests/tidy

.PHONY: real
real: setup ## Compare with Kubernetes' own code (needs Go)
	@$(BIN)/python -m tests.programs
	@DRYRACK_REQUIRE_REAL=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m real $(AGAIN)

.PHONY: real-up
real-up: setup ## A real Kubernetes on loopback; options: make real-up BED="--node --kwok"
	@$(BIN)/python -m tests.realcluster up $(BED)

.PHONY: real-down
real-down: setup ## Stop what real-up started
	@$(BIN)/python -m tests.realcluster down $(BED)

.PHONY: bench
bench: setup ## Ratios against Kubernetes' own code, then a million cases; CASES=0 for none (needs Go)
	@$(BIN)/python -m tests.bench.plane
	@$(BIN)/python -m tests.bench.publisher
	@$(BIN)/python -m tests.bench.fleet
	@$(BIN)/python -m tests.bench.scheduling
	@$(BIN)/python -m tests.bench.gangs
	@$(BIN)/python -m tests.bench.schedulers
	@$(BIN)/python -m tests.bench.gang_share
	@$(BIN)/python -m tests.bench.soak $(if $(PODS),--pods $(PODS))
	@$(BIN)/python -m tests.bench.prepares
	@$(BIN)/python -m tests.bench.day $(if $(PODS),--pods $(PODS))
	@$(BIN)/python -m tests.bench.latency
	@$(BIN)/python -m tests.bench.faults $(if $(SEEDS),--seeds $(SEEDS))
	@$(BIN)/python -m tests.bench.replay
	@$(BIN)/python -m tests.bench.page
	@$(BIN)/python -m tests.bench.page_frames
	@$(BIN)/python -m tests.bench $(if $(CASES),--cases $(CASES))

.PHONY: format
format: setup ## Format and fix what can be fixed
	@$(BIN)/ruff format src tests
	@$(BIN)/ruff check --fix src tests
