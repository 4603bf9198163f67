# Every target sets up what it needs. Requirements: make, python3 (3.7 or newer) and a Python 3.11 or
# newer on PATH. Java with Maven, Node with npm, and Go are used where present.

BOOTSTRAP := python3 scripts/bootstrap.py
PYTHON    := .venv/bin/python
PYTEST    := $(PYTHON) -m pytest

# Tests that need only Python; and of these, the ones that take less than a third of a second.
PYTHON_ONLY := not oracle and not java and not node and not go
QUICK := not slow and $(PYTHON_ONLY)
# One process a core, at most four. PYTEST_ARGS=-n0 runs everything in one process.
SHARED := -n auto --maxprocesses 4 --dist worksteal
# Two processes a core, at most six: slow tests mostly wait, for other programs and for time-outs.
SHARED_WAITING = -n $(shell python3 -c 'import os; print(min(6, 2 * (os.cpu_count() or 1)))') --dist worksteal

# Write bytecode even where the environment forbids it, as containers often do: without it, each
# process compiles every source and pytest rewrites the assertions of 400 files.
export PYTHONDONTWRITEBYTECODE :=

# Folders that hold Python sources.
SOURCES := $(wildcard kproto mockbroker wiredump kspec demo scripts benchmarks tests fuzz setup.py)

.DEFAULT_GOAL := help
.PHONY: help venv engine demo demo-capture test test-full test-fast test-pure test-pure-oracle \
  test-without-compiler release-check bundle sanitize requirements conformance mutate lint format bench bench-scale bench-dump \
  codegen codegen-check coverage fidelity fidelity-programs suites streams-smoke fuzz fuzz-smoke fuzz-long docs docs-serve clean

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 24

venv: ## create .venv and install everything into it
	@$(BOOTSTRAP)

engine: ## build the C engine; fail if that is not possible
	@$(BOOTSTRAP)
	@KPROTO_ENGINE=native $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps \
	  --config-settings editable_mode=compat --editable .
	@KPROTO_ENGINE=native $(PYTHON) -m kproto --version

demo: ## start a mock cluster and run every real client that is installed (two minutes)
	@$(BOOTSTRAP) --toolchains
	@$(PYTHON) -m demo

demo-capture: ## run the demo quietly and record it in .cache/demo.pcapng
	@$(BOOTSTRAP) --toolchains
	@mkdir -p .cache
	@$(PYTHON) -m demo --quiet --journal .cache/demo.pcapng

test: ## run every test, with some of its sets of parameters, drawn by the seed that is printed
	@$(BOOTSTRAP) --toolchains
	@KPROTO_QUICK=1 $(PYTEST) $(SHARED_WAITING) $(PYTEST_ARGS)

test-full: ## run every test with all its parameters, and comparisons whole (hours on two cores)
	@$(BOOTSTRAP) --toolchains
	@KPROTO_FULL=1 $(PYTEST) $(SHARED_WAITING) $(PYTEST_ARGS)

test-fast: ## run the quick tests, each with one set of parameters drawn by the seed
	@$(BOOTSTRAP)
	@KPROTO_QUICK=2 KPROTO_HYPOTHESIS=fast $(PYTEST) -q $(SHARED) -m "$(QUICK)" $(PYTEST_ARGS)

test-pure: ## run the quick tests on the pure Python engine
	@$(BOOTSTRAP)
	@KPROTO_ENGINE=pure $(PYTEST) -q $(SHARED) -m "$(QUICK)" $(PYTEST_ARGS)

test-pure-oracle: ## compare a sample of the pure engine's bytes with Kafka's Java classes
	@$(BOOTSTRAP)
	@KPROTO_ENGINE=pure KPROTO_ORACLE_VALUES=$${KPROTO_ORACLE_VALUES:-3} \
	  $(PYTEST) -q tests/oracle $(PYTEST_ARGS)

test-without-compiler: ## install the sdist without a C compiler and run its codec tests
	@$(BOOTSTRAP)
	@KPROTO_QUICK=2 KPROTO_HYPOTHESIS=fast $(PYTHON) -m scripts.without_compiler $(PYTEST_ARGS)

release-check: ## build dist/, check it, and follow README.md in a clean environment with it
	@$(BOOTSTRAP)
	@$(PYTHON) -m scripts.release_check

bundle: ## build dist/mockbroker-VERSION-PLATFORM, a folder that needs no Python, and check it
	@$(BOOTSTRAP) --with bundle
	@$(PYTHON) -m scripts.bundle

sanitize: ## run the C engine's tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(BOOTSTRAP)
	@KPROTO_HYPOTHESIS=fast $(PYTHON) -m scripts.sanitize --seconds 10

RELEASE ?= 4.4.0
fidelity: ## search for differences from real Kafka; RELEASE=3.9.2 SEED=7 ARGS="--requests 5000"
	@$(BOOTSTRAP) --toolchains
	@nice $(PYTHON) -m tests.real.search --release $(RELEASE) $(if $(SEED),--seed $(SEED)) $(ARGS)

fidelity-programs: ## run random programs on Kafka and on the mock; ARGS="--release 4.4 --steps 500"
	@$(BOOTSTRAP) --toolchains
	@$(PYTHON) -m tests.real.programs $(ARGS)

