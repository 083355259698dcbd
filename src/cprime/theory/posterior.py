"""Posterior loss of Kearns, Mansour & Ng, its gradient, and its minimization.

Equations (45) and (49) to (52) of their paper on hard and soft assignment. A point is assigned to component b, of
density P_b, with probability R_b = P_b / Σ_c P_c. The loss depends on the densities directly and through these
probabilities, so a point can repel a component that explains it badly.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import Bounds, brentq, minimize
from scipy.special import log_softmax, logsumexp, xlogy

from cprime.sources import array_of
from cprime.theory.mixtures import Floats, Gaussians, log_weights
from cprime.theory.partition import blocks, log_posterior, nats_per


def posterior_loss(log_densities: ArrayLike, *, unit: str = "bits") -> tuple[Floats, Floats]:
    """Return the posterior loss −Σ_b R_b log P_b of each point and its derivatives by ln P_b.

    P_b is the density of component b at the point, R_b = P_b / Σ_c P_c. Eq. (45), (50), (51) of Kearns, Mansour & Ng.

    Parameters
    ----------
    log_densities : array-like of shape (n_samples, n_components)
        ln P_b(x_n), natural logarithms.
    unit : {"bits", "nats"}, default="bits"
        Unit of the results: logarithms of base 2, as in the source, or natural ones.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
    derivatives : ndarray of shape (n_samples, n_components)
        ∂loss/∂ln P_b, in nats R_b (−ln P_b + Σ_c R_c ln P_c − 1), which is P_b times eq. (51). Positive if the point
        repels P_b.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.theory import posterior_loss
    >>> loss, derivatives = posterior_loss(np.log([[0.1, 0.9]]))
    >>> (derivatives > 0).tolist()  # the point repels the first
    [[True, False]]
    """
    log_p, scale = _checked_densities(log_densities), nats_per(unit)
    R = np.exp(log_posterior(log_p))
    mean = (R * np.where(R > 0, log_p, 0.0)).sum(axis=1, keepdims=True)
    derivatives = R * (mean - np.where(R > 0, log_p, 0.0) - 1)
    return -mean[:, 0] / scale, derivatives / scale


def mixture_loss(log_densities: ArrayLike, *, unit: str = "bits") -> tuple[Floats, Floats]:
    """Return the loss −log (1/C) Σ_b P_b of each point under the mixture, and its derivatives by ln P_b.

    Unlike those of `posterior_loss` they are never positive: eq. (49) of Kearns, Mansour & Ng.

    Parameters
    ----------
    log_densities, unit
        As in `posterior_loss`.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
    derivatives : ndarray of shape (n_samples, n_components)
        ∂loss/∂ln P_b, in nats −P_b / Σ_c P_c, which is P_b times eq. (49).

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.theory import mixture_loss
    >>> loss, derivatives = mixture_loss(np.log([[0.25, 0.75]]))
    >>> loss.round(3).tolist(), bool(derivatives.max() < 0)
    ([1.0], True)
    """
    log_p, scale = _checked_densities(log_densities), nats_per(unit)
    loss = np.log(log_p.shape[1]) - logsumexp(log_p, axis=1)
    return loss / scale, -np.exp(log_posterior(log_p)) / scale


def _checked_densities(log_densities: ArrayLike) -> Floats:
    log_p = array_of(log_densities, "log_densities", np.float64)
    if log_p.ndim != 2 or not (log_p < np.inf).all():
        raise ValueError(f"log_densities must be a matrix of numbers below infinity, got shape {log_p.shape}.")
    return log_p


def repulsion(ratio: ArrayLike) -> Floats:
    """Return the force by which a point repels the first of two densities P_0 and P_1 in posterior assignment.

    It is (1 − R) log₂((1 − R)/R) − 1/ln 2, proportional to the derivative of the posterior loss by P_0: eq. (52) of
    Kearns, Mansour & Ng. R is `ratio`.

    Parameters
    ----------
    ratio : array-like
        R_0(x) = P_0(x)/(P_0(x) + P_1(x)), between 0 and 1.

    Returns
    -------
    force : ndarray of the same shape
        In bits; positive if the point repels P_0, ∞ at ratio 0.

    Raises
    ------
    ValueError
        If a ratio lies outside [0, 1].

    Examples
    --------
    >>> from cprime.theory import repulsion
    >>> (repulsion([0.1, 0.5]) > 0).tolist()
    [True, False]
    """
    R = array_of(ratio, "ratio", np.float64)
    if not ((R >= 0) & (R <= 1)).all():
        raise ValueError(f"ratio must lie between 0 and 1, got {ratio!r}.")
    with np.errstate(divide="ignore"):
        return (xlogy(1 - R, 1 - R) - (1 - R) * np.where(R < 1, np.log(R), 0.0) - 1) / np.log(2)


def repulsion_zero() -> float:
    """Return the ratio R_0 = P_0/(P_0 + P_1) below which a point repels P_0: the zero of eq. (52) of Kearns et al.

    Examples
    --------
    >>> from cprime.theory import repulsion_zero
    >>> round(repulsion_zero(), 3)
    0.218
    """
    return float(brentq(repulsion, 0.01, 0.5, xtol=1e-15))


class CovarianceShape(Protocol):
    """Shape of the covariances (D, D) in a fit, and the numbers by which an optimizer represents them.

    E numbers for each component determine the lower triangular factor L of its precision L Lᵀ.
    """

    @property
    def is_logarithm(self) -> NDArray[np.bool_]:
        """Return a mask (E,): which of a component's E numbers are logarithms of diagonal entries of its factor L."""

    def restricted(self, covariance: Floats) -> Floats:
        """Return the covariance (D, D) of this shape with maximum likelihood for points of the given covariance."""

    def numbers(self, components: Gaussians) -> Floats:
        """Return the numbers (C, E) that an optimizer changes: for each of C Gaussians, E numbers encode its precision.

        They are the entries of the factor L of the precision L Lᵀ that are free in this shape, with logarithms of the
        diagonal ones. `factors` is the inverse.
        """

    def factors(self, numbers: Floats) -> Floats:
        """Return the factors L (C, D, D) of precisions L Lᵀ from the optimizer's E numbers for each, (C, E)."""

    def slopes(self, factors: Floats, by_factors: Floats) -> Floats:
        """Return the derivatives (C, E) of the loss by the optimizer's E numbers for each of the C precisions.

        factors (C, D, D): factors L of the precisions    by_factors (C, D, D): derivatives of the loss by L
        """


