"""Kernels are bit-identical in every floating-point mode of the calling thread, and do not change this mode."""

import numpy as np
import pytest
from kernel_calls import native as kernels
from kernel_data import DTYPES, THREADS, same_bits

from cprime import _core
from floating_point import MODES, control_word, mode


def calls(dtype):
    """Return kernel calls with numbers that are subnormal or have subnormal products, and with ordinary numbers."""
    rng = np.random.default_rng(0)
    smallest = np.finfo(dtype).smallest_subnormal
    X = rng.standard_normal((5003, 5)).astype(dtype)
    centers, w = X[:40].copy(), rng.exponential(size=5003)
    tiny = np.round(100 * X).astype(dtype) * smallest
    sums = np.round(100 * centers) * np.finfo(np.float64).smallest_subnormal
    close = X * np.sqrt(smallest) * dtype(1000)  # their squared distances are subnormal
    kept, distances = kernels.nearest(X, centers, 3)
    far = 100 * distances
    return {
        "accumulate": lambda n: kernels.accumulate(tiny, kept[:, :1], None, w, n_components=40, n_threads=n),
        "along": lambda n: kernels.along(tiny, tiny[:40], centers, kept[:, 0].copy(), n_threads=n),
        "means": lambda n: kernels.means(np.ones(40), sums, centers, n_threads=n),
        "posterior": lambda n: tuple(kernels.posterior(far, -0.5, n_threads=n)),
        "expect_all": lambda n: tuple(kernels.expect_all(X, centers, 1e-3, n_threads=n))[:2],
        "products": lambda n: kernels.products(X, tiny[:40], n_threads=n),
        "nearest": lambda n: kernels.nearest(X, centers, 3, n_threads=n),
        "nearest of close points": lambda n: kernels.nearest(close, close[:40], 3, n_threads=n),
        "min_distances of close points": lambda n: kernels.distances(close, close[:5], n_threads=n),
    }


@pytest.mark.parametrize("name", MODES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernels_do_not_depend_on_the_floating_point_mode(dtype, name):
    for kernel, call in calls(dtype).items():
        expected = call(1)
        for n_threads in THREADS:
            with mode(name):
                found = call(n_threads)
            assert same_bits(expected, found), (kernel, n_threads)


@pytest.mark.parametrize("name", MODES)
def test_the_floating_point_mode_is_left_as_it_was(name):
    X = np.ones((10, 2))
    with mode(name):
        before = control_word()
        kernels.nearest(X, X[:2])
        after_a_call = control_word()
        with pytest.raises(ValueError, match="outside"):
            _core.grouped_order(np.full(10, 7, np.int32), 2, np.empty(10, np.int64), 1)
        after_an_error = control_word()
    assert (before, after_a_call, after_an_error) == (before, before, before)
    assert before != control_word()