# Exit code 1 means that a test's result is not that of its list, 2 that a suite cannot run here.
suites: ## run clients' own test suites on the mock; ARGS="--suite kgo --on kafka:4.4.0"
	@$(BOOTSTRAP) --toolchains
	@$(PYTHON) -m tests.suites $(ARGS)

requirements: ## print every requirement with the tests that show it
	@$(BOOTSTRAP)
	@$(PYTHON) -m scripts.reference_pages requirements

# Exit code 1 means that a client failed a case, which is a result to publish; 2 is an error.
conformance: ## run every case on every installed client; write docs/reference/conformance/results
	@$(BOOTSTRAP) --toolchains
	@mkdir -p .cache && rm -rf .cache/conformance
	@$(PYTHON) -m scripts.conformance_results known > .cache/known.json
	@$(PYTHON) -m kspec run --jobs 12 --baseline .cache/known.json --out .cache/conformance || [ $$? -eq 1 ]
	@$(PYTHON) -m scripts.conformance_results write .cache/conformance

mutate: ## change each row of the tables and each fact of releases; a test of it must fail
	@$(BOOTSTRAP)
	@$(PYTHON) -m scripts.mutate_rows $(MUTATE_ARGS)

streams-smoke: ## Kafka Streams' own smoke test on the mock, with both group protocols (two minutes)
	@$(BOOTSTRAP)
	@$(PYTHON) -m tests.mockbroker.clients.streams_smoke $(ARGS)

lint: ## style, types, import contracts, circles, words
	@$(BOOTSTRAP)
	@$(PYTHON) -m ruff check $(SOURCES)
	@$(PYTHON) -m ruff format --check $(SOURCES)
	@$(PYTHON) -m mypy $(SOURCES)
	@.venv/bin/lint-imports
	@$(PYTHON) -m scripts.import_cycles
	@$(PYTHON) -m scripts.language
	@$(PYTHON) -m scripts.operation_stubs --check

format: ## format the sources with ruff
	@$(BOOTSTRAP)
	@$(PYTHON) -m ruff check --fix --quiet $(SOURCES); $(PYTHON) -m ruff format $(SOURCES)

codegen: ## regenerate the message classes from schemas/
	@$(BOOTSTRAP)
	@$(PYTHON) -m kproto codegen

codegen-check: ## fail if a committed message class is stale
	@$(BOOTSTRAP)
	@$(PYTHON) -m kproto codegen --check

# The variable silences a notice about the generator's next version.
MKDOCS := NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs

docs: ## build the documentation site into .cache/site; warnings are errors
	@$(BOOTSTRAP) --with docs
	@$(MKDOCS) build --strict --quiet
	@echo "open .cache/site/index.html"

docs-serve: ## serve the documentation site and rebuild it when a page changes
	@$(BOOTSTRAP) --with docs
	@$(MKDOCS) serve

bench: ## measure codecs and mocks of several languages; write docs/explanation/benchmarks.md
	@$(BOOTSTRAP) --with bench
	@$(PYTHON) -m benchmarks

bench-scale: ## measure a large cluster and 2,000 connections; write docs/explanation/benchmarks.md (12 minutes)
	@$(BOOTSTRAP) --with bench
	@$(PYTHON) -m benchmarks.bench_scale

bench-dump: ## measure wiredump and tshark on real traffic; write docs/explanation/benchmarks.md (minutes)
	@$(BOOTSTRAP) --with bench
	@$(PYTHON) -m benchmarks.bench_dump

# Each target runs under each of its guides: atheris, and libFuzzer with sanitizers for the C extensions.
FUZZ_SECONDS ?= 60
FUZZ := nice -n 10 $(PYTHON) -m fuzz

fuzz: ## fuzz our own code for FUZZ_SECONDS (60) a target and guide; see docs/explanation/fuzzing.md
	@$(BOOTSTRAP) --with fuzz
	@$(FUZZ) all --seconds $(FUZZ_SECONDS) $(FUZZ_ARGS)

fuzz-smoke: ## run each fuzz target on its corpus and 600 executions (two minutes)
	@$(BOOTSTRAP) --with fuzz
	@$(FUZZ) all --executions 600 --seed 455 --jobs 2 $(FUZZ_ARGS)

fuzz-long: ## fuzz ten minutes a target and guide (1.5 h); update the table in docs/explanation/fuzzing.md
	@$(BOOTSTRAP) --with fuzz
	@$(FUZZ) all --seconds 600 --cover --jobs 2 $(FUZZ_ARGS)
	@$(FUZZ) table --write

coverage: ## run the tests that need only Python under coverage; list the lines they miss
	@$(BOOTSTRAP)
	@$(PYTHON) -m coverage erase
	@$(PYTHON) -m coverage run -m pytest -q $(SHARED) -m "$(PYTHON_ONLY)" $(PYTEST_ARGS)
	@$(PYTHON) -m coverage combine --quiet
	@$(PYTHON) -m coverage report

clean: ## remove everything that was built here, .venv included; downloads in KPROTO_CACHE stay
	rm -rf .venv .cache build dist *.egg-info .coverage htmlcov .hypothesis
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find kproto mockbroker wiredump kspec demo tests benchmarks scripts fuzz -name __pycache__ -type d -prune -exec rm -rf {} +
