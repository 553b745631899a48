# Newnormal: everything starts here. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
ARGS ?=

.DEFAULT_GOAL := help
# processes of tests share the cores already: threads of Polars and of linear algebra would only wait for each other
ONE_THREAD := POLARS_MAX_THREADS=1 OPENBLAS_NUM_THREADS=1

# tests start hundreds of processes: bytecode is kept, even where the shell says otherwise
export PYTHONDONTWRITEBYTECODE =

.PHONY: help setup demo test test-transcripts test-servers test-alone test-slow test-long test-stack browser agents lint format typecheck layers check services-up services-down services-status bench bench-flink chaos docs wheel audit mutants clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make .venv, install everything pinned, get Java and the servers (once; then a matter of a moment)

$(STAMP): requirements.lock pyproject.toml deploy/artifacts.py deploy/bounded_records.py deploy/bounded_batches.py
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("PYTHON_TOO_OLD: %s is Python %d.%d\n  accepted: 3.11 or newer, e.g. make setup PYTHON=python3.12\n  now: nothing was set up" % (sys.executable, *sys.version_info[:2]))'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); echo "VENV_FAILED: $(PYTHON) cannot make a virtual environment"; \
	  echo "  accepted: a Python with venv (Debian, Ubuntu: apt-get install python3-venv)"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	$(BIN)/python -m deploy.java install
	$(BIN)/python -m deploy.artifacts
	$(BIN)/python -m deploy.class_archive
	$(BIN)/python -m compileall -q engine models pipelines datagen dashboards deploy
	@echo "Compiling the models, once"
	$(BIN)/python -m models.compiled
	@touch $@

demo: setup ## See it work: simulated machines, faults, detections (options: ARGS="...")
	$(BIN)/newnormal demo $(ARGS)

test: check browser agents ## Lint, types, all tests but the slow ones (options for pytest: ARGS="...")
	$(ONE_THREAD) $(BIN)/python -m tests.all_at_once $(ARGS)

test-alone: setup ## The tests that need no servers, but for the slow ones
	$(ONE_THREAD) $(BIN)/python -m pytest -m "not servers and not spark and not slow and not stack" $(ARGS)

test-servers: setup ## The tests that need Kafka, Elasticsearch or Spark
	$(ONE_THREAD) $(BIN)/python -m pytest -m "(servers or spark) and not slow" $(ARGS)

test-slow: setup ## Servers killed and hung under a pipeline, and the benchmarks in short
	$(ONE_THREAD) $(BIN)/python -m pytest -m "slow and not long" $(ARGS)

test-long: setup ## What takes too long for CI: two versions at once, an outage, the demo in a browser, a real Telegraf, checkpoints on HDFS and S3, recorded data
	$(BIN)/python -m tests.agents.telegraf || true
	$(BIN)/python -m tests.s3 || true
	$(ONE_THREAD) $(BIN)/python -m pytest -m long $(ARGS)

test-stack: setup ## Build the image, start the compose stack on a Docker engine, disturb it, count what is wrong (STACK_FAULTS=12 ARGS="...")
	$(BIN)/python -m pytest -m stack -s tests/stack $(ARGS)

test-transcripts: setup ## Every transcript: on the reference, the operator, bounded input, and through Spark
	NEWNORMAL_TRANSCRIPTS=all $(ONE_THREAD) $(BIN)/python -m pytest -m transcripts $(ARGS)

browser: # Chromium for the console's tests; they are skipped where it cannot be had
	@if ! command -v chromium >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  export DEBIAN_FRONTEND=noninteractive; echo "Installing Chromium"; \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null \
	  || echo "Chromium could not be installed: the browser tests will be skipped"; fi

agents: # Agents for tests/agents, on CI's machine only, since they start as services elsewhere; without them the tests are skipped
	@if [ -n "$$CI" ] && ! { command -v collectd && command -v prometheus; } >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  export DEBIAN_FRONTEND=noninteractive; echo "Installing collectd, rsyslog, the node exporter and Prometheus"; \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends collectd-core libyajl2 rsyslog \
	  prometheus prometheus-node-exporter; } >/dev/null || echo "They could not be installed: tests of agents will be skipped"; fi

lint: setup ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: setup ## Check types
	$(BIN)/mypy

layers: setup ## Check who imports whom (contracts in pyproject.toml)
	$(BIN)/lint-imports --no-logo

check: lint typecheck layers ## All checks that run nothing

services-up: setup ## Start Kafka and Elasticsearch in the background
	$(BIN)/newnormal services up $(ARGS)

services-down: setup ## Stop them; their data stay
	$(BIN)/newnormal services down $(ARGS)

services-status: setup ## Show what runs
	$(BIN)/newnormal services status $(ARGS)

chaos: setup ## Kill, stop and starve a pipeline of its own for 20 minutes, then count what is wrong (ARGS="--seed 2")
	$(BIN)/newnormal chaos $(ARGS)

bench: setup ## Measure speed and accuracy (tests/benchmarks)
	$(BIN)/newnormal bench $(ARGS)

bench-flink: setup ## Measure windows beside Flink SQL, which is installed into an environment of its own (ARGS="--turns 1")
	$(BIN)/newnormal bench flink $(ARGS)

docs: setup ## Write the generated pages of docs/ anew from the code
	$(BIN)/newnormal docs $(ARGS)

wheel: setup ## Build dist/newnormal-VERSION-py3-none-any.whl, which pipx or uv installs (docs/install.md)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls -1 dist/*.whl

audit: setup ## Ask a public database for known vulnerabilities of the pinned packages; say so where it cannot be reached
	$(BIN)/python -m tests.security.audit

mutants: setup ## Try 200 small changes of the code: do the fast tests notice them? (hours; goes on where it was; ARGS="--count 50")
	$(BIN)/python -m tests.mutants.run $(ARGS)

clean: ## Remove what can be made again: caches, build output; not .venv, not the servers' data
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
