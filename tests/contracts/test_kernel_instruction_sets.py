"""The contracts hold for every instruction set below the best one of this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cprime.kernels import instruction_set
from marks import long_but

HERE = Path(__file__)
# Files that are left out. Memory, threads, layouts and response to signals do not depend on the instruction set.
ELSEWHERE = {HERE.name, "test_kernel_memory.py", "test_kernel_interrupt.py", "test_kernel_interrupt_pieces.py"}
ELSEWHERE |= {"test_kernel_threads.py", "test_kernel_layouts.py"}
# Files with tests of kernels that coarse_kernels.cpp compiles again for the instruction sets beyond avx512f.
COARSE = {"test_kernel_bounds.py", "test_kernel_cells.py", "test_kernel_coarse.py", "test_kernel_keep.py"}
COARSE |= {"test_kernel_nearest.py", "test_kernel_reassign.py"}
PARTS = 3  # parts of the files, so that several processors share them


def run(isa, *arguments):
    """Run Python with the kernels limited to an instruction set."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        env=os.environ | {"CPRIME_ISA": isa},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("isa", long_but(["avx2"], ["baseline", "avx2", "avx512f", "avx512"], mark=pytest.mark.rare))
@pytest.mark.long
def test_the_contracts_hold(isa, part):
    chosen = run(isa, "-c", "from cprime.kernels import instruction_set; print(instruction_set())")
    assert chosen.returncode == 0, chosen.stderr
    if chosen.stdout.strip() != isa or isa == instruction_set():
        pytest.skip(f"{isa} is not below {instruction_set()}, the best of this machine")
    contracts = [str(path) for path in sorted(HERE.parent.glob("test_kernel_*.py")) if path.name not in ELSEWHERE]
    if isa.startswith("avx512"):  # only kernels with coarse numbers differ from those of the best set
        contracts = [path for path in contracts if Path(path).name in COARSE]
    options = ["-x", "-p", "no:cacheprovider", "-m", "not long", "-k", "not reference-"]
    result = run(isa, "-m", "pytest", *options, *contracts[part::PARTS])
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-1000:]