class _Full:
    """Unrestricted covariances; an optimizer changes the entries of L, with logarithms of the diagonal ones.

    L is the lower triangular factor of the precision L Lᵀ.
    """

    name = "full"

    def __init__(self, D: int) -> None:
        self.rows, self.columns = np.tril_indices(D)
        self.is_logarithm = self.rows == self.columns

    def restricted(self, covariance: Floats) -> Floats:
        return covariance

    def numbers(self, components: Gaussians) -> Floats:
        factors = np.linalg.cholesky(np.linalg.inv(components.covariances))
        numbers = factors[:, self.rows, self.columns]
        numbers[:, self.is_logarithm] = np.log(numbers[:, self.is_logarithm])
        return numbers

    def factors(self, numbers: Floats) -> Floats:
        D, numbers = self.rows[-1] + 1, numbers.copy()
        numbers[:, self.is_logarithm] = np.exp(numbers[:, self.is_logarithm])
        factors = np.zeros((len(numbers), D, D))
        factors[:, self.rows, self.columns] = numbers
        return factors

    def slopes(self, factors: Floats, by_factors: Floats) -> Floats:
        scale = np.where(self.is_logarithm, factors[:, self.rows, self.columns], 1.0)
        return by_factors[:, self.rows, self.columns] * scale


class _Spherical:
    """Covariances σ² I; for each component an optimizer changes one number, log 1/σ."""

    name = "spherical"

    def __init__(self, D: int) -> None:
        self.unit, self.is_logarithm = np.eye(D), np.array([True])

    def restricted(self, covariance: Floats) -> Floats:
        return np.trace(covariance) / len(self.unit) * self.unit

    def numbers(self, components: Gaussians) -> Floats:
        return -np.log(components.standard_deviations)[:, np.newaxis]

    def factors(self, numbers: Floats) -> Floats:
        return np.exp(numbers)[:, :, np.newaxis] * self.unit

    def slopes(self, factors: Floats, by_factors: Floats) -> Floats:
        return np.einsum("cii,cii->c", by_factors, factors)[:, np.newaxis]


SHAPES: dict[str, Callable[[int], CovarianceShape]] = {shape.name: shape for shape in (_Full, _Spherical)}


