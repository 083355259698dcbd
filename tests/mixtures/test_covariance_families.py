"""The fourteen covariance families of Celeux & Govaert, by mclust's names, in fits of `GaussianMixture`."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from cprime import BayesianGaussianMixture, GaussianMixture, StudentTMixture, load
from cprime.datasets import old_faithful
from cprime.estimators.covariances import MCLUST_ALIASES, MCLUST_FAMILIES
from cprime.model import FAMILIES, STUDENT_T
from fits import clustered
from reference.covariance_families import em

NINE = tuple(name for name in MCLUST_FAMILIES if MCLUST_ALIASES.get(name, "tied_diag") == "tied_diag")
X = 3 * clustered(90, 3, "float64", spread=1.5)


def fit(covariance_type, X=X, C=3, cls=GaussianMixture, **options):
    return cls(C, covariance_type=covariance_type, **{"random_state": 0, "tol": 0.01} | options).fit(X)


@pytest.mark.parametrize(
    ("cls", "families"),
    [
        (GaussianMixture, FAMILIES),
        (StudentTMixture, STUDENT_T),
        (BayesianGaussianMixture, BayesianGaussianMixture._families),
    ],
)
def test_a_name_of_mclust_gives_the_fit_of_the_family(cls, families):
    for alias, name in MCLUST_ALIASES.items():
        if name not in families:
            with pytest.raises(ValueError, match=f"covariance_type must be one of .*, got '{alias}'"):
                fit(alias, cls=cls)
            continue
        found, expected = fit(alias, cls=cls), fit(name, cls=cls)
        assert (found.get_params()["covariance_type"], found.covariance_type_) == (alias, name)
        np.testing.assert_array_equal(found.means_, expected.means_)
        np.testing.assert_array_equal(found.covariances_, expected.covariances_)
        if hasattr(found, "partial_fit"):  # checks that the argument is that of the fit
            assert found.partial_fit(X[:30]).covariance_type_ == name


@pytest.mark.parametrize("name", MCLUST_FAMILIES)
@pytest.mark.parametrize(
    ("n_classes", "n_steps"), [(2, 8), pytest.param(3, 100, marks=pytest.mark.long)], ids=["two", "three"]
)
def test_fits_of_iris_are_those_of_em_in_numpy(name, n_classes, n_steps):
    iris = load_iris()
    labels = np.minimum(iris.target, n_classes - 1)
    expected, q = em(name, iris.data, labels, n_steps)
    gm = fit(name, iris.data, n_classes, init_params=labels, reg_covar=0, tol=1e-9, max_iter=1000)
    assert len(iris.data) * gm.score(iris.data) == pytest.approx(expected, abs=1e-5)
    np.testing.assert_allclose(gm.predict_proba(iris.data), q, atol=1e-3)
    assert (np.diff(gm.lower_bounds_) > -1e-12).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", NINE)
def test_a_fit_can_be_stored_converted_continued_and_updated(name, tmp_path):
    gm = fit(name, reg_covar=0, max_iter=3, tol=0, warm_start=True)
    gm.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").score_samples(X), gm.score_samples(X))
    np.testing.assert_allclose(gm.to_sklearn().score_samples(X), gm.score_samples(X))
    given = {"means_init": gm.means_, "weights_init": gm.weights_, "precisions_init": gm.precisions_}
    again = fit(name, reg_covar=0, max_iter=1, tol=1e9, **given)
    assert again.lower_bound_ > gm.lower_bound_ - 1e-9
    bound = gm.lower_bound_
    assert gm.fit(X).lower_bound_ > bound - 1e-12
    assert np.isfinite(gm.partial_fit(X[::2]).score(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [3, 20])
@pytest.mark.parametrize("name", NINE)
def test_the_bound_never_falls_with_missing_values_and_momentum(name, C):
    rows = np.vstack([X] * 4) + np.random.default_rng(0).standard_normal((4 * len(X), 3))
    rows[::7, 1] = rows[3::11, 2] = np.nan
    gm = fit(name, rows, C, reg_covar=0, missing="marginal", max_iter=15, tol=1e-9, momentum=C > 3)
    assert (np.diff(gm.lower_bounds_) > -1e-9).all()


def test_bic_is_that_published_for_mclust():
    """mclust reports −561.7285 and −2314.32, which are 2 log L − k log N; its EM ends earlier in the second case."""
    X = load_iris().data
    assert fit("VEV", X, 2, n_init=3, reg_covar=0, tol=1e-6).bic(X) == pytest.approx(561.7285, abs=1e-3)
    X = old_faithful().data
    assert fit("EEE", X, 3, n_init=3, reg_covar=0, tol=1e-6, max_iter=1000).bic(X) == pytest.approx(2314.32, abs=0.03)
