# The front door. Needs python3 >= 3.11 and a C++20 compiler; everything else comes from PyPI into .venv.
#
# The package is installed editable: a change of Python code needs nothing, a change of what is compiled renews the
# first stamp (an incremental build). The other stamps add what one kind of work needs besides.
PYTHON ?= python3
CLANG ?= clang++
VENV ?= .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CPP := $(wildcard cpp/*.h cpp/*.cpp)
COMPILED := pyproject.toml CMakeLists.txt $(CPP)

# Tests start many processes, and pytest rewrites their modules: what Python compiles is kept, whatever is set around.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help check demo docs examples pictures test test-all test-kernels test-clang test-arm cross faults load attack sanitize sanitize-short test-amx fuzz fuzz-core lint format bench bench-full wheel test-wheel clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    cluster the half million patches of two photographs; results in demo/"
	@echo "make check   format, types and the quick tests of what has changed, in about a minute"
	@echo "make test    the quick tests, of every subject, in minutes (ARGS='-k name' chooses)"
	@echo "make test-all  every test"
	@echo "make test-kernels  the numeric tests under every kernel of OpenBLAS and every instruction set (ARGS=--short: fewer)"
	@echo "make test-clang  every test, of a core that clang has compiled (CLANG=clang++-19 names it)"
	@echo "make test-arm  the contracts of the kernels on emulated 64-bit ARM"
	@echo "make cross   whether the core compiles for other systems: musl, macOS, Windows"
	@echo "make faults  fits that are killed at random moments, minutes of them (KILLS=50 says how many)"
	@echo "make fuzz    generated cases and mutated files (CASES=100000 LAWS=500 SEED=1 WORKERS=2 choose); make fuzz-core: the core"
	@echo "make attack  sizes beyond 32 bits, little memory, kills, damaged files: at most twenty minutes (SEED=1 chooses)"
	@echo "make load    sixteen threads that fit and predict at once, ten minutes (MINUTES=1 says how many)"
	@echo "make sanitize  the kernels' contracts under sanitizers, on every instruction set; make sanitize-short: some, in minutes"
	@echo "make test-amx  the kernels' contracts on AVX-512 and AMX in software, for machines that lack them"
	@echo "make lint    ruff, mypy, clang-format and the language of docstrings, changing nothing"
	@echo "make format  put Python and C++ into the project's format"
	@echo "make examples  run the scripts of examples/"
	@echo "make docs    the documentation site, in build/docs, warnings being errors (ARGS='-D plot_gallery=0': no examples)"
	@echo "make pictures  draw the pictures of the README and the site, docs/_static"
	@echo "make bench   the short benchmarks, at most ten minutes (ARGS=list names what else there is)"
	@echo "make bench-full  the whole of them: hours"
	@echo "make wheel   the source distribution and wheels for Python 3.11 and for 3.12 and later, in dist/"
	@echo "make test-wheel  each Python from 3.11 that is found tries its wheel in an empty environment"
	@echo "make clean   remove .venv and everything built"

$(STAMPS)/build: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')" > $@.txt
	$(PIP) -r $@.txt "cmake>=3.26" ninja
	@touch $@

$(STAMPS)/package: $(STAMPS)/build $(COMPILED)
	$(PIP) --no-build-isolation --config-settings=cmake.define.CPRIME_NATIVE=OFF --editable ".[plots,report]"
	@touch $@

# The same with the kernels of this processor alone, which compile in a third of the time. What is compiled is kept.
$(STAMPS)/native: $(STAMPS)/build $(COMPILED)
	$(PIP) --no-build-isolation --config-settings=cmake.define.CPRIME_NATIVE=ON --editable ".[plots,report]"
	@touch $@

$(STAMPS)/dev $(STAMPS)/docs $(STAMPS)/bench: $(STAMPS)/%: pyproject.toml | $(STAMPS)/package
	$(PIP) --no-build-isolation --editable ".[$*]"
	@touch $@

demo: $(if $(wildcard $(STAMPS)/package),$(STAMPS)/package,$(STAMPS)/native)
	$(BIN)/cprime demo

test: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m pytest -n logical -m "not long" --durations=10 $(ARGS)

check: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python tools/check.py $(ARGS)

test-all: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m pytest --durations=10 $(ARGS)

test-kernels: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python tools/test_kernels.py $(ARGS)

test-clang:
	CXX=$(CLANG) SKBUILD_BUILD_DIR=build/clang/core $(MAKE) test-all VENV=build/clang/venv

test-arm: $(STAMPS)/package $(STAMPS)/dev
	tools/test-arm.sh $(ARGS)

cross: $(STAMPS)/package $(STAMPS)/dev
	tools/cross.sh $(ARGS)

load: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m reliability load --minutes $(or $(MINUTES),10) --threads 16 $(ARGS)

attack: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m reliability attack --seed $(or $(SEED),0) $(ARGS)

faults: $(STAMPS)/package $(STAMPS)/dev
	CPRIME_KILLS=$(or $(KILLS),50) $(BIN)/python -m pytest -s tests/faults $(ARGS)

fuzz: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m reliability surface --cases $(or $(CASES),2000) --seed $(or $(SEED),0) --workers $(or $(WORKERS),1)
	$(BIN)/python -m reliability surface --laws --cases $(or $(LAWS),500) --seed $(or $(SEED),0) --workers $(or $(WORKERS),1)
	$(PIP) "atheris>=3"
	$(BIN)/python -m reliability files --cases $(or $(CASES),2000) --seed $(or $(SEED),0)

# libFuzzer on the core alone, under AddressSanitizer and UBSan; needs clang, and runs for every set of instructions.
FUZZ_CXX ?= $(firstword $(shell command -v clang++ clang++-19 clang++-14))
FUZZ_FLAGS := -std=c++20 -O2 -g -Icpp -fno-math-errno -fno-trapping-math -ffp-contract=fast -fno-sanitize-recover=undefined
FUZZ_SETS := baseline avx2 avx512f avx512
FUZZ_avx2 := -mavx2 -mfma
FUZZ_avx512f := -mavx512f -mavx512dq -mavx512vl -mavx512bw -mfma
FUZZ_avx512 := $(FUZZ_avx512f) -mavx512vnni
FUZZ_HAS := -DCPRIME_HAS_AVX2 -DCPRIME_HAS_AVX512F -DCPRIME_HAS_AVX512

FUZZ_SOURCE_avx512 := cpp/coarse_kernels.cpp
$(FUZZ_SETS:%=build/fuzz/%.o): build/fuzz/%.o: $(CPP)
	@test -n "$(FUZZ_CXX)" || { echo "make fuzz-core needs clang++, with libFuzzer" >&2; exit 1; }
	@mkdir -p build/fuzz
	$(FUZZ_CXX) $(FUZZ_FLAGS) $(FUZZ_$*) -DCPRIME_ISA=$* -fsanitize=fuzzer-no-link,address,undefined -c $(or $(FUZZ_SOURCE_$*),cpp/kernels.cpp) -o $@

build/fuzz/core: reliability/core_fuzz.cpp $(FUZZ_SETS:%=build/fuzz/%.o)
	$(FUZZ_CXX) $(FUZZ_FLAGS) $(FUZZ_HAS) -fsanitize=fuzzer,address,undefined -pthread $^ cpp/dispatch.cpp cpp/grouping.cpp cpp/thread_pool.cpp -o $@

fuzz-core: build/fuzz/core
	@mkdir -p build/fuzz/core-corpus
	set -e; for set in $(FUZZ_SETS); do CPRIME_ISA=$$set build/fuzz/core -runs=$(or $(CASES),20000) -seed=$(or $(SEED),1) \
	    -timeout=10 -max_len=1024 -len_control=0 -print_final_stats=1 -artifact_prefix=build/fuzz/core-$$set- build/fuzz/core-corpus; done

sanitize: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m reliability sanitize $(ARGS)

sanitize-short: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m reliability sanitize --short $(ARGS)

test-amx: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python -m reliability sanitize --with none --sets avx512f avx512 amx $(ARGS)

lint: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python tools/language.py
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/zizmor --offline --quiet --strict-collection .github

format: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/clang-format -i $(CPP)

examples: $(STAMPS)/package $(STAMPS)/dev
	for script in examples/*.py examples/recipes/*.py; do MPLBACKEND=agg $(BIN)/python -W ignore:FigureCanvasAgg $$script || exit 1; done

docs: $(STAMPS)/package $(STAMPS)/docs
	MPLBACKEND=agg $(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees $(ARGS) docs build/docs
	@echo "build/docs/index.html"

pictures: $(STAMPS)/package
	for picture in family em_steps quality; do $(BIN)/python docs/pictures/$$picture.py || exit 1; done

bench: $(STAMPS)/package $(STAMPS)/bench
	$(BIN)/python -m benchmarks $(or $(ARGS),short)

bench-full: $(STAMPS)/package $(STAMPS)/bench
	$(BIN)/python -m benchmarks full

wheel: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python tools/wheels.py build

test-wheel: $(STAMPS)/package $(STAMPS)/dev
	$(BIN)/python tools/wheels.py test

clean:
	rm -rf .venv build dist demo docs/generated docs/gallery .pytest_cache .hypothesis .mypy_cache .ruff_cache src/cprime/_core*.so
	find src tests benchmarks examples reliability tools docs -name __pycache__ -prune -exec rm -rf {} +
