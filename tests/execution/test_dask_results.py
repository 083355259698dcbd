"""Methods of fitted estimators on Dask collections return lazy arrays, numbers or files; clusters may come and go."""

from time import sleep

import dask.array as da
import distributed
import numpy as np
import pytest
from dask_data import CHUNK, in_memory, k_means, mixture, on_dask

import cprime
from cprime import GaussianMixture, KMeans
from fits import assert_same, clustered, died, random_weights

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
VERBS = {
    "predict": (k_means(), "predict", {}),
    "predict, approximate": (k_means(search="graph"), "predict", {"approximate": True}),
    "predict, cosine": (k_means(metric="cosine"), "predict", {}),
    "transform": (k_means(), "transform", {}),
    "predict of a mixture": (mixture(), "predict", {}),
    "score_samples": (mixture(covariance_type="full"), "score_samples", {}),
    "predict_proba": (mixture(), "predict_proba", {}),
    "predict_proba, approximate": (mixture(covariance_type="diag"), "predict_proba", {"approximate": True}),
    "predict_proba, C'=C": (mixture(n_active=None), "predict_proba", {}),
}


@pytest.mark.parametrize(("estimator", "verb", "options"), VERBS.values(), ids=VERBS.keys())
@pytest.mark.parametrize("with_client", [False, True], ids=["here", "cluster"])
@pytest.mark.usefixtures("cells_for_few")
def test_what_rows_become_is_lazy_and_the_same(estimator, verb, options, with_client, request):
    X = clustered()
    estimator = estimator.fit(in_memory(X))
    if with_client:
        request.getfixturevalue("client")
    found = getattr(estimator, verb)(on_dask(X), **options)
    expected = getattr(estimator, verb)(in_memory(X), **options)
    if with_client:
        assert isinstance(found, da.Array)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        assert found.chunks[0] == on_dask(X).chunks[0]
    np.testing.assert_array_equal(np.asarray(found), expected)


