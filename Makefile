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
