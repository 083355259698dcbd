"""The fourteen covariance families of Celeux & Govaert, by mclust's names, in fits of `GaussianMixture`."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from cprime import GaussianMixture, StudentTMixture
from cprime.datasets import old_faithful
from cprime.estimators.covariances import MCLUST_ALIASES, MCLUST_FAMILIES
from cprime.model import FAMILIES, STUDENT_T
from fits import clustered
from reference.covariance_families import em

X = 3 * clustered(90, 3, "float64", spread=1.5)


def fit(covariance_type, X=X, C=3, cls=GaussianMixture, **options):
    return cls(C, covariance_type=covariance_type, **{"random_state": 0, "tol": 0.01} | options).fit(X)


@pytest.mark.parametrize(("cls", "families"), [(GaussianMixture, FAMILIES), (StudentTMixture, STUDENT_T)])
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


def test_bic_is_that_published_for_mclust():
    """mclust reports −561.7285 and −2314.32, which are 2 log L − k log N; its EM ends earlier in the second case."""
    X = load_iris().data
    assert fit("VEV", X, 2, n_init=3, reg_covar=0, tol=1e-6).bic(X) == pytest.approx(561.7285, abs=1e-3)
    X = old_faithful().data
    assert fit("EEE", X, 3, n_init=3, reg_covar=0, tol=1e-6, max_iter=1000).bic(X) == pytest.approx(2314.32, abs=0.03)
