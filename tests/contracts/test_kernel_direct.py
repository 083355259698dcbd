"""The nearest of few centers, found without a screen, is bit-identical to the direct search.

There is no screen in few dimensions, and for at most four centers in any dimension.
"""

import numpy as np
import pytest

from cprime.kernels import Dense

BORDER = 384  # if C · D is larger, centers are screened first


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("D", [*range(1, 18), 31, 32, 33, 130])
def test_it_is_the_first_of_the_least_of_all_measured(D, dtype):
    """The result is the first of the nearest centers on both sides of the border, also for infinite distances."""
    rng = np.random.default_rng(D)
    for C in {1, 2, 3, 4, 5, 7, max(1, BORDER // D), BORDER // D + 1}:
        X = rng.integers(-3, 4, (101, D)).astype(dtype)
        X[::7] += rng.standard_normal((15, D)).astype(dtype)
        centers = X[rng.integers(0, len(X), C)].copy()
        centers[C // 2] = np.finfo(dtype).max  # its distance is infinite
        rows = Dense(X)
        measured = np.stack([rows.own_distances(centers, np.full(len(X), c, dtype=np.int32)) for c in range(C)], axis=1)
        for n in (1, 3, 64, 101):
            kept, squares = Dense(X[:n]).nearest(centers, 1, n_threads=2)
            np.testing.assert_array_equal(kept[:, 0], measured[:n].argmin(axis=1))
            np.testing.assert_array_equal(squares[:, 0], measured[:n].min(axis=1))
