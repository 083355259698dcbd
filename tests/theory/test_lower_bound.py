"""Lower bounds of J*: below every clustering, equal to J* where it is computed exactly, and good on known data."""

import os
from fractions import Fraction
from functools import cache
from itertools import product
from time import monotonic

import numpy as np
import pytest
from sklearn.datasets import load_iris

from cprime import KMeans, KMeans1D
from cprime._utils.random import Key
from cprime.theory import lower_bound
from cprime.theory.bounding import Instance, _by_relaxation, _labels_of
from cprime.theory.cuts import Cuts, violated
from cprime.theory.parts import divide
from cprime.theory.relaxation import Relaxation
from cprime.theory.verified import Multipliers, dual_value, greatest_sum, spectral_value

FIELDS = ("value", "inertia", "gap", "method", "parts")

# Blocks of 100 generated data sets in the long test. CPRIME_LAW_BLOCKS=100 makes 10,000 data sets, in eight minutes.
BLOCKS = int(os.environ.get("CPRIME_LAW_BLOCKS", "1"))


def cost(X, labels, weights=None):
    """Return J of a clustering of X (n, D) with the means of its clusters."""
    weights = np.ones(len(X)) if weights is None else weights
    total = 0.0
    for c in np.unique(labels[weights > 0]):
        own = (labels == c) & (weights > 0)
        total += weights[own] @ np.square(X[own] - np.average(X[own], axis=0, weights=weights[own])).sum(axis=1)
    return total


@cache
def partitions(n, n_clusters):
    """Return all clusterings of n rows into at most n_clusters clusters, as arrays of labels."""
    found = []
    for labels in product(range(n_clusters), repeat=n):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            found.append(np.array(labels))
    return found


def least_cost(X, n_clusters, weights=None):
    return min(cost(X, labels, weights) for labels in partitions(len(X), n_clusters))


def matrix(labels, roots):
    """Return the matrix Z (n, n) of a clustering of rows; roots (n,): square roots of the weights of the rows."""
    members = np.equal.outer(labels, np.unique(labels)) * roots[:, np.newaxis]
    return (members / np.square(members).sum(axis=0)) @ members.T


def groups(n, n_groups, D, separation, rng):
    """Return rows of Gaussian groups of variance 1 whose centers have at least this distance."""
    centers = rng.normal(size=(n_groups, D))
    distances = np.linalg.norm(centers[:, np.newaxis] - centers, axis=2)
    centers *= separation / distances[np.triu_indices(n_groups, 1)].min()
    return centers[rng.integers(n_groups, size=n)] + rng.normal(size=(n, D))


def exact_least_cost(X, n_clusters):
    """Return the least J of all partitions, computed with rational numbers."""
    rows = [[Fraction(x) for x in row] for row in X.tolist()]

    def within(own):
        columns = list(zip(*own, strict=True))
        return sum(sum(x * x for x in column) - sum(column) ** 2 / Fraction(len(own)) for column in columns)

    found = []
    for labels in partitions(len(X), n_clusters):
        found.append(sum(within([rows[i] for i in np.flatnonzero(labels == c)]) for c in np.unique(labels)))
    return min(found)


@pytest.mark.parametrize(("n", "n_clusters"), [(3, 2), (6, 3)])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
@pytest.mark.parametrize("spread", [1.0, 1e-6])
def test_bounds_hold_in_exact_arithmetic(n, n_clusters, offset, spread):
    rng = np.random.default_rng(n)
    X = offset + rng.normal(size=(n, 2)) * rng.choice([spread, 1.0], size=(n, 1))
    least = exact_least_cost(X, n_clusters)
    found = lower_bound(X, n_clusters, random_state=0)
    assert Fraction(found.value) <= least
    assert found.method == "enumeration"
    instance = Instance.of(X, np.ones(n), n_clusters, None, 0)
    relaxed = _by_relaxation(instance, np.inf, np.inf, 0.0, np.inf, Key(0))
    assert Fraction(relaxed.value) <= least
    U, roots = instance.rows
    assert Fraction(instance.unscaled(spectral_value(U, roots, n_clusters))) <= least
    line = lower_bound(X[:, :1], n_clusters, random_state=0)
    assert Fraction(line.value) <= exact_least_cost(X[:, :1], n_clusters)
    assert line.gap <= 1e-9 * (1 + offset)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_rows_have_the_least_cost_of_all_partitions(n, weighted):
    rng = np.random.default_rng(n)
    for D, n_clusters in ((2, 1), (2, min(2, n)), (3, min(3, n))):
        X = rng.normal(size=(n, D))
        weights = rng.exponential(size=n) if weighted else None
        found = lower_bound(X, n_clusters, sample_weight=weights, random_state=0)
        expected = least_cost(X, n_clusters, weights)
        assert found.value <= expected * (1 + 1e-14)
        assert found.value >= expected * (1 - 1e-9) - 1e-28
        assert found.inertia == pytest.approx(expected, rel=1e-9, abs=1e-30)
        assert cost(X, found.labels, weights) == pytest.approx(found.inertia, rel=1e-12, abs=1e-30)
        assert found.gap <= 1e-9


