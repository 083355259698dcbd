"""`cprime.faiss.Kmeans(progressive_dim_steps=)` runs k-means with more and more principal components, as FAISS does."""

import ctypes
import logging
import re
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("faiss", reason="faiss is not installed")

import faiss as original

from cprime import faiss, open_data
from cprime.faiss.principal import Coordinates
from cprime.faiss.progressive import dimensions

D, K = 16, 20
NOT_SPARSE = {"min_points_per_centroid": 1}


def decaying(n, d=D, k=3 * K, seed=0):
    """Return clustered rows (n, d) far from 0 whose variance falls along rotated axes."""
    rng = np.random.default_rng(seed)
    places = 4 * rng.normal(size=(k, d)) + 50
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    rows = (places[rng.integers(k, size=n)] + rng.normal(size=(n, d))) * 0.7 ** np.arange(d)
    return (rows @ axes).astype(np.float32)


@pytest.fixture(scope="module")
def x():
    return decaying(3000)


def trained(x, module=faiss, steps=4, weights=None, **kwargs):
    kmeans = module.Kmeans(x.shape[1], K, progressive_dim_steps=steps, **NOT_SPARSE, **kwargs)
    kmeans.train(x) if weights is None else kmeans.train(x, weights=weights)
    return kmeans


def squared_error(x, centroids, weights=1.0):
    rows, centroids = x.astype(np.float64), centroids.astype(np.float64)
    return float((weights * np.square(rows[:, np.newaxis] - centroids).sum(axis=2).min(axis=1)).sum())


