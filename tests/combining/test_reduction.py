"""Reduction of Gaussian mixtures, and the points that represent centers: against direct computations."""

from itertools import combinations

import numpy as np
import pytest

from cprime.combining import points, reduction
from cprime.combining.reduction import WeightedGaussians, in_order, reduce

SHAPES = ("full", "diag", "spherical")


def drawn(n, D, shape, seed=0):
    """Return n random components with covariances of one of the three shapes."""
    rng = np.random.default_rng(seed)
    means, counts = rng.normal(size=(n, D)), rng.uniform(1, 9, n)
    if shape == "full":
        roots = rng.normal(size=(n, D, D + 2))
        return WeightedGaussians(counts, means, roots @ roots.transpose(0, 2, 1) / D)
    return WeightedGaussians(counts, means, rng.uniform(0.2, 2, (n, D) if shape == "diag" else n))


def as_matrices(components):
    D, covariances = components.means.shape[1], components.covariances
    if covariances.ndim == 3:
        return covariances
    return np.array([np.diag(np.broadcast_to(each, D)) for each in covariances])


def union_of(components, members):
    """Return weight, mean and covariance matrix of a union; the matrix is restricted to the shape of the components."""
    w, m, S = components.counts[members], components.means[members], as_matrices(components)[members]
    mean = w @ m / w.sum()
    covariance = np.einsum("c,cij->ij", w, S + np.einsum("ci,cj->cij", m - mean, m - mean)) / w.sum()
    ndim = components.covariances.ndim
    if ndim == 2:
        covariance = np.diag(np.diag(covariance))
    elif ndim == 1:
        covariance = np.eye(len(mean)) * np.diag(covariance).mean()
    return w.sum(), mean, covariance


def cost_of(components, a, b):
    def weighted_log(members):
        weight, _, covariance = union_of(components, members)
        return weight * np.linalg.slogdet(covariance)[1]

    return 0.5 * (weighted_log([*a, *b]) - weighted_log(list(a)) - weighted_log(list(b)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("D", [1, 4])
def test_costs_divergences_and_unions_are_those_of_matrices(shape, D):
    f, g = drawn(7, D, shape), drawn(3, D, shape, seed=1)
    pairs = np.array(list(combinations(range(7), 2)))
    costs = f.join_costs(pairs[:, 0], pairs[:, 1], f.log_determinants())
    np.testing.assert_allclose(costs, [cost_of(f, [a], [b]) for a, b in pairs], rtol=1e-9, atol=1e-9)
    assert costs.min() > 0
    expected = np.empty((7, 3))
    S, P = as_matrices(f), np.linalg.inv(as_matrices(g))
    for i, j in np.ndindex(7, 3):
        shift, product = f.means[i] - g.means[j], S[i] @ P[j]
        expected[i, j] = 0.5 * (np.trace(product) - D - np.linalg.slogdet(product)[1] + shift @ P[j] @ shift)
    np.testing.assert_allclose(f.divergences(g), expected, rtol=1e-9)
    np.testing.assert_allclose(np.diag(f.divergences(f)), 0, atol=1e-9)
    groups = np.array([0, 1, 1, 2, 0, 1, 1])
    united = f.unite(groups, 3)
    for j in range(3):
        weight, mean, covariance = union_of(f, np.flatnonzero(groups == j))
        assert united.counts[j] == pytest.approx(weight)
        np.testing.assert_allclose(united.means[j], mean)
        np.testing.assert_allclose(as_matrices(united)[j], covariance, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_greedy_joins_are_those_of_all_pairs(shape):
    f = drawn(12, 3, shape, seed=2)
    left = [[i] for i in range(12)]
    while len(left) > 4:
        a, b = min(combinations(range(len(left)), 2), key=lambda pair: cost_of(f, left[pair[0]], left[pair[1]]))
        left[a] += left.pop(b)
    expected = np.empty(12, dtype=int)
    for j, members in enumerate(left):
        expected[members] = j
    np.testing.assert_array_equal(reduction._join(f, 4), in_order(expected))


@pytest.mark.parametrize(("n", "k"), [(3, 1), (60, 6)])
def test_regrouping_lowers_the_divergence_and_keeps_every_group(n, k):
    f = drawn(n, 2, "full", seed=3)
    rows = np.arange(n)

    def divergence(groups):
        return f.counts @ f.divergences(f.unite(groups, k))[rows, groups]

    start = np.arange(n) % k
    groups = reduction._regroup(f, start, k)
    assert set(groups.tolist()) == set(range(k))
    assert divergence(groups) <= divergence(start)
    assert k == 1 or divergence(groups) < 0.8 * divergence(start)
    assert set(reduce(f, k).tolist()) == set(range(k))
    np.testing.assert_array_equal(reduce(f, n), rows)


def test_components_without_near_pairs_are_joined_too():
    means = np.concatenate([np.arange(40.0), 1e4 + np.arange(40.0)])[:, np.newaxis]
    f = WeightedGaussians(np.ones(80), means, np.ones((80, 1)))
    assert reduce(f, 2).tolist() == [0] * 40 + [1] * 40
    assert reduce(f, 1).tolist() == [0] * 80


def test_groups_are_numbered_by_their_first_members():
    assert in_order(np.array([7, 3, 7, 5, 3])).tolist() == [0, 1, 0, 2, 1]


def test_drawn_points_have_the_means_exactly_and_the_variances():
    means, deviations = np.array([[0.0, 1.0], [5.0, 5.0], [-3.0, 2.0]]), np.array([0.0, 1.0, 2.0])
    drawn, copies = points.draw_points(means, deviations, 2, seed=0)
    groups = drawn.reshape(copies, 3, 2)
    assert copies >= 2 * points._DRAWN // 3 - 1
    np.testing.assert_allclose(groups.mean(axis=0), means, atol=1e-12)
    np.testing.assert_allclose(groups.std(axis=0).mean(axis=1), deviations, rtol=0.1)
    np.testing.assert_array_equal(points.draw_points(means, deviations, 2, seed=0)[0], drawn)


def test_too_many_points_are_not_drawn(monkeypatch):
    monkeypatch.setattr(points, "_MOST_VALUES", 23)
    means = np.arange(6.0).reshape(3, 2)
    same, copies = points.draw_points(means, np.ones(3), 2, seed=0)
    assert (same is means, copies) == (True, 1)
    found = points.cluster_densities(means, np.ones(3), np.ones(3), 2, "euclidean", 0, None)
    assert found.counts.sum() == 3
