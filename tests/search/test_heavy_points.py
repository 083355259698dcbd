"""Centers are the means of their points to the last digits, whatever weights have come and gone on the way."""

import numpy as np
import pytest
from search_data import kmeans

# Two points of great weight, 3 to either side of a center amid light ones: it stays amid them for an iteration. Then
# the centers beyond, which begin farther off and come nearer, win one each, and the light ones are left.
LIGHT = (-5.0, 0.0, 5.0)
HEAVY = (-3.0, 3.0)
START = (-7.0, 0.0, 7.0)
N_LIGHT = 20  # around each center
PLACES = 110  # that look like this, far from each other


def split_pairs(weight, n_heavy=PLACES):
    """Points, their weights, and where the 3 · PLACES centers start; some of the places have the heavy points."""
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
    """Σ w x / Σ w by label, in long double."""
    sums, counts = np.zeros((C, X.shape[1]), dtype=np.longdouble), np.zeros(C, dtype=np.longdouble)
    np.add.at(sums, labels, weights[:, np.newaxis] * X.astype(np.longdouble))
    np.add.at(counts, labels, weights.astype(np.longdouble))
    return (sums / counts[:, np.newaxis]).astype(np.float64)


# A laziness far below rounding changes nothing but that there are no exchange steps, in which mean weights matter.
@pytest.mark.parametrize("search", ["graph", "bounded", "exact", "estimated"])
@pytest.mark.parametrize("n_heavy", [PLACES, 5])
@pytest.mark.parametrize("weight", [1e10, 1e12, 1e15])
def test_heavy_points_leave_nothing_behind(search, weight, n_heavy):
    X, weights, start = split_pairs(weight, n_heavy)
    km = kmeans(len(start), search, init=start, tol=0, epsilon=1e-15).fit(X, sample_weight=weights)
    full = kmeans(len(start), "full", init=start, tol=0).fit(X, sample_weight=weights)
    assert full.history_["n_moved"][1:].tolist() == [2 * PLACES, 0]  # so few that sums may go on from those of before
    np.testing.assert_array_equal(km.labels_, full.labels_)
    assert km.converged_
    means = means_of(X, weights, km.labels_, len(start))
    np.testing.assert_allclose(km.cluster_centers_, means, rtol=1e-11, atol=1e-11)
    assert km.inertia_ == pytest.approx(full.inertia_, rel=1e-11)