@pytest.mark.parametrize("apply_pca", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_objective_is_within_two_percent_of_theirs(x, seed, apply_pca):
    ours = trained(x, seed=seed, apply_pca=apply_pca)
    theirs = trained(x, original, seed=seed, apply_pca=apply_pca, nredo=3)
    assert ours.obj[-1] <= 1.02 * squared_error(x, theirs.centroids)
    assert ours.obj[-1] == pytest.approx(squared_error(x, ours.centroids), rel=1e-5)


@pytest.mark.long
def test_it_is_better_than_all_dimensions_at_once_on_the_data_of_their_own_test():
    rng = np.random.RandomState(1338)  # a curved surface of 10 dimensions in 32, as in FAISS's synthetic data
    rows = rng.normal(size=(10000, 10)) @ rng.rand(10, 32)
    rows = np.sin(rows * (rng.rand(32) * 4 + 0.1)).astype(np.float32)
    plain, progressive = faiss.Kmeans(32, 50), faiss.Kmeans(32, 50, progressive_dim_steps=5)
    assert progressive.train(rows) < plain.train(rows)
    assert progressive.obj[-1] < plain.obj[-1]


def test_attributes_are_those_of_faiss(x):
    ours, theirs = trained(x, search="full", early_stop_threshold=0), trained(x, original)
    assert type(ours.cp) is type(theirs.cp)
    for name in ("niter", "progressive_dim_steps", "apply_pca", "nredo", "seed"):
        assert getattr(ours.cp, name) == getattr(theirs.cp, name)
    assert ours.centroids.shape == theirs.centroids.shape
    assert [set(row) for row in ours.iteration_stats] == [set(theirs.iteration_stats[0])] * len(ours.obj)
    assert list(ours.obj) == [row["obj"] for row in ours.iteration_stats]
    assert ours.index.ntotal == K
    np.testing.assert_array_equal(ours.assign(x)[1], ours.estimator.labels_)
    assert isinstance(trained(x, gpu=True).index, original.IndexFlatL2)


def test_steps_follow_each_other_in_rising_dimensions(x, caplog):
    with caplog.at_level(logging.INFO, logger="cprime"):
        kmeans = trained(x, niter=2)
    said = [record.message for record in caplog.records if record.message.startswith("step ")]
    assert said == [f"step {i} of 4: k-means in {m} of 16 dimensions" for i, m in enumerate((2, 4, 8), 1)]
    assert len(kmeans.obj) == 4 * 2
    found = np.split(kmeans.obj, 4)
    for step in found:
        assert (np.diff(step) <= 0).all()
    for before, after in pairwise(found):  # the same centroids, with squared differences in more coordinates
        assert after[0] >= before[-1]


def test_verbose_says_the_steps(x, capsys):
    trained(x, steps=3, niter=2, verbose=True)
    err = capsys.readouterr().err
    assert "step 1 of 3: k-means in 2 of 16 dimensions" in err
    assert "step 2 of 3: k-means in 6 of 16 dimensions" in err


@pytest.mark.parametrize(
    ("d", "steps", "expected"),
    [(16, 4, [2, 4, 8, 16]), (32, 5, [2, 4, 7, 16, 32]), (3, 5, [1, 1, 1, 2, 3]), (1, 2, [1, 1]), (7, 1, [7])],
)
def test_dimensions_are_powers_rounded_down_as_theirs(d, steps, expected, capfd):
    assert dimensions(d, steps) == expected
    clustering = original.ProgressiveDimClustering(d, 1)
    clustering.progressive_dim_steps, clustering.verbose, clustering.niter = steps, True, 1
    rows = np.random.default_rng(0).normal(size=(50, d)).astype(np.float32)
    clustering.train(len(rows), original.swig_ptr(rows), original.ProgressiveDimIndexFactory())
    ctypes.CDLL(None).fflush(None)
    assert [int(m) for m in re.findall(r"cluster in dimension (\d+)", capfd.readouterr().out)] == expected


def test_more_steps_than_dimensions_are_taken(x):
    ours, theirs = (trained(x[:, :3].copy(), module, steps=7) for module in (faiss, original))
    assert ours.obj[-1] <= 1.02 * theirs.obj[-1]


@pytest.mark.parametrize("steps", [1, 0, -2])
def test_one_step_or_less_is_a_plain_fit(x, steps):
    plain = faiss.Kmeans(D, K, niter=10, **NOT_SPARSE)
    plain.train(x)
    np.testing.assert_array_equal(trained(x, steps=steps).centroids, plain.centroids)
    assert trained(x, steps=steps).cp.niter == 10


def test_seeds_determine_the_fit_and_threads_do_not(x):
    first, again = trained(x, seed=5, n_threads=1), trained(x, seed=5, n_threads=3)
    np.testing.assert_array_equal(first.centroids, again.centroids)
    np.testing.assert_array_equal(first.obj, again.obj)
    assert not np.array_equal(trained(x, seed=6).centroids, first.centroids)
    first.train(x)
    np.testing.assert_array_equal(first.centroids, again.centroids)
    assert len(first.obj) == len(again.obj)


def test_weights_repeat_points_and_move_the_coordinates(x):
    weights = np.random.default_rng(0).integers(0, 4, len(x))
    repeated = np.repeat(x, weights, axis=0)
    one = Coordinates.principal(x, weights.astype(float), None)
    other = Coordinates.principal(repeated, None, None)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-10)
    np.testing.assert_allclose(np.abs(one.directions @ other.directions.T), np.eye(D), atol=1e-6)
    weighted = trained(x, weights=weights)
    assert weighted.obj[-1] == pytest.approx(squared_error(x, weighted.centroids, weights), rel=1e-5)
    assert weighted.obj[-1] <= 1.03 * trained(repeated).obj[-1]


