# Two commands: `make run` does the main job, `make test` runs every test. Another experiment is run
# by `make run experiment=paper`.
# Both first make the environment in .venv, and again only when the lock or the project changed.
PYTHON ?= python3
BIN := .venv/bin
# uv does not read pip's settings: a mirror that is set for pip is handed on to it.
INDEX = $(or $(PIP_INDEX_URL),$(shell $(BIN)/python -m pip config get global.index-url 2>/dev/null))

experiment ?= main

.PHONY: run test
.DEFAULT_GOAL := run

run: .venv/.ready
	$(BIN)/steeltrap run experiment=$(experiment) install=true

test: .venv/.ready
	$(BIN)/python -m pytest -n 2

.venv/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 13) or sys.exit( \
	"steeltrap needs Python 3.11 to 3.13, and this is %d.%d: make $(MAKECMDGOALS) PYTHON=python3.12" % v)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.5'
	$(if $(INDEX),UV_DEFAULT_INDEX=$(INDEX)) VIRTUAL_ENV=.venv $(BIN)/uv pip sync --quiet requirements.lock
	VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
