"""Rows, parameters and fits of one iteration for the tests of equations."""

import numpy as np

from cprime import GaussianMixture, KMeans
from fits import clustered

X = clustered(80, 3, seed=3, n_clusters=4, spread=1.5)
N, D = X.shape
C = 4
CENTERS = X[:C] + 0.5
VARIANCE = 1.3
WEIGHTS = np.array([0.1, 0.2, 0.3, 0.4])
COVARIANCES = np.array([np.diag([0.5, 1.0, 2.0]) + 0.2 * c for c in range(1, C + 1)])
EXACTLY = {"momentum": False, "search": "full", "reg_covar": 0.0, "tol": 0.0}


def k_means(n_iter=1, **options):
    """Return a k-means after iterations from `CENTERS`."""
    return KMeans(C, init=CENTERS, search="full", jumps=False, tol=0, max_iter=n_iter, **options).fit(X)


def isotropic(n_active=None, n_iter=1, **options):
    """Return a mixture of Gaussians of weight 1/C and one variance after iterations from `CENTERS` and `VARIANCE`."""
    options |= {"covariance_type": "tied_spherical", "weights": "equal", "n_active": n_active, "max_iter": n_iter}
    start = {"means_init": CENTERS, "precisions_init": 1 / VARIANCE}
    return GaussianMixture(C, **options, **start, **EXACTLY).fit(X)


def general(n_active=None, n_iter=1, **options):
    """Return a mixture of general Gaussians after iterations from `CENTERS`, `WEIGHTS` and `COVARIANCES`."""
    start = {"means_init": CENTERS, "weights_init": WEIGHTS, "precisions_init": np.linalg.inv(COVARIANCES)}
    return GaussianMixture(C, n_active=n_active, max_iter=n_iter, **start, **EXACTLY, **options).fit(X)
