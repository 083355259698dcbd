"""`cprime.faiss.Kmeans` has the signature and attributes of FAISS's class, and its objective is no worse."""

import logging

import numpy as np
import pytest

pytest.importorskip("faiss", reason="faiss is not installed")

import faiss as original

from cprime import faiss, open_data
from cprime.datasets import clusters
from cprime.search import Graph

D, K = 8, 20
NOT_SPARSE = {"min_points_per_centroid": 1}


@pytest.fixture(scope="module")
def x():
    return clusters(1500, K, D, random_state=0).data.astype(np.float32)


def trained(x, module=faiss, **kwargs):
    kmeans = module.Kmeans(D, K, **NOT_SPARSE, **kwargs)
    return kmeans, kmeans.train(x)


def test_a_program_finds_all_other_names():
    assert faiss.IndexFlatL2 is original.IndexFlatL2
    assert {"Kmeans", "train_ivf", "IndexIVFFlat"} <= set(dir(faiss))
    with pytest.raises(AttributeError, match="no_such"):
        _ = faiss.no_such


def test_attributes_are_those_of_faiss(x):
    ours, theirs = trained(x)[0], trained(x, original)[0]
    assert set(vars(theirs)) - set(vars(ours)) == set()
    assert (ours.centroids.shape, ours.centroids.dtype) == (theirs.centroids.shape, theirs.centroids.dtype)
    assert (ours.obj.dtype, type(ours.index)) == (theirs.obj.dtype, type(theirs.index))
    assert ours.index.ntotal == K
    assert [set(row) for row in ours.iteration_stats] == [set(theirs.iteration_stats[0])] * len(ours.obj)
    for name in ("niter", "nredo", "seed", "spherical"):
        assert getattr(ours.cp, name) == getattr(theirs.cp, name)


def test_the_objective_is_that_of_the_centroids_and_no_worse_than_theirs(x):
    (ours, objective), (_, theirs) = trained(x), trained(x, original, nredo=3)
    distances, ids = ours.assign(x)
    exact = ((x[:, np.newaxis].astype(float) - ours.centroids) ** 2).sum(axis=2)
    np.testing.assert_array_equal(ids, exact.argmin(axis=1))
    assert objective == ours.obj[-1] == pytest.approx(exact.min(axis=1).sum(), rel=1e-5)
    assert objective == pytest.approx(distances.sum(), rel=1e-3)
    assert objective <= 1.02 * theirs
    assert (distances.dtype, ids.dtype) == (np.float32, np.int64)


def test_weights_repeat_points(x):
    weights = np.random.default_rng(0).integers(1, 4, len(x)).astype(np.float32)
    start = x[:K]
    one = faiss.Kmeans(D, K, niter=15, **NOT_SPARSE)
    one.train(x, weights=weights, init_centroids=start)
    other = faiss.Kmeans(D, K, niter=15, **NOT_SPARSE)
    other.train(np.repeat(x, weights.astype(int), axis=0), init_centroids=start)
    np.testing.assert_allclose(one.centroids, other.centroids, rtol=1e-4, atol=1e-4)
    assert one.obj[-1] == pytest.approx(other.obj[-1], rel=1e-5)
    assert one.iteration_stats[-1]["imbalance_factor"] == pytest.approx(other.iteration_stats[-1]["imbalance_factor"])


def test_the_same_start_goes_the_same_way_as_theirs(x):
    start = x[:K].copy()
    both = []
    for module in (faiss, original):
        kmeans = module.Kmeans(D, K, niter=8, **NOT_SPARSE)
        kmeans.train(x, init_centroids=start)
        both.append(kmeans)
    ours, theirs = both
    np.testing.assert_allclose(ours.obj[:-1], theirs.obj[: len(ours.obj) - 1], rtol=1e-4)
    np.testing.assert_allclose(ours.centroids, theirs.centroids, rtol=1e-3, atol=1e-3)
    imbalance = [[row["imbalance_factor"] for row in kmeans.iteration_stats[:8]] for kmeans in both]
    np.testing.assert_allclose(*imbalance, rtol=1e-3)


def test_spherical_centroids_have_length_one_and_the_objective_is_of_inner_products(x):
    x = np.vstack([x, np.zeros((2, D), np.float32)])
    start = x[:K] / np.linalg.norm(x[:K], axis=1, keepdims=True)
    ours = faiss.Kmeans(D, K, spherical=True, **NOT_SPARSE)
    objective = ours.train(x, init_centroids=start)
    np.testing.assert_allclose(np.linalg.norm(ours.centroids, axis=1), 1, rtol=1e-5)
    assert objective == pytest.approx((x @ ours.centroids.T).max(axis=1).sum(), rel=1e-4)
    assert isinstance(ours.index, original.IndexFlatIP)
    theirs = original.Kmeans(D, K, spherical=True, **NOT_SPARSE)
    theirs.train(x, init_centroids=start)
    assert objective >= 0.999 * theirs.obj[-1]
    np.testing.assert_allclose(ours.obj[0], theirs.obj[0], rtol=1e-4)


def test_integer_centroids_are_rounded(x):
    kmeans, objective = trained(10 * x, int_centroids=True)
    np.testing.assert_array_equal(kmeans.centroids, np.rint(kmeans.centroids))
    assert objective == pytest.approx(kmeans.assign(10 * x)[0].sum(), rel=1e-3)


def test_redone_fits_keep_the_best_and_may_stop_early(x):
    once, often = trained(x, seed=3)[1], trained(x, seed=3, nredo=4)[1]
    assert often <= once
    kmeans = trained(x, niter=100, early_stop_threshold=0.05)[0]
    changes = -np.diff(kmeans.obj[:-1]) / kmeans.obj[1:-1]
    assert (changes[:-1] > 0.05).all()
    assert len(kmeans.obj) < 20


