"""Law: an update of a fitted model continues its fit, and the ids of clusters keep their meaning."""

import logging

import numpy as np
import pytest
from sklearn.base import clone

import cprime
from cprime import GaussianMixture, KMeans, PoissonMixture, StudentTMixture
from cprime.datasets import clusters

SIZES = {"few": (6, 600), "many": (140, 16_000)}  # full search, graph search


def data(size, seed=0):
    """Return points around C centers, and C."""
    C, n = SIZES[size]
    return clusters(n, C, 5, random_state=seed).data.astype(np.float32), C


def replaced(X, share, seed=1):
    """Return a copy of X in which some rows are replaced by copies of others with noise, and the indices that stay."""
    rng = np.random.RandomState(seed)
    rows = rng.choice(len(X), int(share * len(X)), replace=False)
    now = X.copy()
    now[rows] = X[rng.permutation(rows)] + rng.normal(size=(len(rows), X.shape[1])) * 0.1
    return now, np.setdiff1d(np.arange(len(X)), rows)


def mixture(C, **options):
    return GaussianMixture(C, covariance_type="diag", max_iter=200, random_state=0, **options)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [lambda C: KMeans(C, random_state=0), mixture], ids=["k-means", "mixture"])
def test_points_that_stay_keep_their_ids(make, size):
    X, C = data(size)
    now, stay = replaced(X, 0.05)
    fitted = make(C).fit(X)
    before = fitted.labels_[stay]
    fitted.update(now)
    assert (fitted.labels_[stay] == before).mean() > 0.95
    assert (fitted.origin_ == np.arange(C)).mean() > 0.95
    assert fitted.lower_bound_ > make(C).fit(now).lower_bound_ - 0.05


@pytest.mark.parametrize("size", SIZES)
def test_update_on_the_same_data_changes_nothing_of_a_converged_fit(size):
    X, C = data(size)
    fitted = KMeans(C, search="full", jumps=False, tol=0.0, max_iter=1000, random_state=0).fit(X)
    centers, labels, n_iter = fitted.cluster_centers_, fitted.labels_, fitted.n_iter_
    fitted.update(X)
    np.testing.assert_allclose(fitted.cluster_centers_, centers, rtol=1e-5, atol=1e-5)
    assert (fitted.labels_ == labels).all()
    assert fitted.n_iter_ == len(fitted.history_) == len(fitted.lower_bounds_) > n_iter


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_cluster_that_moves_to_other_data_gets_no_former_id(metric, caplog):
    rng = np.random.RandomState(0)
    centers = np.array([[9.0, 0, 0, 0], [0, 9, 0, 0], [0, 0, 9, 0], [20, 2, 0, 20]])  # the last is nearest to the first
    X = np.repeat(centers[:3], 100, axis=0) + rng.normal(size=(300, 4))
    fitted = KMeans(3, metric=metric, random_state=0).fit(X)
    ended, others = fitted.labels_[250], fitted.labels_[[0, 150]]
    now = np.concatenate([X[:200], centers[3] + rng.normal(size=(100, 4))])
    with caplog.at_level(logging.INFO, "cprime"):
        fitted.update(now)
    assert sorted(fitted.origin_) == sorted([-1, *others])
    assert (fitted.labels_[:100] == others[0]).all()
    assert (fitted.labels_[100:200] == others[1]).all()
    assert f"1 former clusters ended [{ended}]" in caplog.text


