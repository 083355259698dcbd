"""`partial_fit` with many clusters searches batches in cells that are reused and follow the centers."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from cprime import KMeans, load
from cprime.em import batches
from cprime.kernels import Dense, as_rows
from cprime.neighbors import OnlineCenterIndex

C, D, N = 600, 8, 2000


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(batches, "MANY", 500)


@pytest.fixture
def built(monkeypatch):
    """Return a list that grows by one whenever an `OnlineCenterIndex` is built."""
    made, begin = [], OnlineCenterIndex.__init__

    def counted(self, *given):
        made.append(1)
        begin(self, *given)

    monkeypatch.setattr(OnlineCenterIndex, "__init__", counted)
    return made


def batch(seed, shift=0.0, dtype=np.float32):
    """Return points around centers that are the same for every seed."""
    places = 4 * np.random.default_rng(99).standard_normal((150, D))
    rng = np.random.default_rng(seed)
    return (places[rng.integers(150, size=N)] + rng.standard_normal((N, D)) + shift).astype(dtype)


def online(n_batches, search="auto", drift=0.0, dtype=np.float32, **given):
    km = KMeans(C, search=search, random_state=0, **given)
    for i in range(n_batches):
        km.partial_fit(batch(i, drift * i, dtype))
    return km


@pytest.mark.parametrize("search", ["auto", "graph"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centers_are_as_good_as_by_the_exact_search(search, dtype, built):
    found, exact = online(10, search, dtype=dtype), online(10, "full", dtype=dtype)
    held_out = batch(100, dtype=dtype)
    assert found.score(held_out) > 1.01 * exact.score(held_out)
    assert found.final_assignment_ == "found"
    assert found.cluster_centers_.dtype == dtype
    assert found.counts_.sum() == 10 * N
    assert found.history_["n_distances"][-1] < exact.history_["n_distances"][-1] / 2
    assert sum(built) <= 2


def test_most_labels_are_those_of_the_nearest_centers():
    km = online(8)
    before, X = km.cluster_centers_.copy(), batch(50)
    km.partial_fit(X)
    labels, squares = Dense(X).nearest(before)
    assert np.mean(km.labels_ == labels[:, 0]) > 0.9
    assert km.inertia_ < 1.05 * squares.sum()


@pytest.mark.parametrize("search", ["full", "bounded", "exact", "estimated"])
def test_other_searches_look_at_all_centers(search, built):
    km, full = online(3, search), online(3, "full")
    assert km.final_assignment_ == "exact"
    assert not hasattr(km, "structure_")
    np.testing.assert_array_equal(km.cluster_centers_, full.cluster_centers_)
    assert not built


def test_batches_for_which_an_exact_search_is_cheap_get_one(built):
    km = KMeans(C, random_state=0).partial_fit(batch(0)[: C + 10])
    assert km.final_assignment_ == "exact"
    assert not built


def test_it_is_kept_while_centers_stay_and_made_anew_when_they_drift(built):
    online(6)
    steady = len(built)
    km = online(14, drift=3.0, learning_decay=0.6)
    assert steady == 1 < len(built) - steady < 14
    X = batch(14, 14 * 3.0)
    before = km.cluster_centers_.copy()
    km.partial_fit(X)
    assert km.inertia_ < 1.05 * Dense(X).nearest(before)[1].sum()


def test_centers_are_where_the_structure_has_them():
    km = online(4)
    cells = km._online_cells
    assert cells.centers is km.cluster_centers_
    again = OnlineCenterIndex.from_dict(cells.as_dict(), km.cluster_centers_)
    for found, expected in zip(cells.near.find(as_rows(batch(9))), again.near.find(as_rows(batch(9))), strict=True):
        np.testing.assert_array_equal(found, expected)
    labels, squares, _ = cells.near.find(as_rows(batch(9)))
    truth = np.square(batch(9) - km.cluster_centers_[labels[:, 0]]).sum(axis=1)
    np.testing.assert_allclose(squares[:, 0], truth, rtol=1e-4)


@pytest.mark.parametrize("copied", ["pickle", "file", "again"])
def test_copies_go_on_to_the_same_bits(copied, tmp_path):
    km = online(4)
    km.predict(batch(3), approximate=True)
    if copied == "pickle":
        other = pickle.loads(pickle.dumps(km))
    elif copied == "file":
        km.save(tmp_path / "model")
        other = load(tmp_path / "model")
    else:
        other = online(4)
    for i in range(4, 8):
        for model in (km, other):
            model.partial_fit(batch(i, 2.0 * (i > 5)))
    np.testing.assert_array_equal(km.cluster_centers_, other.cluster_centers_)
    np.testing.assert_array_equal(km.labels_, other.labels_)


def test_threads_change_nothing():
    one, three = online(4, n_threads=1), online(4, n_threads=3)
    np.testing.assert_array_equal(one.cluster_centers_, three.cluster_centers_)


def test_a_batch_that_fails_leaves_the_model_and_its_structure(monkeypatch):
    km, other = online(4), online(4)
    with monkeypatch.context() as patch:
        patch.setattr("cprime.estimators.batches.adopt", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            km.partial_fit(batch(4))
    for model in (km, other):
        model.partial_fit(batch(5))
    np.testing.assert_array_equal(km.cluster_centers_, other.cluster_centers_)


def test_a_fit_forgets_the_structure_and_batches_go_on_from_it():
    km = online(3)
    km.set_params(tol=0.1).fit(batch(7))
    assert not hasattr(km, "structure_")
    assert km.partial_fit(batch(8)).final_assignment_ == "found"


def test_sparse_rows_are_compared_with_all_centers(built):
    graph, full = (KMeans(C, search=search, jumps=False, random_state=0) for search in ("graph", "full"))
    for i in range(3):
        X = csr_array(np.maximum(batch(i), 0))
        graph.partial_fit(X)
        full.partial_fit(X)
    np.testing.assert_array_equal(graph.cluster_centers_, full.cluster_centers_)
    assert graph.final_assignment_ == "exact"
    assert not built


def test_weights_count_as_repeats():
    X, weights = batch(1), np.random.default_rng(0).integers(1, 3, N)
    weighted, repeated = online(1), online(1)
    weighted.partial_fit(X, sample_weight=weights)
    repeated.partial_fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-4)
    np.testing.assert_allclose(weighted.counts_, repeated.counts_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("search", ["full", "graph"])
def test_a_center_that_wins_nothing_stays_to_the_last_bit(search, dtype):
    km = online(2, search, dtype=dtype)
    before, X = km.cluster_centers_.copy(), batch(3, dtype=dtype)
    km.partial_fit(X, sample_weight=np.arange(N) % 2)
    won = np.bincount(km.labels_[1::2], minlength=C) > 0
    assert 0 < won.sum() < C
    np.testing.assert_array_equal(km.cluster_centers_[~won], before[~won])
    assert (km.cluster_centers_[won] != before[won]).any(axis=1).mean() > 0.9


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("order", lambda a: a + np.int32(1)),
        ("order", np.zeros_like),
        ("begins", lambda a: a[::-1].copy()),
        ("begins", lambda a: a + 1),
        ("coarse", lambda a: a[:, :-1]),
        ("home", lambda a: a - np.int32(1)),
        ("home", lambda a: a[:-1]),
        ("clumped", lambda n: 2),
        ("won", lambda n: -1.0),
    ],
)
def test_a_structure_that_no_batch_leaves_is_refused(name, change, tmp_path):
    km = online(2)
    km.structure_ = km.structure_ | {name: change(km.structure_[name])}
    with pytest.raises(ValueError, match="structure_"):
        km.save(tmp_path / "model")
