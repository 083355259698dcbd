"""Stability finds the number of separated clusters, is reproducible, and takes what the estimators take."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import adjusted_rand_score

from cprime import FuzzyKMeans, GaussianMixture, KMeans
from cprime.selection import stability

RNG = np.random.default_rng(0)
CENTERS = np.array([[0.0, 0], [9, 0], [0, 9], [9, 9], [20, 4]])
LABELS = RNG.integers(5, size=400)
X = CENTERS[LABELS] + RNG.normal(size=(400, 2))


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(),
        *(
            pytest.param(each, marks=pytest.mark.long)
            for each in (GaussianMixture(covariance_type="spherical"), KMeans(search="full"))
        ),
    ],
)
def test_the_number_of_separated_clusters_is_most_stable(estimator):
    found = stability(estimator, X, range(2, 9), n_resamples=6, random_state=0)
    assert found.best_n_clusters() == 5
    assert found.mean[3] > 0.99
    assert (found.mean[4:] < 0.97).all()
    assert found.agreement.shape == (7, 6)


def test_agreement_is_that_of_fits_to_halves():
    found = stability(KMeans(), X, 3, n_resamples=1, random_state=5)
    rng = np.random.RandomState(5)
    order, seed = rng.permutation(400), int(rng.randint(2**31))
    labels = [KMeans(3, random_state=seed).fit(X[np.sort(half)]).predict(X) for half in (order[:200], order[200:])]
    assert found.agreement[0, 0] == adjusted_rand_score(*labels)
    assert np.isnan(found.standard_error).all()


def test_kinds_of_data_agree():
    pd = pytest.importorskip("pandas")
    expected = stability(KMeans(), X, [2, 5], n_resamples=2, random_state=0).agreement
    for data in (X.tolist(), pd.DataFrame(X, columns=["a", "b"]), csr_array(X)):
        np.testing.assert_allclose(
            stability(KMeans(), data, [5, 2], n_resamples=2, random_state=0).agreement, expected, atol=0.02
        )


def test_stability_is_a_table_and_a_picture():
    pytest.importorskip("pandas")
    found = stability(KMeans(), X, [3, 5], n_resamples=3, random_state=0)
    assert "best n_clusters: 5" in repr(found)
    assert list(found.to_frame().columns) == ["n_clusters", "agreement", "standard_error"]
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="plots need matplotlib")
    pyplot.switch_backend("Agg")
    ax = found.plot()
    assert found.plot(ax=ax) is ax
    assert ax.get_title(loc="left") == "best: 5"
    pyplot.close("all")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"n_clusters": 1}, ValueError, "n_clusters == 1, must be >= 2"),
        ({"n_clusters": 201}, ValueError, "n_clusters must be at most 200, half the number of rows, got 201"),
        ({"n_clusters": []}, ValueError, "n_clusters must have at least one entry"),
        ({"n_clusters": 3, "n_resamples": 0}, ValueError, "n_resamples"),
        (
            {"n_clusters": 3, "estimator": FuzzyKMeans()},
            TypeError,
            "a KMeans or a mixture, .* got FuzzyKMeans",
        ),
    ],
)
def test_wrong_arguments_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        stability(**{"estimator": KMeans(), "X": X} | given)
