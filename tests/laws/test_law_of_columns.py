"""Law: a permutation of the columns of the data and of the initial parameters permutes the result."""

import numpy as np
import pytest
from registry import POOR_FITS_PASS, check_close, configurations, estimator_of, points_of, rounding_of, start_of

pytestmark = POOR_FITS_PASS
# Methods whose results do not depend on the order of columns.
METHODS = ("predict", "predict_proba", "score_samples", "uncertainty", "score")
# Estimators that draw directions in the space of the columns, have one column, accept no initial centers, or whose
# initial means are in another order than the columns (a test of `MixedMixture` permutes these).
EXCEPTED = ("XMeans", "GMeans", "KMeans1D", "ResidualKMeans", "MixedMixture")
# Regressions of the last column (tests/mixtures/test_regression_mixture.py permutes the others).
EXCEPTED += ("RegressionMixture", "RegressionMixture, poisson", "RegressionMixture, concomitant")


def permuted(value, order):
    """Return an initial parameter for permuted columns: an array (C, D), or a list with an array for each column."""
    if isinstance(value, list):
        return [value[k] for k in order]
    return value[:, order] if np.ndim(value) == 2 else value


@pytest.mark.parametrize(
    "each",
    configurations(
        lambda each: (
            each.rows == "float64"
            and each.execution == "array"
            and each.estimator not in EXCEPTED
            # In a graph search of DP-means, rounding decides which centers jump.
            and (each.estimator, each.search) != ("DPMeans", "graph")
        )
    ),
)
def test_a_permutation_of_columns_permutes_the_result(each):
    X, weights = points_of(each)
    order = np.roll(np.arange(X.shape[1])[::-1], 1)
    start, found = start_of(each, X, weights), []
    for columns in (np.arange(X.shape[1]), order):
        given = {name: permuted(value, columns) for name, value in start.items()}
        fit = estimator_of(each, max_iter=12, **given).fit(X[:, columns], sample_weight=weights)
        found.append({name: np.asarray(getattr(fit, name)(X[:, columns])) for name in METHODS if hasattr(fit, name)})
    check_close(*reversed(found), rounding_of(each))
