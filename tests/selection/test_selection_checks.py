"""The estimators pass scikit-learn's own checks."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from cprime.selection import GMeans, XMeans


@parametrize_with_checks([XMeans(min_clusters=2, max_clusters=4, n_active=2), GMeans(max_clusters=4)])
def test_estimator_passes(estimator, check):
    check(estimator)
