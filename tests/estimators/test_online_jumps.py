"""`partial_fit` with the default initialization: J near that of a fit, small batches, drift, all kinds of rows."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from cprime import KMeans, load
from cprime.em import batches


def groups(n_groups, n, D=8, seed=0, spread=6.0):
    rng = np.random.default_rng(seed)
    places = spread * rng.standard_normal((n_groups, D))
    return places[rng.integers(n_groups, size=n)] + rng.standard_normal((n, D))


def online(X, C, rows, **given):
    km = KMeans(C, **{"random_state": 0, **given})
    for begin in range(0, X.shape[0], rows):
        km.partial_fit(X[begin : begin + rows])
    return km


@pytest.mark.parametrize(
    ("C", "D", "N", "rows"),
    [(4, 2, 400, 200), (60, 8, 12_000, 3000), (60, 8, 12_000, 300), (60, 8, 6000, 60)],
)
def test_batches_end_near_a_fit_of_all_rows(C, D, N, rows):
    X = groups(C, N, D)
    km, fit = online(X, C, rows), KMeans(C, random_state=0).fit(X)
    assert -km.score(X) < 1.03 * fit.inertia_
    assert km.counts_.sum() == N
    if C > 4:
        assert -online(X, C, rows, jumps=False).score(X) > 1.035 * fit.inertia_


@pytest.mark.parametrize("given", [{"metric": "cosine"}, {"jumps": True, "init": "random"}])
def test_jumps_work_with_other_metrics_and_starts(given):
    X = groups(40, 8000).astype(np.float32)
    km, fit = online(X, 40, 500, **given), KMeans(40, random_state=0, metric=given.get("metric", "euclidean")).fit(X)
    assert -km.score(X) < 1.05 * fit.inertia_
    assert km.cluster_centers_.dtype == np.float32


@pytest.mark.long
@pytest.mark.parametrize("rows", [250, 2500])
def test_new_groups_get_centers(rows):
    old, new = groups(50, 10_000, seed=1), groups(50, 40_000, seed=2)
    X, last = np.concatenate([old, new]), new[20_000:]
    best = KMeans(50, random_state=0).fit(last).inertia_
    forgetting = online(X, 50, rows, learning_decay=0.7)
    assert -forgetting.score(last) < 1.05 * best
    assert -online(X, 50, rows, learning_decay=0.7, jumps=False).score(last) > 3 * best
    equal, plain = online(X, 50, rows), online(X, 50, rows, jumps=False)
    assert -equal.score(X) < -0.9 * plain.score(X)


@pytest.mark.parametrize("given", [{"jumps": False}, {"search": "full"}, {"init": "k-means++"}])
def test_algorithms_chosen_by_name_are_not_altered(given):
    X = groups(10, 1000)
    km = KMeans(10, random_state=0, **given).partial_fit(X[:500])
    assert not hasattr(km, "recent_")
    centers, counts = km.cluster_centers_.copy(), km.counts_.copy()
    km.partial_fit(X[500:])
    won = np.bincount(km.labels_, minlength=10)
    sums = np.zeros_like(centers)
    np.add.at(sums, km.labels_, X[500:])
    np.testing.assert_allclose(km.cluster_centers_, (counts[:, np.newaxis] * centers + sums) / (counts + won)[:, None])


def test_rows_are_stored_only_until_there_are_enough():
    X = groups(10, 1000)
    km = KMeans(10, random_state=0)
    for i, n_stored in enumerate([60, 120, 180, 0, 60, 120, 180, 0, 60]):
        km.partial_fit(X[60 * i : 60 * (i + 1)])
        assert len(km.recent_["weights"]) == n_stored < batches.ENOUGH * 10
    assert len(km.partial_fit(X[:500]).recent_["weights"]) == 0
    assert not hasattr(km.fit(X), "recent_")


def test_first_batch_is_a_fit():
    X = groups(10, 1000)
    km, fit = KMeans(10, random_state=0).partial_fit(X), KMeans(10, random_state=0).fit(X)
    np.testing.assert_array_equal(km.cluster_centers_, fit.cluster_centers_)
    np.testing.assert_array_equal(km.labels_, fit.labels_)
    np.testing.assert_array_equal(km.counts_, fit.counts_)
    assert km.inertia_ == fit.inertia_


def test_batches_after_a_fit_move_centers():
    old, new = groups(30, 3000, seed=1), groups(30, 30_000, seed=2)
    km = KMeans(30, random_state=0, learning_decay=0.7).fit(old)
    for begin in range(0, len(new), 1000):
        km.partial_fit(new[begin : begin + 1000])
    assert -km.score(new) < 1.2 * KMeans(30, random_state=0).fit(new).inertia_


def test_threads_and_rows_without_weight_change_nothing():
    X, rng = groups(20, 2000), np.random.default_rng(0)
    weights = rng.exponential(size=2000) * (rng.random(2000) < 0.7)
    some = weights > 0
    models = [KMeans(20, random_state=0, n_threads=n) for n in (1, 3, None)]
    for begin in range(0, 2000, 250):
        rows = slice(begin, begin + 250)
        for km in models[:2]:
            km.partial_fit(X[rows], sample_weight=weights[rows])
        models[2].partial_fit(X[rows][some[rows]], sample_weight=weights[rows][some[rows]])
    for km in models[1:]:
        np.testing.assert_array_equal(km.cluster_centers_, models[0].cluster_centers_)
        np.testing.assert_array_equal(km.counts_, models[0].counts_)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_before", [1, 6])
@pytest.mark.parametrize("copied", ["pickle", "file"])
def test_copies_go_on_to_the_same_bits(copied, n_before, sparse, tmp_path):
    X = np.maximum(groups(20, 2000), 0)
    X = csr_array(X) if sparse else X
    km = online(X[: 100 * n_before], 20, 100, learning_decay=0.8)
    if copied == "pickle":
        other = pickle.loads(pickle.dumps(km))
    else:
        km.save(tmp_path / "model")
        other = load(tmp_path / "model")
    for begin in range(100 * n_before, 2000, 100):
        for each in (km, other):
            each.partial_fit(X[begin : begin + 100])
    np.testing.assert_array_equal(km.cluster_centers_, other.cluster_centers_)


@pytest.mark.long
def test_sparse_rows_end_near_a_fit():
    rng = np.random.default_rng(0)
    places = rng.exponential(size=(40, 100)) * (rng.random((40, 100)) < 0.1)
    X = csr_array(places[rng.integers(40, size=6000)] * (rng.random((6000, 100)) < 0.9))
    km, fit = online(X, 40, 200, jumps=True), KMeans(40, random_state=0, jumps=True).fit(X)
    assert -km.score(X) < 1.05 * fit.inertia_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X", np.zeros((3, 2))),
        ("labels", np.full(60, 10, dtype=np.int32)),
        ("weights", np.zeros(60)),
        ("shares", np.ones(3)),
        ("n_fitted", -1),
        ("more", 1),
    ],
)
def test_stored_rows_that_no_batch_leaves_are_refused(name, value, tmp_path):
    km = KMeans(10, random_state=0).partial_fit(groups(10, 60))
    km.recent_ = km.recent_ | {name: value}
    with pytest.raises(ValueError, match="recent_"):
        km.save(tmp_path / "model")
