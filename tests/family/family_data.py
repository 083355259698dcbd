"""Data and formulas of the k-means family in plain NumPy and float64."""

import numpy as np

DTYPES = (np.float32, np.float64)
TOLERANCE = {np.float32: 1e-4, np.float64: 1e-9}
EQUAL = {"covariance_type": "tied_spherical", "weights": "equal"}


def outside(squared, n_active):
    """Return a mask (n, C) of the components that are not among the n_active nearest."""
    order = np.argsort(squared, axis=1, kind="stable")
    mask = np.zeros(squared.shape, dtype=bool)
    np.put_along_axis(mask, order[:, n_active:], True, axis=1)
    return mask


def bezdek(squared, m, n_active):
    """Return u_nc ∝ d_nc^(−2/(m−1)) over the n_active nearest centers, by the ratio form; no distance may be 0."""
    squared = np.where(outside(squared, n_active), np.inf, squared)
    ratios = (squared[:, :, np.newaxis] / squared[:, np.newaxis, :].clip(max=1e300)) ** (1 / (m - 1))
    return 1 / np.where(np.isfinite(ratios), ratios, np.inf).sum(axis=2)


def miyamoto(squared, constant, n_active):
    """Return memberships u_nc ∝ exp(−d²_nc/λ) over the n_active nearest centers."""
    shifted = np.exp(-(squared - squared.min(axis=1, keepdims=True)) / constant)
    shifted[outside(squared, n_active)] = 0
    return shifted / shifted.sum(axis=1, keepdims=True)


def umayahara(squared, constant, n_active):
    """Return memberships max(0, (ρ_n − d²_nc)/λ) over the n_active nearest centers, ρ_n by bisection."""
    near = np.where(outside(squared, n_active), np.inf, squared)
    low = near.min(axis=1, keepdims=True)
    high = low + constant  # there the nearest center alone has membership 1
    for _ in range(200):
        middle = (low + high) / 2
        above = np.maximum(0, (middle - near) / constant).sum(axis=1, keepdims=True) > 1
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.maximum(0, (high - near) / constant)


def power_objective(squared, u, m, weight=1.0):
    """Return the objective J_m = Σ_n w_n Σ_c u_nc^m d²_nc."""
    return float((np.broadcast_to(weight, len(u))[:, np.newaxis] * u**m * squared).sum())


def entropy_objective(squared, u, constant, weight=1.0):
    """Return the objective J_λ = Σ_n w_n Σ_c u_nc (d²_nc + λ log u_nc)."""
    log_u = np.log(u, out=np.zeros_like(u), where=u > 0)
    return float((np.broadcast_to(weight, len(u))[:, np.newaxis] * u * (squared + constant * log_u)).sum())


def quadratic_objective(squared, u, constant, weight=1.0):
    """Return the objective J_λ = Σ_n w_n Σ_c (u_nc d²_nc − λ/2 u_nc (1 − u_nc))."""
    return float((np.broadcast_to(weight, len(u))[:, np.newaxis] * u * (squared - constant / 2 * (1 - u))).sum())


def weighted_means(X, masses):
    """Return Σ_n mass_nc x_n / Σ_n mass_nc, (C, D)."""
    return masses.T @ np.asarray(X, dtype=np.float64) / masses.sum(axis=0)[:, np.newaxis]
