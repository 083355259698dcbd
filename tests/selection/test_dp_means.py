"""DP-means: the published serial algorithm, its limit relation, the objective, weights, and the number of clusters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from cprime import DPMeans, KMeans, open_data


def points_around(C, n, D, seed, spacing=12.0):
    """Return points around C centers on a grid with distances of at least `spacing`, and their labels."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(C ** (1 / D)))
    grid = np.stack(np.meshgrid(*[np.arange(side)] * D), axis=-1).reshape(-1, D)
    labels = np.concatenate([np.arange(C), rng.integers(C, size=n - C)])
    return spacing * rng.permutation(grid)[:C][labels] + rng.uniform(-1, 1, (n, D)), labels


def objective(X, centers, penalty, weights=None):
    return np.average(cdist(X, centers, "sqeuclidean").min(axis=1), weights=weights) * (
        len(X) if weights is None else weights.sum()
    ) + penalty * len(centers)


def serial_dp_means(X, penalty):
    """Return centers of algorithm 1 of Kulis & Jordan, with k-means steps, removals and unions after each opening."""
    centers, steps = X.mean(axis=0, keepdims=True), 10
    while True:
        labels = None
        for _ in range(steps):
            before, labels = labels, cdist(X, centers, "sqeuclidean").argmin(axis=1)
            if before is not None and (before == labels).all():
                break
            centers = np.stack([X[labels == c].mean(axis=0) for c in range(len(centers))])
        settled = (cdist(X, centers, "sqeuclidean").argmin(axis=1) == labels).all()
        grown = centers
        for x in X:  # a point that is too far from the centers opens a cluster, which later points see
            if np.square(grown - x).sum(axis=1).min() > penalty:
                grown = np.vstack([grown, x])
        if len(grown) > len(centers):
            used = np.unique(cdist(X, grown, "sqeuclidean").argmin(axis=1))
            centers, steps = grown[used], 10
            continue
        labels, free, gone = cdist(X, centers, "sqeuclidean").argmin(axis=1), set(range(len(centers))), []
        counts = np.bincount(labels)
        ward = cdist(centers, centers, "sqeuclidean") * counts * counts[:, np.newaxis] / np.add.outer(counts, counts)
        for a, b in sorted(zip(*np.triu_indices(len(centers), 1), strict=True), key=lambda pair: ward[pair]):
            if ward[a, b] < penalty and {a, b} <= free:
                free -= {a, b}
                centers[a] = np.average(centers[[a, b]], axis=0, weights=counts[[a, b]])
                gone.append(b)
        centers, steps = np.delete(centers, gone, axis=0), 10 if gone else 300
        if settled and not gone:
            return centers


@pytest.mark.parametrize("penalty", [2.0, 5.0, 12.0, 40.0, 1000.0])
def test_the_result_is_that_of_the_serial_algorithm(penalty):
    for seed in range(4):
        X = np.random.default_rng(seed).normal(0, [3, 1], (80, 2))
        expected = serial_dp_means(X, penalty)
        fit = DPMeans(penalty, search="full", tol=0).fit(X)
        assert fit.n_clusters_ == len(expected)
        assert_allclose(fit.cluster_centers_, expected, atol=1e-9)
        assert fit.converged_


def test_small_variances_of_the_dirichlet_process_mixture_choose_as_dp_means():
    """Section 3.1 of Kulis & Jordan: with α = (1 + ρ/σ²)^(D/2) exp(−λ/2σ²), Gibbs draws become DP-means' choices."""
    rng, rho, penalty, variance = np.random.default_rng(2), 4.0, 3.0, 1e-3
    X, centers = rng.normal(0, 2, (200, 2)), rng.normal(0, 2, (4, 2))
    counts = np.array([5, 1, 30, 100])
    log_alpha = np.log1p(rho / variance) - penalty / (2 * variance)
    known = [np.log(n) + multivariate_normal(m, variance).logpdf(X) for n, m in zip(counts, centers, strict=True)]
    new = log_alpha + multivariate_normal(np.zeros(2), rho + variance).logpdf(X)
    log_p = np.column_stack([*known, new])
    posterior = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
    squared = cdist(X, centers, "sqeuclidean")
    chosen = np.where(squared.min(axis=1) > penalty, 4, squared.argmin(axis=1))
    ranked = np.sort(np.column_stack([squared, np.full(len(X), penalty)]), axis=1)
    clear = ranked[:, 1] - ranked[:, 0] > 0.05
    assert clear.mean() > 0.9
    assert (posterior[clear, chosen[clear]] > 0.99).all()
    first = int(np.flatnonzero((chosen == 4) & clear)[0])
    opened = DPMeans(penalty, init=centers[:, :], max_iter=2, search="full").fit(np.vstack([centers, X[first]]))
    assert (np.square(opened.cluster_centers_ - X[first]).sum(axis=1) < 1e-12).any()


