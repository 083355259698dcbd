"""k-medians: steps of the plain algorithm, exact medians."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from cprime import KMeans, KMedians
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
