"""k-medoids: local optima of single swaps and of alternation, for every dissimilarity."""

import itertools

import numpy as np
import pytest
from family_data import DTYPES
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from cprime import KMedoids
from cprime.em import medoids
from fits import clustered

METHODS = ("fasterpam", "alternate")
METRICS = {
    "euclidean": {},
    "sqeuclidean": {},
    "manhattan": {},
    "cosine": {},
    "minkowski": {"metric_params": {"p": 3}},
}
SCIPY = {"manhattan": "cityblock"}
every_metric = pytest.mark.parametrize("metric", METRICS)
every_method = pytest.mark.parametrize("method", METHODS)


def matrix(X, metric="euclidean"):
    return cdist(X, X, SCIPY.get(metric, metric), **METRICS[metric].get("metric_params", {}))


def total(V, places, weight=1.0):
    """Return the total dissimilarity to the nearest medoids, Σ_n w_n min_c V_nc."""
    return float((np.broadcast_to(weight, len(V)) * V[:, list(places)].min(axis=1)).sum())


@every_metric
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_fasterpam_ends_where_no_single_exchange_helps(metric, dtype, weighted):
    X = clustered(60, 3, dtype)
    weight = np.random.default_rng(0).exponential(size=60) if weighted else None
    fit = KMedoids(5, metric=metric, init="random", random_state=0, **METRICS[metric]).fit(X, sample_weight=weight)
    assert fit.converged_
    assert fit.n_swaps_ > 0
    V, w = matrix(X.astype(float), metric), 1.0 if weight is None else weight
    places = fit.medoid_indices_.tolist()
    assert total(V, places, w) == pytest.approx(fit.inertia_, rel=1e-5)
    exchanged = [total(V, [*places[:c], candidate, *places[c + 1 :]], w) for c in range(5) for candidate in range(60)]
    assert min(exchanged) >= fit.inertia_ * (1 - 1e-5)


@every_metric
@pytest.mark.parametrize("weighted", [False, True])
def test_alternation_ends_with_the_best_point_of_each_cluster(metric, weighted):
    """Each point belongs to its nearest medoid, and each medoid is the best of its cluster (Bishop, eq. 9.6)."""
    X = clustered(60, 3)
    weight = np.random.default_rng(0).exponential(size=60) if weighted else np.ones(60)
    fit = KMedoids(5, metric=metric, method="alternate", init="random", random_state=1, **METRICS[metric])
    fit.fit(X, sample_weight=weight)
    V = matrix(X, metric)
    assert fit.converged_
    assert np.array_equal(fit.labels_, V[:, fit.medoid_indices_].argmin(axis=1))
    for c, medoid in enumerate(fit.medoid_indices_):
        members = np.flatnonzero(fit.labels_ == c)
        inside = weight[members] @ V[np.ix_(members, members)]
        assert inside.min() == pytest.approx(weight[members] @ V[members, medoid], rel=1e-12)


@every_method
@pytest.mark.parametrize("init", ["random", "build"])
def test_the_sum_never_rises(method, init):
    X = clustered(300, 4, n_clusters=15)
    fit = KMedoids(12, method=method, init=init, random_state=3).fit(X)
    assert (np.diff(fit.objectives_) <= 0).all()
    assert fit.objectives_[-1] == pytest.approx(fit.inertia_, rel=1e-12)
    assert fit.objectives_[0] > fit.inertia_
    assert fit.n_iter_ == len(fit.objectives_) - 1
    one = KMedoids(12, method=method, init=init, random_state=3, max_iter=1).fit(X)
    assert (one.n_iter_, one.converged_) == (1, False)
    assert one.objectives_ == fit.objectives_[:2]


def test_several_starts_find_the_best_of_all_choices():
    X = clustered(14, 2, n_clusters=5)
    V = matrix(X)
    best = min(total(V, places) for places in itertools.combinations(range(14), 4))
    assert KMedoids(4, init="random", n_init=20, random_state=0).fit(X).inertia_ == pytest.approx(best, rel=1e-12)
    assert KMedoids(4, init="random", max_iter=1, method="alternate", random_state=0).fit(X).inertia_ > 1.001 * best


