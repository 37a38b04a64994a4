PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The number of test processes.
JOBS ?= auto

# Python must keep compiled files. Otherwise each start of dryrack compiles its modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(VENV)" >&2
	@$(PYTHON) -c 'import sys; sys.exit("dryrack needs Python 3.11 or newer; this is " + sys.version.split()[0] + "; run: make PYTHON=python3.11") if sys.version_info < (3, 11) else 0'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs,real]'
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## Create or update the development environment in .venv

.PHONY: demo
demo: setup ## Set up, then show what dryrack does, on virtual clusters
	@$(BIN)/dryrack demo

.PHONY: test
test: setup ## Set up, then run the tests that need only Python, except those of make check
	@$(BIN)/python -m pytest -q -n $(JOBS) -m "not real" --ignore=tests/tidy $(AGAIN)

.PHONY: check
check: setup ## Check format, lint, types, import contracts, and the rules in tests/tidy
	@$(BIN)/ruff format --check src tests
	@$(BIN)/ruff check src tests
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/python -m pytest -q tests/tidy

.PHONY: docs
docs: setup ## Write the generated pages, and build the documentation site into build/docs/site
	@$(BIN)/python -m tests.docs.reference
	@$(BIN)/python -m tests.docs.site

.PHONY: image
image: setup ## Build the container image into build/image (needs Debian 12, buildah, and root)
	@$(BIN)/python deploy/image.py build build/image

.PHONY: corpus
corpus: setup ## Try your manifests: make corpus DIR=FOLDER [ROUNDS=3] [SEED=0]
	@test -n "$(DIR)" || { echo "DIR is not set; name a folder with manifests: make corpus DIR=FOLDER" >&2; exit 2; }
	@$(BIN)/python -m tests.corpus "$(DIR)" $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED)) --refused

.PHONY: real
real: setup ## Compare with Kubernetes, or with RELEASE=1.34 to 1.37 (needs Go 1.26, a JDK, Maven, and root)
	@$(if $(RELEASE),DRYRACK_KUBERNETES=$(RELEASE)) $(BIN)/python -m tests.programs
	@$(if $(RELEASE),DRYRACK_KUBERNETES=$(RELEASE)) DRYRACK_REQUIRE_REAL=1 $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m real $(AGAIN)

.PHONY: record
record: setup ## Record the answers of a real API server: make record [RELEASE=1.37] [NAMES="pods lists"] (needs Go)
	@$(BIN)/python -m tests.parity record $(NAMES) $(if $(RELEASE),--release $(RELEASE))

.PHONY: operators
operators: setup ## Run Kueue, JobSet, and LeaderWorkerSet on dryrack, and write a page (needs Go and root)
	@$(BIN)/python -m tests.operators $(NAMES)

.PHONY: conformance
conformance: setup ## Run Kubernetes' own end-to-end tests on dryrack, and write a page (needs Go)
	@$(BIN)/python -m tests.conformance

.PHONY: real-up
real-up: setup ## Start a Kubernetes cluster on loopback; options: BED="--node --kwok"
	@$(BIN)/python -m tests.realcluster up $(BED)

.PHONY: real-down
real-down: setup ## Stop the cluster that real-up started
	@$(BIN)/python -m tests.realcluster down $(BED)

# In this order. To run one of them: make bench-day PODS=2000
BENCHES := plane publisher fleet scheduling gangs schedulers gang_share prepares latency replay page \
	soak day simulate faults million scale plan provisioner
OPTIONS_soak = $(if $(PODS),--pods $(PODS))
OPTIONS_day = $(if $(PODS),--pods $(PODS))
OPTIONS_simulate = $(if $(TRACES),--traces $(TRACES)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(PODS),--pods $(PODS))
OPTIONS_scale = $(if $(NODES),--nodes $(NODES))
OPTIONS_plan = $(if $(CASES),--cases $(CASES))
OPTIONS_provisioner = $(if $(RUNS),--runs $(RUNS))
OPTIONS_faults = $(if $(SEEDS),--seeds $(SEEDS))

.PHONY: bench
bench: setup ## Measure dryrack and Kubernetes, for hours; PODS=, SEEDS=, CASES=, and NODES= make it shorter (needs Go)
	@$(MAKE) --no-print-directory --keep-going $(BENCHES:%=bench-%)

bench-million: setup
	@$(BIN)/python -m tests.bench $(if $(CASES),--cases $(CASES))

bench-%: setup
	@echo "# $*"
	@$(BIN)/python -m tests.bench.$* $(OPTIONS_$*)

.PHONY: format
format: setup ## Format the code, and fix what ruff can fix
	@$(BIN)/ruff format src tests
	@$(BIN)/ruff check --fix src tests
