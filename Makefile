# Everything one types here. `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.set-up
LOCKS := requirements-build.lock requirements-dev.lock
PIP_INSTALL := $(PY) -m pip install --disable-pip-version-check
CODE := runtime actors ingest slackwater examples benchmarks tests
# Every slot of a job is a process of its own. One that may keep no bytecode compiles all of us anew.
unexport PYTHONDONTWRITEBYTECODE
FAST := not ray and not spark and not hosts
SLOWEST := --durations=10 --durations-min=1
# A file at a time on each of two cores, in an order in which the longest come first.
SIDE_BY_SIDE := -n 2 --dist loadfile --no-loadscope-reorder
# On Ray a third process has work for the cores while two wait for theirs to start; it is given the
# files that have such tests only, for to collect all takes each process eight seconds.
ON_RAY := -n 3 --dist loadfile --no-loadscope-reorder
# Files of tests lie in memory where it has 4 GB for them: of a disk, thousands of syncs are awaited.
IN_MEMORY = env $$([ "$$(df --output=avail -B G /dev/shm 2>/dev/null | tr -dc '0-9\n' | tail -1)" -ge 4 ] \
  2>/dev/null && echo PYTEST_DEBUG_TEMPROOT=/dev/shm)
RAY_FILES = $$(grep -rlE 'mark\.(ray|spark)' tests --include='test_*.py')

.PHONY: help setup demo test test-hosts check check-all lint format bench docs flink lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## make .venv from the locked versions (again only when they change)

# Three steps, because pyspark comes as source only: its build tools are locked and
# installed first, so that nothing is resolved or fetched beside the locks.
$(STAMP): pyproject.toml $(LOCKS)
	@if ! [ -x $(PY) ] || ! $(PY) -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))'; then \
	  python="$$(PYTHON='$(PYTHON)' bash deploy/find-python.sh)"; \
	  echo "setup: $(VENV) with $$("$$python" --version)"; \
	  rm -rf $(VENV); \
	  "$$python" -m venv $(VENV); \
	fi
	@echo "setup 1/3: build tools"
	@$(PIP_INSTALL) --quiet --require-hashes --only-binary=:all: -r requirements-build.lock
	@echo "setup 2/3: locked packages (about 650 MB the first time: Ray, Spark and a Java are among them)"
	@$(PIP_INSTALL) --require-hashes --only-binary=:all: --no-binary=pyspark --no-build-isolation \
	  -r requirements-dev.lock
	@echo "setup 3/3: slackwater itself, editable"
	@said="$$($(PIP_INSTALL) --quiet --no-deps --no-build-isolation --editable . 2>&1)" \
	  || { echo "$$said" >&2; exit 1; }
	@$(PY) -m compileall -q -j 2 $(filter-out tests,$(CODE)) || true # else each process does it
	@touch $@
	@echo "setup: done"

demo: setup ## run the congestion flow on a generated city; DATA=<folder> for the Warsaw crawl
	@$(PY) -m examples.demo $(if $(DATA),--data "$(DATA)")

# Pure tests first, then Ray and Spark, which have the machine to themselves: clusters side by side,
# each in a folder and at ports of its own. pytest ends with 5 where ARGS leave it none; that is an
# error only if both do.
test: setup ## every test that a fresh machine can run; ARGS= goes to pytest
	@pure=0; system=0; \
	$(IN_MEMORY) $(PY) -m pytest -m "$(FAST) and not data" $(SIDE_BY_SIDE) $(SLOWEST) $(ARGS) || pure=$$?; \
	[ $$pure = 0 ] || [ $$pure = 5 ] || exit $$pure; \
	$(IN_MEMORY) $(PY) -m pytest -m "(ray or spark) and not hosts and not data" $(ON_RAY) \
	  $(SLOWEST) $(or $(ARGS),$(RAY_FILES)) || system=$$?; \
	[ $$system = 0 ] || { [ $$system = 5 ] && [ $$pure = 0 ]; }

test-hosts: setup ## a real cluster, on hosts of namespaces (as root; sshd, rsync), and real data: DATA=<folder>
	@$(PY) -m pytest -m "hosts or data" $(SLOWEST) $(ARGS)

check: lint ## lints, types and the fast tests (no Ray, no Spark)
	@$(IN_MEMORY) $(PY) -m pytest -m "$(FAST)" $(SIDE_BY_SIDE) $(ARGS)

check-all: lint test test-hosts ## lints, types and every test, examples included

lint: setup ## ruff, formatting and strict types
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: setup ## put the code into the one format, and mend what ruff can mend
	@$(PY) -m ruff format .
	@$(PY) -m ruff check --fix .

bench: setup ## run the benchmarks; ARGS="merge join-latency" for some; DATA=<folder> for real data
	@$(PY) -m benchmarks $(ARGS)

# In an environment of its own: 17 packages that no run and no test needs.
docs: setup ## build the site of docs, with a reference from docstrings, into out/site/html
	@[ -x .venv-docs/bin/python ] || $(PY) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  --only-binary=:all: -r requirements-docs.lock
	@$(PY) docs/build_site.py out/site
	@.venv-docs/bin/zensical build --clean --strict --config-file out/site/zensical.toml
	@! grep -rlE '(src|rel="(stylesheet|preconnect)" href)="https?:' out/site/html --include='*.html' \
	  || { echo "docs: these pages ask another server for something" >&2; exit 1; }
	@echo "docs: out/site/html/index.html"

# Jars only, in an environment of their own; the Java that runs them is the one that Spark has.
flink: setup ## Flink's jars for the benchmarks that measure beside it, in .venv-flink (330 MB)
	@[ -x .venv-flink/bin/python ] || $(PY) -m venv .venv-flink
	@.venv-flink/bin/python -m pip install --disable-pip-version-check --require-hashes \
	  --only-binary=:all: --no-deps -r requirements-flink.lock

# `--universal` gives one file for every Python in range; `fewest` one version of each package.
LOCK := $(PY) -m uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 \
  --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

DOCS_EXTRA := $(PY) -c 'import tomllib; \
  print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")'

lock: setup ## resolve anew after pyproject.toml changed; ARGS=--upgrade for newer versions
	@$(LOCK) $(ARGS) pyproject.toml --extra build --extra dev -o requirements-dev.lock
	@$(LOCK) $(ARGS) pyproject.toml --extra build -c requirements-dev.lock -o requirements.lock
	@printf 'pip\nsetuptools\n' | $(LOCK) $(ARGS) - -c requirements-dev.lock -o requirements-build.lock
	@$(DOCS_EXTRA) | $(LOCK) $(ARGS) - -c requirements-dev.lock -o requirements-docs.lock
	@$(MAKE) --no-print-directory setup

clean: ## remove .venv, caches and output
	@rm -rf $(VENV) .venv-docs .venv-flink .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist out *.egg-info
	@find $(wildcard $(CODE)) -name __pycache__ -type d -prune -exec rm -rf {} +
