"""Components without changes are skipped, and the result equals that of visiting them."""

import numpy as np
import pytest

from cprime import KMeans
from cprime.kernels import Dense
from cprime.search import Graph, graph


def data(n=3000, D=3, n_groups=60, seed=0):
    rng = np.random.default_rng(seed)
    return 20 * rng.random((n_groups, D))[rng.integers(0, n_groups, n)] + rng.standard_normal((n, D)) * 0.4


@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_result_is_that_of_visiting_all(jumps, seed, monkeypatch):
    X = data(seed=seed)
    settings = {"search": Graph(9), "jumps": jumps, "tol": 0.0, "random_state": seed}
    skipping = KMeans(80, **settings).fit(X)
    monkeypatch.setattr(graph, "_active", lambda *_: None)
    visiting = KMeans(80, **settings).fit(X)
    np.testing.assert_array_equal(skipping.cluster_centers_, visiting.cluster_centers_)
    np.testing.assert_array_equal(skipping.labels_, visiting.labels_)
    np.testing.assert_array_equal(skipping.lower_bounds_, visiting.lower_bounds_)
    # measured: 0.50 to 0.87 for sixteen seeds, with and without exchange
    assert skipping.history_["n_distances"].sum() < 0.9 * visiting.history_["n_distances"].sum()


def test_late_iterations_read_fewer_rows():
    X = data()
    km = KMeans(80, search=Graph(9), tol=0.0, random_state=0).fit(X)
    evaluations = km.history_["n_distances"]
    assert evaluations.min() < 0.6 * evaluations[0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_points_of_inactive_components_keep_what_is_known(dtype):
    X = data(500).astype(dtype)
    centers = X[:12].copy()
    lists = Dense(centers).nearest(centers, 5)[0][:, 1:].copy()
    labels = np.arange(500, dtype=np.int32) % 12
    active = np.arange(12) % 3 == 0
    known = np.arange(500, dtype=dtype)
    out, distances = Dense(X).reassign(centers, lists, labels, active=active, known=known)
    every, measured = Dense(X).reassign(centers, lists, labels)
    visited = active[labels]
    np.testing.assert_array_equal(out[visited], every[visited])
    np.testing.assert_array_equal(distances[visited], measured[visited])
    np.testing.assert_array_equal(out[~visited], labels[~visited])
    np.testing.assert_array_equal(distances[~visited], known[~visited])
    with pytest.raises(ValueError, match="known must have shape"):
        Dense(X).reassign(centers, lists, labels, active=active)
    with pytest.raises(ValueError, match="active must have shape"):
        Dense(X).reassign(centers, lists, labels, active=active[1:], known=known)
