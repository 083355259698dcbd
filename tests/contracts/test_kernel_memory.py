"""Kernels need a bounded amount of memory beyond arguments and results, for any C and D; measured in new processes."""

import json
import sys
from pathlib import Path

import pytest

from marks import long_but

BUDGET = 64 << 20  # bytes beyond arguments and results

PROGRAM = """
import json, sys
sys.path[:0] = {folders!r}
import numpy as np
from kernel_calls import native as kernels

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

def bytes_of(value):
    if isinstance(value, tuple):
        return sum(map(bytes_of, value))
    return getattr(value, "nbytes", 0)

def work(C, D, n):
    X = np.random.default_rng(0).standard_normal((n, D), dtype=np.{dtype})
    means = np.zeros((C, D), dtype=X.dtype)
    {arguments}
    arguments = {given}
    return bytes_of(arguments), bytes_of({kernel}(*arguments, n_threads=4))

C, D, n = {size}
work(2, 3, 10)
before = peak()
arguments, results = work(C, D, n)
sys.stdout.write(json.dumps([peak() - before, arguments, results]))
"""

FULL = "factors = np.broadcast_to(np.eye(D, dtype=X.dtype), (C, D, D)).copy()"
DIAGONAL = "factors = np.ones((C, D), dtype=X.dtype)"
GAUSSIANS = "(X, kernels.GaussianParameters(means, factors, np.zeros(C, dtype=X.dtype)))"
CASES = {
    "respond, one large matrix": (FULL, GAUSSIANS, "kernels.respond", (1, 1000, 3000), "float32"),
    "respond, few large matrices": (FULL, GAUSSIANS, "kernels.respond", (3, 900, 3000), "float64"),
    "respond, many components": (DIAGONAL, GAUSSIANS, "kernels.respond", (400_000, 2, 300), "float32"),
    "expect_all, many components": ("", "(X, means, 1.0)", "kernels.expect_all", (400_000, 2, 300), "float64"),
    "log_sum_exp, many components": ("", "(X, means, 1.0)", "kernels.log_sum_exp", (800_000, 2, 300), "float64"),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
@pytest.mark.parametrize("case", long_but(["expect_all, many components"], CASES))
def test_what_a_kernel_takes_is_bounded(case, forked):
    arguments, given, kernel, size, dtype = CASES[case]
    folders = [str(folder) for folder in Path(__file__).parents[:2]]
    code = PROGRAM.format(folders=folders, arguments=arguments, given=given, kernel=kernel, size=size, dtype=dtype)
    run = forked(code)
    assert run.returncode == 0, run.stderr
    taken, before, after = json.loads(run.stdout)
    assert taken < BUDGET + 2 * (before + after)