def test_coordinates_are_the_principal_ones_and_lead_back(x):
    found = Coordinates.principal(x, None, None)
    rows = x.astype(np.float64)
    variances = np.var((rows - rows.mean(axis=0)) @ found.directions.T, axis=0)
    assert (np.diff(variances) < 0).all()
    np.testing.assert_allclose(variances, np.linalg.eigvalsh(np.cov(rows.T, bias=True))[::-1], rtol=1e-6)
    np.testing.assert_allclose(found.vectors(found.first(x, D)), x, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.vectors(found.first(x, 2)).mean(axis=0), rows.mean(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(Coordinates(np.zeros(D), np.eye(D)).first(x, 3), x[:, :3])


@pytest.mark.long
def test_files_and_sources_give_what_the_array_gives(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(x))
    for w in (None, weights):
        expected = trained(x, weights=w)
        for given in (tmp_path / "x.npy", open_data(tmp_path / "x.npy", chunk_rows=701)):
            kmeans = faiss.Kmeans(D, K, progressive_dim_steps=4, **NOT_SPARSE)
            assert kmeans.train(given, weights=w) <= 1.03 * expected.obj[-1]
            assert kmeans.obj[-1] == pytest.approx(squared_error(x, kmeans.centroids, 1 if w is None else w), rel=1e-5)
    inside = open_data(tmp_path / "x.npy", chunk_rows=701).with_weights(weights)
    kmeans = faiss.Kmeans(D, K, progressive_dim_steps=4, **NOT_SPARSE)
    assert kmeans.train(inside) == pytest.approx(squared_error(x, kmeans.centroids, weights), rel=1e-5)


def test_coordinates_of_a_source_are_rows_like_others(x):
    base = open_data(x, chunk_rows=500)
    coordinates = Coordinates.principal(base, None, None)
    found, expected = coordinates.first(base, 3), coordinates.first(x, 3)
    assert (found.shape, found.dtype, found.sizes) == ((3000, 3), np.float32, base.sizes)
    np.testing.assert_allclose(found.read(250, 1100), expected[250:1100], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.take([7, 2, 7]), expected[[7, 2, 7]], rtol=1e-4, atol=1e-4)
    assert found.fingerprint() != coordinates.first(base, 2).fingerprint() != base.fingerprint()


def test_integer_centroids_redone_and_points_drawn(x):
    rounded = trained(10 * x, int_centroids=True)
    np.testing.assert_array_equal(rounded.centroids, np.rint(rounded.centroids))
    assert rounded.obj[-1] == pytest.approx(squared_error(10 * x, rounded.centroids), rel=1e-5)
    assert trained(x, nredo=3).obj[-1] <= 1.05 * trained(x).obj[-1]
    assert len(trained(x, max_points_per_centroid=30).estimator.labels_) == 30 * K


def test_callbacks_see_all_steps_and_stay(x):
    told = []
    kmeans = trained(x, callbacks=lambda row: told.append(row["iteration"]))
    assert len(told) == len(kmeans.obj)
    assert told.count(1) == 4
    assert callable(kmeans.estimator.callbacks)


@pytest.mark.parametrize(
    ("kwargs", "call", "text"),
    [
        ({"spherical": True}, {}, "spherical=True is not served with progressive_dim_steps=4"),
        ({}, {"init_centroids": np.ones((K, D), np.float32)}, "init_centroids.* is not served with progressive_dim"),
        ({"init": np.ones((K, D))}, {}, "init.* is not served with progressive_dim_steps=4"),
        ({"checkpoint": "folder"}, {}, "checkpoint is not served with progressive_dim_steps=4"),
        ({}, {"x": np.full((30, D), np.nan)}, "NaN"),
        ({"apply_pca": False}, {"x": np.full((30, D), np.nan)}, "NaN"),
        ({}, {"x": np.zeros((3, D))}, "at least k=20 rows, got 3"),
        ({"search": "none"}, {}, "search"),
    ],
)
def test_errors_name_the_argument(x, kwargs, call, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=text):
        faiss.Kmeans(D, K, progressive_dim_steps=4, **NOT_SPARSE, **kwargs).train(**{"x": x, **call})
    assert list(tmp_path.iterdir()) == []


def test_what_goes_with_one_step_alone_is_served_there(x, tmp_path):
    faiss.Kmeans(D, K, progressive_dim_steps=1, spherical=True, **NOT_SPARSE).train(x, init_centroids=x[:K])
    with pytest.raises(TypeError, match="'apply_pca'"):
        faiss.Kmeans(D, K, apply_pca=True)
