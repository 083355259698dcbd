"""The fourteen covariance families of Celeux & Govaert, by mclust's names, in fits of `GaussianMixture`."""

import numpy as np
import pytest

from cprime import GaussianMixture, StudentTMixture
from cprime.estimators.covariances import MCLUST_ALIASES
from cprime.model import FAMILIES, STUDENT_T
from fits import clustered

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