@pytest.mark.parametrize("search", ["full", "graph"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_never_rises_and_no_point_is_too_far(search, weighted):
    rng = np.random.default_rng(5)
    X = np.concatenate([rng.normal(0, 1, (2000, 3)), rng.normal(4, 0.3, (500, 3)), rng.uniform(-9, 9, (100, 3))])
    weights = rng.choice([0, 1 / 64, 0.5, 1, 3], len(X)) if weighted else None  # sums are exact
    for penalty in (0.3, 2.0, 30.0):
        fit = DPMeans(penalty, search=search, tol=0, random_state=0).fit(X, sample_weight=weights)
        found = fit.history_["objective"]
        assert (np.diff(found) < 0).all()
        assert fit.converged_
        assert fit.objective_ == found[-1] == pytest.approx(fit.inertia_ + penalty * fit.n_clusters_)
        assert fit.objective_ == pytest.approx(objective(X, fit.cluster_centers_, penalty, weights), rel=1e-9)
        assert len(fit.cluster_centers_) == fit.n_clusters_ == fit.history_["n_clusters"][-1]
        assert_array_equal(fit.counts_, np.bincount(fit.labels_, weights, fit.n_clusters_))
        assert fit.counts_.all()
        changes = fit.history_["n_opened"] - fit.history_["n_removed"]
        assert_array_equal(np.diff(fit.history_["n_clusters"]), changes[1:])
        if search == "full":
            squared = cdist(X, fit.cluster_centers_, "sqeuclidean").min(axis=1)
            assert (np.minimum(1.0 if weights is None else weights, 1) * squared <= penalty * (1 + 1e-9)).all()


@pytest.mark.parametrize("C", [1, 2, 9, 60])
@pytest.mark.parametrize("penalty", [13.0, 40.0, 95.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_planted_clusters_are_found_for_a_wide_range_of_penalties(C, penalty, dtype):
    X, labels = points_around(C, 40 * C, 3, seed=C)
    fit = DPMeans(penalty).fit(X.astype(dtype))
    assert fit.n_clusters_ == C
    assert adjusted_rand_score(labels, fit.labels_) == 1
    assert_array_equal(fit.predict(X), fit.labels_)
    assert fit.score(X.astype(dtype)) == pytest.approx(-fit.inertia_, rel=1e-4)
    assert_allclose(
        fit.transform(X[:5]).min(axis=1) ** 2, cdist(X[:5], fit.cluster_centers_).min(axis=1) ** 2, atol=0.1
    )


def test_the_graph_search_reaches_the_objective_of_the_full_search():
    X, _ = points_around(500, 20_000, 8, seed=0, spacing=3.0)
    X += np.random.default_rng(1).normal(0, 0.5, X.shape)
    full, graph = (DPMeans(20.0, search=search, random_state=0).fit(X) for search in ("full", "graph"))
    assert 400 < full.n_clusters_ < 700
    assert graph.objective_ <= 1.01 * full.objective_  # its k-means steps contain jumps, so that it may be lower
    assert graph.neighbors_ is not None


def test_a_weight_of_two_is_a_repetition_and_a_weight_of_zero_nothing():
    X, _ = points_around(7, 200, 2, seed=3, spacing=3.0)
    weights = np.random.default_rng(3).integers(0, 4, len(X))
    fit = DPMeans(2.5, tol=0).fit(X, sample_weight=weights)
    same = DPMeans(2.5, tol=0).fit(np.repeat(X, weights, axis=0))
    assert_allclose(fit.cluster_centers_, same.cluster_centers_, atol=1e-9)
    assert fit.objective_ == pytest.approx(same.objective_)


def test_rows_in_chunks_and_threads_have_the_same_result():
    X, _ = points_around(90, 3000, 3, seed=4, spacing=4.0)
    one = DPMeans(6.0, n_threads=1, random_state=0).fit(X)
    two = DPMeans(6.0, n_threads=2, random_state=0).fit(X)
    assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert_array_equal(one.labels_, two.labels_)
    chunks = DPMeans(6.0, random_state=0).fit(open_data(X, chunk_rows=700))
    assert chunks.n_clusters_ == one.n_clusters_
    assert_allclose(chunks.cluster_centers_, one.cluster_centers_, atol=1e-9)


def test_a_fit_goes_on_from_given_centers():
    X, _ = points_around(12, 600, 2, seed=6)
    fit = DPMeans(30.0).fit(X)
    for init in (fit.cluster_centers_, fit, KMeans(12, random_state=0).fit(X)):
        again = DPMeans(30.0, init=init).fit(X)
        assert again.n_iter_ == 1
        assert again.objective_ == pytest.approx(fit.objective_)
    assert DPMeans(30.0, init=X[:40]).fit(X).n_clusters_ == 12  # superfluous clusters are merged
    assert DPMeans(30.0, init=X[:1]).fit(X).n_clusters_ == 12


def test_coincident_points_open_one_cluster():
    X = np.repeat([[1e6, 1e6], [1e6 + 1, 1e6]], 300, axis=0)
    fit = DPMeans(1e-3).fit(X)
    assert fit.n_clusters_ == 2
    assert fit.inertia_ == 0
    assert DPMeans(1e-3).fit(X[:9]).n_clusters_ == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"penalty": 0}, ValueError, "penalty must be a positive number, got 0"),
        ({"penalty": "3"}, TypeError, "penalty must be"),
        ({"init": "k-means++"}, TypeError, "init must be None, centers or a fitted estimator, got 'k-means\\+\\+'"),
        ({"init": np.zeros((2, 3))}, ValueError, "number of features"),
        ({"search": "no"}, ValueError, "search"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"tol": -1}, ValueError, "tol"),
    ],
)
def test_invalid_arguments_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        DPMeans(**{"penalty": 1.0} | options).fit(np.zeros((5, 2)))
