"""Factor analyzers: costs of rows, the best of a list of components, and the moments of the M-step."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import clustered, every_dtype, neighbours, random_ids, weights

from cprime.kernels import FactorAnalysers

# rows, features, factors, components: smaller and larger than a vector register and than one block of factors
SIZES = [(1, 1, 0, 1), (7, 5, 1, 3), (70, 19, 5, 6), (33, 40, 7, 17), (140, 9, 11, 2)]


def analysers(C, D, H, dtype, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((C, D, H)).astype(dtype).astype(np.float64)
    psi = noise * (0.5 + rng.random((C, D)))
    scaled = loadings / psi[:, :, np.newaxis]
    inverse = np.tril(np.linalg.inv(np.linalg.cholesky(np.eye(H) + loadings.transpose(0, 2, 1) @ scaled)))
    roots, offsets = inverse.transpose(0, 2, 1).copy(), rng.uniform(-5, 5, C)
    return FactorAnalysers(clustered(C, D, dtype, seed), 1 / psi, loadings.transpose(0, 2, 1), roots, offsets)


def close(found, expected, dtype):
    return np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == np.float32 else 1e-9, atol=1e-8)


@every_dtype
@pytest.mark.parametrize(("n", "D", "H", "C"), SIZES)
def test_costs_and_searches_equal_the_reference(n, D, H, C, dtype):
    X, given = clustered(n, D, dtype), analysers(C, D, H, dtype)
    ids = random_ids(n, 3, C)
    close(native.factor_costs(X, given, ids), reference.factor_costs(X, given, ids), dtype)
    lists, previous = neighbours(C, 16), random_ids(n, 5, C, seed=4)
    for n_kept in (1, 4):
        kept, costs = native.top_k_factors(X, given, lists, previous, n_kept)
        other = reference.top_k_factors(X, given, lists, previous, n_kept)
        np.testing.assert_array_equal(kept, other[0])
        close(costs, other[1], dtype)


@every_dtype
@pytest.mark.parametrize(("n", "D", "H", "C"), SIZES)
def test_moments_equal_the_reference(n, D, H, C, dtype):
    X, given, kept = clustered(n, D, dtype), analysers(C, D, H, dtype), random_ids(n, 2, C, holes=0)
    q, w = np.maximum(np.random.default_rng(0).random((n, 2)) - 0.2, 0), weights(n)
    shared = np.random.default_rng(1).standard_normal((1, H + 2, D))
    for factors in (given[1:4], (None, shared, None)):
        for share, weight in ((q, w), (None, None)):
            found = native.factor_moments(X, given.means, *factors, kept, share, weight)
            expected = reference.factor_moments(X, given.means, *factors, kept, share, weight)
            assert [len(part) for part in found] == [C] * 6
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * (1 + np.abs(b).max(initial=0)))


def test_noise_that_is_far_below_what_factors_explain_is_measured(kernels):
    """Squared distances are accurate, though their two terms are about 10¹⁶ times as large as their difference."""
    rng = np.random.default_rng(0)
    given = analysers(2, 6, 2, np.float64, noise=1e-18)
    given = given._replace(means=np.zeros((2, 6)), offsets=np.zeros(2))
    z, noise = rng.standard_normal((40, 2)), rng.standard_normal((40, 6)) / np.sqrt(given.precisions[0])
    X = z @ given.loadings[0] + noise
    costs = kernels.factor_costs(X, given, np.zeros((40, 1), np.int32))
    assert (costs > 0).all()
    assert costs.mean() == pytest.approx(6, rel=0.5)


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("lists", lambda k, X, given, kept: k.top_k_factors(X, given, neighbours(2, 2), kept, 1)),
        ("ids", lambda k, X, given, kept: k.factor_costs(X, given, kept + 3)),
        ("means", lambda k, X, given, kept: k.factor_costs(X[:, :2], given, kept)),
        ("kept", lambda k, X, given, kept: k.factor_moments(X, given.means, None, given.loadings, None, kept - 1)),
    ],
    ids=["short lists", "ids too high", "other features", "kept below zero"],
)
def test_arguments_are_refused_by_name(named, call, kernels):
    X, given = clustered(9, 4, np.float64), analysers(3, 4, 2, np.float64)
    with pytest.raises(ValueError, match=named):
        call(kernels, X, given, np.zeros((9, 1), np.int32))
