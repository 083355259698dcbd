"""The graph search: renewal and growth of its lists, large numbers of components, and predictions."""

from dataclasses import replace

import numpy as np
import pytest
from search_data import DTYPES, clustered, kmeans, mixture

from cprime import GaussianMixture, KMeans
from cprime.datasets import birch
from cprime.em import k_means
from cprime.execution.block import ActiveSet
from cprime.kernels import Dense, as_rows
from cprime.neighbors import Cells, CenterIndex, exact_lists, put_first, with_self
from cprime.neighbors.components import Centers
from cprime.search import Graph, graph
from fits import random_weights, squared_distances
from passes import Passes


@pytest.mark.parametrize("n_kept", [1, 3])
def test_lists_are_renewed_where_points_have_moved_and_only_then(n_kept):
    X, centers, other = clustered(500, 2), Centers(clustered(40, 2, seed=1)), Centers(clustered(40, 2, seed=2))
    passes = Passes(Graph(6), X, centers, n_kept)
    first = passes.lists()
    np.testing.assert_array_equal(first, with_self(exact_lists(centers.centers, 6)))
    for _ in range(21):
        passes.find(centers)
    passes.state = replace(passes.state, moved=0.0)
    before = passes.kept.ids
    assert (passes.find(centers).kept.ids == before).all()
    passes.refresh(other)
    np.testing.assert_array_equal(passes.lists(), first)
    passes.find(other)  # most points are reassigned
    passes.refresh(other)
    np.testing.assert_array_equal(passes.lists(), with_self(exact_lists(other.centers, 6)))


def test_kept_sets_begin_with_the_nearest():
    X, centers = clustered(500, 2), clustered(40, 2, seed=1)
    for n_kept in (1, 4):
        kept = Passes(Graph(20), X, Centers(centers), n_kept).kept
        np.testing.assert_array_equal(kept.ids, Dense(X).nearest(centers, n_kept)[0])


def test_lists_grow_where_the_audit_says_that_they_miss_much(monkeypatch):
    """Lists miss much without cluster structure in many dimensions, and nothing in two dimensions."""
    monkeypatch.setattr("cprime.search.graph._MISSED", 1e-3)
    hard = np.random.default_rng(0).standard_normal((3000, 20))
    grown = kmeans(300, "graph", tol=0, max_iter=25).fit(hard)
    assert grown.neighbors_.shape == (300, 65)
    assert kmeans(300, "graph", tol=0, max_iter=25, n_neighbors=33).fit(hard).neighbors_.shape == (300, 33)
    easy = np.random.default_rng(0).random((3000, 2))
    assert kmeans(300, "graph", tol=0, max_iter=25).fit(easy).neighbors_.shape == (300, 33)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The fit did not converge")
def test_lists_grow_until_they_find_nearly_all_where_data_have_no_clusters():
    noise = np.random.default_rng(0).standard_normal((9000, 24)).astype(np.float32)
    grown = kmeans(600, "graph").fit(noise)
    assert grown.neighbors_.shape[1] >= 129
    assert grown.certificate_["agreement"] > 0.97
    short = kmeans(600, "graph", n_neighbors=33).fit(noise)
    assert grown.inertia_ < 0.99 * short.inertia_
    separate = np.repeat(8 * noise[:600], 15, axis=0) + 0.1 * noise
    assert kmeans(600, "graph", random_state=2).fit(separate).neighbors_.shape == (600, 33)


def test_points_near_a_center_that_has_jumped_find_it():
    X = birch(20, random_state=0).data
    km = KMeans(400, search=Graph(final_assignment="found"), random_state=0).fit(X)
    assert km.inertia_ == pytest.approx(-km.score(X), rel=1e-9)


def test_a_list_gets_all_components_that_are_put_first():
    lists = np.array([[1, 2, 3], [2, 3, 4], [0, 1, 4]], dtype=np.int32)
    put_first(lists, np.array([0, 0, 1, 0, 2]), np.array([4, 5, 4, 5, 2], dtype=np.int32))
    np.testing.assert_array_equal(lists, [[5, 4, 1], [2, 3, 4], [0, 1, 4]])


def test_an_audit_of_points_that_lie_on_their_centers():
    centers = clustered(40, 3)
    kept = ActiveSet(np.arange(40, dtype=np.int32)[:, np.newaxis])
    assert graph._list_quality(Centers(centers), exact_lists(centers, 5), as_rows(centers), kept) == (1.0, 0.0)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("family", ["tied_spherical", "diag"])