def test_time_rises_and_splits_are_counted(x):
    kmeans = faiss.Kmeans(D, K, **NOT_SPARSE)
    far = np.vstack([x[: K - 1], np.full((1, D), 1e4, np.float32)])  # a centroid far from all vectors
    kmeans.train(x, init_centroids=far)
    times = [row["time"] for row in kmeans.iteration_stats]
    assert (np.diff(times) > 0).all()
    assert sum(row["nsplit"] for row in kmeans.iteration_stats) == kmeans.estimator.n_relocated_ >= 1


def test_all_points_are_used_unless_fewer_are_asked_for(x, caplog):
    assert len(trained(x)[0].estimator.labels_) == len(x)
    with caplog.at_level(logging.INFO, logger="cprime"):
        kmeans, _ = trained(x, max_points_per_centroid=30)
    assert len(kmeans.estimator.labels_) == 30 * K
    assert "max_points_per_centroid=30: the fit uses 600 of 1500 points" in caplog.text
    caplog.clear()
    faiss.Kmeans(D, 50).train(x)
    assert "x has 1500 points for 50 centroids, min_points_per_centroid expects 1950 points" in caplog.text


def test_files_and_sources_give_what_the_array_gives(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    expected = faiss.Kmeans(D, K, init_method=0, **NOT_SPARSE)
    start = x[:K]
    expected.train(x, init_centroids=start)
    for given in (tmp_path / "x.npy", str(tmp_path / "x.npy"), open_data(tmp_path / "x.npy", chunk_rows=400)):
        kmeans = faiss.Kmeans(D, K, **NOT_SPARSE)
        kmeans.train(given, init_centroids=start)
        np.testing.assert_allclose(kmeans.centroids, expected.centroids, rtol=1e-4, atol=1e-5)
    spherical = [faiss.Kmeans(D, K, spherical=True, **NOT_SPARSE) for _ in range(2)]
    found = [
        kmeans.train(given, init_centroids=start / np.linalg.norm(start, axis=1, keepdims=True))
        for kmeans, given in zip(spherical, (x, open_data(x, chunk_rows=400)), strict=True)
    ]
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_arguments_of_ours_go_through(x):
    told = []
    kmeans, _ = trained(x, search=Graph(9), n_threads=1, callbacks=lambda row: told.append(row))
    assert kmeans.estimator.certificate_["n_points"] == 1000
    assert kmeans.estimator.neighbors_.shape == (K, 9)
    assert len(told) == len(kmeans.obj)
    assert trained(x, niter=3)[0].estimator.n_iter_ <= 3


@pytest.mark.parametrize("module", [faiss, original], ids=["ours", "theirs"])
def test_vectors_are_assigned_to_the_centroids_as_they_are_now(x, module):
    kmeans = module.Kmeans(D, float(K), niter=2, **NOT_SPARSE)
    assert (kmeans.k, type(kmeans.k)) == (K, int)
    kmeans.train(x)
    kmeans.centroids = x[[3, 700, 5]]
    assert kmeans.assign(x[[5, 3]])[1].tolist() == [2, 0]
    kmeans.centroids[:] = 0
    np.testing.assert_allclose(kmeans.assign(x)[0], np.square(x).sum(axis=1), rtol=1e-5)


def test_reset_makes_the_object_untrained(x):
    kmeans = trained(x)[0]
    kmeans.reset(7)
    assert (kmeans.k, kmeans.centroids, kmeans.obj, kmeans.index.ntotal) == (7, None, None, 0)
    with pytest.raises(RuntimeError, match="train"):
        kmeans.assign(x)
    kmeans.train(x)
    assert kmeans.centroids.shape == (7, D)


@pytest.mark.parametrize(
    ("kwargs", "call", "error", "text"),
    [
        ({"foo": 3}, {}, TypeError, "'foo'"),
        ({"frozen_centroids": True}, {}, ValueError, "frozen_centroids"),
        ({"int_centroids": True, "spherical": True}, {}, ValueError, "int_centroids"),
        ({"niter": 0}, {}, ValueError, "niter == 0"),
        ({"search": "none"}, {}, ValueError, "search"),
        ({}, {"x": np.zeros((30, 5))}, ValueError, r"\(n, d=8\), got \(30, 5\)"),
        ({}, {"x": np.zeros(8)}, ValueError, r"\(n, d=8\), got \(8,\)"),
        ({}, {"x": np.zeros((3, 8))}, ValueError, "at least k=20 rows, got 3"),
        ({}, {"x": np.full((30, 8), np.nan)}, ValueError, "NaN"),
        ({}, {"weights": np.ones(4)}, ValueError, r"weights must have shape \(1500,\)"),
        ({}, {"init_centroids": np.ones((4, 8))}, ValueError, r"init_centroids must have shape \(k=20, d=8\)"),
    ],
)
def test_errors_name_the_argument(x, kwargs, call, error, text):
    with pytest.raises(error, match=text):
        faiss.Kmeans(D, K, **NOT_SPARSE, **kwargs).train(**{"x": x, **call})


def test_an_unchanged_program_runs(x):
    """The example of FAISS's documentation runs unchanged, except for its data."""
    ncentroids, niter, verbose = 16, 20, False
    kmeans = faiss.Kmeans(x.shape[1], ncentroids, niter=niter, verbose=verbose, gpu=False, update_index=True)
    kmeans.train(x)
    distances, ids = kmeans.index.search(x, 1)
    assert distances.shape == ids.shape == (len(x), 1)
    index = faiss.IndexFlatL2(x.shape[1])
    index.add(x)
    nearest = index.search(kmeans.centroids, 15)[1]
    assert nearest.shape == (ncentroids, 15)
