"""Costs of t distributions, their exact E-step, and `scaled_responsibilities`, the weights of points in the tails."""

import numpy as np
import pytest
from kernel_calls import native, reference
from kernel_data import (
    assert_kept,
    clustered,
    cost_rounding,
    every_dtype,
    every_shape,
    gaussians,
    neighbours,
    random_ids,
    weights,
    whole_costs,
)

from cprime.kernels import GaussianParameters

SIZES = [(1, 1, 1), (33, 2, 17), (70, 19, 5), (65, 3, 300)]


def tailed(C, D, dtype, full, seed=0):
    """Return t distributions from very heavy-tailed to nearly normal."""
    dof = np.exp(np.random.default_rng(seed).uniform(-1, 8, C))
    return gaussians(C, D, dtype, full, seed)._replace(dof=dof.astype(dtype))


def spread(n, D, dtype):
    """Return points (n, D), of which about a fifth are outliers."""
    rng = np.random.default_rng(3)
    return (clustered(n, D, np.float64) * np.where(rng.random((n, 1)) < 0.2, 40, 1)).astype(dtype)


@every_shape
@every_dtype
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
def test_searches_equal_the_reference(n, D, C, dtype, full):
    X, given = spread(n, D, dtype), tailed(C, D, dtype, full)
    n_kept, lists, previous, extra = min(3, C), neighbours(C, 16), random_ids(n, 5, C), random_ids(n, 2, C, seed=9)
    assert_kept(*native.nearest(X, given, n_kept), X, given, reference.nearest(X, given, n_kept))
    assert_kept(*native.top_k(X, given, lists, previous, 3), X, given, reference.top_k(X, given, lists, previous, 3))
    for of in (lists, lists[:, :0]):
        for more in (extra, extra[:, :0]):
            found, expected = (k.search_lists(X, given, of, previous, 4, more) for k in (native, reference))
            assert_kept(found.kept, found.costs, X, given, expected[:2])
            np.testing.assert_array_equal(found.counts, expected.counts)


@every_shape
@every_dtype
@pytest.mark.parametrize(("n", "D", "C"), SIZES)
def test_exact_steps_equal_the_reference(n, D, C, dtype, full):
    X, given, w = spread(n, D, dtype), tailed(C, D, dtype, full), weights(n)
    found, expected = (k.respond(X, given, w) for k in (native, reference))
    shares = native.responsibilities(X, given)
    slack = cost_rounding(X, given).max() + 1e-13
    truth = whole_costs(X, given)
    least = truth[np.arange(n), found.labels]
    assert (least <= truth.min(axis=1) + 2 * slack).all()
    np.testing.assert_allclose(shares, reference.responsibilities(X, given), rtol=0, atol=2 * slack)
    np.testing.assert_allclose(found.log_sum, expected.log_sum, rtol=1e-6, atol=slack)
    size = w.sum() * (1 + np.abs(X).max()) ** 2 * (1 + D / float(given.dof.min()))
    for a, b in zip(found[3:], expected[3:], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=4 * slack * size)


@every_dtype
@pytest.mark.parametrize("weighted", [False, True])
def test_pull_equals_the_reference(dtype, weighted, kernels):
    n, D, C = 301, 4, 30
    X, given = spread(n, D, dtype), tailed(C, D, dtype, False)
    kept, costs = native.nearest(X, given, 3)
    q = np.random.default_rng(0).dirichlet(np.ones(3), n) if weighted else None
    w = weights(n) if weighted else None
    found = kernels.scaled_responsibilities(given, kept, costs, q, w)
    off = (X[:, None] - given.means[kept].astype(np.float64)) * given.factors[kept]
    nu = given.dof.astype(np.float64)[kept]
    u = (nu + D) / (nu + np.square(off).sum(axis=2))
    share, mass = (1.0, 1.0) if q is None else (q, q * w[:, None])
    rtol = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(found.scaled, share * u, rtol=rtol)
    counts, logs = np.zeros((2, C))
    np.add.at(counts, kept, mass)
    np.add.at(logs, kept, mass * np.log(u))
    np.testing.assert_allclose(found.counts, counts, rtol=1e-12)
    np.testing.assert_allclose(found.logs, logs, rtol=rtol, atol=rtol * n)


@every_dtype
def test_logarithms_are_precise_near_and_far(dtype):
    ratios = np.concatenate([[0.0], np.logspace(-12, 30, 4000)])
    X = np.sqrt(ratios)[:, np.newaxis].astype(dtype)
    one = GaussianParameters(np.zeros((1, 1), dtype), np.ones((1, 1), dtype), np.zeros(1, dtype), np.ones(1, dtype))
    costs = native.nearest(X, one)[1][:, 0]
    expected = 2 * np.log1p(np.square(X[:, 0].astype(np.float64)))
    np.testing.assert_allclose(costs, expected, rtol=8 * np.finfo(dtype).eps, atol=0)


@every_shape
@every_dtype
def test_what_is_far_beyond_all_costs_a_finite_number(dtype, full):
    X, given = spread(40, 3, dtype), tailed(7, 3, dtype, full)
    X[::5] *= dtype(1e30) if dtype == np.float32 else dtype(1e180)
    lists, previous = neighbours(7, 4), random_ids(40, 2, 7, holes=0)
    found = native.respond(X, given)
    for costs in (
        native.nearest(X, given, 7)[1],
        native.top_k(X, given, lists, previous, 2)[1],
        native.search_lists(X, given, lists[:, :0], previous, 1).costs,
        found.log_sum,
        found.shares,
        found.logs,
    ):
        assert np.isfinite(costs).all()
    np.testing.assert_allclose(found.shares.sum(), 40, rtol=1e-5)


@every_dtype
def test_many_small_shares_add_up(dtype):
    """Many responsibilities of 1e-8 add up; only those that are far smaller may be omitted."""
    X = np.random.default_rng(0).normal(size=(3000, 2)).astype(dtype)
    X[::3] = 1e9  # the tail of the other component is heavier there
    means, dof = np.array([[0, 0], [1, 1]], dtype), np.array([4, 30], dtype)
    given = GaussianParameters(means, np.ones((2, 2), dtype), np.array([0, 37], dtype), dof)
    found, expected = (k.respond(X, given) for k in (native, reference))
    assert 1e-6 < expected.shares[1] < 1e-4
    for a, b in zip(found[3:], expected[3:], strict=True):
        np.testing.assert_allclose(a[1], b[1], rtol=1e-4)


def test_a_far_point_adds_its_square_though_it_pulls_little(kernels):
    """The weight u falls as the squared distance grows, so their product converges to a constant."""
    X = np.array([[0.0], [1e12], [-1e12]])
    given = GaussianParameters(np.zeros((1, 1)), np.ones((1, 1)), np.zeros(1), np.ones(1))
    np.testing.assert_allclose(kernels.respond(X, given).second.ravel(), 2 * 2, rtol=1e-9)


@every_shape
def test_many_degrees_of_freedom_are_those_of_gaussians(full, kernels):
    X, given = clustered(60, 4, np.float64), gaussians(9, 4, np.float64, full)
    many = given._replace(dof=np.full(9, 1e9))
    one, other = kernels.respond(X, given), kernels.respond(X, many)
    for a, b in zip(one[1:6], other[1:6], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(other.shares, one.counts, rtol=1e-6, atol=1e-6)
