"""Coresets by sensitivity: probabilities and weights of the formula, unbiased costs, small clusters, bad input."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cprime import KMeans
from cprime.coresets import lightweight, sensitivity
from cprime.seeding import kmeans_plusplus


def points(n, seed=0):
    """Return clusters whose sizes fall by half from one to the next."""
    rng = np.random.default_rng(seed)
    own = np.minimum(rng.geometric(0.5, size=n) - 1, 7)
    return 6 * rng.normal(size=(8, 3))[own] + rng.normal(size=(n, 3))


def probabilities(X, w, B):
    squares = cdist(X, B, "sqeuclidean")
    cells, d = squares.argmin(axis=1), squares.min(axis=1)
    alpha, c = 16 * (np.log(len(B)) + 2), w @ d / w.sum()
    mass, error = np.bincount(cells, w, len(B)), np.bincount(cells, w * d, len(B))
    s = alpha * d / c + 2 * alpha * (error / mass)[cells] / c + 4 * w.sum() / mass[cells]
    return w * s / (w @ s)


@pytest.mark.parametrize("n", [40, 3000])
@pytest.mark.parametrize("weighted", [False, True])
def test_probabilities_and_weights_are_the_formula(n, weighted):
    X, C, m = points(n), 5, 100_000
    w = np.random.default_rng(1).exponential(size=n) if weighted else np.ones(n)
    core = sensitivity(X, m, C, sample_weight=w if weighted else None, random_state=3)
    B = kmeans_plusplus(X, C, sample_weight=w, random_state=3, n_local_trials=1)[0]
    q = probabilities(X, w, B)
    np.testing.assert_allclose(core.weights, (w / (m * q))[core.indices], rtol=1e-9)
    counts = np.bincount(core.indices, minlength=n)
    chi_squared = (np.square(counts - m * q) / (m * q)).sum()
    assert chi_squared < n + 5 * np.sqrt(2 * n)
    assert np.array_equal(core.points, X[core.indices])


def test_costs_are_unbiased():
    X, centers = points(500), points(3, seed=9)
    exact = cdist(X, centers, "sqeuclidean").min(axis=1).sum()
    found = []
    for seed in range(300):
        core = sensitivity(X, 50, 4, random_state=seed)
        found.append(core.weights @ cdist(core.points, centers, "sqeuclidean").min(axis=1))
    assert np.mean(found) == pytest.approx(exact, abs=4 * np.std(found) / np.sqrt(300))


def test_small_clusters_are_fitted_better_than_from_a_lightweight_coreset():
    X = points(20_000)
    excess = []
    for seed in range(8):
        cores = sensitivity(X, 80, 8, random_state=seed), lightweight(X, 80, random_state=seed)
        fits = [KMeans(8, random_state=0).fit(core.points, sample_weight=core.weights) for core in cores]
        excess.append([-fit.score(X) for fit in fits])
    better, plain = np.mean(excess, axis=0)
    assert better < 0.95 * plain


def test_points_of_weight_zero_are_not_drawn_and_equal_ones_are():
    X, w = points(200), np.ones(200)
    w[::2] = 0
    assert (sensitivity(X, 500, 5, sample_weight=w, random_state=0).indices % 2 == 1).all()
    core = sensitivity(np.ones((30, 2)), 7, 1, random_state=0)
    assert core.weights.sum() == pytest.approx(30)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"m": 0, "n_clusters": 2}, ValueError, "m"),
        ({"m": 5, "n_clusters": 0}, ValueError, "n_clusters"),
        ({"m": 5, "n_clusters": 2.0}, TypeError, "n_clusters"),
        ({"m": 5, "n_clusters": 41}, ValueError, "n_clusters=41 must be at most n_samples=40"),
        ({"m": 5, "n_clusters": 2, "sample_weight": np.zeros(40)}, ValueError, "at least one"),
    ],
)
def test_bad_input_is_named(given, error, message):
    with pytest.raises(error, match=message):
        sensitivity(points(40), given.pop("m"), given.pop("n_clusters"), **given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("draw", [lightweight, lambda X, m, **seed: sensitivity(X, m, 5, **seed)])
def test_a_power_of_two_as_unit_changes_no_draw(draw, dtype):
    """The squares of these numbers are 0 in their dtype."""
    X = points(500).astype(dtype)
    unit = np.ldexp(dtype(1), -100 if dtype == np.float32 else -600)
    found, expected = draw(X * unit, 100, random_state=0), draw(X, 100, random_state=0)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-12)
