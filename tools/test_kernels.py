"""`make test-kernels`: run numeric tests with every kernel of OpenBLAS and every instruction set.

The last digits of results may differ between kernels; tests must not fail for that. A name that this processor maps to
no kernel, to the one that `make test` runs, or to one tested before, is reported and left out.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
NUMERIC = [
    "contracts",
    "coresets",
    "dropin",
    "em",
    "estimators",
    "family",
    "fuzz",
    "hard_and_soft",
    "laws",
    "mixtures",
    "model",
    "search",
    "seeding",
    "selection",
    "theory",
]
SHORT = ["fuzz", "hard_and_soft", "theory"]  # tests that compare most numbers in the least time
KERNELS = {  # by environment variable: names, and a program that prints the kernel in use
    "OPENBLAS_CORETYPE": (
        ["Haswell", "SkylakeX", "Zen", "Sandybridge", "Prescott"],
        "import numpy, threadpoolctl; print(threadpoolctl.threadpool_info()[0]['architecture'])",
    ),
    "CPRIME_ISA": (
        ["baseline", "avx2", "avx512f", "avx512"],
        "from cprime.kernels import instruction_set; print(instruction_set())",
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make test-kernels", description=__doc__)
    parser.add_argument("--short", action="store_true", help="fewer tests, in minutes")
    given, options = parser.parse_known_args()
    tests = [str(ROOT / "tests" / name) for name in (SHORT if given.short else NUMERIC)]
    failed = []
    for variable, (names, program) in KERNELS.items():
        if given.short and variable == "CPRIME_ISA":
            names = names[:1]  # the long tests include the kernels' contracts on every instruction set
        tested = {kernel_used(program, os.environ)}
        for name in names:
            setting, environment = f"{variable}={name}", os.environ | {variable: name}
            used = kernel_used(program, environment)
            if used is None or used in tested:
                why = "this processor runs nothing for it" if used is None else "which has been tested"
                print(f"{setting}: {used or 'left out'}, {why}", flush=True)
                continue
            tested.add(used)
            begin = time.monotonic()
            command = [sys.executable, "-m", "pytest", "-n", "logical", "-m", "not long", "-r", "fE"]
            command += [] if given.short else ["--full-products", "pairs"]
            status = subprocess.run([*command, *options, *tests], env=environment, cwd=ROOT).returncode
            print(f"{setting}: {used}, exit status {status}, {time.monotonic() - begin:.0f} s", flush=True)
            failed += [setting] * (status != 0)
    print(f"failed under {', '.join(failed)}" if failed else "passed under all kernels that this processor runs")
    return len(failed)


def kernel_used(program: str, environment: Mapping[str, str]) -> str | None:
    """Return what the program prints in this environment, or None if it fails."""
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
