# Two commands do everything, each with its own set-up: `make book` and `make test`.

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PYTHON ?= python3.11 python3.12 python3.13 python3.14 python3
PORT   ?= 8000
ARGS   ?=
# tests at a time: as many as two cores; what waits for a browser leaves its core to it
JOBS   ?= 2
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest  # a core for each test, not all for all

# tests of pages and of what builds them
OF_THE_BOOK := book bookstyle browser course explorables

# Compiled modules are kept: many processes import them.
unexport PYTHONDONTWRITEBYTECODE

# So that `drocox` in a chapter or a test is this environment's.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup book preview check test lab lint format sweep exhibits bench serve clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY)  ## Install everything into .venv/ (the other targets do this by themselves)

book: $(READY)  ## Execute what has changed, refresh its notebooks, build _build/html/
	$(BIN)/jupyter-book build . -W --keep-going

preview: $(READY)  ## Build the pages from stored outputs, executing only chapters with changed code
	DROCOX_OUTPUTS=preview $(BIN)/jupyter-book build . -W --keep-going

check: lint  ## Lint, then run the quick tests of the package: for people at work on it
	$(BIN)/python book/_ext/twins.py --check
	$(PYTEST) -q -m "not slow" -n auto --dist worksteal tests \
	  $(foreach name,$(OF_THE_BOOK),--ignore tests/test_$(name).py) $(ARGS)

test: lint  ## Lint, then run all tests and re-execute all notebooks (ARGS="-k dual" for some)
	$(PYTEST) --nbval --nbval-current-env --nbval-cell-timeout=300 \
	  -n $(JOBS) --dist loadfile --no-loadscope-reorder tests book $(ARGS)

lab: $(VENV)/.lab  ## Open the chapters as notebooks in JupyterLab (installed the first time)
	cd book && ../$(BIN)/jupyter lab $(ARGS)

lint: $(READY)  ## Check the code's style and types (make format puts its layout right)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

format: $(READY)  ## Lay the code out as `make lint` wants it
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

sweep: $(READY)  ## Train the models that a store lacks (ARGS="--out mine": all; "--help" for parts)
	$(BIN)/drocox sweep $(ARGS)

exhibits: $(READY)  ## Write the paper's tables and figure into exhibits/, as codecheck.yml lists them
	mkdir -p exhibits
	for t in $$(seq 17); do $(BIN)/drocox table t$$t --csv > exhibits/t$$t.csv || exit 1; done
	$(BIN)/drocox figure alpha --to exhibits

bench: $(READY)  ## Measure the speed of losses, metrics and linear fits, beside other libraries
	$(BIN)/python tests/benchmarks/bench.py
	$(BIN)/python tests/benchmarks/peers.py $(ARGS)

serve: book  ## Build the book and open it in a browser (PORT=8000)
	@(sleep 1; $(BIN)/python -m webbrowser -t http://127.0.0.1:$(PORT)/ >/dev/null 2>&1 || true) &
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

clean:  ## Remove what was built (.venv/ and results stay)
	rm -rf _build build drocox.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find drocox tests book -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, made once and brought up to date when one of these two files changes.
$(READY): requirements.lock pyproject.toml
	@if [ ! -x $(BIN)/pip ]; then \
	  for p in $(PYTHON); do \
	    "$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && break; p=; \
	  done; \
	  if [ -z "$$p" ]; then \
	    echo "drocox needs Python 3.11 to 3.14, and none of these is: $(PYTHON)." >&2; \
	    echo "The versions in requirements.lock are built for no other." >&2; \
	    echo "Install one of them, or say where it is: make PYTHON=/path/to/python3.11 ..." >&2; \
	    exit 1; \
	  fi; \
	  "$$p" -m venv $(VENV) || exit 1; \
	fi
	@command -v cc >/dev/null || echo "Note: no C compiler (cc) found; packages without a wheel are compiled (ecos on ARM and from Python 3.13 on, scikit-survival on ARM Linux)." >&2
	@echo "Installing into $(VENV)/: a few minutes the first time."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.lab: $(READY) requirements-lab.lock
	@echo "Installing JupyterLab into $(VENV)/: a minute the first time."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-lab.lock
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' \
	  > $(VENV)/share/jupyter/lab/settings/overrides.json  # no question at the start, no other host
	@touch $@
