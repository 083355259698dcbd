"""A kernel's result for a row depends on this row only, not on the number of rows in the call nor on its position.

Centers lie in groups that differ in their last places only, so another order of computation would change results.
Two partial searches are exceptions: they pack data for all rows of a component and sum in another order if there are
few, so if costs tie within rounding, their results may differ.
"""

import numpy as np
import pytest
from kernel_calls import native
from kernel_data import DTYPES, rounding, same_bits
from scipy import sparse

from cprime.kernels import DistanceBounds, GaussianParameters, Moves
from cprime.kernels.compute import as_rows

MOST = 70
N = 300  # enough rows for the kernels that pack centers, and enough to detect equal centers


def crowded(n_groups, copies, D, dtype, seed):
    """Return centers (n_groups · copies, D) in groups that differ by at most three units in the last place."""
    rng = np.random.default_rng(seed)
    centers = np.repeat(3 + 2 * rng.standard_normal((n_groups, D)), copies, axis=0).astype(dtype)
    places = rng.integers(-3, 4, size=centers.shape)
    return rng.permutation(centers + (places * np.spacing(centers)).astype(dtype))


def rows_near(centers, n, seed):
    """Return rows of which a third equal centers, a third lie around them and a third lie far away."""
    rng = np.random.default_rng(seed)
    X = centers[rng.integers(len(centers), size=n)].astype(np.float64)
    X[n // 3 :] += 0.5 * rng.standard_normal(X[n // 3 :].shape)
    X[2 * n // 3 :] *= 100
    return rng.permutation(X.astype(centers.dtype))


def questions(C, D, dtype, copies, seed):
    """Return functions of (rows, their indices) that return tuples of arrays of equal length, the last one costs."""
    rng = np.random.default_rng(seed)
    centers = crowded(-(-C // copies), copies, D, dtype, seed)[:C]
    lists = np.array([rng.permutation(C)[: min(C, 8)] for _ in range(C)], dtype=np.int32)
    others = np.array([row[row != c][: min(C, 8) - 1] for c, row in enumerate(lists)], dtype=np.int32)
    own, pairs = rng.integers(C, size=N, dtype=np.int32), np.argsort(rng.random((N, C)), axis=1)[:, :2].astype(np.int32)
    scales = np.exp(rng.standard_normal((C, D)) / 4).astype(dtype)
    gaussians = GaussianParameters(centers, scales, np.zeros(C, dtype=dtype))
    moves = Moves(np.zeros(C, dtype), np.full((C, 1), np.inf, dtype), np.zeros((C, 1), dtype))
    width = min(16, C - 1)

    def bounded(X, at):
        unknown = np.zeros(len(X), dtype)
        apart = np.tile(np.arange(width, dtype=np.int32), (len(X), 1))
        bounds = DistanceBounds(np.full(len(X), C - 1, np.int32), apart, np.zeros(apart.shape, dtype), unknown)
        distances, _ = native.nearest_bounded(X, centers, bounds, moves)
        return bounds.labels, distances

    dense = {
        "nearest_bounded": bounded,
        "top_k": lambda X, at: native.top_k(X, centers, lists, pairs[at], 2),
        "distances": lambda X, at: (native.distances(X, centers).T,),
        "along": lambda X, at: (native.along(X, centers, centers, own[at]),),
        "products": lambda X, at: (native.products(X, centers),),
        "normalized": lambda X, at: (native.normalized(X)[1],),
        "log_sum_exp": lambda X, at: (native.log_sum_exp(X, centers, 1.5),),
        "responsibilities": lambda X, at: (native.responsibilities(X, gaussians),),
        "nearest of Gaussians": lambda X, at: native.nearest(X, gaussians, 2),
        "keep of Gaussians": lambda X, at: native.top_k(X, gaussians, lists, pairs[at], 2),
    }
    every = {
        "nearest": lambda X, at: native.nearest(X, centers),
        "three nearest": lambda X, at: native.nearest(X, centers, min(C, 3)),
        "nearest with a hint": lambda X, at: native.nearest(X, centers, hint=own[at][:, np.newaxis]),
        "own_distances": lambda X, at: (native.own_distances(X, centers, own[at]),),
    }
    within_rounding = {
        "search_lists": lambda X, at: native.search_lists(X, centers, lists, pairs[at], 2).costs,
        "among of Gaussians": lambda X, at: native.search_lists(X, gaussians, lists, pairs[at], 2).costs,
        "reassign": lambda X, at: native.reassign(X, centers, others, own[at])[1],
    }
    return centers, dense, every, within_rounding


def assert_alone_as_together(name, ask, X, to_rows):
    together = ask(to_rows(X), slice(None))
    rng = np.random.default_rng(0)
    for n in range(1, MOST + 1):
        some = np.sort(rng.permutation(len(X))[:n])
        alone = ask(to_rows(X[some]), some)
        if isinstance(alone, tuple):
            assert same_bits(alone, tuple(values[some] for values in together)), f"{name}, {n} rows"
        else:
            tolerance = rounding(X.dtype, X.shape[1])
            least = tolerance * np.square(X[some].astype(np.float64)).sum(axis=1).reshape(-1, *[1] * (alone.ndim - 1))
            assert (np.abs(alone - together[some]) <= tolerance * np.abs(alone) + least).all(), f"{name}, {n} rows"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("C", "D", "copies"), [(9, 1, 3), (40, 3, 8), (70, 33, 5), (300, 20, 2), (600, 64, 6)])
def test_a_dense_row_alone_has_its_result_among_others(C, D, copies, dtype):
    centers, dense, every, within_rounding = questions(C, D, dtype, copies, seed=C)
    X = rows_near(centers, N, seed=D)
    for name, ask in (dense | every | within_rounding).items():
        assert_alone_as_together(name, ask, X, lambda X: X)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("C", "D", "copies"), [(9, 5, 3), (70, 33, 5), (300, 20, 2)])
def test_a_sparse_row_alone_has_its_result_among_others(C, D, copies, dtype):
    centers, _, every, _ = questions(C, D, dtype, copies, seed=C)
    X = rows_near(centers, N, seed=D)
    X[np.random.default_rng(1).random(X.shape) < 0.6] = 0
    for name, ask in every.items():
        assert_alone_as_together(name, ask, X, lambda X: as_rows(sparse.csr_array(X)))