def descend(
    X: Floats,
    weights: Floats,
    start: Gaussians,
    free: bool,
    shape: CovarianceShape,
    max_iter: int,
    tol: float,
    reg_covar: float,
) -> tuple[list[Gaussians], list[float], bool]:
    """Minimize the posterior loss −Σ_c q_c log p(x | c), averaged over the rows x of X, by L-BFGS-B from `start`.

    Return the Gaussians after each step, their losses [nats per point], and whether the optimizer converged.
    free: whether α_c p(x | c) replaces p(x | c), with weights α_c that are parameters, too

    Data and means are shifted and scaled by the mean and the spread of the start, so that the result does not depend on
    scale and origin of the data.
    """
    D, share = X.shape[1], weights / weights.sum()
    unit, origin = float(np.sqrt(np.square(start.standard_deviations).mean())), start.means.mean(axis=0)
    X = (X - origin) / unit
    start = Gaussians((start.means - origin) / unit, start.covariances / unit**2, start.weights)
    least_variance = max(reg_covar, np.finfo(float).tiny) / unit**2

    C = start.n_components
    n_weights = C if free else 0

    def parameters(vector: Floats) -> tuple[Floats, Floats, Floats]:
        """Return means (C, D), factors L (C, D, D) of precisions L Lᵀ, and log α (C,) (0 if α is not free).

        vector: what the optimizer changes
        """
        means, numbers, logits = np.split(vector, [start.means.size, len(vector) - n_weights])
        log_alpha = log_softmax(logits) if free else np.zeros(C)
        return means.reshape(start.means.shape), shape.factors(numbers.reshape(C, -1)), log_alpha

    def objective(vector: Floats) -> tuple[float, NDArray[np.float64]]:
        means, factors, log_alpha = parameters(vector)
        by_alpha = np.zeros(C)
        log_scale = np.log(np.einsum("cii->ci", factors)).sum(axis=1) - D / 2 * np.log(2 * np.pi)
        total, by_means, by_factors = 0.0, np.zeros(means.shape), np.zeros(factors.shape)
        for rows in blocks(len(X), len(means) * D):
            centered = X[rows][np.newaxis] - means[:, np.newaxis]
            scaled = centered @ factors
            log_p = (log_scale[:, np.newaxis] - 0.5 * np.square(scaled).sum(axis=2)).T
            loss, derivatives = posterior_loss(log_p + log_alpha, unit="nats")
            slope = share[rows] * derivatives.T
            total += float(share[rows] @ loss)
            by_alpha += slope.sum(axis=1)
            by_means += np.einsum("cij,cj->ci", factors, np.einsum("cn,cnj->cj", slope, scaled))
            by_factors -= np.einsum("cn,cni,cnj->cij", slope, centered, scaled)
            inverse_diagonals = 1 / np.einsum("cii->ci", factors)
            by_factors += slope.sum(axis=1)[:, np.newaxis, np.newaxis] * inverse_diagonals[:, np.newaxis] * np.eye(D)
        by_logits = (by_alpha - np.exp(log_alpha) * by_alpha.sum())[:n_weights]
        return total, np.concatenate([by_means.ravel(), shape.slopes(factors, by_factors).ravel(), by_logits])

    logits = log_weights(start.weights)[:n_weights]
    begin = np.concatenate([start.means.ravel(), shape.numbers(start).ravel(), logits])
    upper = np.where(shape.is_logarithm, -0.5 * np.log(least_variance), np.inf)
    limits = np.concatenate([np.full(start.means.size, np.inf), np.tile(upper, C), np.full(n_weights, np.inf)])
    visited = [begin]
    found = minimize(
        objective,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(-np.inf, limits),
        callback=lambda vector: visited.append(vector.copy()),
        options={"maxiter": max_iter, "gtol": np.sqrt(tol), "ftol": 0.0},
    )
    path = []
    for means, factors, log_alpha in map(parameters, visited):
        covariances: Floats = np.asarray(np.linalg.inv(factors @ factors.transpose(0, 2, 1)), dtype=np.float64)
        alpha = np.exp(log_alpha) if free else start.weights
        path.append(Gaussians(origin + unit * means, unit**2 * covariances, alpha))
    return path, [objective(v)[0] + D * np.log(unit) for v in visited], bool(found.success)


def take_steps(
    X: Floats, weights: Floats, start: Gaussians, step: float, max_iter: int, tol: float, reg_covar: float
) -> tuple[list[Gaussians], list[float], bool]:
    """Minimize the posterior loss of spherical Gaussians by steps of fixed size along its negative gradient.

    Return the Gaussians after each step, their losses [nats per point], and whether all derivatives by means and
    standard deviations became at most `tol` [bits per data unit].    step: size of the steps [data unit² per bit]
    """
    D, share = X.shape[1], weights / weights.sum()
    path, losses = [start], []
    means, sigma = start.means, np.sqrt(np.einsum("cii->c", start.covariances) / D)
    while True:
        current = path[-1]
        loss, by_mean, by_sigma = 0.0, np.zeros(means.shape), np.zeros(sigma.shape)
        for rows in blocks(len(X), means.size):
            values, derivatives = posterior_loss(current.log_densities(X[rows]))
            z = (X[rows, np.newaxis] - means) / sigma[:, np.newaxis]
            slope = share[rows, np.newaxis] * derivatives / sigma
            loss += float(share[rows] @ values)
            by_mean += np.einsum("nc,ncd->cd", slope, z)
            by_sigma += (slope * (np.square(z).sum(axis=2) - D)).sum(axis=0)
        losses.append(loss * float(np.log(2)))
        converged = bool(max(np.abs(by_mean).max(), np.abs(by_sigma).max()) <= tol)
        if converged or len(path) > max_iter:
            return path, losses, converged
        means = means - step * by_mean
        sigma = np.sqrt(np.maximum(np.square(sigma - step * by_sigma), max(reg_covar, np.finfo(float).tiny)))
        path.append(Gaussians.spherical(means, sigma, current.weights))
