# Everything on a fresh machine that has python3 (3.11 or later): `make test`, `make demo`, `make docs`, `make bench`.
# The first call makes .venv; compiled kernels are kept in .cache, keyed on the sources they come from.

PYTHON ?= python3
JOBS   ?= 2
BIN    := .venv/bin
# Python compiles what is imported; most of what is installed never is.
PIP    := $(BIN)/python -m pip install --quiet --no-compile
STAMP  := .venv/.installed
PLAIN  := .venv/.installed-plain
JAX    := .venv/.installed-jax
TORCH  := .venv/.installed-torch

export SALTUS_CACHE_DIR := $(CURDIR)/.cache/saltus
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: venv browser lint format warmup compiled test slow targets poison torch mutants demo docs bench clean

venv: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	touch $(PLAIN) $@

# What users have: enough for the demo, and much less than what tests and documentation need.
$(PLAIN): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) --editable .
	touch $@

# What only some tests need: JAX 100 MB; PyTorch gigabytes, as package indices have it with CUDA alone.
$(JAX): $(STAMP)
	$(PIP) --editable '.[dev,jax]'
	touch $@

$(TORCH): $(STAMP)
	$(PIP) --editable '.[dev,torch]'
	touch $@

# Tests of the viewer drive Chromium, a system package; whoever may not install one asks who may.
browser:
	command -v chromium >/dev/null || { apt-get update --quiet && apt-get install --yes --no-install-recommends chromium; }

lint: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

warmup: venv
	$(BIN)/python -m saltus.kernel.warmup $(JOBS) one many single

compiled: venv
	$(BIN)/python -m saltus.kernel.warmup $(JOBS) one many

# Within a quarter of an hour on two cores; what takes longer for what it tells is in `make slow`.
test: venv
	$(MAKE) --jobs 2 lint compiled
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m 'not slow' --durations 20

# Single precision, JAX, PTX, browsers, memory and long chains: `.ci/run` runs both.
slow: warmup browser poison $(JAX)
	$(BIN)/python -m tools.targets $(JOBS) x86-64-v2 Haswell
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m slow --durations 20

# All narrower processors than the one at hand, and other kernels of OpenBLAS's, as far as it can run them; `slow` has some.
targets: venv
	$(BIN)/python -m tools.targets $(JOBS)

# With NaN in all memory that kernels have not written; `make poison POISONED=tests` for all there is.
POISONED ?= tests/kernel tests/dynamics/test_against_oracle.py tests/constraints/test_kinds.py tests/constraints/test_precision.py \
            tests/constraints/test_operational_space.py tests/derivatives/test_constrained.py tests/simulation
poison: compiled
	SALTUS_POISON=1 $(BIN)/pytest -n $(JOBS) --dist worksteal -m 'not slow' $(POISONED)

# Before a release: PyTorch is too large for every run.
torch: $(TORCH)
	$(BIN)/pytest tests/derivatives/test_torch.py

# Before a release, and after new tests: whether they notice small mistakes. Half an hour.
mutants: warmup browser
	$(BIN)/python -m tools.mutants --jobs $(JOBS)

# Opens the viewer, and waits, if somebody sits at a terminal.
demo: $(PLAIN)
	$(BIN)/python examples/jump.py

# A site that any browser opens from disk: docs/_build/html/index.html. A warning is an error.
docs: venv
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html

bench: warmup
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .cache demo docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
