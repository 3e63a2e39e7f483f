.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

.PHONY: help
help: ## say what there is
	@grep -E '^[a-z.]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z.]+):.*## /\1\t/' | column -t -s "$$(printf '\t')"

.PHONY: .venv
.venv: .venv/.stamp ## make the virtual environment

.venv/.stamp: pyproject.toml constraints.txt .ci/make-venv
	@.ci/make-venv .venv 3.11 dev

.PHONY: check
check: .venv ## lint, format, types, floors, migrations, documentation
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python manage.py makemigrations --check --dry-run
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

# Options for pytest, for example: make test PYTEST_ARGS='-k store -x'
PYTEST_ARGS ?=

.PHONY: test
test: .venv ## all tests, with each database and each Django that is to be had
	@.ci/test sqlite postgres mariadb django6 lowest browser house -- $(PYTEST_ARGS)

.PHONY: test-sqlite test-postgres test-mariadb test-django6 test-lowest test-browser test-house
test-sqlite test-postgres test-mariadb test-django6 test-lowest test-browser test-house: test-%: .venv
	@.ci/test $* -- $(PYTEST_ARGS)

.PHONY: matrix
matrix: ## the tests of the API for each Python, Django, redis-py, database and server that is here; MATRIX_ARGS=--thin
	@.ci/matrix $(MATRIX_ARGS)

.PHONY: screenshots
screenshots: .venv ## pictures of every page: light, dark and as wide as a phone, in DIR
	@GROUPJOBS_SCREENSHOTS='$(or $(DIR),build/screenshots)' .ci/test browser -- -m pictures $(PYTEST_ARGS)
	@cp '$(or $(DIR),build/screenshots)/recovered-run.png' docs/images/

.PHONY: demo
demo: .venv ## the whole application on a real file; CSV=path takes another one
	@.venv/bin/python manage.py demo $(if $(CSV),--csv '$(CSV)') $(DEMO_ARGS)

.PHONY: serve
serve: .venv ## web server and worker of the demo project, until Ctrl-C
	@.venv/bin/python -m project.serve $(SERVE_ARGS)

.PHONY: docs
docs: .venv ## the tables that are made from code, and the site in build/docs
	.venv/bin/python -m tests.house.tables
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

.PHONY: bench
bench: .venv ## jobs per second, beside a plain Celery task
	@.venv/bin/python -m bench $(BENCH_ARGS)

.PHONY: bench-peers
bench-peers: .venv ## the same work on other queues, installed from PyPI and npm under bench/; takes about a quarter of an hour
	@.venv/bin/python -m bench.peers --write $(BENCH_ARGS)

.PHONY: bench-scale
bench-scale: .venv ## a backlog of a million runs on PostgreSQL
	@.venv/bin/python -m bench.scale $(BENCH_ARGS)

.PHONY: bench-recovery
bench-recovery: .venv ## how soon groups are served after a kill, and what idling and healing cost
	@.venv/bin/python -m bench.recovery $(BENCH_ARGS)

.PHONY: chaos
chaos: .venv ## faults on real servers; RUNS=, SECONDS= and SEED= say how much
	@.venv/bin/python -m tests.chaos $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED))

.PHONY: model
model: .venv ## the protocol's model in every order of events; MODEL_ARGS='--break all' shows what each rule is for
	@.venv/bin/python tests/model/protocol_model.py $(MODEL_ARGS)

.PHONY: clean
clean: ## remove what was made here, but no database
	rm -rf .venv .venv6 .matrix build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
