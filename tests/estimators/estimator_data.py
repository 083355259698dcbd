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


def clustered(n, D, dtype=np.float64, seed=0, n_clusters=6, spread=3.0):
    """Return points (n, D) of unit variance around a few random centers, so that clusters overlap."""
    rng = np.random.default_rng(seed)
    places = spread * rng.standard_normal((n_clusters, D))
    return (places[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, D))).astype(dtype)


def mixture(C=4, **changes):
    """Return a mixture of Lücke & Forster's model."""
    return GaussianMixture(C, **EQUAL, **changes)


def start_of(estimator):
    """Return the name of the argument for the initial centers."""
    return "init" if isinstance(estimator, KMeans) else "means_init"


def centers_of(estimator):
    return estimator.cluster_centers_ if isinstance(estimator, KMeans) else estimator.means_


def outcome(estimator):
    """Return all results of a fit as bytes, except the seconds it took."""
    found = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    history = found.pop("history_")
    found |= {name: history[name] for name in history.dtype.names if name != "seconds"}
    arrays = {name: np.asarray(value) for name, value in found.items()}
    return {name: found[name] if array.dtype == object else array.tobytes() for name, array in arrays.items()}