def test_what_is_missing_is_drawn_by_the_numbers_of_rows(client):
    """Imputed values are drawn by row number: chunks have different draws, and Dask gives those of data in memory."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:, 1] = np.nan
    gm = GaussianMixture(missing="marginal")
    gm.weights_, gm.means_, gm.covariances_, gm.n_features_in_ = np.ones(1), np.zeros((1, 2)), np.eye(2)[np.newaxis], 2
    found = np.asarray(gm.impute(da.from_array(X, chunks=(20, 2)), sample=True, random_state=0))
    np.testing.assert_array_equal(found, gm.impute(X, sample=True, random_state=0))
    assert len(np.unique(found[:, 1])) == 60


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_sums_are_numbers(weighted, client):
    X = clustered()
    weights = random_weights(len(X)) if weighted else None
    for estimator in (k_means().fit(X[:300]), mixture().fit(in_memory(X))):
        for verb in (estimator.score, estimator.bounds):
            assert verb(on_dask(X), sample_weight=weights) == verb(in_memory(X), sample_weight=weights)
    assert isinstance(estimator.score(on_dask(X)), float)
    assert float(estimator.bic(on_dask(X))) == pytest.approx(estimator.bic(in_memory(X)), rel=1e-12)


def test_nothing_is_computed_before_it_is_asked_for(client):
    estimator = k_means().fit(clustered())
    rows = da.zeros((10, 3), chunks=5).map_blocks(_fails, dtype=float)
    lazy = estimator.predict(rows)
    with pytest.raises(ZeroDivisionError):
        lazy.compute()


def _fails(block):
    raise ZeroDivisionError


def test_a_row_that_is_not_finite_is_named_when_it_is_met(client):
    X = clustered()
    estimator = k_means().fit(in_memory(X))
    X[333, 0] = np.nan
    lazy = estimator.predict(on_dask(X))
    with pytest.raises(ValueError, match=r"X: row 333\b"):
        lazy.compute()


def test_other_numbers_of_features_are_refused(client):
    with pytest.raises(ValueError, match="X has 4 features, but KMeans is expecting 3"):
        k_means().fit(clustered()).predict(da.zeros((10, 4)))


def test_labels_are_of_the_chunks_of_the_data(client):
    X = clustered()
    found = k_means(search="graph").fit(on_dask(X))
    assert isinstance(found.labels_, da.Array)
    assert found.labels_.chunks == (on_dask(X).chunks[0],)
    np.testing.assert_array_equal(found.labels_.compute(), k_means(search="graph").fit(in_memory(X)).labels_)


@pytest.mark.long
def test_batches_of_partial_fit(client):
    X = clustered()
    found, expected = k_means(init=X[:6]), k_means(init=X[:6])
    for rows in np.array_split(X, 3):
        found.partial_fit(on_dask(rows, 40))
        expected.partial_fit(in_memory(rows, 40))
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)


@pytest.mark.parametrize("make", [k_means, mixture])
@pytest.mark.long
def test_what_was_fitted_on_a_cluster_is_saved(make, client, tmp_path):
    X = clustered()
    found = make().fit(on_dask(X))
    found.save(tmp_path / "model.safetensors")
    loaded = cprime.load(tmp_path / "model.safetensors")
    assert isinstance(loaded.labels_, np.ndarray)
    assert_same(loaded, make().fit(in_memory(X)))


@pytest.mark.parametrize(("search", "weighted"), [("full", False), ("graph", True), ("bounded", False)])
@pytest.mark.long
def test_a_checkpoint_goes_on_with_the_same_collection(search, weighted, client, tmp_path, monkeypatch):
    monkeypatch.setattr("cprime.persistence.checkpoints._SHARE", float("inf"))
    X = clustered()
    given, weights = on_dask(X), da.from_array(random_weights(len(X)), chunks=CHUNK) if weighted else None
    expected = k_means(search=search).fit(in_memory(X), sample_weight=random_weights(len(X)) if weighted else None)
    for passes in (1, 3):
        estimator = k_means(search=search, checkpoint=str(tmp_path / str(passes)))
        assert died(estimator, passes, given, sample_weight=weights)
        with pytest.raises(ValueError, match="cannot be resumed without X"):
            cprime.resume(tmp_path / str(passes))
        other = X + 1
        with pytest.raises(ValueError, match="its data"):
            cprime.resume(tmp_path / str(passes), on_dask(other), weights)
        found = cprime.resume(tmp_path / str(passes), given, weights)
        assert isinstance(found.labels_, np.ndarray)
        assert_same(found, expected)


@pytest.mark.long
def test_a_checkpoint_of_a_cluster_goes_on_without_one(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("cprime.persistence.checkpoints._SHARE", float("inf"))
    X = clustered()
    with distributed.Client(cluster):
        assert died(k_means(metric="cosine", checkpoint=str(tmp_path / "folder")), 4, on_dask(X))
    assert_same(cprime.resume(tmp_path / "folder", on_dask(X)), k_means(metric="cosine").fit(in_memory(X)))


@pytest.mark.long
def test_a_closed_client_is_an_error_that_says_so(cluster):
    with distributed.Client(cluster) as client:
        given = on_dask(clustered()).persist()
        client.close()
        with pytest.raises(RuntimeError, match="the current client of Dask is closed"):
            k_means().fit(on_dask(clustered()))
    with pytest.raises(RuntimeError, match="no Client active"):  # its persisted data are lost with the client
        k_means().fit(given)


@pytest.mark.long
def test_workers_may_join_late(cluster, client):
    X = clustered(2000)
    estimator = k_means(search="graph", max_iter=12)

    def callback(row):
        if row["iteration"] == 2:
            cluster.scale(3)
            client.wait_for_workers(3, timeout=30)

    estimator.set_params(callbacks=callback)
    try:
        assert_same(estimator.fit(on_dask(X)), k_means(search="graph", max_iter=12).fit(in_memory(X)))
        assert len(client.nthreads()) == 3
    finally:
        cluster.scale(2)


@pytest.mark.long
def test_the_scheduler_forgets_what_has_been(client, monkeypatch):
    monkeypatch.setattr("cprime.execution.distributed._LIGHT", 0)
    X, seen = np.random.default_rng(0).standard_normal((3200, 6)), []
    estimator = KMeans(40, init=X[:40], search="full", max_iter=30, tol=0)

    def n_tasks():
        return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

    def callback(row):
        before = after = n_tasks()
        for _ in range(50):  # the scheduler deletes unused data after a short delay
            sleep(0.02)
            before, after = after, n_tasks()
            if before == after:
                break
        seen.append(after)

    estimator.set_params(callbacks=callback)
    estimator.fit(on_dask(X, 200))
    assert len(seen) == 30
    assert max(seen[17:]) <= max(seen[:17]) + 4


def test_large_jobs_are_no_warning(client):
    X = da.random.default_rng(0).standard_normal((1500, 1000), chunks=(500, -1)).persist()
    centers = X[:1400].compute()
    assert centers.nbytes > 10 * 2**20  # Dask warns if more is sent with tasks
    KMeans(1400, init=centers, search="full", max_iter=1).fit(X)


@pytest.mark.parametrize("estimator", [k_means(), mixture()], ids=["k-means", "mixture"])
def test_labels_and_distances_are_lazy_on_a_cluster(estimator, client):
    X = clustered()
    estimator = estimator.fit(in_memory(X))
    found = estimator.nearest(on_dask(X))
    assert all(hasattr(one, "compute") for one in found)
    for one, expected in zip(found, estimator.nearest(in_memory(X)), strict=True):
        assert one.dtype == expected.dtype
        np.testing.assert_allclose(one.compute(), expected, rtol=1e-6)


def test_results_on_a_cluster_have_no_other_place(client):
    X = clustered()
    with pytest.raises(ValueError, match="out must be None for Dask collections on a cluster"):
        k_means().fit(in_memory(X)).predict(on_dask(X), out="labels.npy")