@every_method
def test_the_only_medoid_is_the_best_point(method):
    X = clustered(50, 3)
    weight = np.random.default_rng(0).exponential(size=50)
    fit = KMedoids(1, method=method, init=[7]).fit(X, sample_weight=weight)
    sums = weight @ matrix(X)
    assert fit.medoid_indices_.tolist() == [sums.argmin()]
    assert fit.inertia_ == pytest.approx(sums.min(), rel=1e-12)
    assert fit.converged_
    assert fit.objectives_[0] == pytest.approx(sums[7], rel=1e-12)


def test_build_takes_what_lowers_the_sum_most():
    V = matrix(clustered(80, 3))
    weight = np.random.default_rng(0).exponential(size=80)
    weight[:20] = 0
    chosen = []
    for _ in range(8):
        left = [j for j in range(20, 80) if j not in chosen]
        chosen.append(min(left, key=lambda j: total(V, [*chosen, j], weight)))
    assert medoids.build(V, 8, weight).tolist() == chosen


@pytest.mark.parametrize(
    ("values", "sign"),
    [
        (np.exp(-matrix(clustered(80, 3))), "largest values of its rows are on the diagonal"),
        (matrix(clustered(80, 3)) - 0.1, "negative"),
    ],
)
def test_precomputed_similarities_cause_a_warning(values, sign):
    with pytest.warns(UserWarning, match=f"similarities: .*{sign}"):
        KMedoids(3, metric="precomputed").fit(values)


@every_method
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_precomputed_matrix_is_the_same(method, dtype):
    X, new = clustered(80, 3, dtype), clustered(30, 3, dtype, seed=1)
    of_rows = KMedoids(5, metric="manhattan", method=method).fit(X)
    V = cdist(X, X, "cityblock").astype(dtype)
    fit = KMedoids(5, metric="precomputed", method=method).fit(V)
    assert fit.cluster_centers_ is None
    assert np.array_equal(fit.medoid_indices_, of_rows.medoid_indices_)
    assert np.array_equal(of_rows.cluster_centers_, X[fit.medoid_indices_])
    assert np.array_equal(fit.labels_, of_rows.labels_)
    there = cdist(new, X, "cityblock").astype(dtype)
    assert np.array_equal(fit.predict(there), of_rows.predict(new))
    np.testing.assert_allclose(fit.transform(there), of_rows.transform(new), rtol=1e-5)
    assert fit.transform(there).dtype == of_rows.transform(new).dtype == dtype
    assert fit.score(there) == pytest.approx(of_rows.score(new), rel=1e-5)
    fortran = KMedoids(5, metric="precomputed", method=method).fit(np.asfortranarray(V))
    assert np.array_equal(fortran.medoid_indices_, fit.medoid_indices_)


@pytest.mark.filterwarnings("ignore:X seems to be a matrix of similarities")
@every_method
def test_dissimilarities_need_not_be_symmetric_nor_positive(method, rng):
    V = rng.standard_normal((40, 40))
    fit = KMedoids(4, metric="precomputed", method=method, init="random", random_state=0).fit(V)
    places = fit.medoid_indices_.tolist()
    assert fit.inertia_ == pytest.approx(total(V, places), rel=1e-12)
    assert np.array_equal(fit.labels_, V[:, places].argmin(axis=1))
    assert (np.diff(fit.objectives_) <= 0).all()
    if method == "fasterpam":
        exchanged = [total(V, [*places[:c], j, *places[c + 1 :]]) for c in range(4) for j in range(40)]
        assert min(exchanged) >= fit.inertia_ - 1e-12


def test_a_function_of_two_rows_may_be_the_metric():
    X = clustered(40, 2)
    fit = KMedoids(3, metric=lambda a, b: float(np.abs(a - b).max())).fit(X)
    same = KMedoids(3, metric="chebyshev").fit(X)
    assert np.array_equal(fit.medoid_indices_, same.medoid_indices_)
    assert np.array_equal(fit.predict(X + 0.1), same.predict(X + 0.1))


