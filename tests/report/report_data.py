"""Fitted estimators used by several tests of reports."""

import numpy as np

from cprime import GaussianMixture, KMeans
from cprime.datasets import birch

NASTY = "<script>alert('x')</script>"


def grid(n_side=5, per=40, seed=0):
    """Return points around n_side² centers in the plane."""
    return birch(n_side=n_side, n_per_cluster=per, random_state=seed).data


def random_model(n_clusters, n_features, seed=0, n_points=None):
    """Return a k-means estimator for two iterations from random centers, and random points for it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_points or 2 * n_clusters, n_features)).astype(np.float32)
    return KMeans(n_clusters, init="random", max_iter=2, tol=0.5, random_state=0), X


def mixture(X, C=6, **options):
    return GaussianMixture(C, random_state=0, **options).fit(X)
