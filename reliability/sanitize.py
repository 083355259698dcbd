"""`python -m reliability sanitize`: run the contracts of kernels and concurrent fits with the core under sanitizers.

The core is built once for each sanitizer, in a virtual environment below build/sanitize that takes all other packages
from this one. Every instruction set is run: baseline and AVX2 natively, AVX-512 and AMX in software. So every machine
with AVX2 can run all of them, and sanitizers check the memory accesses of those instructions.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CONTRACTS = [  # all except the memory that kernels take, to which sanitizers add theirs
    str(path)
    for path in sorted((ROOT / "tests" / "contracts").glob("test_kernel_*.py"))
    if path.name != "test_kernel_memory.py"
]
EVERY_KERNEL = ["tests/contracts/test_kernel_guard_pages.py"]
SEVERAL_THREADS = ["tests/contracts/test_kernel_threads.py", "tests/estimators/test_concurrent_fits.py"]
INSTRUCTION_SETS = ["baseline", "avx2", "avx512f", "avx512", "amx"]


class Sanitizer(NamedTuple):
    settings: dict[str, str]  # for CMake
    libraries: list[str]  # preloaded, because Python is not built with the sanitizer
    options: dict[str, str]  # environment
    tests: list[str]


# Levels above -O1 compile several times as long and detect less. Debug builds contain function names.
_FLAGS = {"CMAKE_BUILD_TYPE": "Debug", "CMAKE_CXX_FLAGS_DEBUG": "-O1 -g1"}
SANITIZERS = {
    # Includes undefined behavior. Leaks are not checked, because Python frees much only when the process ends.
    # Unwritten memory reads as a number far outside every valid range.
    "address": Sanitizer(
        {"CPRIME_SANITIZE": "address", **_FLAGS},
        ["libasan.so", "libstdc++.so.6"],
        {
            "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=1"
            ":max_malloc_fill_size=1073741824:malloc_fill_byte=190",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
        },
        [*CONTRACTS, SEVERAL_THREADS[1]],
    ),
    # Python and NumPy are not instrumented; data passed between them would cause false reports.
    "thread": Sanitizer(
        {"CPRIME_SANITIZE": "thread", **_FLAGS},
        ["libtsan.so", "libstdc++.so.6"],
        {"TSAN_OPTIONS": "halt_on_error=1:ignore_noninstrumented_modules=1:die_after_fork=0"},
        SEVERAL_THREADS,
    ),
    "none": Sanitizer({}, [], {}, CONTRACTS),
}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m reliability sanitize",
        description=__doc__.split("\n\n")[0],
        epilog="What follows -- is pytest's: options, and tests to be run in place of these.",
    )
    parser.add_argument("--with", dest="names", nargs="+", choices=SANITIZERS, default=["address", "thread"])
    parser.add_argument("--sets", nargs="+", choices=INSTRUCTION_SETS, default=INSTRUCTION_SETS)
    parser.add_argument("--short", action="store_true", help="minutes: every kernel once, fits at once on the baseline")
    given, others = parser.parse_known_args(argv)
    tests = [other for other in others if other.startswith("tests")]
    options = [other for other in others if other not in tests and other != "--"]
    if given.short:
        runs = [("address", ["baseline", "amx"], EVERY_KERNEL), ("thread", ["baseline"], SEVERAL_THREADS[1:])]
        options = ["-m", "not long", *options]
    else:
        runs = [(name, given.sets, tests or SANITIZERS[name].tests) for name in given.names]
    failed = False
    for name, sets, chosen in runs:
        python = environment(name, sets)
        for instruction_set in sets:
            failed |= run(python, name, instruction_set, [*chosen, *options]) != 0
    return int(failed)


def environment(name: str, sets: list[str]) -> str:
    """Return the interpreter of an environment whose core is built with the sanitizer and these instruction sets."""
    folder = ROOT / "build" / "sanitize" / name
    python = str(folder / "bin" / "python")
    if not os.path.exists(python):
        venv.create(folder)
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.check_output(where, text=True).strip())
    # Path files in the folders of a path file are ignored, so the installed version of this package is not found there.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    needed = {"avx512f"} if {"avx512", "amx"} & {*sets} else set()  # they use most kernels of AVX512F
    compiled = ";".join(s.upper() for s in INSTRUCTION_SETS if s in needed.union(sets) - {"baseline"})
    settings = {"CPRIME_EMULATE": "ON", "CPRIME_SETS": compiled, **SANITIZERS[name].settings}
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check"]
        + ["--no-build-isolation", "--no-deps", "--ignore-installed", f"--config-settings=build-dir={folder / 'cmake'}"]
        + ["--config-settings=install.strip=false"]
        + [f"--config-settings=cmake.define.{key}={value}" for key, value in settings.items()]
        + ["--editable", str(ROOT)],
        check=True,
        env=os.environ | {"PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])},
    )
    return python


def run(python: str, name: str, instruction_set: str, arguments: list[str]) -> int:
    """Run pytest on an instruction set; return its exit status."""
    sanitizer = SANITIZERS[name]
    libraries = [library(file) for file in sanitizer.libraries]
    variables = os.environ | sanitizer.options | {"CPRIME_ISA": instruction_set, "LD_PRELOAD": " ".join(libraries)}
    answer = [python, "-c", "from cprime.kernels import instruction_set; print(instruction_set())"]
    found = subprocess.check_output(answer, env=variables, text=True).strip()
    if found != instruction_set:
        raise RuntimeError(f"the core runs on {found} where {instruction_set} was asked for, which needs AVX2")
    begin = time.monotonic()
    print(f"{name}, {instruction_set}:", flush=True)
    # A sanitizer reports to the process's own standard error, which pytest would capture.
    command = [python, "-m", "pytest", "--capture=sys", "-p", "no:cacheprovider"]
    command += ["-k", "not reference- and not contracts_hold"]
    status = subprocess.run([*command, *arguments], env=variables, cwd=ROOT, check=False).returncode
    seconds = time.monotonic() - begin
    print(f"{name}, {instruction_set}: {'passed' if status == 0 else 'FAILED'} in {seconds:.0f} s", flush=True)
    return status


def library(file: str) -> str:
    """Return the path of a compiler library; raise RuntimeError if the compiler has none."""
    compiler = os.environ.get("CXX", "c++")
    path = subprocess.check_output([compiler, f"-print-file-name={file}"], text=True).strip()
    if path == file:
        raise RuntimeError(f"{compiler} has no {file}, the library of a sanitizer: it has to be installed")
    return os.path.realpath(path)
