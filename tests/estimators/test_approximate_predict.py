"""Approximate predictions build their search structure once, and again after parameters have changed."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone

from cprime import GaussianMixture, KMeans, load
from cprime.neighbors import Cells, CenterIndex
from fits import clustered

pytestmark = pytest.mark.usefixtures("cells_for_few")
C = 60
X = clustered(1500, 3, n_clusters=40)
OTHER = clustered(800, 3, seed=1, n_clusters=40)


@pytest.fixture
def built(monkeypatch):
    """Return a list that grows by one whenever a `Cells` structure is built."""
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
    """Return the share of points whose approximate prediction is the nearest center."""
    return np.mean(km.predict(X, approximate=True) == km.predict(X))


@pytest.mark.parametrize("search", ["graph", "exact", "full"])
def test_the_structure_is_built_once(search, built):
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


def test_copies_build_a_structure_of_their_own_once(built):
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


def test_centers_that_are_set_by_hand_count():
    km = fitted()
    km.predict(X, approximate=True)
    km.cluster_centers_ = np.ascontiguousarray(km.cluster_centers_[::-1])
    assert near(km, X) > 0.95


TYPES = ["tied_spherical", "spherical", "tied", "diag", "full"]


def mixed(covariance_type="diag", **changes):
    options = {"covariance_type": covariance_type, "n_active": 3, "random_state": 0, "max_iter": 5, "tol": 0.5}
    return GaussianMixture(40, **options | changes).fit(X)


@pytest.mark.parametrize("covariance_type", TYPES)
def test_probabilities_are_mostly_the_exact_ones(covariance_type):
    gm = mixed(covariance_type)
    exact, found = (gm.predict_proba(OTHER, sparse=True, approximate=a) for a in (False, True))
    assert found.shape == (len(OTHER), 40)
    assert found.dtype == exact.dtype
    np.testing.assert_array_equal(np.diff(found.indptr), 3)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    sets = (found.indices.reshape(-1, 3) == exact.indices.reshape(-1, 3)).all(axis=1)
    assert sets.mean() > 0.9
    np.testing.assert_allclose(found.data.reshape(-1, 3)[sets], exact.data.reshape(-1, 3)[sets], atol=1e-9)
    np.testing.assert_array_equal(gm.predict_proba(OTHER, approximate=True), found.toarray())
    assert np.mean(gm.predict(OTHER, approximate=True) == gm.predict(OTHER)) > 0.97


def test_where_every_component_has_a_probability_they_are_exact():
    gm = mixed(n_active=None)
    np.testing.assert_array_equal(gm.predict_proba(OTHER, approximate=True), gm.predict_proba(OTHER))


def test_a_mixture_builds_once_and_again_for_other_parameters(built):
    gm = mixed()

    def asked():
        gm.predict(X, approximate=True)
        gm.predict_proba(OTHER, sparse=True, approximate=True)
        gm.certify(X)

    assert count(built, asked) == 1
    gm.means_ = gm.means_[::-1].copy()
    gm.covariances_ = gm.covariances_[::-1].copy()
    gm.precisions_cholesky_ = gm.precisions_cholesky_[::-1].copy()
    gm.weights_ = gm.weights_[::-1].copy()
    assert count(built, lambda: gm.predict(X, approximate=True)) == 1
    assert np.mean(gm.predict(X, approximate=True) == gm.predict(X)) > 0.97
    assert count(built, lambda: pickle.loads(pickle.dumps(gm)).predict(X, approximate=True)) == 1


def test_rows_whose_cells_hold_few_get_all_probabilities():
    rows = np.repeat([0.0, 1.0, 3.0, 7.0, 15.0], 4)[:, np.newaxis] * [1.0, 2.0]
    gm = GaussianMixture(5, n_active=4, covariance_type="tied_spherical", random_state=0).fit(rows)
    gm.means_[1:4] = gm.means_[0]  # coincident components are listed once in the cells
    expected = gm.predict_proba(rows, sparse=True)
    found = gm.predict_proba(rows, sparse=True, approximate=True)
    np.testing.assert_array_equal(np.diff(found.indptr), 4)
    np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-12)


def test_a_certificate_says_how_good_they_are(monkeypatch):
    km = fitted()
    monkeypatch.setattr(CenterIndex.__init__, "__defaults__", (1,))
    assert near(km, OTHER) < 1
    found = km.certify(OTHER, len(OTHER))
    assert found["n_points"] == len(OTHER)
    assert found["agreement"] == near(km, OTHER)
    rows, labels = np.arange(len(OTHER)), km.predict(OTHER, approximate=True)
    squares = np.square(OTHER[:, np.newaxis] - km.cluster_centers_).sum(axis=2)
    excess = squares[rows, labels].sum() / squares.min(axis=1).sum() - 1
    assert found["relative_excess"] == pytest.approx(excess, rel=1e-6)
    some = km.certify(OTHER, 100)
    assert some["n_points"] == 100
    assert some["agreement_interval"][0] <= some["agreement"] <= some["agreement_interval"][1]
    assert some == km.certify(OTHER, 100)


def test_a_certificate_of_a_mixture_is_of_what_a_row_keeps():
    gm = mixed("full")
    assert 0 <= gm.certify(OTHER)["shortfall"] < 0.05
    assert gm.set_params(n_active=None).fit(X).certify(OTHER)["agreement"] > 0.97


@pytest.mark.parametrize(("n_points", "error"), [(0, ValueError), (2.5, TypeError), (-3, ValueError)])
def test_an_empty_sample_is_refused(n_points, error):
    with pytest.raises(error, match="n_points"):
        fitted().certify(X, n_points)


def test_few_components_are_all_looked_at(monkeypatch, built):
    for few in ("_FEW", "_FEW_OF_WALKS"):
        monkeypatch.setattr(f"cprime.search.nearby.{few}", 16384)
    km = fitted("full")
    assert count(built, lambda: km.predict(OTHER, approximate=True)) == 0
    assert near(km, OTHER) == 1
