"""Mixtures of every family with given parameters, and their densities by SciPy and plain sums."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from cprime.model import Diag, FullCovariance, Spherical, Tied, TiedSpherical

C, D, N = 4, 3, 50
NAMES = ("tied_spherical", "spherical", "diag", "tied", "full")
SHARES = np.array([0.1, 0.2, 0.3, 0.4])
CENTERS = np.array([[0.0, 1.0, -1.0], [2.0, 0.5, 0.0], [-1.5, -1.0, 2.0], [0.5, 2.0, 1.5]])


@dataclass(frozen=True)
class KnownCovariances:
    """A model, and the covariance matrices (C, D, D) of its components."""

    model: object
    covariances: np.ndarray

    @property
    def shares(self):
        return np.full(C, 1 / C) if self.model.weights is None else self.model.weights

    def joint(self, X):
        """Return log π_c p(x | c): (n, C)."""
        means = self.model.centers
        densities = [multivariate_normal(means[c], self.covariances[c]).logpdf(X) for c in range(C)]
        return np.column_stack(densities) + np.log(self.shares)

    def likelihood(self, X):
        return logsumexp(self.joint(X), axis=1)

    def posterior(self, X):
        return np.exp(self.joint(X) - self.likelihood(X)[:, np.newaxis])


def matrices(seed=0):
    """Return positive definite matrices (C, D, D), far from diagonal."""
    roots = np.random.default_rng(seed).standard_normal((C, D, D + 2))
    return roots @ roots.transpose(0, 2, 1) / (D + 2) + 0.2 * np.eye(D)


def known(name, free=False, reg_covar=0.0):
    """Return a model of a family, with free or equal weights, and its covariance matrices."""
    weights, each = SHARES if free else None, matrices()
    options = {"weights": weights} | ({"reg_covar": reg_covar} if reg_covar else {})
    if name == "tied_spherical":
        return KnownCovariances(
            TiedSpherical(CENTERS, 0.7, 1e-20, weights), np.repeat(0.7 * np.eye(D)[np.newaxis], C, axis=0)
        )
    if name == "spherical":
        variances = np.array([0.5, 1.0, 2.0, 0.8])
        return KnownCovariances(Spherical(CENTERS, variances, **options), variances[:, None, None] * np.eye(D))
    if name == "diag":
        variances = np.diagonal(each, axis1=1, axis2=2).copy()
        return KnownCovariances(Diag(CENTERS, variances, **options), variances[:, :, np.newaxis] * np.eye(D))
    if name == "tied":
        return KnownCovariances(Tied(CENTERS, each[0], **options), np.repeat(each[:1], C, axis=0))
    return KnownCovariances(FullCovariance(CENTERS, each, **options), each)


def points(n=N, seed=1):
    rng = np.random.default_rng(seed)
    return CENTERS[rng.integers(C, size=n)] + rng.standard_normal((n, D))


def weights_of(weighted, n=N):
    return np.random.default_rng(2).exponential(size=n) if weighted else None
