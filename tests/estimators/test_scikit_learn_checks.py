"""scikit-learn's own estimator checks pass, with no expected failures."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cprime import GaussianMixture, KMeans, StudentTMixture


class KeepsTwo(GaussianMixture):
    """Mixture with two active components per point, or one in checks that set n_components to 1."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "n_components" and type(value) is int and value == 1:
            self.n_active = 1


@pytest.mark.filterwarnings("ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        KMeans(),
        KMeans(n_clusters=2, epsilon=0.1),
        GaussianMixture(covariance_type="tied_spherical", weights="equal"),
        GaussianMixture(n_components=3, covariance_type="tied_spherical", weights="equal"),
        KeepsTwo(n_components=3, n_active=2, covariance_type="tied_spherical", weights="equal"),
        GaussianMixture(n_components=2, n_active=1, covariance_type="tied_spherical", weights="equal"),
        GaussianMixture(),
        GaussianMixture(n_components=3),
        GaussianMixture(n_components=2, covariance_type="diag", assignment="hard"),
        GaussianMixture(n_components=2, covariance_type="tied"),
        # posteriors are so sharp that the single draw of a point of weight 2 equals the two draws of two equal points
        GaussianMixture(n_components=2, covariance_type="diag", weights="equal", assignment="posterior"),
        KeepsTwo(n_components=3, n_active=2, covariance_type="full"),
        StudentTMixture(n_components=2),
    ]
)
def test_estimator_passes(estimator, check):
    check(estimator)
