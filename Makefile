# Every target sets up what it needs: python3 (any 3.7 or newer to start with; 3.11 or newer
# must be on PATH) and make are enough. Java with Maven, Node with npm, and Go are used where present.

BOOTSTRAP := python3 scripts/bootstrap.py
PYTHON    := .venv/bin/python
PYTEST    := $(PYTHON) -m pytest

# What needs nothing but Python, and no more than seconds.
QUICK := not slow and not oracle and not java and not node and not go
# Files are shared out to a process a core, four at most. PYTEST_ARGS=-n0 keeps to one.
SHARED := -n auto --maxprocesses 4 --dist loadfile
# Many tests wait for others more than they work: one more than there are cores.
SHARED_WAITING = -n $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))') --dist loadfile

# Kept where an environment forbids it (containers do): without, every process of every run compiles
# the sources anew, and pytest rewrites the assertions of 400 files, which is half of its start.
export PYTHONDONTWRITEBYTECODE :=

# Paths that hold hand-written or generated Python. Empty folders and ones to come are left out.
SOURCES := $(wildcard kproto mockbroker wiredump kspec demo scripts benchmarks tests fuzz setup.py)

.DEFAULT_GOAL := help
.PHONY: help venv engine demo demo-capture test test-fast test-pure test-pure-oracle \
  test-without-compiler sanitize test-full requirements conformance mutate lint format bench bench-dump \
  codegen codegen-check coverage fidelity fuzz fuzz-smoke fuzz-long clean

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 24

venv: ## make .venv and install everything into it
	@$(BOOTSTRAP)

engine: ## build the C engine, and fail where that does not work
	@$(BOOTSTRAP)
	@KPROTO_ENGINE=native $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps \
	  --config-settings editable_mode=compat --editable .
	@KPROTO_ENGINE=native $(PYTHON) -m kproto --version

demo: ## a mock cluster, and every real client this machine can run, in under two minutes
	@$(BOOTSTRAP) --toolchains
	@$(PYTHON) -m demo

demo-capture: ## the same, quietly, into .cache/demo.pcapng: for `wiredump`, or for Wireshark
	@$(BOOTSTRAP) --toolchains
	@mkdir -p .cache
	@$(PYTHON) -m demo --quiet --journal .cache/demo.pcapng

test: ## every test CI runs (12 to 17 minutes on two cores)
	@$(BOOTSTRAP) --toolchains
	@$(PYTEST) $(SHARED_WAITING) $(PYTEST_ARGS)

test-fast: ## the quick ones, drawn by the seed: two minutes on two cores
	@$(BOOTSTRAP)
	@KPROTO_QUICK=1 KPROTO_HYPOTHESIS=fast $(PYTEST) -q $(SHARED_WAITING) -m "$(QUICK)" $(PYTEST_ARGS)

test-pure: ## the quick ones on the engine that `make test` does not run: generated Python
	@$(BOOTSTRAP)
	@KPROTO_ENGINE=pure $(PYTEST) -q $(SHARED) -m "$(QUICK)" $(PYTEST_ARGS)

test-pure-oracle: ## a sample of the pure engine's bytes through Kafka's own Java classes
	@$(BOOTSTRAP)
	@KPROTO_ENGINE=pure KPROTO_ORACLE_VALUES=$${KPROTO_ORACLE_VALUES:-3} \
	  $(PYTEST) -q tests/oracle $(PYTEST_ARGS)

test-without-compiler: ## the quick ones of an sdist without a C compiler (KPROTO_QUICK=1: a sample)
	@$(BOOTSTRAP)
	@KPROTO_HYPOTHESIS=fast $(PYTHON) -m scripts.without_compiler $(PYTEST_ARGS)

sanitize: ## the C engine's tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(BOOTSTRAP)
	@KPROTO_HYPOTHESIS=fast $(PYTHON) -m scripts.sanitize --seconds 20

test-full: ## every test with the full number of values, a fresh seed, and nothing skipped
	@$(BOOTSTRAP) --toolchains
	@KPROTO_FULL=1 KPROTO_HYPOTHESIS=full KPROTO_SEED=$${KPROTO_SEED:-random} \
	  KPROTO_ORACLE_VALUES=$${KPROTO_ORACLE_VALUES:-50} KPROTO_REQUIRE=$${KPROTO_REQUIRE-all,rust} \
	  $(PYTEST) $(PYTEST_ARGS)

