"""partial_fit: online k-means (Bishop eq. 9.5) and stepwise EM."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

import fits
from cprime import GaussianMixture, KMeans, load, search

clustered = partial(fits.clustered, n_clusters=5, spread=6.0)
COVARIANCES = ("full", "tied", "diag", "spherical", "tied_spherical")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_center_is_the_running_mean_of_what_it_has_won(dtype):
    X = clustered(600, dtype=dtype)
    km = KMeans(5, init=X[:5].copy())
    sums, weights = np.zeros((5, 3)), np.random.default_rng(1).exponential(size=600)
    for rows in np.split(np.arange(600), 6):
        km.partial_fit(X[rows], sample_weight=weights[rows])
        np.add.at(sums, km.labels_, weights[rows, np.newaxis] * X[rows])
    assert km.cluster_centers_.dtype == dtype
    assert np.allclose(
        km.cluster_centers_, sums / km.counts_[:, np.newaxis], rtol=1e-4 if dtype == np.float32 else 1e-8
    )
    assert km.counts_.sum() == pytest.approx(weights.sum())
    assert km.n_iter_ == len(km.history_) == 6
    assert set(km.history_["phase"]) == {"online"}


def test_online_k_means_ends_near_what_a_fit_finds():
    X = clustered(5000)
    start = KMeans(5, n_init=5, random_state=0).fit(X[:500]).cluster_centers_
    km = KMeans(5, init=start)
    for batch in np.array_split(X, 50):
        km.partial_fit(batch)
    best = KMeans(5, n_init=5, random_state=0).fit(X)
    assert km.score(X) > 1.01 * best.score(X)
    assert km.variance_ == pytest.approx(best.variance_, rel=0.05)


def test_forgetting_follows_clusters_that_wander():
    rng = np.random.default_rng(0)
    steady, forgetting = (KMeans(2, init=np.array([[0.0], [10.0]]), learning_decay=decay) for decay in (1.0, 0.6))
    for step in range(200):
        batch = np.array([[0.0], [10.0]]) + 0.05 * step + 0.1 * rng.standard_normal((2, 1))
        steady.partial_fit(batch)
        forgetting.partial_fit(batch)
    there = np.array([[9.95], [19.95]])
    assert np.abs(np.sort(forgetting.cluster_centers_, axis=0) - there).max() < 2
    assert np.abs(np.sort(steady.cluster_centers_, axis=0) - there).max() > 4


@pytest.mark.parametrize("weights", ["free", "equal"])
@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_one_batch_of_all_points_is_one_em_step(covariance_type, weights):
    X, given = (
        clustered(500),
        {"covariance_type": covariance_type, "weights": weights, "means_init": clustered(500)[:5]},
    )
    online = GaussianMixture(5, **given).partial_fit(X)
    whole = GaussianMixture(5, max_iter=1, tol=0, **given)
    with pytest.warns(UserWarning, match="did not converge"):
        whole.fit(X)
    assert np.allclose(online.means_, whole.means_)
    assert np.allclose(online.covariances_, whole.covariances_)
    assert np.allclose(online.weights_, whole.weights_)
    assert online.lower_bound_ == pytest.approx(whole.lower_bounds_[0])


@pytest.mark.parametrize("sizes", [[20] * 10, [1] * 200, [150, 1, 49]])
@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_batches_of_one_component_add_up_to_all_points(covariance_type, sizes):
    X = np.sort(clustered(200), axis=0)
    given = {"covariance_type": covariance_type, "weights": "equal", "reg_covar": 1e-9}
    online = GaussianMixture(1, **given)
    for batch in np.split(X, np.cumsum(sizes)[:-1]):
        online.partial_fit(batch)
    whole = GaussianMixture(1, **given).fit(X)
    assert np.allclose(online.means_, whole.means_)
    assert np.allclose(online.covariances_, whole.covariances_, atol=1e-6)


@pytest.mark.parametrize(("name", "value"), [("n_components", 4), ("covariance_type", "diag"), ("weights", "equal")])
def test_batches_go_on_only_from_a_model_of_their_kind(name, value):
    gm = GaussianMixture(3, random_state=0).partial_fit(clustered(50)).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"partial_fit goes on from a fit with {name}="):
        gm.partial_fit(clustered(50))
    with pytest.raises(ValueError, match=f"warm_start goes on from a fit with {name}="):
        gm.set_params(warm_start=True).fit(clustered(50))


@pytest.mark.parametrize(("name", "value"), [("n_clusters", 4), ("metric", "cosine")])
@pytest.mark.parametrize("begin", ["fit", "partial_fit"])
def test_batches_of_k_means_go_on_only_from_a_model_of_their_kind(begin, name, value):
    km = getattr(KMeans(3, random_state=0), begin)(clustered(50)).set_params(**{name: value})
    before = km.cluster_centers_
    with pytest.raises(ValueError, match=f"partial_fit goes on from a fit with {name}=.*, got {name}={value!r}"):
        km.partial_fit(clustered(50))
    assert km.cluster_centers_ is before
    by_hand = KMeans(2)
    by_hand.cluster_centers_, by_hand.n_features_in_ = np.eye(2), 2
    with pytest.raises(ValueError, match="partial_fit goes on from a fit: centers set by hand"):
        by_hand.partial_fit(clustered(50))


def test_sparse_and_dense_batches_follow_each_other():
    batches = [clustered(30, seed=seed).astype(np.float64) for seed in range(6)]
    kinds = csr_array, np.asarray
    dense, mixed, other = (KMeans(5, jumps=True, random_state=0) for _ in range(3))
    for i, batch in enumerate(batches):
        dense.partial_fit(batch)
        mixed.partial_fit(kinds[i % 2](batch))
        other.partial_fit(kinds[(i + 1) % 2](batch))
    for fit in (mixed, other):
        assert fit.counts_.sum() == 180
        assert fit.score(np.concatenate(batches)) == pytest.approx(dense.score(np.concatenate(batches)), rel=0.05)


def test_labels_of_a_batch_are_those_of_its_e_step():
    X = clustered(300)
    gm = GaussianMixture(5, random_state=0).partial_fit(X[:200])
    before = gm.predict(X[200:])
    assert np.array_equal(gm.partial_fit(X[200:]).labels_, before)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@pytest.mark.parametrize("weights", ["free", "equal"])
def test_equal_batches_repeated_keep_the_fixed_point_of_em(covariance_type, weights):
    X = clustered(600)
    given = {"covariance_type": covariance_type, "weights": weights, "random_state": 0, "tol": 1e-10, "max_iter": 500}
    gm = GaussianMixture(5, **given).fit(X)
    before = gm.means_.copy(), np.array(gm.covariances_)
    for _ in range(3):
        gm.partial_fit(X)
    assert np.allclose(gm.means_, before[0], atol=1e-3)
    assert np.allclose(gm.covariances_, before[1], atol=1e-3)
    assert gm.counts_.sum() == pytest.approx(4 * 600)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_stepwise_em_ends_near_em(covariance_type):
    X = clustered(4000)
    start = KMeans(5, n_init=5, random_state=0).fit(X[:400])
    gm = GaussianMixture(5, covariance_type=covariance_type, init_params=start, learning_decay=0.8)
    for batch in np.array_split(np.concatenate([X, X]), 40):
        gm.partial_fit(batch)
    best = GaussianMixture(5, covariance_type=covariance_type, init_params=start).fit(X)
    assert gm.score(X) > best.score(X) - 0.05
    assert gm.weights_.sum() == pytest.approx(1)


@pytest.mark.parametrize("n_active", [1, 2, None])
def test_truncated_and_hard_batches_give_finite_models(n_active):
    X = clustered(900)
    for assignment in ("soft", "hard", "sampled"):
        gm = GaussianMixture(5, n_active=n_active, assignment=assignment, random_state=0)
        for batch in np.array_split(X, 3):
            gm.partial_fit(batch)
        assert np.isfinite(gm.score(X))
        assert gm.n_iter_ == 3


def test_a_model_in_progress_can_be_saved(tmp_path):
    X = clustered(400)
    for estimator in (KMeans(5, random_state=0), GaussianMixture(5, random_state=0)):
        estimator.partial_fit(X[:200]).save(tmp_path / "model.safetensors")
        again = load(tmp_path / "model.safetensors").partial_fit(X[200:])
        estimator.partial_fit(X[200:])
        assert np.array_equal(again.predict(X), estimator.predict(X))
        assert again.n_iter_ == 2


@pytest.mark.parametrize("decay", [0.5, 1.5, -1, "fast"])
def test_decay_outside_its_range_is_refused(decay):
    for estimator in (KMeans(2, learning_decay=decay), GaussianMixture(2, learning_decay=decay)):
        with pytest.raises((ValueError, TypeError), match="learning_decay"):
            estimator.partial_fit(clustered(10))


def test_first_batch_needs_a_point_for_each_cluster():
    for estimator in (KMeans(8), GaussianMixture(8)):
        with pytest.raises(ValueError, match=r"n_samples=5 should be >= n_\w+=8 in the first batch: collect 8 rows"):
            estimator.partial_fit(clustered(5))
        estimator.partial_fit(clustered(40)).partial_fit(clustered(1))
        with pytest.raises(ValueError, match="features"):
            estimator.partial_fit(clustered(5, D=2))


def test_a_first_batch_is_not_regrouped():
    """The first batch is searched among all components, so there are no active sets by which to regroup it."""
    X, graph = clustered(40), search.Graph(regroup=True)
    gm = GaussianMixture(6, n_active=1, search=graph, random_state=0).partial_fit(X)
    other = GaussianMixture(6, n_active=1, random_state=0).partial_fit(X)
    assert np.array_equal(gm.means_, other.means_)


def test_a_batch_takes_twice_the_memory_of_its_sums_and_no_more():
    """Memory is needed for sums and centers in double precision only; new centers reuse the memory of the sums."""
    C, D = 3000, 200
    X = np.random.default_rng(0).standard_normal((C + 500, D), dtype=np.float32)
    km = KMeans(C, init=X[:C], search="full", n_threads=1).partial_fit(X[:C])
    tracemalloc.start()
    try:
        km.partial_fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3.2 * 8 * C * D
