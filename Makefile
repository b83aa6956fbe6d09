# Every target sets up what it needs in .venv, with uv where it is installed and pip where not.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CASES ?= 2000
SEED ?= 1
RUNS ?= 5
# Two processes, of which each has half of the tests that need Spark (tests/sharing_out.py).
# Bytecode is kept, whatever the environment says: tests start dozens of processes, and to compile
# what one imports takes seconds.
PYTEST := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/build/bytecode \
  $(BIN)/python -m pytest -n 2 --dist loadfile --durations 60

.PHONY: demo prepare compiled wheel release test quick check nightly fuzz torture lint docs bench clean

demo: $(READY)  ## the main job: traces to report, on a sample system
	$(BIN)/tidings demo

prepare: $(READY)  ## compile and keep what first runs would wait for
	$(BIN)/tidings prepare

compiled: $(READY)  # what tests run: kernels as they are now, compiled one by one
	TIDINGS_KERNELS=compiled $(BIN)/tidings prepare

wheel: $(READY)  ## a wheel for this kind of processor in dist, with its machine code
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

release: $(READY)  ## what a release is made of, in dist: wheel, sources, bill of materials
	rm -rf dist build/release
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip install --quiet --disable-pip-version-check build cyclonedx-bom pip-audit
	build/release/bin/python -m build --sdist --outdir dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	build/release/bin/cyclonedx-py environment $(BIN)/python --output-reproducible --pyproject pyproject.toml -o dist/tidings.cdx.json
	build/release/bin/pip-audit --path $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') --skip-editable

test: $(READY)  ## everything that CI runs
	$(MAKE) -j 2 lint compiled
	$(PYTEST)

quick: $(READY)  ## what a developer runs between two edits: under two minutes
	$(BIN)/ruff check src tests benchmarks docs examples studies
	$(PYTEST) -m "not slow and not spark and not browser and not statistical and not nightly" -q

check: test  ## the same as test

nightly: $(READY)  ## many seeds, long runs and clusters: what make test asks in a quicker way
	$(PYTEST) -m nightly

fuzz: $(READY)  ## spoilt documents by the ten thousand, for every reader; CASES of each kind, from SEED
	$(BIN)/python tests/fuzz.py --cases $(CASES) --seed $(SEED)

torture: $(READY)  ## commands killed, out of disk or memory, …, then run again; RUNS of each, from SEED
	$(BIN)/python tests/torture.py --runs $(RUNS) --seed $(SEED)
	$(BIN)/python tests/killing.py --runs 1 --seed $(SEED)

lint: $(READY)
	$(BIN)/ruff format --check src tests benchmarks docs examples studies
	$(BIN)/ruff check src tests benchmarks docs examples studies
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)  ## reference and printed outputs made anew, then the site in build/site
	$(BIN)/python docs/make_reference.py
	$(BIN)/python docs/make_outputs.py
	$(BIN)/python docs/make_notebooks.py
	$(BIN)/mkdocs build --strict

bench: $(READY)  ## speed and memory, recorded in benchmarks/results
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[bench]'; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'; \
	fi
	$(BIN)/python benchmarks/help.py --write
	$(BIN)/python benchmarks/first_run.py --write
	$(BIN)/python benchmarks/simulator.py --write
	$(BIN)/python benchmarks/prediction.py --write
	$(BIN)/python benchmarks/error_bars.py --write
	$(BIN)/python benchmarks/failures.py --write
	$(BIN)/python benchmarks/mobility.py --write
	$(BIN)/python benchmarks/petri_nets.py --write
	$(BIN)/python benchmarks/fault_prediction.py --write
	$(BIN)/python benchmarks/admission.py --write
	$(BIN)/python benchmarks/histories.py --write
	$(BIN)/python benchmarks/characterisation.py --write

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Tidings needs Python 3.11 or newer; say which: make PYTHON=python3.12 ..."; exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
	  uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'; \
	fi
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
