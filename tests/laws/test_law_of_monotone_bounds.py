"""Law: F never falls and the objective never rises within a fit, except for rounding.

The law is tested without draws from the posterior and without an addition to the variances, because these may lower F.
"""

import warnings

import numpy as np
import pytest
from registry import POOR_FITS_PASS, Configuration, configurations, estimator_of, executed, points_of

pytestmark = POOR_FITS_PASS


def is_monotone(each: Configuration) -> bool:
    """Return whether the fit has such a sequence."""
    return each.assignment != "sampled" and each.estimator not in ("KMeans1D", "XMeans", "GMeans", "ResidualKMeans")


def sequences(fit):
    """Yield sequences that never fall: F, or the negative objective, of each iteration and of the result."""
    history = getattr(fit, "history_", None)
    if hasattr(fit, "lower_bounds_"):
        yield np.array([*fit.lower_bounds_, fit.lower_bound_])
    else:
        yield -np.array(
            fit.objectives_
            if hasattr(fit, "objectives_")
            else history["objective" if "objective" in history.dtype.names else "inertia"]
        )
    if hasattr(fit, "n_relocated_"):  # k-means
        yield -np.array([*history["quantization_error"], fit.inertia_])


@pytest.mark.parametrize("each", configurations(is_monotone))
def test_the_bound_never_falls(each):
    X, weights = points_of(each)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = estimator_of(each, max_iter=8, reg_covar=0).fit(executed(each, X), sample_weight=weights)
    if any("singular covariance" in str(warning.message) for warning in caught):
        pytest.skip("the repair of singular covariances may lower F")
    rounding = 1e-6 if each.rows in ("float32", "uint8") else 1e-11
    if hasattr(fit, "score_samples"):
        has_prior = getattr(fit, "prior", None) is not None  # which F includes, up to a constant
        bound = fit.bounds(executed(each, X), weights).free_energy if has_prior else fit.lower_bound_
        assert bound <= fit.score(X, sample_weight=weights) + rounding * abs(bound)
    for values in sequences(fit):
        assert np.isfinite(values).all()
        assert len(values) > 1
        assert (np.diff(values) >= -rounding * np.abs(values).max()).all()
