# The front door. Needs python3 >= 3.11 and a C++20 compiler; everything else comes from PyPI into .venv.
#
# The package is installed editable: a change of Python code needs nothing, a change of what is compiled renews the
# first stamp (an incremental build). The other stamps add what one kind of work needs besides.
PYTHON ?= python3
BIN := .venv/bin
STAMPS := .venv/stamps
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILED := pyproject.toml CMakeLists.txt $(wildcard cpp/*)

.DEFAULT_GOAL := help
.PHONY: help demo examples test faults lint format bench bench-full wheel clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    cluster the half million patches of two photographs; results in demo/"
	@echo "make test    every test (ARGS='-k name' chooses)"
	@echo "make faults  fits that are killed at random moments, minutes of them (KILLS=50 says how many)"
	@echo "make lint    ruff, mypy and clang-format, changing nothing"
	@echo "make format  put Python and C++ into the project's format"
	@echo "make examples  run the examples and make their page, docs/examples"
	@echo "make bench   the short benchmarks, at most ten minutes (ARGS=list names what else there is)"
	@echo "make bench-full  the whole of them: hours"
	@echo "make wheel   the source distribution and the wheel, in dist/"
	@echo "make clean   remove .venv and everything built"

$(STAMPS)/build: pyproject.toml
	$(PYTHON) -m venv .venv
	@mkdir -p $(STAMPS)
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')" > $@.txt
	$(PIP) -r $@.txt "cmake>=3.26" ninja
	@touch $@

$(STAMPS)/package: $(STAMPS)/build $(COMPILED)
	$(PIP) --no-build-isolation --editable ".[plots,images]"
	@touch $@

$(STAMPS)/dev $(STAMPS)/bench: $(STAMPS)/%: pyproject.toml | $(STAMPS)/package
	$(PIP) --no-build-isolation --editable ".[$*]"
	@touch $@

demo: $(STAMPS)/package
	$(BIN)/cprime demo

test: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m pytest $(ARGS)

faults: $(STAMPS)/package $(STAMPS)/dev
	CPRIME_KILLS=$(or $(KILLS),50) $(BIN)/python -m pytest -s tests/faults $(ARGS)

lint: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror cpp/*

format: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i cpp/*

examples: $(STAMPS)/package $(STAMPS)/bench
	$(BIN)/python -m examples --all --output docs/examples

bench: $(STAMPS)/package $(STAMPS)/bench
	$(BIN)/python -m benchmarks $(or $(ARGS),short)

bench-full: $(STAMPS)/package $(STAMPS)/bench
	$(BIN)/python -m benchmarks full

wheel: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m build --outdir dist

clean:
	rm -rf .venv build dist demo .pytest_cache .hypothesis .mypy_cache .ruff_cache src/cprime/_core*.so
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} +
