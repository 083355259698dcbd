"""Data and the list of public methods for the seeding tests."""

import numpy as np

from cprime.kernels import Dense
from cprime.seeding import afk_mc2, kmeans_plusplus, random_rows, two_level

METHODS = {"random": random_rows, "k-means++": kmeans_plusplus, "afk-mc2": afk_mc2, "two-level": two_level}
DTYPES = (np.float32, np.float64)


def clustered(n, D, dtype=np.float64, n_clusters=60, seed=0):
    """Return points (n, D) of clusters of unequal sizes around random places."""
    rng = np.random.default_rng(seed)
    places = 6 * rng.standard_normal((n_clusters, D))
    sizes = rng.dirichlet(np.ones(n_clusters))
    return (places[rng.choice(n_clusters, size=n, p=sizes)] + rng.standard_normal((n, D))).astype(dtype)


def error(X, centers):
    """Return J, the sum of squared distances to the nearest centers."""
    return Dense(X).nearest(np.ascontiguousarray(centers, dtype=X.dtype))[1].sum(dtype=np.float64)


def assert_frequencies(drawn, probabilities):
    """Check draws against exact probabilities: within five standard errors, and none of probability 0."""
    n = len(drawn)
    frequency = np.bincount(drawn, minlength=len(probabilities)) / n
    standard_error = np.sqrt(probabilities * (1 - probabilities) / n)
    assert (np.abs(frequency - probabilities) <= 5 * standard_error + 1e-12).all(), (frequency, probabilities)
