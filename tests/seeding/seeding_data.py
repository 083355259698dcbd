"""Data and the list of public methods for the seeding tests."""

import numpy as np
from scipy.stats import binom, norm

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
    """Check counts of draws by their binomial tails, at the level of five standard errors; none has probability 0."""
    counts, probabilities = np.bincount(drawn, minlength=len(probabilities)), np.clip(probabilities, 0, 1)
    tails = binom.cdf(counts, len(drawn), probabilities), binom.sf(counts - 1, len(drawn), probabilities)
    assert (np.minimum(*tails) >= norm.sf(5)).all(), (counts / len(drawn), probabilities)
