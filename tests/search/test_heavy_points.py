"""Centers are the exact means of their points, even after points of great weight were assigned and reassigned."""

import numpy as np
import pytest
from search_data import kmeans

# At each place, two heavy points lie at a distance of 3 on either side of a center among light points.
# The center stays there for one iteration. Then two outer centers come nearer, and each gets a heavy point.
# So the middle center keeps only the light points.
LIGHT = (-5.0, 0.0, 5.0)
HEAVY = (-3.0, 3.0)
START = (-7.0, 0.0, 7.0)
N_LIGHT = 20  # around each of the three positions
PLACES = 110  # places with this pattern, far from each other


def split_pairs(weight, n_heavy=PLACES):
    """Return points, weights, and 3 · PLACES initial centers; the first `n_heavy` places have heavy points."""
    rng = np.random.default_rng(0)
    places = 100.0 * np.stack(np.divmod(np.arange(PLACES), 11), axis=1) + rng.random((PLACES, 2))
    light = np.array([[x, 0.0] for x in LIGHT for _ in range(N_LIGHT)])
    around = np.concatenate([light, [[x, 0.0] for x in HEAVY]])
    X = places[:, np.newaxis] + around + 0.1 * rng.standard_normal((PLACES, len(around), 2))
    weights = np.ones(X.shape[:2])
    weights[:n_heavy, -2:] = weight * (1 + rng.random((n_heavy, 2)) * 1e-3)
    start = places[:, np.newaxis] + [[x, 0.0] for x in START]
    return X.reshape(-1, 2), weights.ravel(), start.reshape(-1, 2)


def means_of(X, weights, labels, C):
    """Return Σ w x / Σ w for each label, computed in long double: (C, D)."""
    sums, counts = np.zeros((C, X.shape[1]), dtype=np.longdouble), np.zeros(C, dtype=np.longdouble)
    np.add.at(sums, labels, weights[:, np.newaxis] * X.astype(np.longdouble))
    np.add.at(counts, labels, weights.astype(np.longdouble))
    return (sums / counts[:, np.newaxis]).astype(np.float64)


# An epsilon far below rounding only disables exchange steps, which would depend on mean weights.
@pytest.mark.parametrize("search", ["graph", "bounded", "exact", "estimated"])
@pytest.mark.parametrize("n_heavy", [PLACES, 5])
@pytest.mark.parametrize("weight", [1e10, 1e12, 1e15])
def test_heavy_points_leave_nothing_behind(search, weight, n_heavy):
    X, weights, start = split_pairs(weight, n_heavy)
    km = kmeans(len(start), search, init=start, tol=0, epsilon=1e-15).fit(X, sample_weight=weights)
    full = kmeans(len(start), "full", init=start, tol=0).fit(X, sample_weight=weights)
    assert full.history_["n_moved"][1:].tolist() == [2 * PLACES, 0]  # few enough to update sums incrementally
    np.testing.assert_array_equal(km.labels_, full.labels_)
    assert km.converged_
    means = means_of(X, weights, km.labels_, len(start))
    np.testing.assert_allclose(km.cluster_centers_, means, rtol=1e-11, atol=1e-11)
    assert km.inertia_ == pytest.approx(full.inertia_, rel=1e-11)
