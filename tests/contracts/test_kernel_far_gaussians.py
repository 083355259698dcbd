"""Costs of Gaussians that are narrow compared with distances of means; the reference is exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from kernel_data import DTYPES

from cprime.kernels import GaussianParameters

# distance between means (integers that the type represents exactly), and about 1 / standard deviation
CASES = {np.float32: (2.0**22, 2**10), np.float64: (2.0**50, 2**6)}
C, D, N = 5, 3, 40


def narrow(dtype, full, tails):
    """Return rows that equal a mean or differ from it by integers, and the components."""
    rng = np.random.default_rng(5)
    distance, inverse = CASES[dtype]
    means = np.round(rng.normal(size=(C, D)) * distance)
    factors = rng.integers(1, 5, (C, D, D) if full else (C, D)) / 4 * inverse
    if full:
        factors = np.tril(factors * np.where(np.eye(D), 1, -0.5))
    X = means[rng.integers(C, size=N)] + rng.integers(-1, 2, (N, D)) * (rng.random(N) < 0.5)[:, np.newaxis]
    dof = rng.uniform(1, 9, C).astype(dtype) if tails else None
    return X.astype(dtype), GaussianParameters(
        means.astype(dtype), factors.astype(dtype), np.zeros(C, dtype=dtype), dof
    )


def exact_costs(X, given):
    """Return costs and the values |A| |x − m|, squared, that bound their rounding errors; both (N, C)."""
    costs, bounds = np.empty((2, len(X), len(given.means)))
    for c, (mean, factor) in enumerate(zip(given.means.tolist(), given.factors, strict=True)):
        rows = (np.diag(factor) if factor.ndim == 1 else factor).tolist()
        for n, x in enumerate(X.tolist()):
            difference = [Fraction(a) - Fraction(b) for a, b in zip(x, mean, strict=True)]
            terms = [[Fraction(a) * d for a, d in zip(row, difference, strict=True)] for row in rows]
            costs[n, c] = float(sum(sum(row) ** 2 for row in terms))
            bounds[n, c] = float(sum(sum(map(abs, row)) ** 2 for row in terms))
    if given.dof is not None:
        dof = given.dof.astype(np.float64)
        costs = (dof + X.shape[1]) * np.log1p(costs / dof)
        bounds = 1 + costs + (dof + X.shape[1]) * bounds / (dof + bounds)
    return costs, bounds


@pytest.mark.parametrize("tails", [False, True], ids=["Gaussian", "t"])
@pytest.mark.parametrize("full", [False, True], ids=["diag", "full"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_costs_of_narrow_gaussians_far_from_the_others_are_exact(kernels, dtype, full, tails):
    X, given = narrow(dtype, full, tails)
    costs, bounds = exact_costs(X, given)
    atol = 16 * (D + 4) * float(np.finfo(dtype).eps) * bounds
    best = costs.argmin(axis=1).astype(np.int32)
    lists = np.array([np.delete(np.arange(C, dtype=np.int32), c) for c in range(C)])
    for H in (1, C):
        found = {
            "nearest": kernels.nearest(X, given, H),
            "top_k": kernels.top_k(X, given, lists, best[:, np.newaxis], H),
            "search_lists": kernels.search_lists(X, given, lists, best[:, np.newaxis], H)[:2],
        }
        for name, (ids, values) in found.items():
            rows = np.arange(N)[:, np.newaxis]
            assert (np.abs(values - costs[rows, ids]) <= atol[rows, ids]).all(), name
            np.testing.assert_array_equal(ids[:, 0], best, err_msg=name)
    responses = kernels.respond(X, given, moments=False)
    np.testing.assert_array_equal(responses.labels, best)
    log_sum = np.logaddexp.reduce(-costs / 2, axis=1)
    np.testing.assert_allclose(responses.log_sum, log_sum, rtol=0, atol=atol[np.arange(N), best].max())
