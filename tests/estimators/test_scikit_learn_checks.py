"""scikit-learn's own estimator checks pass, except those with rows of zeros where only directions count."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import cprime
from cprime import GaussianMixture, KMeans, StudentTMixture

WITH_ZEROS = dict.fromkeys(
    [
        "check_estimators_dtypes",
        "check_estimator_sparse_tag",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
    ],
    "rows of zeros have no direction",
)


OF_STARTS = {"check_sample_weight_equivalence_on_dense_data": "starts draw rows, and the check reorders them"}


def failing(estimator):
    """Return the checks that an estimator does not pass, with the reason."""
    if hasattr(estimator, "concentration"):
        return WITH_ZEROS
    return OF_STARTS if isinstance(estimator, cprime.RegressionMixture) and estimator.n_components > 1 else {}


class KeepsTwo:
    """Estimator with two active components per point, or one in checks that ask for one component."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name in ("n_components", "n_clusters") and type(value) is int and value == 1:
            self.n_active = 1


class MixtureKeepsTwo(KeepsTwo, GaussianMixture):
    pass


class SoftKeepsTwo(KeepsTwo, cprime.SoftKMeans):
    pass


class FuzzyKeepsTwo(KeepsTwo, cprime.FuzzyKMeans):
    pass


class FirstColumn(cprime.KMeans1D):
    """`KMeans1D` on the first column, because scikit-learn's checks pass several columns."""

    def _column(self, X):
        return X[:, :1]


@pytest.mark.filterwarnings("ignore:.*fit their rows exactly:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:Number of distinct clusters:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        KMeans(),
        GaussianMixture(),
        StudentTMixture(n_components=2),
        cprime.LaplaceMixture(n_components=2),
        cprime.VonMisesFisherMixture(n_components=2),
        cprime.SoftKMeans(n_clusters=3, stiffness=2.0),
        cprime.FuzzyKMeans(n_clusters=3, regularizer="entropy"),
        cprime.KMedoids(),
        cprime.KMedians(n_clusters=3),
        FirstColumn(n_clusters=2),
        cprime.ResidualKMeans(n_clusters=3, n_levels=2),
        cprime.RegressionMixture(),
        cprime.RegressionMixture(n_components=2),
        cprime.XMeans(min_clusters=2, max_clusters=4, n_active=2),
        cprime.GMeans(max_clusters=4),
        cprime.DPMeans(3.5),
        cprime.MixtureClassifier(n_components=(1, 2)),
    ],
    expected_failed_checks=failing,
)
def test_every_class_passes_the_checks(estimator, check):
    check(estimator)


@pytest.mark.long
@parametrize_with_checks(
    [
        KMeans(n_clusters=2, epsilon=0.1),
        GaussianMixture(n_components=3, covariance_type="tied_spherical", weights="equal"),
        GaussianMixture(n_components=2, covariance_type="tied"),
        # posteriors are so sharp that the single draw of a point of weight 2 equals the two draws of two equal points
        GaussianMixture(n_components=2, covariance_type="diag", weights="equal", assignment="sampled"),
        MixtureKeepsTwo(n_components=3, n_active=2, covariance_type="full"),
        SoftKeepsTwo(n_clusters=3, n_active=2),
        FuzzyKeepsTwo(n_clusters=3, n_active=2),
        cprime.KMedoids(n_clusters=3, method="alternate", metric="manhattan"),
        cprime.MixtureClassifier(),
        cprime.MixtureClassifier(GaussianMixture(missing="marginal"), n_components=1, covariance_type=["EEE", "VVI"]),
    ]
)
def test_other_arguments_pass_the_checks(estimator, check):
    check(estimator)
