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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs,real]'
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

.PHONY: docs
docs: setup ## Write the generated pages, and build the documentation site into build/docs/site
	@$(BIN)/python -m tests.docs.reference
	@$(BIN)/python -m tests.docs.site

.PHONY: corpus
corpus: setup ## Try your manifests: make corpus DIR=FOLDER [ROUNDS=3] [SEED=0]
	@test -n "$(DIR)" || { echo "name the folder that has the manifests: make corpus DIR=FOLDER" >&2; exit 2; }
	@$(BIN)/python -m tests.corpus "$(DIR)" $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED)) --refused

.PHONY: real
real: setup ## Compare with Kubernetes' own code (needs Go; Java and Maven)
	@$(BIN)/python -m tests.programs
	@DRYRACK_REQUIRE_REAL=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m real $(AGAIN)

.PHONY: real-up
real-up: setup ## A real Kubernetes on loopback; options: make real-up BED="--node --kwok"
	@$(BIN)/python -m tests.realcluster up $(BED)

.PHONY: real-down
real-down: setup ## Stop what real-up started
	@$(BIN)/python -m tests.realcluster down $(BED)

# In this order; each by itself: make bench-day PODS=2000
BENCHES := plane publisher fleet scheduling gangs schedulers gang_share prepares latency replay page page_frames \
	soak day faults million
OPTIONS_soak = $(if $(PODS),--pods $(PODS))
OPTIONS_day = $(if $(PODS),--pods $(PODS))
OPTIONS_faults = $(if $(SEEDS),--seeds $(SEEDS))

.PHONY: bench
bench: setup ## Ratios against Kubernetes' own code, then hours of proofs; less with PODS=, SEEDS= and CASES= (needs Go)
	@$(MAKE) --no-print-directory --keep-going $(BENCHES:%=bench-%)

bench-million: setup
	@$(BIN)/python -m tests.bench $(if $(CASES),--cases $(CASES))

bench-%: setup
	@echo "# $*"
	@$(BIN)/python -m tests.bench.$* $(OPTIONS_$*)

.PHONY: format
format: setup ## Format and fix what can be fixed
	@$(BIN)/ruff format src tests
	@$(BIN)/ruff check --fix src tests
