"""scikit-learn's own tests of its Gaussian and Bayesian mixtures, with this library's classes."""

import numpy as np
import pytest
from their_tests import functions_of

from cprime.sklearn import GaussianMixture

pytestmark = [
    pytest.mark.usefixtures("served_here"),
    pytest.mark.filterwarnings("ignore"),  # scikit-learn's tests decide which warnings are errors
]
globals().update(functions_of("sklearn.mixture.tests.test_gaussian_mixture"))
globals().update(functions_of("sklearn.mixture.tests.test_bayesian_mixture"))


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_single_precision_far_from_zero_finds_the_groups(covariance_type):
    rng = np.random.default_rng(0)
    X = (2000 + 0.1 * rng.normal(size=(1000, 3)) + np.repeat([0, 1], 500)[:, np.newaxis]).astype(np.float32)
    labels = GaussianMixture(2, covariance_type=covariance_type, random_state=0).fit_predict(X)
    assert len(set(labels[:500])) == len(set(labels[500:])) == 1
    assert labels[0] != labels[-1]