def test_lists_of_mixtures_are_audited(family, monkeypatch):
    noise = np.random.default_rng(1).standard_normal((6000, 16)).astype(np.float32)
    make = GaussianMixture(400, covariance_type=family, search="graph", max_iter=8, random_state=0)
    assert make.fit(noise).neighbors_.shape == (400, 65)
    monkeypatch.setattr(graph, "_FOUND", 1.1)
    assert make.fit(noise).neighbors_.shape == (400, 129)


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning")
def test_lists_beyond_the_size_of_exact_ones_find_neighbors(monkeypatch):
    """Lists from cells and neighbors of neighbors are as good as exact ones, monotone, and work on degenerate data."""
    X = clustered(1500, 3, n_clusters=60)
    within = kmeans(120, "graph").fit(X)
    monkeypatch.setattr(graph, "EXACT_LISTS", 10)
    fit = kmeans(120, "graph").fit(X)
    assert fit.inertia_ <= 1.05 * within.inertia_
    assert (np.diff(fit.history_["quantization_error"]) <= 1e-9 * fit.inertia_).all()
    squared = squared_distances(X, fit.cluster_centers_)
    assert fit.inertia_ == pytest.approx(squared[np.arange(1500), fit.labels_].sum(), rel=1e-9)
    assert fit.certificate_["agreement"] > 0.95
    truth = exact_lists(fit.cluster_centers_, 10)
    listed = [len(set(a) & set(b)) for a, b in zip(fit.neighbors_.tolist(), truth.tolist(), strict=True)]
    assert np.mean(listed) / 9 > 0.9
    for data, C in ((np.ones((50, 2)), 20), (np.repeat(clustered(9, 2), 8, axis=0), 30), (clustered(60, 1), 60)):
        for n_kept in (1, 5):
            soft = mixture(C, "graph", n_kept, n_neighbors=3, max_iter=20).fit(data)
            assert np.isfinite(soft.lower_bound_)
            assert (np.diff(soft.lower_bounds_) >= -1e-9 * np.abs(soft.lower_bounds_[1:])).all()
        assert np.isfinite(kmeans(C, "graph", n_neighbors=3).fit(data).inertia_)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_near_center_is_nearer_than_that_of_the_own_cell_and_those_around(dtype):
    X = np.random.default_rng(0).standard_normal((2400, 12)).astype(dtype)
    X, centers = X[:1500], X[1500:]
    near = CenterIndex(centers)
    labels, distances = (values[:, 0] for values in near.find(as_rows(X))[:2])
    _, by_cell = Cells(centers, 1).find(as_rows(X))
    _, by_more_cells = Cells(centers).find(as_rows(X))
    _, truth = Dense(X).nearest(centers)
    squared = squared_distances(X, centers)[np.arange(1500), labels]
    np.testing.assert_allclose(distances, squared, rtol=1e-4 if dtype == np.float32 else 1e-9)
    missed = [(d.astype(float) - truth[:, 0]).clip(0).sum() for d in (distances, by_cell, by_more_cells)]
    assert missed[0] < 0.2 * missed[1]
    assert missed[0] < missed[2]


def test_an_exchange_follows_the_weights():
    """Exchange steps use the true weight of heavy points, so J never increases and ends near the best."""
    X, weight = clustered(600, 2, n_clusters=30), random_weights(600)
    weight[::97] *= 1e4
    for seed in range(5):
        fit = kmeans(30, "graph", jumps=True, random_state=seed, tol=0).fit(X, sample_weight=weight)
        assert (np.diff(fit.history_["quantization_error"]) <= 1e-9 * fit.history_["quantization_error"][:-1]).all()
        squared = squared_distances(X, fit.cluster_centers_)
        assert fit.inertia_ == pytest.approx((weight * squared[np.arange(600), fit.labels_]).sum(), rel=1e-9)


class _Far(Centers):
    """Centers whose lists contain no information about the best centers."""

    scattered = True

    def lists(self, n_neighbors, previous=None):
        C = len(self.centers)
        return ((np.arange(C)[:, np.newaxis] + np.arange(1, n_neighbors)) % C).astype(np.int32)


def test_where_components_are_scattered_random_ones_lead_to_the_best():
    X, centers = clustered(500, 2), clustered(60, 2, seed=1)
    agreements = []
    for components in (_Far(centers), Centers(centers)):
        passes = Passes(Graph(21), X, components, 2)
        passes.state = replace(passes.state, lists=_Far(centers).lists(21))
        passes.kept = ActiveSet(np.roll(np.arange(1000, dtype=np.int32) % 60, 30).reshape(500, 2))
        for _ in range(90):
            passes.find(components)
        agreements.append((passes.kept.ids == Dense(X).nearest(centers, 2)[0]).mean())
    assert agreements[0] > 0.99 > agreements[1]


@pytest.mark.parametrize(("C", "G", "n_near"), [(2, 2, 1), (40, 5, 2), (40, 33, 8), (40, 33, 16)])
def test_random_lists_have_the_nearest_and_nothing_twice(C, G, n_near):
    lists = exact_lists(clustered(C, 2), G)
    drawn = [graph._partly_random(lists, n_near, np.random.default_rng(seed)) for seed in range(300)]
    for found in drawn[:5]:
        assert found.shape == lists.shape
        for c, (near, row) in enumerate(zip(lists, found, strict=True)):
            real = row[: (row >= 0).sum()]
            assert (real >= 0).all()
            assert len(np.unique(real)) == len(real)
            assert c not in real
            assert np.isin(near[:n_near], real).all()
    met = {int(c) for found in drawn for c in found[0]} - {-1}
    assert met == set(range(1, C))


def test_points_without_weight_go_to_the_center_that_is_nearest():
    X, weights = clustered(2500, 2), np.repeat([1.0, 0.0], [2000, 500])
    fit = kmeans(300, "graph", init=X[:300], n_neighbors=300, tol=0).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(fit.labels_, fit.predict(X))


def test_momentum_lowers_j_and_the_number_of_iterations(monkeypatch):
    """Momentum lowers J and the number of iterations (means over seeds) if points form no clusters."""
    X = np.random.default_rng(0).standard_normal((8000, 6))
    found = []
    for light in (k_means._LIGHT, np.inf):
        monkeypatch.setattr(k_means, "_LIGHT", light)
        fits = [KMeans(200, search="graph", random_state=seed).fit(X) for seed in range(4)]
        found.append(np.mean([(fit.inertia_, fit.n_iter_) for fit in fits], axis=0))
    assert (found[0] < found[1]).all()
