"""Posterior loss of Kearns, Mansour & Ng, its gradient, and its minimization: eq. (45), (50)-(52).

A point is assigned to component b, of density P_b, with probability R_b = P_b / Σ_c P_c. The loss depends on the
densities directly and through these probabilities, so a point can repel a component that explains it badly.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize
from scipy.special import xlogy

from cprime.theory.mixtures import Floats, Gaussians
from cprime.theory.partition import blocks, log_posterior


def posterior_loss(log_densities: ArrayLike) -> tuple[Floats, Floats]:
    """Return the posterior loss −Σ_b R_b log P_b of each point and its derivatives by log P_b.

    P_b is the density of component b at the point, R_b = P_b / Σ_c P_c. Eq. (45), (50), (51) of Kearns, Mansour & Ng.

    Parameters
    ----------
    log_densities : array-like of shape (n_samples, n_components)
        log P_b(x_n), in nats.

    Returns
    -------
    loss : ndarray of shape (n_samples,)
        In nats.
    derivatives : ndarray of shape (n_samples, n_components)
        ∂loss/∂log P_b = R_b (−log P_b + Σ_c R_c log P_c − 1), which is P_b times eq. (51) in nats. Positive if the
        point repels P_b.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.theory import posterior_loss
    >>> loss, derivatives = posterior_loss(np.log([[0.1, 0.9]]))
    >>> (derivatives > 0).tolist()  # the point repels the first
    [[True, False]]
    """
    log_p = np.asarray(log_densities, dtype=np.float64)
    R = np.exp(log_posterior(log_p))
    mean = (R * np.where(R > 0, log_p, 0.0)).sum(axis=1, keepdims=True)
    derivatives = R * (mean - np.where(R > 0, log_p, 0.0) - 1)
    return -mean[:, 0], derivatives


def repulsion(ratio: ArrayLike) -> Floats:
    """Return (1 − R) log₂((1 − R)/R) − 1/ln 2, proportional to ∂L_post/∂P_0 for two densities P_0 and P_1.

    Eq. (52) of Kearns, Mansour & Ng; R is `ratio`, L_post the posterior loss.

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
    R = np.asarray(ratio, dtype=np.float64)
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


class _Parameters(NamedTuple):
    """Means (C, D) and factors L (C, D, D) of the precisions of Gaussians.

    A precision is L Lᵀ with L lower triangular. For the optimizer, the logarithms of the diagonal of L replace the
    diagonal; for a spherical precision there is only one logarithm.
    """

    means: Floats
    factors: Floats


class _Coordinates:
    """Conversion between the parameters of Gaussians and the vector of all P numbers that the optimizer changes."""

    def __init__(self, C: int, D: int, spherical: bool) -> None:
        self.C, self.D, self.spherical = C, D, spherical
        self.rows, self.columns = np.tril_indices(D)
        self.diagonal = np.flatnonzero(self.rows == self.columns)

    def vector(self, components: Gaussians) -> Floats:
        """Return all P parameters of the given Gaussians in one vector (P,)."""
        if self.spherical:
            return np.concatenate([components.means.ravel(), -np.log(components.standard_deviations)])
        factors = np.linalg.cholesky(np.linalg.inv(components.covariances))
        entries = factors[:, self.rows, self.columns]
        entries[:, self.diagonal] = np.log(entries[:, self.diagonal])
        return np.concatenate([components.means.ravel(), entries.ravel()])

    def parameters(self, vector: Floats) -> _Parameters:
        """Return the means (C, D) and lower triangular factors (C, D, D) of the precisions in a vector (P,)."""
        means, entries = np.split(vector, [self.C * self.D])
        means = means.reshape(self.C, self.D)
        if self.spherical:
            return _Parameters(means, np.exp(entries)[:, np.newaxis, np.newaxis] * np.eye(self.D))
        entries = entries.reshape(self.C, -1).copy()
        entries[:, self.diagonal] = np.exp(entries[:, self.diagonal])
        factors = np.zeros((self.C, self.D, self.D))
        factors[:, self.rows, self.columns] = entries
        return _Parameters(means, factors)

    def gradient(self, parameters: _Parameters, by_means: Floats, by_factors: Floats) -> Floats:
        """Return the gradient (P,) for the optimizer, from those by means (C, D) and precision factors (C, D, D)."""
        diagonals = np.einsum("cii->ci", by_factors) * np.einsum("cii->ci", parameters.factors)
        if self.spherical:
            return np.concatenate([by_means.ravel(), diagonals.sum(axis=1)])
        entries = by_factors[:, self.rows, self.columns]
        entries[:, self.diagonal] = diagonals
        return np.concatenate([by_means.ravel(), entries.ravel()])

    def bounds(self, largest: float) -> list[tuple[float | None, float | None]]:
        """Return bounds (lower, upper) of each number for L-BFGS-B: log(1/σ) <= `largest` for standard deviations σ."""
        held = range(1) if self.spherical else self.diagonal
        size = 1 if self.spherical else len(self.rows)
        factor = [(None, largest if k in held else None) for k in range(size)]
        free: list[tuple[float | None, float | None]] = [(None, None)] * (self.C * self.D)
        return [*free, *factor * self.C]

    def gaussians(self, vector: Floats) -> Gaussians:
        """Return the Gaussians whose parameters are in the vector, with equal weights."""
        means, factors = self.parameters(vector)
        covariances: Floats = np.asarray(np.linalg.inv(factors @ factors.transpose(0, 2, 1)), dtype=np.float64)
        return Gaussians(means, covariances)


