"""Kernels are bit-identical for any number of threads, concurrent callers and forked processes."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from every_kernel import different, given, results
from kernel_data import DTYPES, THREADS, clustered

from cprime.kernels import Dense
from cprime.kernels.compute import computing


@cache
def arguments(dtype, n=5003, D=7, C=50):
    return Dense(clustered(n, D, dtype)), given(n, clustered(C, D, dtype, seed=2))


def all_kernels(n_threads, *case):
    """Return the results of every kernel."""
    with computing(n_threads):
        return results(*arguments(*case))


@pytest.mark.parametrize(("n", "D", "C"), [(5, 7, 3), (1000, 7, 50), (40_003, 3, 7), (401, 33, 500)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits(dtype, n, D, C):
    """Chunks may be uneven, components may outnumber the rows in a chunk, and statistics may exceed the cache."""
    one, *others = [all_kernels(n_threads, dtype, n, D, C) for n_threads in (*THREADS, None)]
    for other in others:
        assert different(one, other) == []


@pytest.mark.long
def test_repeated_calls_give_the_same_bits():
    first = all_kernels(8, np.float32)
    for _ in range(5):
        assert different(first, all_kernels(8, np.float32)) == []


@pytest.mark.long
def test_four_python_threads_at_once_find_what_one_finds():
    expected = {dtype: all_kernels(1, dtype) for dtype in DTYPES}
    jobs = [(THREADS[i % 3], DTYPES[i % 2]) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda job: all_kernels(*job), jobs))
    for (_, dtype), result in zip(jobs, found, strict=True):
        assert different(expected[dtype], result) == []


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork a process")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_works_after_the_pool_was_used():
    expected = all_kernels(8, np.float32)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = [pool.apply_async(all_kernels, (n_threads, np.float32)) for n_threads in (8, 3, 1, 8)]
        for result in found:
            assert different(expected, result.get(timeout=30)) == []
    assert different(expected, all_kernels(8, np.float32)) == [], "the parent's pool after the fork"
