# Every target does its own set-up: a virtual environment in .venv and what the target needs in it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Without a GPU, tell accelerate so; with one, it finds its own settings.
LAUNCH := $(BIN)/accelerate launch -q $(if $(shell command -v nvidia-smi),,--config_file recipes/accelerate/cpu.yaml)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable

.PHONY: help demo test test-all check format clean

help:
	@echo "make demo      the main job on embedded data, and a comparison (8 to 11 minutes on 2 cores)"
	@echo "make test      the test suite, without what is slow or needs Hub, GPU or browser"
	@echo "make test-all  the rest of the tests; those that lack what they need are skipped with the reason"
	@echo "make check     formatting, lint and types"
	@echo "make format    put the code in format"
	@echo "make clean     remove the virtual environment and what was built"

demo: $(VENV)/.installed-demo
	$(LAUNCH) recipes/bert_sentiment.py --preset demo
	$(BIN)/toolkit experiment recipes/experiments/sentiment_demo.yaml

# On all cores, but no more than four: every process has its own torch in memory.
test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

test-all: $(VENV)/.installed-test
	$(BIN)/python -m pytest -m "slow or hub or gpu or browser"

check: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

# Installing takes minutes and some 6 GB, most of it torch.
$(VENV)/.installed-%: pyproject.toml | $(VENV)/bin/python
	@echo "Installing the packages for '$*' into $(VENV) (once; some minutes)"
	$(INSTALL) ".[$*]"
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