@every_method
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_weight_is_repetition_in_build(method, metric):
    X = clustered(70, 3)
    weight = np.random.default_rng(0).integers(0, 4, size=70)
    common = {"method": method, "metric": metric, "init": "build"}
    weighted = KMedoids(5, **common).fit(X, sample_weight=weight)
    repeated = KMedoids(5, **common).fit(np.repeat(X, weight, axis=0))
    assert np.array_equal(weighted.cluster_centers_, repeated.cluster_centers_)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-12)
    np.testing.assert_allclose(weighted.objectives_, repeated.objectives_, rtol=1e-12)
    assert np.array_equal(np.repeat(weighted.labels_, weight), repeated.labels_)
    assert weighted.score(X, sample_weight=weight) == pytest.approx(-weighted.inertia_, rel=1e-12)


@every_method
@pytest.mark.parametrize("init", ["build", "random"])
def test_points_without_weight_are_labelled_but_are_no_medoids(method, init):
    X = clustered(60, 3)
    weight = np.ones(60)
    weight[:40] = 0
    fit = KMedoids(6, method=method, init=init, random_state=0).fit(X, sample_weight=weight)
    assert (fit.medoid_indices_ >= 40).all()
    assert np.array_equal(fit.labels_, fit.predict(X))
    with pytest.raises(ValueError, match="sample_weight must have at least n_clusters=21 positive entries, got 20"):
        KMedoids(21).fit(X, sample_weight=weight)


@every_method
@pytest.mark.parametrize("init", ["build", "random"])
def test_equal_points_leave_clusters_empty_and_say_so(method, init):
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 6, axis=0)
    with pytest.warns(
        ConvergenceWarning, match=r"Number of distinct clusters \(2\) found smaller than n_clusters \(4\)"
    ):
        fit = KMedoids(4, method=method, init=init, random_state=0, n_init=5).fit(X)
    assert len(set(fit.medoid_indices_.tolist())) == 4
    assert fit.inertia_ == 0


def test_a_matrix_that_is_too_large_is_refused_before_it_is_made():
    X = clustered(200, 2)
    with pytest.raises(MemoryError, match=r"200 points need 320000 bytes .* more than max_memory=319999: fit a random"):
        KMedoids(3, max_memory=319_999).fit(X)
    KMedoids(3, max_memory=320_000).fit(X)
    KMedoids(3, max_memory=160_000).fit(X.astype(np.float32))
    with pytest.raises(MemoryError, match="1000000 points need 8000000000000 bytes"):
        KMedoids(3).fit(np.zeros((1_000_000, 1)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"metric": "nearness"}, ValueError, "nearness"),
        ({"metric": 3}, TypeError, "metric must be a name or a function, got 3"),
        ({"metric": "mahalanobis"}, ValueError, "metric='mahalanobis' needs metric_params={'VI'"),
        ({"metric": "precomputed"}, ValueError, r"X must be square for metric='precomputed', got shape \(40, 2\)"),
        ({"method": "pam"}, ValueError, "method must be one of"),
        ({"init": "best"}, ValueError, "init must be one of"),
        ({"init": [0, 1]}, ValueError, "init must be 'build', 'random' or n_clusters=3 positions"),
        ({"init": [0.0, 1.0, 2.0]}, ValueError, "init must be 'build', 'random' or n_clusters=3 positions"),
        ({"init": [0, 1, 1]}, ValueError, "init must have distinct positions from 0 to 39"),
        ({"init": [0, 1, 40]}, ValueError, "init must have distinct positions from 0 to 39"),
        ({"max_memory": 0}, ValueError, "max_memory == 0"),
        ({"n_clusters": 41}, ValueError, "n_samples=40 should be >= n_clusters=41"),
    ],
)
def test_arguments_out_of_range_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        KMedoids(**({"n_clusters": 3} | arguments)).fit(clustered(40, 2))


def test_a_function_cannot_be_saved(tmp_path):
    fit = KMedoids(2, metric=lambda a, b: float(np.abs(a - b).sum())).fit(clustered(20, 2))
    with pytest.raises(TypeError, match="metric must be a name for the estimator to be saved"):
        fit.save(tmp_path / "model.safetensors")
