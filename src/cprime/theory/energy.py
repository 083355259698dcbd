"""The free energy F of any responsibilities, eq. (6) of Lücke & Forster, and the loss that an M-step minimizes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from cprime.estimators.validation import check_weights
from cprime.sources import array_of
from cprime.theory.expectation import check_n_features
from cprime.theory.mixtures import Floats, as_mixture, as_rows_of, log_weights
from cprime.theory.partition import blocks, log_posterior, nats_per

_SUM = 1e-6  # largest accepted difference of the sum of a row of responsibilities from 1


def free_energy(mixture: Any, X: Any, q: ArrayLike, sample_weight: Any = None) -> float:
    """Compute F(q, Θ) = Σ_n w_n [Σ_c q_nc log p(c, x_n) + H(q_n)] / Σ_n w_n for any given q.

    H is the entropy, Θ the parameters. For q of zeros and ones H is 0, and F is the complete-data log-likelihood per
    point. F is at most the log-likelihood, and equal to it if q are the exact posteriors
    p(c | x_n). If q are posteriors restricted to the active set K(n) of each point, F is the bound that truncated EM
    raises.

    Parameters
    ----------
    mixture : Gaussians, Univariate, KMeans, GaussianMixture or StudentTMixture
        p(c, x) = π_c p(x | c); an estimator must be fitted. A k-means has equal weights and the variance `variance_`.
    X : array-like of shape (n_samples, n_features)
        The points.
    q : array-like of shape (n_samples, n_components)
        Responsibilities: nonnegative, rows sum to 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights w_n; None is 1 for each.

    Returns
    -------
    F : float
        Per point, or unit of weight [nats]; −∞ if q is positive where p(c, x_n) is 0. Densities are those of the data
        as given: if the fit scaled them, F is less than `lower_bound_` by the sum of the logarithms of the scales.

    Raises
    ------
    ValueError
        If the shape of q is wrong, q has negative or nonfinite entries, or a row does not sum to 1.

    References
    ----------
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, eqs. (6) and (7).

    Examples
    --------
    >>> from cprime.theory import Gaussians, free_energy
    >>> P = Gaussians.spherical([-2, 2], [1, 1])
    >>> round(free_energy(P, [[-2.0], [2.0]], [[1, 0], [0, 1]]), 3)
    -1.612
    """
    densities = as_mixture(mixture, "mixture")
    X = as_rows_of(mixture, X)
    weights = check_weights(sample_weight, X)
    weights = np.ones(len(X)) if weights is None else weights
    check_n_features(densities, X.shape[1], "X", "mixture")
    C = len(densities.weights)
    q = _check_responsibilities(array_of(q, "q", np.float64), (len(X), C))
    log_prior, total = log_weights(densities.weights), 0.0
    for rows in blocks(len(X), C):
        log_joint = densities.log_densities(X[rows]) + log_prior
        expected = np.where(q[rows] > 0, log_joint, 0.0) * q[rows]  # avoids 0 · (−∞) for a responsibility of 0
        total += float(weights[rows] @ (expected + entr(q[rows])).sum(axis=1))
    return total / float(weights.sum())


def em_loss(model: Any, new: Any, X: Any, sample_weight: Any = None, *, unit: str = "bits") -> float:
    """Compute the loss −Σ_b R_b(x) log P′_b(x), per point, that an M-step minimizes: eq. (48) of Kearns et al.

    R_b = α_b P_b / Σ_c α_c P_c are the posteriors of the present densities P_b, and P′_b are the new ones. In the
    posterior loss (45) both are the same.

    Parameters
    ----------
    model, new : Gaussians, Univariate or fitted estimator
        The densities P_b with their weights α_b, and the densities P′_b.
    X : array-like of shape (n_samples, n_features)
    sample_weight : array-like of shape (n_samples,), default=None
    unit : {"bits", "nats"}, default="bits"

    Returns
    -------
    loss : float
        Mean over the points, or their weights; −∞ or ∞ only where densities are infinite or 0.

    Examples
    --------
    >>> from cprime.theory import Gaussians, em_loss
    >>> P, new = Gaussians.spherical([-1, 1], 1), Gaussians.spherical([-2, 2], 1)
    >>> X = [[-2.0], [2.0]]
    >>> em_loss(P, new, X) < em_loss(P, P, X)
    True
    """
    old, refit = as_mixture(model, "model"), as_mixture(new, "new")
    scale = nats_per(unit)
    X = as_rows_of(model, X)
    weights = check_weights(sample_weight, X)
    weights = np.ones(len(X)) if weights is None else weights
    check_n_features(old, X.shape[1], "X", "model")
    check_n_features(refit, X.shape[1], "X", "new")
    if len(old.weights) != len(refit.weights):
        raise ValueError(f"new must have {len(old.weights)} components as model has, got {len(refit.weights)}.")
    total = 0.0
    for rows in blocks(len(X), len(old.weights)):
        R = np.exp(log_posterior(old.log_densities(X[rows]) + log_weights(old.weights)))
        total -= float(weights[rows] @ np.where(R > 0, R * refit.log_densities(X[rows]), 0.0).sum(axis=1))
    return total / float(weights.sum()) / scale


def _check_responsibilities(q: Floats, shape: tuple[int, int]) -> Floats:
    if q.shape != shape:
        raise ValueError(f"q must have the shape {shape}, one row for each point, got {q.shape}.")
    if not (q >= 0).all() or not np.isfinite(q).all():
        raise ValueError("q must be nonnegative and finite, got other entries.")
    wrong = np.abs(q.sum(axis=1) - 1) > _SUM
    if wrong.any():
        n = int(wrong.argmax())
        raise ValueError(f"Rows of q must sum to 1, row {n} sums to {q[n].sum():.6g}.")
    return q
