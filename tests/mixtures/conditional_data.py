"""Mixtures of every family with given parameters, and their conditional distributions written out in plain NumPy."""

import numpy as np
from scipy.special import softmax
from scipy.stats import multivariate_normal

from cprime import GaussianMixture

RNG = np.random.default_rng(0)
C, D, H = 3, 4, 2
MEANS = RNG.normal(scale=1.5, size=(C, D))
SHARES = np.array([0.2, 0.5, 0.3])
_ROOTS = RNG.normal(size=(C, D, D)) / 2 + 0.5 * np.eye(D)
MATRICES = _ROOTS @ _ROOTS.transpose(0, 2, 1) + 0.1 * np.eye(D)
VARIANCES = RNG.uniform(0.3, 2, size=(C, D))
LOADINGS = RNG.normal(size=(C, D, H))
EACH = np.array([0.5, 1.0, 2.0])
X = MEANS[RNG.integers(C, size=40)] + RNG.normal(size=(40, D))
OWN = {
    "full": {"covariances_": MATRICES},
    "tied": {"covariances_": MATRICES[0]},
    "diag": {"covariances_": VARIANCES},
    "spherical": {"covariances_": EACH},
    "tied_spherical": {"covariances_": 0.7},
    "factors": {"factors_": LOADINGS, "noise_variances_": VARIANCES},
    "ppca": {"factors_": LOADINGS, "noise_variances_": np.repeat(EACH[:, None], D, axis=1)},
}
WRITTEN_OUT = {
    "full": MATRICES,
    "tied": np.repeat(MATRICES[:1], C, axis=0),
    "diag": VARIANCES[:, :, None] * np.eye(D),
    "spherical": EACH[:, None, None] * np.eye(D),
    "tied_spherical": np.repeat(0.7 * np.eye(D)[None], C, axis=0),
    "factors": LOADINGS @ LOADINGS.transpose(0, 2, 1) + VARIANCES[:, :, None] * np.eye(D),
    "ppca": LOADINGS @ LOADINGS.transpose(0, 2, 1) + EACH[:, None, None] * np.eye(D),
}


def mixture(family="full", dtype=np.float64, names=None, **params):
    """Return a mixture with given parameters, as if it had been fitted."""
    gm = GaussianMixture(C, covariance_type=family, random_state=0, **params)
    gm.means_, gm.weights_ = MEANS.astype(dtype), SHARES.astype(dtype)
    for name, value in OWN[family].items():
        setattr(gm, name, np.asarray(value, dtype=dtype))
    if names is not None:
        gm.n_features_in_, gm.feature_names_in_ = D, np.array(names, dtype=object)
    return gm


def rest_of(known):
    return [d for d in range(D) if d not in known]


def log_joint(covariances, rows, columns):
    """Return log π_c N(x; μ_c, Σ_c) of rows that contain only the given columns: (n, C)."""
    inside = np.ix_(columns, columns)
    densities = [multivariate_normal(MEANS[c, columns], covariances[c][inside]).logpdf(rows) for c in range(C)]
    return np.log(SHARES) + np.stack(densities, axis=-1).reshape(len(rows), C)


def conditionals(covariances, rows, known):
    """Return weights (n, C), means (n, C, M), covariances (C, M, M) of the other columns, given the known columns."""
    rest = rest_of(known)
    weights = softmax(log_joint(covariances, rows, known), axis=1)
    means, left = np.empty((len(rows), C, len(rest))), np.empty((C, len(rest), len(rest)))
    for c, S in enumerate(covariances):
        slopes = np.linalg.solve(S[np.ix_(known, known)], S[np.ix_(known, rest)]).T
        means[:, c] = MEANS[c, rest] + (rows - MEANS[c, known]) @ slopes.T
        left[c] = S[np.ix_(rest, rest)] - slopes @ S[np.ix_(known, rest)]
    return weights, means, left


def matrices_of(gm):
    """Return the covariance matrices (C, D, D) of a mixture of any family."""
    return gm._parameters().covariances_along(np.eye(gm.means_.shape[1]))