def descend(
    X: Floats, weights: Floats, start: Gaussians, spherical: bool, max_iter: int, tol: float, reg_covar: float
) -> tuple[list[Gaussians], list[float], bool]:
    """Minimize the weighted mean posterior loss of Gaussians on X by L-BFGS-B, beginning with `start`.

    Return the Gaussians after each step, their losses [nats per point], and whether the optimizer converged.

    Data and means are shifted and scaled by the mean and the spread of the start, so that the result does not depend on
    scale and origin of the data.
    """
    D, share = X.shape[1], weights / weights.sum()
    unit, origin = float(np.sqrt(np.square(start.standard_deviations).mean())), start.means.mean(axis=0)
    X, start = (X - origin) / unit, Gaussians((start.means - origin) / unit, start.covariances / unit**2)
    coordinates = _Coordinates(start.n_components, D, spherical)
    least_variance = max(reg_covar, np.finfo(float).tiny) / unit**2

    def objective(vector: Floats) -> tuple[float, NDArray[np.float64]]:
        means, factors = parameters = coordinates.parameters(vector)
        log_scale = np.log(np.einsum("cii->ci", factors)).sum(axis=1) - D / 2 * np.log(2 * np.pi)
        total, by_means, by_factors = 0.0, np.zeros(means.shape), np.zeros(factors.shape)
        for rows in blocks(len(X), len(means) * D):
            centered = X[rows][np.newaxis] - means[:, np.newaxis]
            scaled = centered @ factors
            loss, derivatives = posterior_loss((log_scale[:, np.newaxis] - 0.5 * np.square(scaled).sum(axis=2)).T)
            slope = share[rows] * derivatives.T
            total += float(share[rows] @ loss)
            by_means += np.einsum("cij,cj->ci", factors, np.einsum("cn,cnj->cj", slope, scaled))
            by_factors -= np.einsum("cn,cni,cnj->cij", slope, centered, scaled)
            inverse_diagonals = 1 / np.einsum("cii->ci", factors)
            by_factors += slope.sum(axis=1)[:, np.newaxis, np.newaxis] * inverse_diagonals[:, np.newaxis] * np.eye(D)
        return total, coordinates.gradient(parameters, by_means, by_factors)

    begin = coordinates.vector(start)
    visited = [begin]
    found = minimize(
        objective,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=coordinates.bounds(-0.5 * np.log(least_variance)),
        callback=lambda vector: visited.append(vector.copy()),
        options={"maxiter": max_iter, "gtol": np.sqrt(tol), "ftol": 0.0},
    )
    ends = map(coordinates.gaussians, visited)
    path = [Gaussians(origin + unit * each.means, unit**2 * each.covariances) for each in ends]
    return path, [objective(v)[0] + D * np.log(unit) for v in visited], bool(found.success)
