"""k-means of rows with missing values: distances use observed values only, and centers are means of these."""

import numpy as np
import pytest

from cprime import KMeans, load

C, D = 8, 5


def groups(n, dtype=np.float64, share=0.3):
    """Return rows of C groups, and a copy with missing values in which one row is missing completely."""
    rng = np.random.default_rng(0)
    places = 8 * rng.normal(size=(C, D))
    X = (np.repeat(places, n, axis=0) + rng.normal(size=(C * n, D))).astype(dtype)
    holed = X.copy()
    holed[rng.random(X.shape) < share] = np.nan
    holed[3] = np.nan
    return X, holed


def squares(X, centers):
    """Return squared distances over observed values, (n, C)."""
    return np.array([np.where(np.isnan(X), 0.0, X - center) ** 2 for center in centers]).sum(axis=2).T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "search"), [(10, "full"), (200, "graph")])
def test_labels_distances_and_j_are_over_what_is_observed(n, search, dtype):
    X = groups(n, dtype)[1]
    km = KMeans(C, missing="marginal", search=search, random_state=0).fit(X)
    expected = squares(X.astype(np.float64), km.cluster_centers_.astype(np.float64))
    close = {"rtol": 1e-4, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    assert (km.labels_ == expected.argmin(axis=1)).all()
    assert (km.predict(X) == km.labels_).all()
    assert km.inertia_ == pytest.approx(expected.min(axis=1).sum(), rel=1e-5)
    assert km.score(X) == pytest.approx(-km.inertia_, rel=1e-5)
    np.testing.assert_allclose(km.transform(X) ** 2, expected, **close)
    np.testing.assert_allclose(km.nearest(X)[1] ** 2, expected.min(axis=1), **close)


def test_centers_are_the_means_of_what_is_observed():
    X = groups(100)[1]
    km = KMeans(C, missing="marginal", tol=0, max_iter=500, random_state=0).fit(X)
    for c, center in enumerate(km.cluster_centers_):
        np.testing.assert_allclose(center, np.nanmean(X[km.labels_ == c], axis=0), atol=1e-6)
    assert km.bounds(X).free_energy == pytest.approx(km.lower_bound_, abs=1e-9)
    assert (np.diff(km.lower_bounds_) > -1e-9).all()


def test_where_nothing_is_missing_the_bits_are_those_of_complete_data():
    X = groups(100)[0]
    found, expected = (KMeans(C, missing=missing, random_state=0).fit(X) for missing in ("marginal", "error"))
    assert (found.cluster_centers_ == expected.cluster_centers_).all()
    assert (found.labels_ == expected.labels_).all()
    assert (found.predict(X) == expected.predict(X)).all()


def test_gaps_take_the_place_of_their_center(tmp_path):
    whole, X = groups(100)
    km = KMeans(C, missing="marginal", n_init=8, random_state=0).fit(X)
    km.save(tmp_path / "m.safetensors")
    filled = load(tmp_path / "m.safetensors").impute(X)
    np.testing.assert_array_equal(filled, np.where(np.isnan(X), km.cluster_centers_[km.labels_], X))
    away = np.square(filled - whole)[4:][np.isnan(X[4:])].mean()
    assert away < 0.25 * np.square(np.nanmean(X, axis=0) - whole)[4:][np.isnan(X[4:])].mean()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"search": "bounded"}, "another search than 'bounded'"),
        ({"metric": "cosine"}, "needs metric='euclidean'"),
        ({"epsilon": 0.1}, "needs epsilon=0"),
        ({"jumps": True}, "needs jumps='auto' or False"),
    ],
)
def test_what_goes_by_whole_rows_is_refused(more, message):
    with pytest.raises(ValueError, match=message):
        KMeans(C, missing="marginal", **more).fit(groups(10)[1])
