"""Mixtures of every family in plain NumPy and float64, and data for tests."""

import numpy as np
from scipy.special import logsumexp

from cprime import GaussianMixture
from cprime.estimators.validation import as_search

FAMILIES = ("tied_spherical", "spherical", "diag", "tied", "full")
OF_SKLEARN = ("spherical", "diag", "tied", "full")
WEIGHTS = ("free", "equal")
DTYPES = (np.float32, np.float64)
THREADS = (1, 3, 8)


def clustered(n, D, dtype=np.float64, seed=0, n_clusters=5, spread=3.0):
    """Return points (n, D) of several overlapping elliptic clusters of different sizes."""
    rng = np.random.default_rng(seed)
    places = spread * rng.standard_normal((n_clusters, D))
    shapes = rng.standard_normal((n_clusters, D, D)) / np.sqrt(D) + np.eye(D)
    label = rng.choice(n_clusters, n, p=rng.dirichlet(np.full(n_clusters, 5)))
    return (places[label] + np.einsum("nij,nj->ni", shapes[label], rng.standard_normal((n, D)))).astype(dtype)


def start_of(X, C, family, seed=0, weights="free"):
    """Return initial parameters: means after three k-means iterations, random precisions and, if free, weights."""
    rng = np.random.default_rng(seed)
    D = X.shape[1]
    means = X[rng.permutation(len(X))[:C]].astype(np.float64)
    for _ in range(3):
        nearest = np.square(X[:, None] - means).sum(axis=2).argmin(axis=1)
        means = np.array([X[nearest == c].mean(axis=0) for c in range(C)], dtype=np.float64)
    inverse = rng.uniform(0.9, 1.4, C)
    skew = rng.standard_normal((C, D, D)) / (3 * D)
    matrices = inverse[:, None, None] * (np.eye(D) + skew @ skew.transpose(0, 2, 1))
    given = {
        "tied_spherical": inverse[0],
        "spherical": inverse,
        "diag": np.diagonal(matrices, axis1=1, axis2=2).copy(),
        "tied": matrices[0],
        "full": matrices,
    }
    start = {"means_init": means, "precisions_init": given[family]}
    return start | ({"weights_init": rng.dirichlet(np.full(C, 30))} if weights == "free" else {})


def mixture(C, family, weights="free", **changes):
    """Return an unfitted mixture for one thread; keyword arguments replace the defaults of these tests."""
    given = {"n_threads": 1, "random_state": 0, "tol": 0, "search": "auto"} | changes
    names = ("n_neighbors", "n_explore", "certificate")
    options = {"certificate": 0, "final_assignment": "found"} | {
        name: given.pop(name) for name in names if name in given
    }
    search = as_search(given["search"])
    given["search"] = search.with_params(**{k: v for k, v in options.items() if k in search.get_params()})
    return GaussianMixture(C, covariance_type=family, weights=weights, **given)


def matrices(family, covariances, C, D):
    """Return covariances of any family as matrices (C, D, D)."""
    covariances = np.asarray(covariances, dtype=np.float64)
    if family in ("tied_spherical", "spherical"):
        return np.broadcast_to(covariances, (C,))[:, None, None] * np.eye(D)
    if family == "diag":
        return covariances[:, :, None] * np.eye(D)
    return np.broadcast_to(covariances, (C, D, D))


def log_joint(X, means, covariances, weights):
    """Return log π_c N(x_n; μ_c, Σ_c) for covariance matrices Σ (C, D, D): (n, C)."""
    X, means = np.asarray(X, dtype=np.float64), np.asarray(means, dtype=np.float64)
    out = np.empty((len(X), len(means)))
    for c, (mean, covariance, weight) in enumerate(zip(means, covariances, weights, strict=True)):
        difference = X - mean
        squares = (difference * np.linalg.solve(covariance, difference.T).T).sum(axis=1)
        log_determinant = np.linalg.slogdet(2 * np.pi * covariance)[1]
        with np.errstate(divide="ignore"):
            out[:, c] = np.log(weight) - 0.5 * (squares + log_determinant)
    return out


def joint_of(gm, X):
    """Return `log_joint` (n, C) of a fitted mixture."""
    C, D = gm.means_.shape
    return log_joint(X, gm.means_, matrices(gm.covariance_type, gm.covariances_, C, D), gm.weights_)


def best_sets(joint, H):
    """Return K(n), the indices (n, H) of the H best components by eq. (31) of Lücke & Forster, best first."""
    return np.argsort(-joint, axis=1, kind="stable")[:, :H]


def truncated(joint, H):
    """Return q_nc of eq. (5) of Lücke & Forster, (n, C), and log Σ_{c∈K(n)} p(c, x_n), (n,)."""
    kept = best_sets(joint, H)
    inside = np.full_like(joint, -np.inf)
    np.put_along_axis(inside, kept, np.take_along_axis(joint, kept, axis=1), axis=1)
    log_sum = logsumexp(inside, axis=1)
    return np.exp(inside - log_sum[:, None]), log_sum


def maximise(X, q, before, family, equal, reg_covar, sample_weight=None):
    """Compute the M-step [E] from weighted moments of the family; return means, matrices and weights.

    before: the previous means. A component without points keeps its mean and gets the mean covariance.
    """
    X = np.asarray(X, dtype=np.float64)
    w = q if sample_weight is None else sample_weight[:, None] * q
    D, total, counts = X.shape[1], w.sum(), w.sum(axis=0)
    means = np.where(counts[:, None] > 0, w.T @ X / np.maximum(counts, 1e-300)[:, None], before)
    C = len(means)
    each = np.array([(w[:, c, None] * (X - means[c])).T @ (X - means[c]) / max(counts[c], 1e-300) for c in range(C)])
    pooled = np.tensordot(counts / total, each, axes=1)
    each[counts == 0] = pooled
    eye = np.eye(D)
    covariances = {
        "tied_spherical": np.broadcast_to(np.trace(pooled) / D * eye, (C, D, D)),
        "spherical": np.trace(each, axis1=1, axis2=2)[:, None, None] / D * eye + reg_covar * eye,
        "diag": each * eye + reg_covar * eye,
        "tied": np.broadcast_to(pooled + reg_covar * eye, (C, D, D)),
        "full": each + reg_covar * eye,
    }[family]
    return means, covariances, np.full(C, 1 / C) if equal else counts / total


def truncated_em(X, start, family, weights, H, n_iter, reg_covar=0.0, hard=False, sample_weight=None):
    """Run truncated EM in NumPy; return (means, matrices, weights) after each iteration, and F of each E-step.

    hard: classification EM, which assigns each point to its best component; equivalent to H = 1.
    """
    C, D = start["means_init"].shape
    precisions = start["precisions_init"]
    covariances = matrices(
        family, np.linalg.inv(precisions) if family in ("tied", "full") else 1 / np.asarray(precisions), C, D
    )
    parameters = start["means_init"], covariances, start.get("weights_init", np.full(C, 1 / C))
    found, bounds = [], []
    for _ in range(n_iter):
        q, log_sum = truncated(log_joint(X, *parameters), 1 if hard else H)
        bounds.append(np.average(log_sum, weights=sample_weight))
        parameters = maximise(X, q, parameters[0], family, weights == "equal", reg_covar, sample_weight)
        found.append(parameters)
    return found, bounds
