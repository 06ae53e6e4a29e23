# Everything a person or a machine runs in this checkout. ARGS="..." goes to the program behind.
.PHONY: help setup demo test lint format wheel clean
.DEFAULT_GOAL := help

BIN := .venv/bin
WORKERS ?= 2
PYTHON_PATHS := core trainer_hooks exporter dashboard grafana cli tests benchmarks examples
SHELL_SCRIPTS := scripts/common.sh scripts/setup scripts/services scripts/check-wheel .ci/run

help: ## say what there is to make
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

setup: ## create .venv with everything in it (quick when nothing changed)
	@scripts/setup

demo: setup ## train a small TorchRec model, kill a rank, watch it recover
	@$(BIN)/ett demo $(ARGS)

test: setup ## run all tests, in WORKERS=2 processes
	@scripts/services
	@$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

lint: setup ## check style, types and which package imports which
	$(BIN)/ruff check $(PYTHON_PATHS)
	$(BIN)/ruff format --check $(PYTHON_PATHS)
	$(BIN)/mypy
	$(BIN)/lint-imports
	@if command -v shellcheck >/dev/null; then shellcheck -x $(SHELL_SCRIPTS); else echo "shellcheck is not installed: shell scripts not checked"; fi

format: setup ## put the code into its form
	$(BIN)/ruff format $(PYTHON_PATHS)
	$(BIN)/ruff check --fix $(PYTHON_PATHS)

wheel: setup ## build the wheel into dist/ and check that it works alone
	@scripts/check-wheel

clean: ## remove what was built (not .venv)
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
