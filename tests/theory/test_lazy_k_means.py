"""lazy-k-means, eq. (21) of Lücke & Forster: points are reassigned only to centers nearer by a factor 1 + ε."""

import numpy as np
import pytest
from theory_data import DTYPES, model_of

from cprime import KMeans
from cprime._utils.random import Key
from cprime.em import HardEStep
from cprime.em.hard import Lazy
from cprime.estimators.validation import as_search
from cprime.execution.block import Block
from cprime.kernels import as_rows, computing
from cprime.search import Full
from fits import clustered, random_weights, squared_distances


def lazy(X, centers, epsilon, n_iter, weight):
    """Run n_iter iterations in plain NumPy; return centers and the number of reassigned points of each E-step."""
    labels, n_moved = None, []
    for _ in range(n_iter):
        distances = np.sqrt(squared_distances(X, centers))
        nearest = distances.argmin(axis=1)
        if labels is not None:
            rows = np.arange(len(X))
            moves = (1 + epsilon) * distances[rows, nearest] < distances[rows, labels]
            nearest = np.where(moves, nearest, labels)
        n_moved.append(len(X) if labels is None else np.count_nonzero(nearest != labels))
        labels = nearest
        held = weight[:, np.newaxis] * np.eye(len(centers))[labels]
        centers = held.T @ X.astype(np.float64) / held.sum(axis=0)[:, np.newaxis]
    return centers, n_moved


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_step_is_that_of_21(dtype, epsilon, weighted):
    X = clustered(250, 2, dtype, seed=4, spread=1.5)
    weight = random_weights(250) + 0.01 if weighted else np.ones(250)
    whole = KMeans(8, init=X[:8], tol=0, epsilon=epsilon).fit(X, sample_weight=weight)
    assert whole.n_iter_ > 2
    for n_iter in range(1, whole.n_iter_ + 1):
        ours = KMeans(8, init=X[:8], tol=0, epsilon=epsilon, max_iter=n_iter).fit(X, sample_weight=weight)
        centers, n_moved = lazy(X, X[:8], epsilon, n_iter, weight)
        tolerance = 1e-4 if dtype is np.float32 else 1e-10
        np.testing.assert_allclose(ours.cluster_centers_, centers, rtol=0, atol=tolerance)
        assert ours.history_["n_moved"].tolist() == n_moved
    assert n_moved[-1] == 0


@pytest.mark.parametrize("search", ["full", "bounded", "graph"])
@pytest.mark.parametrize("weighted", [False, True])
def test_found_labels_are_those_of_the_lazy_assignment(search, weighted):
    X = clustered(250, 2, seed=4, spread=1.5)
    weight = random_weights(250) + 0.01 if weighted else np.ones(250)
    given = {"init": X[:8], "tol": 0, "epsilon": 0.3}
    searches = [as_search(search).with_params(final_assignment=final) for final in ("found", "exact")]
    found, nearest = (KMeans(8, search=each, **given).fit(X, sample_weight=weight) for each in searches)
    assert (found.final_assignment_, nearest.final_assignment_) == ("found", "exact")
    assert (found.cluster_centers_ == nearest.cluster_centers_).all()
    squared = squared_distances(X, found.cluster_centers_)
    assert (nearest.labels_ == squared.argmin(axis=1)).all()
    assert (found.labels_ != nearest.labels_).any()
    own = squared[np.arange(250), found.labels_]
    assert (own <= 1.3**2 * squared.min(axis=1) * (1 + 1e-9)).all() or search == "graph"
    J, F = (weight * own).sum(), found.lower_bound_
    assert found.inertia_ == pytest.approx(J)
    assert found.inertia_ > nearest.inertia_
    assert pytest.approx(-np.log(8) - np.log(2 * np.pi * np.e * J / (2 * weight.sum()))) == F
    np.testing.assert_allclose(found.counts_, np.bincount(found.labels_, weight, 8))


def test_zero_laziness_is_k_means_and_more_is_not():
    X = clustered(250, 2, seed=4, spread=1.5)
    fits = [KMeans(8, init=X[:8], tol=0, epsilon=epsilon).fit(X) for epsilon in (0.0, 0.3)]
    plain = KMeans(8, init=X[:8], tol=0).fit(X)
    assert fits[0].cluster_centers_.tobytes() == plain.cluster_centers_.tobytes()
    assert fits[0].history_["n_moved"].tolist() == plain.history_["n_moved"].tolist()
    assert fits[1].history_["n_moved"].tolist() != plain.history_["n_moved"].tolist()


def test_great_laziness_moves_nothing():
    """If ε is large, no point is reassigned after the first E-step, so the first clusters' means are the result."""
    X = clustered(250, 2, seed=4, spread=1.5)
    km = KMeans(8, init=X[:8], tol=0, epsilon=1e6).fit(X)
    first = squared_distances(X, X[:8]).argmin(axis=1)
    means = np.array([X[first == c].mean(axis=0) for c in range(8)])
    np.testing.assert_allclose(km.cluster_centers_, means, rtol=1e-12)
    assert km.history_["n_moved"].tolist() == [250, 0]
    assert km.converged_


def test_labels_and_error_of_the_fit_are_those_of_the_nearest_centers():
    X = clustered(250, 2, seed=4, spread=1.5)
    km = KMeans(8, init=X[:8], tol=0, epsilon=0.5).fit(X)
    distances = squared_distances(X, km.cluster_centers_)
    assert np.array_equal(km.labels_, distances.argmin(axis=1))
    assert np.array_equal(km.labels_, km.predict(X))
    assert km.inertia_ == pytest.approx(distances.min(axis=1).sum(), rel=1e-12)
    assert km.inertia_ < km.history_["quantization_error"][-1] - 1


def lazy_step(X, model, epsilon, before=None):
    """Run an E-step of lazy-k-means in one thread; return assignments and sufficient statistics."""
    look = Full().look(None, model.components(), Key(0))
    with computing(1):
        return HardEStep(model, Lazy(look, epsilon))(Block(as_rows(X)), before)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 3.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_e_step_moves_exactly_the_points_of_21_and_raises_the_bound(dtype, epsilon):
    X = clustered(300, 3, dtype, seed=6, spread=1.0)
    first, _ = lazy_step(X, model_of(X[:9], 1.0), epsilon)
    before = first.winners.copy()
    new = model_of(X[20:29], 1.0)
    kept, totals = lazy_step(X, new, epsilon, first)
    after = kept.winners
    assert np.array_equal(first.winners, before)
    distances = np.sqrt(squared_distances(X, new.centers))
    rows = np.arange(300)
    nearest = distances.argmin(axis=1)
    expected = np.where((1 + epsilon) * distances[rows, nearest] < distances[rows, before], nearest, before)
    assert np.array_equal(after, expected)
    assert totals.tally.n_moved == np.count_nonzero(after != before)
    assert 0 < totals.tally.n_moved < 300
    np.testing.assert_allclose(kept.costs[:, 0], np.square(distances[rows, after]), rtol=1e-5)
    stayed = -0.5 * np.square(distances[rows, before]).sum()
    assert -totals.tally.error / (2 * new.variance) > stayed