fidelity: ## random programs on real Kafka and on the mock; ARGS="--release 4.4 --steps 500 --seed 7"
	@$(BOOTSTRAP) --toolchains
	@$(PYTHON) -m tests.real.programs $(ARGS)

requirements: ## every test, and docs/requirements.md: which requirement is shown by which of them
	@$(BOOTSTRAP) --toolchains
	@$(PYTEST) --requirements=write $(PYTEST_ARGS)

# Exit 1 says that a client fails something, which is what is to be published; 2 is an error.
conformance: ## every case on every client this machine can run: .cache/conformance, docs/conformance.md
	@$(BOOTSTRAP) --toolchains
	@rm -rf .cache/conformance
	@$(PYTHON) -m kspec run --again --jobs 4 --out .cache/conformance \
	  --write-baseline tests/kspec/known.json || [ $$? -eq 1 ]
	@$(PYTHON) -m kspec publish .cache/conformance/results.json --out docs/conformance.md

mutate: ## change each row of each controller's tables; a test of the row must fail
	@$(BOOTSTRAP)
	@$(PYTHON) -m scripts.mutate_rows $(MUTATE_ARGS)

lint: ## style, types, import contracts
	@$(BOOTSTRAP)
	@$(PYTHON) -m ruff check $(SOURCES)
	@$(PYTHON) -m ruff format --check $(SOURCES)
	@$(PYTHON) -m mypy $(SOURCES)
	@.venv/bin/lint-imports

format: ## rewrite the sources as ruff wants them
	@$(BOOTSTRAP)
	@$(PYTHON) -m ruff check --fix --quiet $(SOURCES); $(PYTHON) -m ruff format $(SOURCES)

codegen: ## write the message classes anew from schemas/
	@$(BOOTSTRAP)
	@$(PYTHON) -m kproto codegen

codegen-check: ## fail where a committed message class is stale
	@$(BOOTSTRAP)
	@$(PYTHON) -m kproto codegen --check

bench: ## measure beside other codecs, Java's, Go's and Rust's too, and mocks: docs/benchmarks.md
	@$(BOOTSTRAP) --with bench
	@$(PYTHON) -m benchmarks

bench-dump: ## wiredump beside tshark on real traffic, on Spark too (minutes): docs/benchmarks.md
	@$(BOOTSTRAP) --with bench
	@$(PYTHON) -m benchmarks.bench_dump

# Each target under each of its guides: atheris, and libFuzzer with sanitizers over the C extensions.
FUZZ_SECONDS ?= 60
FUZZ := nice -n 10 $(PYTHON) -m fuzz

fuzz: ## fuzz our own code: FUZZ_SECONDS (60) a target and guide; docs/fuzzing.md
	@$(BOOTSTRAP) --with fuzz
	@$(FUZZ) all --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

fuzz-smoke: ## every committed input of the fuzz targets, and 600 executions of each (two minutes)
	@$(BOOTSTRAP) --with fuzz
	@$(FUZZ) all --executions 600 --seed 455 --jobs 2 $(FUZZ_ARGS)

fuzz-long: ## ten minutes a target and guide, two at once (1.5 h), then the table in docs/fuzzing.md
	@$(BOOTSTRAP) --with fuzz
	@$(FUZZ) all --seconds 600 --cover --jobs 2 $(FUZZ_ARGS)
	@$(FUZZ) table --write

coverage: ## the quick tests under coverage, and the lines they miss
	@$(BOOTSTRAP)
	@$(PYTHON) -m coverage run -m pytest -q -m "$(QUICK)" $(PYTEST_ARGS)
	@$(PYTHON) -m coverage report

clean: ## remove what was built here, .venv included (the clients of the demo stay in KPROTO_CACHE)
	rm -rf .venv .cache build dist *.egg-info .coverage htmlcov .hypothesis
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find kproto mockbroker wiredump kspec demo tests benchmarks scripts fuzz -name __pycache__ -type d -prune -exec rm -rf {} +
