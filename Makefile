# Two commands do everything on a fresh machine with Python 3.11 to 3.13 and make: `make demo` and `make test`.
# The newest of them that runs: a shim of pyenv may be there for a Python that is not, so each is asked for its version.
PYTHON ?= $(shell for minor in 13 12 11; do \
	for python in python3.$$minor $(HOME)/.pyenv/versions/3.$$minor.*/bin/python; do \
		if $$python --version > /dev/null 2>&1; then command -v $$python; exit; fi; \
	done; done; command -v python3)
VENV ?= .venv
BIN = $(VENV)/bin
PIP = PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --constraint $(CONSTRAINTS) --progress-bar on
CONSTRAINTS = constraints.txt
JOBS ?= 2
PYTEST = $(BIN)/python -m pytest --quiet --numprocesses $(JOBS) --dist loadgroup
TYPED = PYTHONPATH=tests $(PYTEST) --jaxtyping-packages=pseudo_extended,runtime_types.check

.PHONY: coverage demo docs doctests pictures test test-all test-versions lint types layers unit runs typed-tests proofs install install-dev install-docs net soak benchmark benchmark-engine compare clean

demo: install ## Sample the paper's two illustrations; writes output/demo.png
	$(BIN)/python examples/demo.py

test: install-dev lint types layers unit runs typed-tests proofs ## Everything that CI runs

test-all: test test-versions ## ... and the slow tests
	$(PIP) --editable '.[stan]'
	$(TYPED) -m slow --ignore tests/models --ignore tests/doors tests reproduction
	$(PYTEST) -m slow tests/models tests/doors

# Python 3.12 and later have PyMC 6, ArviZ 1 and a newer JAX than 3.11: a venv of its own for each other one here.
test-versions: ## The unit tests and those of the adapters under every other Python that there is
	@for minor in 11 12 13; do found=; \
		if $(BIN)/python -c "import sys; sys.exit(sys.version_info[1] != $$minor)" 2> /dev/null; then continue; fi; \
		for python in python3.$$minor $(HOME)/.pyenv/versions/3.$$minor.*/bin/python; do \
			if [ -z "$$found" ] && $$python --version > /dev/null 2>&1; then found=$$python; fi; \
		done; \
		if [ -z "$$found" ]; then echo "== Python 3.$$minor is not on this machine: skipped"; continue; fi; \
		echo "== $$($$found --version)"; \
		$(MAKE) unit PYTHON=$$found VENV=$(VENV)-3.$$minor || exit 1; \
	done

install: $(VENV)/.installed
install-dev: $(VENV)/.installed-dev
install-docs: $(VENV)/.installed-docs

$(VENV)/bin/python:
	@echo "== making $(VENV) with $$($(PYTHON) --version)"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml $(CONSTRAINTS)
	@echo "== installing the library and what it needs (about half a minute)"
	$(PIP) --editable '.[plots]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed reproduction/pyproject.toml
	@echo "== installing the tools of the tests, and PyMC and NumPyro (about a minute and a half)"
	$(PIP) --editable '.[dev]' --editable ./reproduction
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "== installing the tools of the site (about half a minute)"
	$(PIP) --editable '.[docs]'
	@touch $@

lint: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: install-dev
	$(BIN)/pyright --pythonpath $(BIN)/python

layers: install-dev
	$(BIN)/lint-imports

# Nearly all of the time goes into compiling programs that run for a second: the least optimisation compiles fastest.
# The fusion emitters compile slowly. From jaxlib 0.11.1 on they cannot be turned off, and XLA ends a process that asks.
EMITTERS = $(shell $(BIN)/python -c 'import jaxlib; print("--xla_cpu_use_fusion_emitters=false" * (jaxlib.version.__version_info__ < (0, 11, 1)))')
QUICK = PSEUDO_EXTENDED_CACHE=off XLA_FLAGS="--xla_backend_optimization_level=0 $(EMITTERS)"

# The longest come first, so that neither worker waits for the other at the end.
# Coverage costs little where Python can watch lines itself, from 3.12 on; `make coverage` measures it with any Python.
COVERAGE = $(shell $(BIN)/python -c 'import sys; print("--cov=pseudo_extended --cov-report=term:skip-covered" * (sys.version_info >= (3, 12)))')
coverage: COVERAGE = --cov=pseudo_extended --cov-report=term:skip-covered
coverage: unit ## The unit tests, and which lines they do not reach

doctests: install-dev ## Execute every example in the README, the docs and the docstrings
	$(QUICK) $(PYTEST) -m "not slow" README.md docs src

SITE = output/site
docs: install-docs ## Build the site into output/site; a warning, or a link that leads nowhere, is an error
	rm -rf $(SITE)
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --fresh-env --quiet -d output/.doctrees docs $(SITE)
	$(BIN)/python tools/check_site.py $(SITE)

pictures: install-dev ## Draw the pictures of the site again, from real runs
	$(BIN)/python tools/pictures.py docs/pictures
	$(BIN)/python tools/site_pictures.py docs/pictures
	$(BIN)/python tools/user_pictures.py docs/pictures

unit: install-dev ## Unit tests, bad input, the same draws however a run is cut up, doctests of code, README and docs
	COVERAGE_CORE=sysmon $(QUICK) $(PYTEST) $(COVERAGE) -m "not slow" --durations 12 README.md docs tools tests/execution reproduction tests/models tests/doors tests/unit tests/fuzz src

runs: install-dev ## Whole runs against truth, and the examples
	PSEUDO_EXTENDED_CACHE=off XLA_FLAGS="$(EMITTERS)" $(PYTEST) -m "not slow" tests/statistical tests/examples

typed-tests: install-dev ## The contracts, with array shapes checked at run time
	$(QUICK) $(TYPED) -m "not slow" tests/contracts

proofs: install-dev ## Exact invariance, and the planted bugs
	$(QUICK) $(PYTEST) -m "not slow" tests/invariance

net: install-dev ## Digests of the draws of every method against tools/net.json: no move of code may change a draw
	$(BIN)/python tools/net.py compare

soak: install-dev ## Kill, damage and resume at random for SECONDS, from SEED; prints one line
	$(BIN)/python tools/soak.py --seconds $(or $(SECONDS),3600) --seed $(or $(SEED),0)

benchmark: install
	$(BIN)/python benchmarks/overhead.py

benchmark-engine: install-dev ## Store, resume, memory, two cores, a cluster of two
	$(BIN)/python benchmarks/engine.py

compare: install ## Ours beside the paper's target under Stan; needs a C++ compiler, and half an hour
	$(PIP) --editable '.[stan]'
	$(BIN)/python benchmarks/paper_vs_ours.py

clean:
	rm -rf $(VENV) $(VENV)-3.* .venv-ci output .pytest_cache .ruff_cache .hypothesis
