"""The bootstrap and the jackknife have the standard errors of closed forms, and count the resamples that fail."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from cprime import CategoricalMixture, GaussianMixture, KMeans, PoissonMixture, StudentTMixture, open_data
from cprime.selection import bootstrap
from cprime.selection.bootstrap import matched

RNG = np.random.default_rng(0)
ONE = RNG.normal(3.0, 2.0, (200, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
LABELS = np.repeat([0, 1], [60, 140])
TWO = np.array([[0.0, 0], [40, 0]])[LABELS] + RNG.normal(size=(200, 2)) * [1.0, 2.0]
COUNTS = RNG.poisson(np.array([[2, 50], [60, 4]])[LABELS])
CODES = (RNG.random((200, 8)) < np.where(LABELS, 0.95, 0.05)[:, np.newaxis]).astype(int)
MIXTURES = [
    *(partial(GaussianMixture, covariance_type=each) for each in ("full", "tied", "diag", "spherical")),
    partial(GaussianMixture, covariance_type="tied_spherical"),
    partial(StudentTMixture, dof=50.0),
]


def arrays_of(found):
    return found.replicates | {f"error of {name}": value for name, value in found.standard_errors.items()}


def check_same(found, expected):
    for name, value in arrays_of(expected).items():
        np.testing.assert_array_equal(arrays_of(found)[name], value, name)


@pytest.mark.parametrize("estimator", [KMeans(1), GaussianMixture(1)])
def test_the_jackknife_of_a_mean_is_its_closed_form(estimator):
    X = ONE[:50]
    found = bootstrap(estimator.fit(X), X, kind="jackknife")
    name = "cluster_centers_" if isinstance(estimator, KMeans) else "means_"
    np.testing.assert_allclose(found.standard_errors[name][0], X.std(axis=0, ddof=1) / np.sqrt(50), rtol=1e-9)
    np.testing.assert_allclose(found.bias[name], 0, atol=1e-9)
    np.testing.assert_allclose(found.center_covariances[0], np.cov(X.T) / 50, rtol=1e-9)
    if name == "means_":  # the maximum likelihood estimate of a variance has the bias −σ²/N
        variances = np.diagonal(found.estimates["covariances_"][0] - 1e-6 * np.eye(2))
        np.testing.assert_allclose(np.diagonal(found.bias["covariances_"][0]), -variances / 49, rtol=1e-6)


@pytest.mark.parametrize("kind", ["nonparametric", "parametric", "weighted"])
def test_standard_errors_of_a_gaussian_are_closed_forms(kind):
    found = bootstrap(GaussianMixture().fit(ONE), ONE, 120, kind=kind, random_state=0)
    S = np.cov(ONE.T, ddof=0)
    np.testing.assert_allclose(found.standard_errors["means_"][0], np.sqrt(np.diag(S) / 200), rtol=0.25)
    expected = np.sqrt((np.outer(np.diag(S), np.diag(S)) + S**2) / 200)
    np.testing.assert_allclose(found.standard_errors["covariances_"][0], expected, rtol=0.3)
    lower, upper = found.interval(0.9)["means_"]
    assert (np.abs((upper - lower) / (2 * 1.645 * found.standard_errors["means_"]) - 1) < 0.2).all()


@pytest.mark.parametrize("make", MIXTURES)
def test_standard_errors_of_separated_clusters_are_closed_forms(make):
    found = bootstrap(make(2, random_state=0).fit(TWO), TWO, 60, random_state=0)
    assert found.n_failed == found.n_unconverged == 0
    np.testing.assert_allclose(found.standard_errors["weights_"], np.sqrt(0.3 * 0.7 / 200), rtol=0.3)
    first = found.estimates["means_"][:, 0] < 20
    sizes = np.where(first, 60, 140)[:, np.newaxis]
    np.testing.assert_allclose(found.standard_errors["means_"] * np.sqrt(sizes), [[1.0, 2.0]] * 2, rtol=0.35)


@pytest.mark.parametrize(
    ("estimator", "X", "name"),
    [
        (PoissonMixture(2, random_state=0), COUNTS, "rates_"),
        (CategoricalMixture(2, random_state=0), CODES, "probabilities_[0]"),
    ],
)
def test_discrete_mixtures_have_standard_errors_of_their_parameters(estimator, X, name):
    found = bootstrap(estimator.fit(X), X, 40, random_state=0)
    value, sizes = found.estimates[name], 200 * found.estimates["weights_"][:, np.newaxis]
    variances = value if name == "rates_" else value * (1 - value)
    np.testing.assert_allclose(found.standard_errors[name], np.sqrt(variances / sizes), rtol=0.5)
    assert "means_" not in found.estimates


@pytest.mark.parametrize("kind", ["nonparametric", "jackknife"])
@pytest.mark.parametrize("estimator", [KMeans(2, random_state=0), GaussianMixture(2, random_state=0)])
def test_a_weight_of_two_is_a_repeated_point(estimator, kind):
    X, w = TWO[:60:2] * [0.1, 1.0], np.array([1.0, 2.0, 0.0] * 10)
    repeated = np.repeat(X, w.astype(int), axis=0)
    found = bootstrap(estimator.fit(X, sample_weight=w), X, 6, kind=kind, sample_weight=w, random_state=0)
    expected = bootstrap(estimator.fit(repeated), repeated, 6, kind=kind, random_state=0)
    for name, value in arrays_of(expected).items():
        np.testing.assert_allclose(arrays_of(found)[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["nonparametric", "weighted", "jackknife"])
def test_sources_and_threads_give_the_same_bits(tmp_path, kind):
    np.save(tmp_path / "X.npy", TWO)
    weights, sources = np.tile([1.0, 3.0], 100), (open_data(tmp_path / "X.npy"), open_data(TWO))
    for estimator in (KMeans(3, random_state=0), GaussianMixture(2, random_state=0)):
        fit = estimator.fit(sources[0], sample_weight=weights)
        given = {"n_resamples": 4, "kind": kind, "sample_weight": weights, "random_state": 1}
        expected = bootstrap(fit, sources[0], n_threads=1, **given)
        check_same(bootstrap(fit, sources[1], n_threads=3, **given), expected)
        check_same(bootstrap(fit, sources[0].with_weights(weights), **given | {"sample_weight": None}), expected)


def test_frames_and_arrays_give_the_same_bits():
    frame = pd.DataFrame(TWO, columns=["a", "b"])
    found = bootstrap(GaussianMixture(2, random_state=0).fit(frame), frame, 3, random_state=0)
    check_same(found, bootstrap(GaussianMixture(2, random_state=0).fit(TWO), TWO, 3, random_state=0))


def test_the_estimator_is_unchanged_and_components_are_matched():
    fit = GaussianMixture(2, means_init=[[0.0, 0], [0.1, 0]], random_state=0).fit(TWO)
    before = {name: str(value) for name, value in vars(fit).items()}
    bootstrap(fit, TWO, 2, random_state=0)
    assert {name: str(value) for name, value in vars(fit).items()} == before
    other = GaussianMixture(2, means_init=fit.means_[::-1], random_state=1).fit(TWO)
    assert matched(fit, other).tolist() == [1, 0]


def test_concentric_components_are_matched_by_their_variances():
    X = np.concatenate([RNG.normal(size=(300, 2)), 9 * RNG.normal(size=(300, 2))])
    fits = [
        GaussianMixture(
            2,
            means_init=np.zeros((2, 2)),
            precisions_init=precisions,
            weights_init=[0.5, 0.5],
            covariance_type="spherical",
        ).fit(X)
        for precisions in ([1.0, 0.01], [0.01, 1.0])
    ]
    assert matched(*fits).tolist() == [1, 0]


def test_failed_resamples_are_counted():
    X = np.concatenate([np.linspace(0.0, 1.0, 20), [99.0]])[:, np.newaxis]
    fit = GaussianMixture(2, means_init=[[0.5], [99.0]], reg_covar=1e-6).fit(X)
    with pytest.warns(UserWarning, match=r"[1-9]\d* of 40 resamples failed and are left out, and \d+ refits did not"):
        found = bootstrap(fit, X, 40, random_state=0)
    assert 5 < found.n_failed < 25  # a resample lacks the outlier with probability 1/e
    assert len(found.replicates["means_"]) == 40 - found.n_failed
    assert f"{40 - found.n_failed} resamples, {found.n_failed} failed" in repr(found)


def test_a_bootstrap_is_a_table():
    found = bootstrap(KMeans(2, random_state=0).fit(TWO), TWO, 5, random_state=0)
    title, names, *rows = repr(found).splitlines()
    assert title == "Bootstrap (nonparametric, 5 resamples); intervals of 95 %"
    assert names.split() == ["parameter", "estimate", "standard_error", "bias", "lower", "upper"]
    assert len(rows) == 5
    frame = found.to_frame()
    assert frame["parameter"].tolist()[1:] == [f"cluster_centers_[{i}]" for i in ("0, 1", "1, 0", "1, 1")] + [
        "variance_"
    ]
    assert frame["estimate"][0] == found.estimates["cluster_centers_"][0, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_resamples": 1}, "n_resamples == 1, must be >= 2"),
        ({"kind": "bayesian"}, "kind must be one of"),
        ({"kind": "parametric"}, "kind='parametric' needs a mixture, which has a density, got KMeans"),
        ({"kind": "jackknife", "n_resamples": 201}, "n_resamples must be at most 200, .* got 201"),
        ({"kind": "jackknife", "sample_weight": np.full(200, 0.5)}, "sample_weight must have whole numbers"),
        ({"sample_weight": np.full(200, 0.005)}, "sample_weight must sum to the number of points"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        bootstrap(KMeans(2, random_state=0).fit(TWO), TWO, **given)


def test_other_estimators_and_levels_are_refused():
    with pytest.raises(TypeError, match=r"estimator must be a KMeans .* got ndarray"):
        bootstrap(TWO, TWO)
    found = bootstrap(KMeans(1).fit(TWO), TWO, 5, kind="jackknife")
    with pytest.raises(ValueError, match="method must be 'normal' for a jackknife"):
        found.interval(method="percentile")
    with pytest.raises(ValueError, match=r"level must be between 0 and 1, got 1\.5"):
        found.interval(1.5)
