"""k-medians: steps of the plain algorithm, exact medians."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cprime import KMeans, KMedians, LaplaceMixture
from cprime.em.medians import medians


@pytest.fixture(params=[(300, 2), (2000, 6)], ids=["300x2", "2000x6"])
def X(request):
    n, D = request.param
    rng = np.random.default_rng(0)
    return 5 * rng.normal(size=(7, D))[rng.integers(7, size=n)] + rng.laplace(size=(n, D))


def test_every_step_is_that_of_the_algorithm(X):
    steps = []
    km = KMedians(7, init=X[:7], callbacks=lambda row, now: steps.append(now.cluster_centers_.copy())).fit(X)
    centers, labels = X[:7], None
    for found, row in zip(steps, km.history_, strict=True):
        distances = cdist(X, centers, "cityblock")
        before, labels = labels, distances.argmin(axis=1)
        assert row["inertia"] == pytest.approx(distances.min(axis=1).sum())
        assert row["n_moved"] == (len(X) if before is None else np.count_nonzero(before != labels))
        if row["n_moved"]:
            centers = np.array([np.median(X[labels == c], axis=0) for c in range(7)])
        np.testing.assert_allclose(found, centers, rtol=1e-12)
    assert km.converged_
    assert (np.diff(km.history_["inertia"]) <= 0).all()
    assert km.inertia_ == pytest.approx(-km.score(X))
    assert (km.predict(X) == km.labels_).all()
    np.testing.assert_allclose(km.transform(X), cdist(X, km.cluster_centers_, "cityblock"), rtol=1e-12)


def test_a_weighted_median_has_half_of_the_weight_on_each_side():
    X = np.arange(6.0)[:, np.newaxis]
    zeros = np.zeros(6, dtype=int)
    for weights, expected in [
        ([1, 1, 1, 1, 1, 1], 2.5),
        ([5, 1, 1, 1, 1, 0], 0.0),
        ([0, 3, 0, 0, 3, 0], 2.5),
        ([0.1] * 6, 2.5),
    ]:
        assert medians(X, zeros, np.array(weights, dtype=float), X[:1])[0, 0] == expected


def test_it_is_less_moved_by_outliers_than_k_means():
    rng = np.random.default_rng(0)
    X = np.concatenate(
        [rng.normal(size=(200, 2)), rng.normal(size=(200, 2)) + 10, np.array([0, 60]) + rng.normal(size=(10, 2))]
    )
    init = [[0.0, 0.0], [10.0, 10.0]]
    off = [np.abs(fit(2, init=init).fit(X).cluster_centers_[1] - 10).max() for fit in (KMedians, KMeans)]
    assert off[0] < 0.5 < 2 < off[1]


def distances_of(X, centers):
    """Return L1 distances (n, C) over the values of X that are not NaN."""
    return np.nansum(np.abs(X[:, np.newaxis] - centers), axis=2)


@pytest.mark.parametrize("weighted", [False, True])
def test_missing_values_leave_distances_and_medians(X, weighted):
    rng = np.random.default_rng(1)
    X = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    X[:7], X[50] = np.nan_to_num(X[:7]), np.nan
    weights = rng.integers(0, 3, len(X)) if weighted else np.ones(len(X), dtype=int)
    km = KMedians(7, init=X[:7], missing="marginal").fit(X, sample_weight=weights)
    centers, before, J = X[:7], None, []
    while True:
        labels = distances_of(X, centers).argmin(axis=1)
        J.append(float(weights @ distances_of(X, centers).min(axis=1)))
        if before is not None and (labels[weights > 0] == before[weights > 0]).all():
            break
        rows = [np.repeat(X[labels == c], weights[labels == c], axis=0) for c in range(7)]
        centers, before = np.stack([np.nanmedian(each, axis=0) for each in rows]), labels
    np.testing.assert_allclose(km.history_["inertia"], J, rtol=1e-12)
    assert (np.diff(J) <= 0).all()
    np.testing.assert_allclose(km.cluster_centers_, centers, rtol=1e-12)
    np.testing.assert_array_equal(km.labels_, labels)
    np.testing.assert_array_equal(km.predict(X), labels)
    np.testing.assert_allclose(km.transform(X), distances_of(X, centers), rtol=1e-12, atol=1e-12)
    assert km.score(X, sample_weight=weights) == pytest.approx(-km.inertia_) == pytest.approx(-J[-1])


def test_missing_values_are_as_in_the_laplace_mixture_of_hard_assignments(X):
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X)
    start = np.nan_to_num(X[:7])
    km = KMedians(7, init=start, missing="marginal").fit(X)
    options = {"covariance_type": "tied_spherical", "weights": "equal", "assignment": "hard", "search": "full"}
    lm = LaplaceMixture(7, means_init=km.cluster_centers_, missing="marginal", **options).fit(X)
    np.testing.assert_allclose(lm.means_, km.cluster_centers_, rtol=1e-12)
    np.testing.assert_array_equal(lm.labels_, km.labels_)


def test_complete_rows_have_the_same_result_with_both_options(X):
    one, other = (KMedians(7, random_state=0, missing=missing).fit(X) for missing in ("error", "marginal"))
    np.testing.assert_array_equal(one.cluster_centers_, other.cluster_centers_)


def test_missing_values_need_the_option_and_a_value_in_every_column():
    X = np.array([[0.0, np.nan], [1.0, np.nan], [9.0, np.nan]])
    with pytest.raises(ValueError, match=r'Use KMedians\(missing="marginal"\)'):
        KMedians(2).fit(X)
    with pytest.raises(ValueError, match="X must have a value in every column, got none in column 1"):
        KMedians(2, missing="marginal").fit(X)
    X[0, 1], X[2, 1] = 3.0, 5.0
    with pytest.raises(ValueError, match="got none in column 1"):
        KMedians(1, missing="marginal").fit(X, sample_weight=[0, 1, 0])
    with pytest.raises(ValueError, match="missing must be"):
        KMedians(2, missing="no").fit(X)
    km = KMedians(2, missing="marginal", init=X[[0, 2]]).fit(X)
    assert km.cluster_centers_.tolist() == [[0.5, 3.0], [9.0, 5.0]]