def test_jumps_follow_if_the_former_clusters_do_not_fit():
    X, C = data("many")
    moved = X.copy()
    moved[: len(X) // 4] = X[: len(X) // 4] + 300
    fitted = KMeans(C, random_state=0).fit(X).update(moved)
    assert (fitted.origin_ < 0).sum() > 3
    assert fitted.inertia_ < 1.1 * KMeans(C, random_state=0).fit(moved).inertia_


@pytest.mark.parametrize("make", [lambda C: KMeans(C, random_state=0), mixture], ids=["k-means", "mixture"])
@pytest.mark.parametrize("change", [-2, 3])
def test_number_of_clusters_changes(make, change):
    X, C = data("few")
    fitted = make(C).fit(X)
    former, centers = fitted.labels_, np.array([X[fitted.labels_ == c].mean(axis=0) for c in range(C)])
    fitted.update(X, C + change)
    labels = fitted.labels_
    assert set(labels) <= set(range(C + change))
    assert len(fitted.origin_) == C + change
    assert (fitted.origin_ >= 0).sum() >= min(C, C + change) - 1
    for now, then in enumerate(fitted.origin_):
        if then >= 0:
            shared = ((labels == now) & (former == then)).sum()
            assert 2 * shared > min((labels == now).sum(), (former == then).sum())
    assert cprime.KMeans(C).fit(X).n_features_in_ == centers.shape[1]
    assert (fitted.n_clusters if isinstance(fitted, KMeans) else fitted.n_components) == C + change


@pytest.mark.parametrize("change", [-2, 0, 3])
@pytest.mark.parametrize("jumps", ["auto", False])
def test_fixed_centers_stay_in_an_update(jumps, change):
    X, C = data("few")
    fixed = X[:2] + 0.5
    fitted = KMeans(C, fixed=fixed, jumps=jumps, random_state=0).fit(X)
    rng = np.random.RandomState(0)
    fitted.update(X + 5 * rng.standard_normal(X.shape).astype(X.dtype), C + change)  # J rises
    np.testing.assert_allclose(fitted.cluster_centers_[:2], fixed, rtol=1e-6)
    assert len(fitted.cluster_centers_) == C + change
    assert (fitted.origin_[:2] == [0, 1]).all() or change


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
@pytest.mark.parametrize("change", [-2, 0, 3])
def test_fixed_components_stay_in_an_update(covariance_type, change):
    X, C = data("few")
    known = GaussianMixture(C, covariance_type=covariance_type, max_iter=200, random_state=0).fit(X)
    means, covariances = known.means_[:2] + 0.5, known.covariances_[:2]
    fitted = clone(known).set_params(fixed=(means, covariances)).fit(X)
    fitted.update(replaced(X, 0.5)[0], C + change)
    np.testing.assert_allclose(fitted.means_[:2], means, rtol=1e-6)
    np.testing.assert_allclose(fitted.covariances_[:2], covariances, rtol=1e-4)
    assert len(fitted.means_) == C + change
    with pytest.raises(ValueError, match="n_components=2 must be more than 2, the number of fixed ones"):
        fitted.update(X, 2)


def test_every_way_to_give_the_data(tmp_path):
    X, C = data("few")
    now, _ = replaced(X, 0.05)
    expected = KMeans(C, random_state=0).fit(X).update(now).cluster_centers_
    np.save(tmp_path / "now.npy", now)
    chunks = cprime.open_data(tmp_path / "now.npy", chunk_rows=150)
    for given in (tmp_path / "now.npy", chunks):
        found = KMeans(C, random_state=0).fit(X).update(given).cluster_centers_
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    twice = KMeans(C, random_state=0).fit(X).update(np.concatenate([now, now]))
    weighted = KMeans(C, random_state=0).fit(X).update(now, sample_weight=np.full(len(now), 2.0))
    np.testing.assert_allclose(weighted.cluster_centers_, twice.cluster_centers_, rtol=1e-4, atol=1e-4)
    assert weighted.inertia_ == pytest.approx(twice.inertia_, rel=1e-5)


@pytest.mark.parametrize(
    "make",
    [lambda: KMeans(3, random_state=0), lambda: mixture(3), lambda: StudentTMixture(3, random_state=0)],
    ids=["k-means", "mixture", "t"],
)
def test_model_files_keep_updates(make, tmp_path):
    X, _ = data("few")
    fitted = make().fit(X).update(X[::2])
    fitted.save(tmp_path / "model.safetensors")
    loaded = cprime.load(tmp_path / "model.safetensors")
    assert (loaded.origin_ == fitted.origin_).all()
    assert (loaded.update(X).predict(X) == fitted.update(X).predict(X)).all()
    assert not hasattr(fitted.fit(X), "origin_")


def test_combined_models_are_updated():
    X, C = data("few")
    shards = [KMeans(C, random_state=0).fit(rows) for rows in np.array_split(X, 3)]
    combined = cprime.combine(shards, C, random_state=0).update(X)
    assert (combined.origin_ == np.arange(C)).all()
    assert len(combined.history_) == combined.n_iter_
    derived = mixture(2).fit(X).marginal([0, 1])
    with pytest.raises(ValueError, match="parameters set by hand or derived have no counts_"):
        derived.update(X[:, :2])


def test_after_an_error_the_model_is_as_it_was():
    X, C = data("few")
    fitted = KMeans(C, random_state=0).fit(X)
    before = dict(vars(fitted))
    for arguments, message in [
        ((X[:, :3],), "X has 3 features, but KMeans is expecting 5"),
        ((X[:4],), "n_samples=4 should be >= n_clusters=6"),
        ((X, 0), "n_clusters == 0, must be >= 1"),
        ((X, 601), "n_samples=600 should be >= n_clusters=601"),
        ((np.where(X[0, 0] == X, np.nan, X),), "NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            fitted.update(*arguments)
        assert {name for name in vars(fitted) if name[-1] == "_"} <= before.keys()
        assert all(vars(fitted)[name] is before[name] for name in before)
    counts = np.random.RandomState(0).poisson(3.0, (40, 4)).astype(float)
    with pytest.raises(ValueError, match="n_components=3 must be that of the fit, 2, for an update of a Poi"):
        PoissonMixture(2, random_state=0).fit(counts).update(counts, 3)
