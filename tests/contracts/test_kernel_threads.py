"""Kernels are bit-identical for any number of threads, concurrent callers and forked processes."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from kernel_calls import native as kernels
from kernel_data import DTYPES, THREADS, clustered, gaussians, same_bits, weights


def all_kernels(dtype, n_threads, n=20_011, D=7, n_centers=50):
    """Return the results of every kernel over enough rows for several chunks of uneven size."""
    X, centers, w = clustered(n, D, dtype), clustered(n_centers, D, dtype, seed=2), weights(n)
    kept, distances = kernels.nearest(X, centers, 4, n_threads=n_threads)
    posterior = kernels.posterior(distances, -0.5, n_threads=n_threads)
    q = posterior.responsibilities
    lists = kernels.nearest(centers, centers, 9, n_threads=n_threads)[0][:, 1:]
    labels, factors = kept[:, 3], np.linspace(0.9, 1.1, n_centers)
    given = gaussians(n_centers, D, dtype, n_centers < 100)
    return {
        "nearest": (kept, distances),
        "nearest one": kernels.nearest(X, centers, n_threads=n_threads),
        "nearest hinted": kernels.nearest(X, centers, 4, hint=kept[::-1], n_threads=n_threads),
        "min_distances": kernels.distances(X, centers[:5], distances[:, 0], n_threads=n_threads),
        "potentials": kernels.potentials(kernels.distances(X, centers[:5]), distances[:, 0], w, n_threads=n_threads),
        "posterior": tuple(posterior),
        "along": kernels.along(X, centers, centers[::-1], labels, n_threads=n_threads),
        "means": kernels.means(
            *kernels.accumulate(X, kept, q, w, n_components=n_centers), centers, n_threads=n_threads
        ),
        "keep_nearest": kernels.top_k(X, centers, lists, kept[:, 2:], 3, n_threads=n_threads),
        "accumulate": kernels.accumulate(X, kept, q, w, n_components=n_centers, n_threads=n_threads),
        "accumulate hard": kernels.accumulate(X, kept[:, :1], n_components=n_centers, n_threads=n_threads),
        "accumulate rows": kernels.accumulate(
            X, kept[::7, :1], None, w, n_components=n_centers, rows=np.arange(0, n, 7), n_threads=n_threads
        ),
        "reassign": kernels.reassign(X, centers, lists, labels, n_threads=n_threads),
        "exchange": kernels.reassign(X, centers, lists, labels, factors, factors[::-1], n_threads=n_threads),
        "search_lists": tuple(
            kernels.search_lists(X, centers, lists, kept[:, 2:], 3, evidence=True, n_threads=n_threads)
        ),
        "changed": kernels.changed(kept, kept[::-1], n_threads=n_threads),
        "grouped_order": kernels.grouped_order(labels, n_centers, n_threads=n_threads),
        "gather": kernels.gather(X, np.arange(0, n, 3), n_threads=n_threads),
        "normalized": kernels.normalized(X, np.arange(0, n, 3), n_threads=n_threads),
        "expect_all": kernels.expect_all(X, centers, 2.0, w, n_threads=n_threads),
        "log_sum_exp": kernels.log_sum_exp(X, centers, 2.0, n_threads=n_threads),
        "best": kernels.nearest(X, given, 3, n_threads=n_threads),
        "top_k_gaussians": kernels.top_k(X, given, lists, kept[:, 2:], 3, n_threads=n_threads),
        "respond": tuple(kernels.respond(X, given, w, n_threads=n_threads)),
        "moments": kernels.moments(X, centers, kept, q, w, full=False, n_threads=n_threads),
        "products": kernels.products(X, centers, centers[0], n_threads=n_threads),
    }


def different(left, right):
    return [name for name in left if not same_bits(left[name], right[name])]


@pytest.mark.parametrize("n", [5, 1000, 20_011])
@pytest.mark.parametrize("dtype", DTYPES)
def test_any_number_of_threads_gives_the_same_bits(dtype, n):
    one, *others = [all_kernels(dtype, n_threads, n=n) for n_threads in (*THREADS, None)]
    for other in others:
        assert different(one, other) == []


def test_many_components_over_threads():
    """More components than rows in a chunk, and statistics that exceed the cache, change no bit."""
    one, *others = [all_kernels(np.float32, n_threads, n=3001, D=33, n_centers=2500) for n_threads in THREADS]
    for other in others:
        assert different(one, other) == []


def test_repeated_calls_give_the_same_bits():
    first = all_kernels(np.float32, 8)
    for _ in range(5):
        assert different(first, all_kernels(np.float32, 8)) == []


def test_four_python_threads_at_once():
    expected = {dtype: all_kernels(dtype, 1, n=5003) for dtype in DTYPES}
    jobs = [(DTYPES[i % 2], THREADS[i % 3]) for i in range(24)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda job: all_kernels(job[0], job[1], n=5003), jobs))
    for (dtype, _), result in zip(jobs, results, strict=True):
        assert different(expected[dtype], result) == []


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork a process")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_works_after_the_pool_was_used():
    expected = all_kernels(np.float32, 8)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        results = [pool.apply_async(all_kernels, (np.float32, n_threads)) for n_threads in (8, 3, 1, 8)]
        for result in results:
            assert different(expected, result.get(timeout=30)) == []
    assert different(expected, all_kernels(np.float32, 8)) == [], "the parent's pool after the fork"
