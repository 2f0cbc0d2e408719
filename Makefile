# `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install install-dev run check test test-code test-product chaos fuzz bench-queue bench-parse bench-quality bench-ingest bench-search bench-api screenshots lock clean

help:  ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed  ## make .venv and install the pinned dependencies and the embedding model

install-dev: $(VENV)/.installed-dev  ## the same, with what the tests need

run: install  ## install, then run everything on this machine (ARGS="--port 9400" passes options on)
	@$(BIN)/pagemill up $(ARGS)

check: install-dev  ## ruff, mypy --strict, import-linter and the unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/unit

test: install-dev  ## install what the tests need, run `make check` and all tests, in two lanes side by side
	@bash tests/servers/install.sh
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-code test-product

test-code: check
	$(BIN)/pytest -q tests/integration

test-product: install-dev
	$(BIN)/pytest -q tests/acceptance tests/chaos

chaos: install-dev  ## ten minutes of kills, flushes and restarts under load (ARGS="--seconds 120 --seed 7")
	@bash tests/servers/install.sh
	$(BIN)/python -m tests.chaos.storm $(ARGS)

fuzz: install-dev  ## mutated files of every kind through the parsers (ARGS="--seconds 600 --seed 7")
	$(BIN)/python -m tests.fuzz $(ARGS)

bench-queue: install-dev  ## no-op tasks through the engine, beside Celery, Dramatiq, taskiq and Huey
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench.queue $(ARGS)

bench-parse: install-dev  ## pages a second beside bare readers of PDF, and how faithful (ARGS="--folder DIR")
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench.parse $(ARGS)

bench-ingest: install-dev  ## from files to findable chunks: bare steps, Pagemill, Celery, RAGFlow's way (ARGS="--pages 600")
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench.ingest $(ARGS)

bench-search: install-dev  ## searches and writes at up to a million chunks, on both indexes (ARGS="--sizes 10000 100000")
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench.search $(ARGS)

bench-api: install-dev  ## the web server over 100,000 documents and a million tasks, and beside others (ARGS="--mariadb")
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench.api $(ARGS)

bench-quality: install-dev  ## how well questions find their passages: words, vectors and both (ARGS="--missed")
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/bench.txt
	$(BIN)/python -m bench.quality $(ARGS)

screenshots: install-dev  ## pictures of every page, light and dark, wide and narrow, into docs/screenshots (ARGS="--only search")
	@bash tests/servers/install.sh
	$(BIN)/python -m tests.screenshots $(ARGS)

lock: install-dev  ## resolve requirements/*.in anew into hashed locks
	$(BIN)/pip install -q uv
	cd requirements && for set in run dev bench; do ../$(BIN)/uv pip compile -q --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-emit-index-url --upgrade $$set.in -o $$set.txt; done

clean:  ## remove .venv and caches, not the data folder
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info build rag/parser/*.so rag/flow/*.so

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Pagemill needs Python 3.11 or newer; name one with PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements/run.txt requirements/model.txt pyproject.toml setup.py $(wildcard rag/*/*.c) | $(VENV)/bin/python
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/run.txt
	$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python tools/fetch_model.py
	@touch $@

$(VENV)/.installed-dev: requirements/dev.txt $(VENV)/.installed
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@
