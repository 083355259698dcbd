"""`make test-kernels`: the numeric part of the suite under every kernel of OpenBLAS and every instruction set.

Results may differ in their last digits between kernels; tests may not fail for that. A name for which this processor
runs nothing, or what has been tested already, is reported and left out.
"""

import argparse
import os
import subprocess
import sys
import time
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
SHORT = ["fuzz", "hard_and_soft", "theory"]  # what compares most numbers in the least time
KERNELS = {  # by variable of the environment: names, and a program that prints which one is in use
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
            names = names[:1]  # the long tests run the kernels' contracts on every instruction set
        tested = set()
        for name in names:
            setting, environment = f"{variable}={name}", os.environ | {variable: name}
            found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
            used = found.stdout.strip()
            if found.returncode or used in tested:
                why = "which has been tested" if used in tested else "this processor runs nothing for it"
                print(f"{setting}: {used or 'left out'}, {why}", flush=True)
                continue
            tested.add(used)
            begin = time.monotonic()
            command = [sys.executable, "-m", "pytest", "-n", "logical", "-m", "not long", "-r", "fE", *options, *tests]
            status = subprocess.run(command, env=environment, cwd=ROOT).returncode
            print(f"{setting}: {used}, exit status {status}, {time.monotonic() - begin:.0f} s", flush=True)
            failed += [setting] * (status != 0)
    print(f"failed under {', '.join(failed)}" if failed else "passed under all kernels that this processor runs")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
