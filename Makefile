# Everything the project does is done from here; CI calls nothing else.
# VENV=folder puts the virtual environment elsewhere; PYTHON=python3.12 says which Python makes it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV ?= .venv
PYTHON ?=
# to make a path with blanks is several files
ifneq ($(words $(VENV)),1)
$(error VENV is "$(VENV)". Name a folder without blanks in its path: make setup VENV=folder)
endif
PY := $(VENV)/bin/python
# an environment knows the folder that it was made for: in a copied or moved project it is made anew
STAMP := $(VENV)/.installed-$(shell pwd -P | cksum | cut -d ' ' -f 1)
# nor is it one any more where its Python went, or became another with the system
$(shell $(PY) -c 'import delta_cdc' 2>/dev/null || rm -f "$(STAMP)")
JAVA := $(PY) python_helpers/delta_cdc/prerequisites.py --only java

# make scenarios CASES="file-or-folder …" REPORT=report.json
REPORT ?=
KILLS ?= 10
HISTORIES ?= 300
# processes of `make test`; each takes a core and 5 GB
WORKERS ?= 2

.PHONY: help setup demo test test-e2e nightly scenarios mutants chaos bench docs generate validate lint format clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## check the machine and install everything (once; all others do it by themselves)

$(STAMP): pyproject.toml constraints.txt
	@PYTHON="$(PYTHON)" bin/setup "$(VENV)" "$@"

demo: $(STAMP) ## a real PostgreSQL history, change set by change set, into Delta tables, compared with the database
	@$(JAVA) && $(PY) -m delta_cdc.demo

test: $(STAMP) ## all tests
	@# one Spark a process; those of services want other settings. Each pytest's processes share its files
	@$(JAVA) && failed=""; for part in tests/unit tests/services "tests/spark tests/adapter tests/scenarios"; do \
	  $(PY) -m pytest $$part -q -n $(WORKERS) --dist loadfile --max-worker-restart 0 || failed="$$failed $$part"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

test-e2e: $(STAMP) ## a real PostgreSQL 15 with four clients writing, read while dbt runs; a Spark cluster; a Thrift Server; a shared warehouse; docs and report in a real Chromium
	@$(JAVA) && failed=""; for part in live landing cluster thrift metastore browser; do \
	  $(PY) -m pytest tests/e2e/test_$$part.py -q || failed="$$failed $$part"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

nightly: $(STAMP) ## what takes hours: all tests, those that others make up for too, HISTORIES=300 random histories, all cases, PostgreSQL's history in other formats, mutants, killed runs
	@DELTA_CDC_HISTORIES=$(HISTORIES) DELTA_CDC_NIGHTLY=1 PYTEST_ADDOPTS="$$PYTEST_ADDOPTS --timeout 20000" $(MAKE) test
	@$(PY) -m tests.scenarios.other_formats target/other_formats
	@$(MAKE) scenarios CASES="tests/cases target/other_formats" && $(MAKE) mutants && $(MAKE) chaos

scenarios: $(STAMP) ## run cases (CASES="file or folder …"), compare, write REPORT=report.json
	@$(JAVA) && $(PY) -m tests.scenarios.runner $(CASES) $(if $(REPORT),--report "$(REPORT)")

mutants: $(STAMP) ## break one rule after another and see that its cases fail (RULES="A2 H1": only these)
	@$(JAVA) && $(PY) -m tests.scenarios.mutants $(if $(RULES),--rules $(RULES))

chaos: $(STAMP) ## kill KILLS=10 runs, replays, compactions and erasures between their commits, let runs meet faults, compare with twins
	@$(JAVA) && $(PY) -m tests.scenarios.chaos --kills $(KILLS)

bench: $(STAMP) ## measure what the performance goals name, into docs/benchmarks.md (ONLY=B1,B4 SIZE=small|full SET='rows=20000 repeats=1')
	@$(JAVA) && $(PY) -m bench.run $(if $(ONLY),--only $(ONLY)) $(if $(SIZE),--size $(SIZE)) $(if $(SET),--set '$(SET)')

docs: $(STAMP) ## dbt's documentation of sources, models and lineage, in target/index.html
	@$(JAVA) && DBT_PROFILES_DIR=profiles $(VENV)/bin/dbt docs generate --target docs

validate: $(STAMP) ## check the configuration of the feeds
	@$(VENV)/bin/delta-cdc validate

generate: $(STAMP) ## write the models of the feeds, the macros' defaults, docs/configuration.md and docs/rules.md
	@$(VENV)/bin/delta-cdc generate
	@$(VENV)/bin/delta-cdc generate --project-dir integration_tests
	@$(VENV)/bin/delta-cdc settings --write docs/configuration.md
	@$(PY) -m tests.rules

lint: $(STAMP) ## ruff, mypy, generated files, and sqlfluff with Jinja's and dbt's templater (dbt's starts Spark)
	@$(VENV)/bin/ruff check python_helpers tests bench
	@$(VENV)/bin/ruff format --check --quiet python_helpers tests bench || { echo "Not laid out as ruff does. Run make format."; exit 1; }
	@$(VENV)/bin/mypy
	@$(VENV)/bin/delta-cdc generate --check
	@$(VENV)/bin/sqlfluff lint --templater jinja models integration_tests/models integration_tests/tests tests/generic
	@$(JAVA) && DBT_PROFILES_DIR=profiles $(VENV)/bin/sqlfluff lint models

format: $(STAMP) ## ruff's layout for the Python files
	@$(VENV)/bin/ruff check --fix --quiet python_helpers tests bench
	@$(VENV)/bin/ruff format python_helpers tests bench

clean: ## remove what runs leave behind (target, logs, caches); not the environment
	@rm -rf target logs dbt_packages build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	@find python_helpers tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the virtual environment too
	@rm -rf "$(VENV)" python_helpers/*.egg-info
