"""The likelihood ratio test rejects too few components, keeps its level, and stops at the first that is enough."""

import numpy as np
import pytest

from cprime import CategoricalMixture, GaussianMixture, KMeans
from cprime.selection import likelihood_ratio_test

RNG = np.random.default_rng(0)
TWO = np.concatenate([RNG.normal(size=(40, 1)), RNG.normal(8.0, 1.0, (40, 1))])


def test_two_separated_clusters_are_found_and_no_third():
    found = likelihood_ratio_test(GaussianMixture(), TWO, max_components=4, n_resamples=19, n_init=1, random_state=0)
    assert found.n_components.tolist() == [1, 2]
    assert found.p_value[0] == 1 / 20
    assert found.p_value[1] > 0.05
    assert found.n_components_ == 2
    one = (
        40
        * 2
        * (GaussianMixture(2, random_state=0, tol=1e-9).fit(TWO).score(TWO) - GaussianMixture(1).fit(TWO).score(TWO))
        * 2
    )
    assert found.statistic[0] == pytest.approx(one, rel=1e-4)
    assert (found.replicates >= 0).all()
    title, names, *rows = repr(found).splitlines()
    assert title == "Likelihood ratio tests, 19 resamples each; n_components at alpha=0.05: 2"
    assert names.split() == list(found.to_frame().columns)
    assert len(rows) == 2


def test_results_do_not_depend_on_threads_or_copies():
    few, weights = TWO[::5], np.tile([1.0, 2.0], 8)
    given = {"n_resamples": 3, "n_init": 1, "random_state": 0}
    found = likelihood_ratio_test(GaussianMixture(), few, sample_weight=weights, n_threads=1, **given)
    again = likelihood_ratio_test(GaussianMixture(), few, sample_weight=weights, n_threads=3, **given)
    copies = likelihood_ratio_test(GaussianMixture(), np.repeat(few, weights.astype(int), axis=0), **given)
    np.testing.assert_array_equal(found.replicates, again.replicates)
    assert found.statistic == pytest.approx(copies.statistic, rel=1e-3)


def test_latent_classes_are_tested():
    labels = RNG.integers(2, size=80)
    X = (RNG.random((80, 6)) < np.where(labels, 0.9, 0.1)[:, np.newaxis]).astype(int)
    found = likelihood_ratio_test(CategoricalMixture(), X, n_resamples=9, n_init=1, random_state=0)
    assert found.p_value.tolist() == [0.1]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*statistics would have been negative")
def test_p_values_of_a_true_number_are_uniform():
    data = [np.random.default_rng(seed).normal(size=(50, 1)) for seed in range(60)]
    estimator = GaussianMixture(covariance_type="tied_spherical")
    tests = [likelihood_ratio_test(estimator, X, n_resamples=19, n_init=1, random_state=0) for X in data]
    p = np.array([test.p_value[0] for test in tests])
    assert abs(p.mean() - 0.525) < 4 * np.sqrt(1 / 12 / 60)
    assert (p <= 0.1).mean() < 0.1 + 4 * np.sqrt(0.09 / 60)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"estimator": KMeans()}, TypeError, "estimator must be a mixture, from which data can be drawn"),
        ({"estimator": GaussianMixture(weights="equal")}, ValueError, "needs weights='free', got weights='equal'"),
        ({"estimator": GaussianMixture(missing="marginal")}, ValueError, "needs missing='error'"),
        ({"n_components": 3, "max_components": 3}, ValueError, "max_components == 3, must be >= 4"),
        ({"alpha": 1.0}, ValueError, r"alpha must be between 0 and 1, got 1\.0"),
        ({"n_components": 80}, ValueError, "X must have more than 81 points, .* got 80"),
        ({"n_resamples": 0}, ValueError, "n_resamples"),
    ],
)
def test_wrong_arguments_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        likelihood_ratio_test(**{"estimator": GaussianMixture(), "X": TWO} | given)