@pytest.mark.parametrize("n", [3, 30, 1000])
def test_one_dimension_is_exact(n):
    rng = np.random.default_rng(n)
    for n_clusters in (1, 2, min(7, n)):
        X = rng.standard_t(2, size=(n, 1))
        weights = rng.integers(0, 4, size=n)
        weights[0] = 1
        for given in (None, weights):
            optimum = KMeans1D(n_clusters).fit(X, sample_weight=given).inertia_
            found = lower_bound(X, n_clusters, sample_weight=given, random_state=0)
            assert found.value <= optimum
            assert found.gap <= 1e-12
            assert found.inertia == pytest.approx(optimum, rel=1e-12, abs=1e-25)


def test_columns_that_never_change_do_not_count_as_dimensions():
    X = np.random.default_rng(0).normal(size=(50, 1))
    found = lower_bound(np.hstack([X, np.full((50, 2), 7.0)]), 3, random_state=0)
    assert found.method == "line"
    assert found.inertia == pytest.approx(KMeans1D(3).fit(X).inertia_)


def test_rows_that_are_no_more_than_the_clusters_cost_nothing():
    X = np.repeat([[0.0, 1.0], [2.0, 5.0]], 4, axis=0)
    for n_clusters in (2, 3):
        found = lower_bound(X, n_clusters, random_state=0)
        assert (found.value, found.inertia, found.gap) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("n", "n_clusters"), [(4, 2), (7, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_any_multipliers_give_a_bound(n, n_clusters, weighted):
    rng = np.random.default_rng(7)
    for scale in (0.0, 1e-3, 1.0):
        X = rng.normal(size=(n, 2))
        weights = rng.exponential(size=n) if weighted else np.ones(n)
        roots = np.sqrt(weights)
        B = scale * rng.exponential(size=(n, n))
        cuts = violated(rng.normal(size=(n, n)), roots, Cuts.none(), 100)
        given = Multipliers(B + B.T, cuts, scale * rng.exponential(size=len(cuts)))
        expected = least_cost(X, n_clusters, weights)
        value = dual_value(X * roots[:, np.newaxis], roots, n_clusters, given)
        assert -np.inf < value <= expected
        assert spectral_value(X * roots[:, np.newaxis], roots, n_clusters) <= expected


@pytest.mark.parametrize("n", [3, 40])
def test_greatest_sum_exceeds_the_largest_eigenvalues_by_rounding_errors_only(n):
    rng = np.random.default_rng(n)
    basis, _ = np.linalg.qr(rng.normal(size=(n, n)))
    eigenvalues = np.sort(rng.normal(size=n))[::-1]
    N = (basis * eigenvalues) @ basis.T
    N = (N + N.T) / 2
    for k in (1, n - 1):
        level, rest = greatest_sum(N, k)
        expected = np.linalg.eigvalsh(N)[-k:].sum()
        assert expected - 1e-14 * n <= k * level + rest <= expected + 1e-10 * n


def test_equal_rows_count_as_one_with_their_weight():
    X = np.random.default_rng(0).normal(size=(8, 2))
    once = lower_bound(X, 3, sample_weight=np.full(8, 2.0), random_state=0)
    twice = lower_bound(np.tile(X, (2, 1)), 3, random_state=0)
    assert twice.value == pytest.approx(once.value, rel=1e-12)
    assert (twice.labels[:8] == twice.labels[8:]).all()


def test_rows_of_weight_zero_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    weights = np.repeat([1.0, 0.0], [25, 5])
    X[25:] *= 100
    found = lower_bound(X, 3, sample_weight=weights, random_state=0, time_limit=None, tol=0.01)
    assert found.inertia == pytest.approx(lower_bound(X[:25], 3, random_state=0, tol=0.01).inertia)
    means = np.array([X[:25][found.labels[:25] == c].mean(axis=0) for c in range(3)])
    nearest = np.square(X[25:, np.newaxis] - means).sum(axis=2).argmin(axis=1)
    assert (found.labels[25:] == nearest).all()


@pytest.mark.parametrize("n", [6, 40])
def test_unit_and_origin_change_nothing(n):
    X = np.random.default_rng(n).integers(-50, 50, size=(n, 2)).astype(float)
    settings = {"random_state": 0, "tol": 0.05, "time_limit": None}
    found = lower_bound(X, 3, **settings)
    scaled = lower_bound(X * 2.0**40, 3, **settings)
    assert scaled.value == found.value * 2.0**80
    assert lower_bound(X + 2.0**20, 3, **settings).value == pytest.approx(found.value, rel=0.1)


@pytest.mark.parametrize("n", [7, 20])
@pytest.mark.parametrize("weighted", [False, True])
def test_partitions_satisfy_all_cuts(n, weighted):
    rng = np.random.default_rng(n)
    roots = np.sqrt(rng.exponential(size=n)) if weighted else np.ones(n)
    cuts = violated(rng.normal(size=(n, n)), roots, Cuts.none(), 1000)
    assert (cuts.k >= 0).any()
    assert (cuts.k < 0).any()
    for _ in range(20):
        Z = matrix(rng.integers(0, 4, size=n), roots)
        assert (cuts.matrix(roots) @ Z.ravel()).max() <= 1e-12


def test_cuts_are_found_once_and_are_violated():
    rng = np.random.default_rng(0)
    roots = np.sqrt(rng.exponential(size=9))
    Z = np.abs(rng.normal(size=(9, 9)))
    Z += Z.T
    first = violated(Z, roots, Cuts.none(), 10)
    assert len(first) == 10
    assert (first.matrix(roots) @ Z.ravel() > 0).all()
    others = violated(Z, roots, first, 10**6)
    assert not np.isin(first.keys(9), others.keys(9)).any()
    total, sizes, most = first.combination(np.ones(10), roots)
    assert most >= 1
    assert np.allclose(total.ravel(), first.matrix(roots).toarray().sum(axis=0))
    assert (sizes >= np.abs(total) - 1e-12).all()


@pytest.mark.parametrize(("n", "n_parts"), [(7, 1), (7, 3), (600, 5)])
def test_parts_have_equal_shares_and_means_of_every_cluster(n, n_parts):
    rng = np.random.default_rng(n)
    X, labels = rng.normal(size=(n, 3)), rng.integers(0, 2, size=n)
    parts = divide(X, labels, n_parts, np.random.default_rng(0), np.inf)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    sizes = [len(rows) for rows in parts]
    assert max(sizes) - min(sizes) <= 1
    for c in range(2):
        counts = [np.count_nonzero(labels[rows] == c) for rows in parts]
        assert max(counts) - min(counts) <= 1
        if n == 600:
            means = np.array([X[rows][labels[rows] == c].mean(axis=0) for rows in parts])
            assert np.abs(means - X[labels == c].mean(axis=0)).max() < 0.02  # 0.13 if parts are drawn at random


def test_divided_rows_have_a_bound_that_is_little_worse():
    X = groups(400, 4, 5, 5, np.random.default_rng(0))
    settings = {"random_state": 0, "tol": 0.002, "time_limit": None}
    whole = lower_bound(X, 4, **settings)
    divided = lower_bound(X, 4, max_memory=200 * 101**2, **settings)
    assert (whole.parts, divided.parts) == (1, 4)
    assert whole.gap <= 0.002
    assert divided.value <= whole.inertia
    assert divided.gap <= 0.02


def test_result_does_not_depend_on_the_number_of_threads():
    X = groups(240, 3, 2, 4, np.random.default_rng(1))
    one, two = (
        lower_bound(X, 3, max_memory=200 * 90**2, random_state=0, tol=0.01, time_limit=None, n_threads=n)
        for n in (1, 2)
    )
    assert one.parts == 3
    assert one == two


def test_no_time_gives_the_spectral_bound():
    X = groups(300, 3, 40, 20, np.random.default_rng(0))
    found = lower_bound(X, 3, time_limit=0, random_state=0)
    assert found.method == "spectral"
    assert 0 < found.gap < 0.1


def law(seed, seconds):
    """Check that the relaxation and all other bounds are at most the best J of many starts, for generated rows."""
    rng = np.random.default_rng(seed)
    n, D = int(rng.integers(4, 40)), int(rng.integers(1, 5))
    n_clusters = int(rng.integers(2, min(n - 1, 6) + 1))
    X = groups(n, n_clusters, D, rng.choice([0.5, 3.0, 10.0]), rng)
    if rng.random() < 0.3:
        X = np.round(X)
    weights = rng.choice([0.5, 1.0, 3.0], size=n) if rng.random() < 0.3 else np.ones(n)
    instance = Instance.of(X, weights, n_clusters, None, seed)
    labels = instance.labels_of_all(X, instance.labels)
    J = cost(X, labels, weights)
    if len(instance.X) > n_clusters:
        U, roots = instance.rows
        relaxation = Relaxation(U, roots, n_clusters, instance.labels)
        relaxation.solve(1e-3, monotonic() + seconds, np.inf)
        value = instance.unscaled(dual_value(U, roots, n_clusters, relaxation.best))
        assert value <= J * (1 + 1e-13)
        better = instance.labels_of_all(X, _labels_of(relaxation, instance, Key(seed)))
        assert cost(X, better, weights) >= value * (1 - 1e-13)
    found = lower_bound(X, n_clusters, labels=labels, sample_weight=weights, time_limit=seconds)
    assert found.value <= found.inertia
    assert found.inertia == pytest.approx(J, rel=1e-9, abs=1e-20)


def test_no_bound_is_above_the_best_of_many_starts():
    for seed in range(10):
        law(seed, 0.02)


@pytest.mark.rare
@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_bound_is_above_the_best_of_many_starts_long(block):
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        law(seed, 0.05)


@pytest.mark.long
@pytest.mark.parametrize("n_clusters", [2, 3, pytest.param(10, marks=pytest.mark.rare)])
def test_iris_is_certified(n_clusters):
    found = lower_bound(load_iris().data, n_clusters, random_state=0, tol=0.001)
    assert found.gap <= (0.005 if n_clusters == 10 else 0.001)


@pytest.mark.long
@pytest.mark.parametrize(("separation", "most"), [(4, 0.03), pytest.param(2, 1.0, marks=pytest.mark.rare)])
def test_bounds_of_separate_groups_are_close(separation, most):
    X = groups(10_000, 10, 10, separation, np.random.default_rng(0))
    found = lower_bound(X, 10, random_state=0, n_threads=2, time_limit=20)
    assert found.gap <= most


def test_fitted_model_shows_the_bound_until_it_is_fitted_again(tmp_path):
    from cprime import load

    X = groups(20, 2, 2, 9, np.random.default_rng(0))
    km = KMeans(2, random_state=0).fit(X)
    found = lower_bound(X, km)
    assert km.objective_bound_ == {name: getattr(found, name) for name in FIELDS}
    assert f"J* >= {found.value:.6g}" in repr(km)
    km.save(tmp_path / "km.safetensors")
    assert load(tmp_path / "km.safetensors").objective_bound_ == km.objective_bound_
    km.fit(X)
    assert not hasattr(km, "objective_bound_")


def test_rows_of_a_file_have_the_same_bound(tmp_path):
    X = groups(20, 2, 2, 9, np.random.default_rng(0))
    np.save(tmp_path / "X.npy", X)
    assert lower_bound(tmp_path / "X.npy", 2, random_state=0) == lower_bound(X, 2, random_state=0)
