"""`predict(approximate=True)` builds what it searches by once, and again where there are other centers."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from estimator_data import clustered
from sklearn.base import clone

from cprime import KMeans, load
from cprime.neighbors import Cells

C = 60
X = clustered(1500, 3, n_clusters=40)
OTHER = clustered(800, 3, seed=1, n_clusters=40)


@pytest.fixture
def built(monkeypatch):
    """A list that grows by one with every structure of cells that is made."""
    made, begin = [], Cells.__init__

    def counted(self, *given, **named):
        made.append(1)
        begin(self, *given, **named)

    monkeypatch.setattr(Cells, "__init__", counted)
    return made


def fitted(search="graph", X=X, **changes):
    return KMeans(C, search=search, **({"n_threads": 1, "random_state": 0} | changes)).fit(X)


def count(built, action):
    before = len(built)
    action()
    return len(built) - before


def near(km, X):
    """The share of points whose approximate center is the nearest."""
    return np.mean(km.predict(X, approximate=True) == km.predict(X))


@pytest.mark.parametrize("search", ["graph", "exact", "full"])
def test_it_is_built_once(search, built):
    km = fitted(search)
    first = []

    def thrice():
        first.append(km.predict(X, approximate=True))
        np.testing.assert_array_equal(km.predict(X, approximate=True), first[0])
        km.predict(OTHER, approximate=True)

    assert count(built, thrice) <= 1
    assert count(built, lambda: km.predict(X, approximate=True)) == 0
    assert near(km, X) > 0.95


def test_results_do_not_depend_on_what_was_asked_before():
    alone, after = fitted(), fitted()
    after.predict(X[:10], approximate=True)
    np.testing.assert_array_equal(after.predict(OTHER, approximate=True), alone.predict(OTHER, approximate=True))
    np.testing.assert_array_equal(
        after.predict(OTHER[:200], approximate=True), alone.predict(OTHER, approximate=True)[:200]
    )


@pytest.mark.parametrize("search", ["graph", "full"])
def test_a_new_fit_begins_anew(search):
    km = fitted(search)
    km.predict(X, approximate=True)
    shifted = OTHER * 3 + 50
    km.set_params(n_clusters=C // 2).fit(shifted)
    assert near(km, shifted) > 0.95
    fresh = KMeans(C // 2, search=search, n_threads=1, random_state=0).fit(shifted)
    np.testing.assert_array_equal(km.predict(X, approximate=True), fresh.predict(X, approximate=True))


def test_a_batch_begins_anew():
    km = fitted(learning_decay=0.6)
    km.predict(X, approximate=True)
    for _ in range(5):
        km.partial_fit(OTHER * 3 + 50)
        km.predict(OTHER, approximate=True)
    copy = pickle.loads(pickle.dumps(km))
    np.testing.assert_array_equal(km.predict(OTHER, approximate=True), copy.predict(OTHER, approximate=True))
    assert near(km, OTHER * 3 + 50) > 0.95


def test_copies_and_files_do_not_carry_it(tmp_path):
    km = fitted()
    pickled = pickle.dumps(km)
    km.save(tmp_path / "before")
    expected = km.predict(OTHER, approximate=True)
    assert abs(len(pickle.dumps(km)) - len(pickled)) < 200
    km.save(tmp_path / "after")
    assert (tmp_path / "after").stat().st_size == (tmp_path / "before").stat().st_size
    assert not hasattr(clone(km), "cluster_centers_")
    for other in (pickle.loads(pickled), pickle.loads(pickle.dumps(km)), deepcopy(km), load(tmp_path / "after")):
        np.testing.assert_array_equal(other.predict(OTHER, approximate=True), expected)
        other.set_params(n_clusters=30).fit(X)
        assert near(other, X) > 0.95
    np.testing.assert_array_equal(km.predict(OTHER, approximate=True), expected)


def test_copies_build_their_own_once(built):
    km = fitted()
    km.predict(X, approximate=True)
    other = pickle.loads(pickle.dumps(km))
    assert count(built, lambda: [other.predict(X, approximate=True) for _ in range(3)]) <= 1
    other.set_params(n_clusters=30).fit(X + 100)
    assert count(built, lambda: [km.predict(X, approximate=True) for _ in range(3)]) == 0
    assert near(km, X) > 0.95


def test_it_serves_any_number_of_threads():
    km = fitted()
    expected = km.predict(OTHER, approximate=True)
    np.testing.assert_array_equal(km.set_params(n_threads=3).predict(OTHER, approximate=True), expected)
