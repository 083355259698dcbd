"""Data and estimators that tests of the scikit-learn interface share."""

import numpy as np

from cprime import GaussianMixture, KMeans

EQUAL = {"covariance_type": "tied_spherical", "weights": "equal"}
DTYPES = (np.float32, np.float64)
# Every kind of fit: hard, truncated soft, exact soft.
MAKERS = {
    "k-means": lambda C, **changes: KMeans(C, **changes),
    "mixture, C'=1": lambda C, **changes: GaussianMixture(C, n_active=1, **EQUAL, **changes),
    "mixture, C'=2": lambda C, **changes: GaussianMixture(C, n_active=min(2, C), **EQUAL, **changes),
    "mixture, C'=C": lambda C, **changes: GaussianMixture(C, n_active=None, **EQUAL, **changes),
}


def mixture(C=4, **changes):
    """Return a mixture of Lücke & Forster's model."""
    return GaussianMixture(C, **EQUAL, **changes)


def start_of(estimator):
    """Return the name of the argument for the initial centers."""
    return "init" if isinstance(estimator, KMeans) else "means_init"
