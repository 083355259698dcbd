"""References in NumPy and mpmath: nearest centers, sums of squares, densities, optimal cuts of a line.

NaN is a missing value. A row with missing values has the marginal density of its observed columns.

Tolerances follow from the effect of rounding the inputs. A squared distance of D terms is accurate to D + 4 units in
the last place of the data's type. The density of a Gaussian depends on the rounding of points, means and covariances,
multiplied by the condition of the covariance of the observed columns. The constants _FARTHEST, _ABOUT_ORIGIN,
_OF_FACTORS and _PROJECTION allow for further errors of the implementation.
"""

import math
from collections.abc import Iterator
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import rq
from scipy.special import betaln, gammaln

Floats = NDArray[np.float64]

# Diagonal covariances use, for rows with missing values, double precision products of x, x² and the mask about one
# origin, if the squared distance of a mean from it is no more variances than this.
_FARTHEST = {np.dtype(np.float32): 2.0**36, np.dtype(np.float64): 2.0**24}

# A(x − μ) is computed from A(x − origin) and A(origin − μ) up to this many standard deviations of rounding, and beyond
# that from x − μ; see gaussian_start in cpp/gaussian_cost.h.
_ABOUT_ORIGIN = 2.0**-12

# If rounding of its terms exceeds this share of a factor analyzer's cost plus 1, the cost is computed from differences.
_OF_FACTORS = 2.0**-27

# Marginal densities of covariance matrices are computed by projection in float64, whose error is this times the root of
# the condition of the whole covariance.
_PROJECTION = 8 * float(np.finfo(np.float64).eps)


def squared_distances(X: Floats, centers: Floats) -> Floats:
    """Return squared distances (n, C), computed from differences."""
    out = np.empty((len(X), len(centers)))
    with np.errstate(over="ignore", under="ignore"):
        for c, center in enumerate(centers):
            difference = X - center
            out[:, c] = np.einsum("nd,nd->n", difference, difference)
    return out


def distance_error(D: int, dtype: Any) -> tuple[float, float]:
    """Return the relative and the absolute error of a squared distance in `dtype`; the absolute one is due to
    underflow.
    """
    info = np.finfo(dtype)
    return 4 * (D + 4) * float(info.eps), 4 * D * float(info.tiny)


def unit(X: Floats) -> Floats:
    """Return the rows scaled to length 1."""
    X = X / np.abs(X).max(axis=1, keepdims=True)
    return X / np.sqrt(np.einsum("nd,nd->n", X, X))[:, np.newaxis]


def least_of_a_line(x: Floats, w: Floats, C: int) -> float:
    """Return the least J of C intervals of sorted values, by dynamic programming over all cuts, O(C N²)."""
    order = np.argsort(x)
    x, w = x[order] - x.min(), w[order]
    n = len(x)
    cost = np.full((n, n + 1), np.inf)  # cost of the interval [i, j)
    weight, mean, spread = np.zeros(n), np.zeros(n), np.zeros(n)
    for j in range(n):  # every interval that ends before j is extended by one value (Welford)
        weight[: j + 1] += w[j]
        share = np.divide(w[j], weight[: j + 1], out=np.zeros(j + 1), where=weight[: j + 1] > 0)
        away = x[j] - mean[: j + 1]
        mean[: j + 1] += share * away
        spread[: j + 1] += w[j] * away * (x[j] - mean[: j + 1])
        cost[: j + 1, j + 1] = spread[: j + 1]
    best = cost[0]
    for _ in range(C - 1):
        best = np.minimum(best, (best[:n, np.newaxis] + cost).min(axis=0))
    return float(best[n])


def center_slip(mixture: Any, dtype: Any) -> Floats:
    """Return how many standard deviations sums and rounding in `dtype` may shift each mean: (C,)."""
    means = np.abs(mixture.means_.astype(np.float64)) * 4 * float(np.finfo(dtype).eps)
    with np.errstate(all="ignore"):
        return np.array([np.linalg.norm(mean @ np.abs(P)) for mean, P in zip(means, factors(mixture), strict=True)])


def factors(mixture: Any) -> Floats:
    """Return upper triangular P (C, D, D), where P Pᵀ is the precision, of a fitted mixture."""
    C, D = mixture.means_.shape
    if hasattr(mixture, "factors_"):
        return np.array([_of_factors(*pair) for pair in zip(mixture.factors_, mixture.noise_variances_, strict=True)])
    P, kind = np.asarray(mixture.precisions_cholesky_, dtype=np.float64), mixture.covariance_type_
    if P.ndim == 3:
        return P
    if kind == "tied":
        return np.broadcast_to(P, (C, D, D))
    diagonals = P[:, np.newaxis] if kind == "spherical" else P
    out = np.zeros((C, D, D))
    out[:, np.arange(D), np.arange(D)] = np.broadcast_to(diagonals, (C, D))
    return out


def _of_factors(loadings: NDArray, noise: NDArray) -> Floats:
    """Return P (D, D) for Λ Λᵀ + diag(ψ) by the singular values of Ψ^−½ Λ, without computing the covariance."""
    root, axes, lengths = _in_noise(loadings, noise)
    whitener = np.eye(len(root)) + (axes * (1 / np.sqrt(1 + lengths**2) - 1)) @ axes.T
    upper = rq(whitener / root[:, np.newaxis], mode="r")
    return upper * np.sign(np.diagonal(upper))


def _in_noise(loadings: NDArray, noise: NDArray) -> tuple[Floats, Floats, Floats]:
    """Return Ψ^½ (D,), and the left singular vectors (D, H) and singular values (H,) of Ψ^−½ Λ."""
    root = np.sqrt(noise.astype(np.float64))
    axes, lengths, _ = np.linalg.svd(loadings.astype(np.float64) / root[:, np.newaxis], full_matrices=False)
    return root, axes, lengths


def _factor_squares(X: Floats, mean: Floats, loadings: Floats, noise: Floats) -> tuple[Floats, float]:
    """Return (x − μ)ᵀ (Λ Λᵀ + diag(ψ))⁻¹ (x − μ) for each row of X (n, D), and half the logarithm of the determinant.

    In units of the noise, the covariance is I + W Wᵀ, whose eigenvalues may differ by any power of ten. If float64
    would lose digits because of that, the computation uses as many more digits.
    """
    root, axes, lengths = _in_noise(loadings, noise)
    largest = float(np.square(lengths).max(initial=0))
    if largest < 1e4:
        y = (X - mean) / root
        y = y + (y @ axes * (1 / np.sqrt(1 + lengths**2) - 1)) @ axes.T
        return np.einsum("nd,nd->n", y, y), float(np.log(root).sum() + np.log1p(lengths**2).sum() / 2)
    with mpmath.workdps(40 + 2 * math.ceil(math.log10(largest))):
        deviations = [mpmath.sqrt(psi) for psi in noise.tolist()]
        columns = [[a / root for a, root in zip(column, deviations, strict=True)] for column in loadings.T.tolist()]
        inner = mpmath.matrix([[mpmath.fdot(a, b) for b in columns] for a in columns]) + mpmath.eye(len(columns))
        inverse = mpmath.inverse(inner)
        squares = []
        for row in X.tolist():
            y = [(mpmath.mpf(x) - m) / root for x, m, root in zip(row, mean.tolist(), deviations, strict=True)]
            along = mpmath.matrix([mpmath.fdot(y, column) for column in columns])
            squares.append(float(mpmath.fdot(y, y) - (along.T * inverse * along)[0]))
        half = sum(map(mpmath.log, deviations)) + mpmath.log(mpmath.det(inner)) / 2
        return np.array(squares), float(half)


def log_densities(mixture: Any, X: Floats, dtype: Any) -> tuple[Floats, Floats]:
    """Return log π_c p(x | c) of a fitted mixture (n, C), and bounds on the effect of rounding in `dtype` on each."""
    logs, errors = np.empty((len(X), len(mixture.means_))), np.empty((len(X), len(mixture.means_)))
    P, means = factors(mixture), mixture.means_.astype(np.float64)
    matrices = not hasattr(mixture, "factors_") and (mixture.covariance_type_ in ("full", "tied") or np.isnan(X).any())
    spread = [_spread(covariance) for covariance in _covariances(mixture, P)] if matrices else []
    with np.errstate(all="ignore"):
        least, most = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
        extent = np.nan_to_num(np.abs([most - least, most - means.min(axis=0), means.max(axis=0) - least])).sum(axis=0)
    for there, rows in patterns(X):
        logs[rows], errors[rows] = _log_densities(mixture, P, spread, X[rows], there, extent, dtype)
    errors = np.fmin(np.nan_to_num(errors, nan=1e290), 1e290)
    return np.where(errors == 1e290, np.fmax(logs, -1e290), logs), errors  # logarithm of a factor that was rounded to 0


def patterns(X: Floats) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
    """Yield each pattern of observed columns, a mask (D,), and the indices of the rows that have it."""
    there, of = np.unique(~np.isnan(X), axis=0, return_inverse=True)
    for i, columns in enumerate(there):
        yield columns, np.flatnonzero(of.reshape(-1) == i)


def _log_densities(
    mixture: Any,
    P: Floats,
    spread: list[tuple[Floats, float]],
    X: Floats,
    there: NDArray[np.bool_],
    extent: Floats,
    dtype: Any,
) -> tuple[Floats, Floats]:
    """Return log densities and their error bounds (n, C) of rows that have the same observed columns `there`.

    P (C, D, D): factors of the precisions    spread: result of `_spread` for each component    extent (D,): range of
    data and means
    """
    means, farthest = mixture.means_.astype(np.float64), _FARTHEST[mixture.means_.dtype]
    weights = np.maximum(mixture.weights_, np.finfo(mixture.means_.dtype).tiny)  # value for components without points
    C, D = means.shape
    k, dof, factored = int(there.sum()), getattr(mixture, "dof_", None), hasattr(mixture, "factors_")
    logs, errors = np.empty((len(X), C)), np.empty((len(X), C))
    eps = 8 * float(np.finfo(dtype).eps) * (D + 8)
    with np.errstate(all="ignore"):
        for c in range(C):
            difference, Q, stiffness, projected = np.where(there, X - means[c], 0), P[c], 0.0, 0.0
            if spread:  # parameters are covariances, from which factors are computed
                stiffness = spread[c][1] * float(np.finfo(np.float64).eps / np.finfo(dtype).eps)
            if factored:  # a matrix whose condition may reach its trace, in units of the least eigenvalue
                loadings = mixture.factors_[c][there].astype(np.float64)
                noise = mixture.noise_variances_[c][there].astype(np.float64)
                stiffness = float((np.square(loadings).sum(axis=1) / noise).sum())
                cost, half = _factor_squares(X[:, there], means[c, there], loadings, noise)
                scale = np.log(weights[c]) - half
            else:
                if spread and k < D:
                    projected = _PROJECTION * float(np.sqrt(spread[c][1]))
                    Q, stiffness = _marginal(spread[c][0], there)
                y = difference @ Q
                cost = np.einsum("nd,nd->n", y, y)
                scale = np.log(weights[c]) + np.log(np.diagonal(Q)[there]).sum()
            size = np.abs(P[c] if factored else Q)
            slip = eps * np.linalg.norm(np.abs(difference) @ size, axis=1)
            slip = np.minimum(slip + _ABOUT_ORIGIN, eps * np.linalg.norm(extent @ size))
            logs[:, c] = scale - k / 2 * np.log(2 * np.pi) - cost / 2
            if dof is not None:
                logs[:, c] = scale + _log_t(cost, float(dof[c]), k)
            loss = np.sqrt(cost) * slip + slip**2 + eps * (np.abs(scale) + cost)
            if k < D and not P[c][~np.eye(D, dtype=bool)].any():
                distance = min(np.square(extent @ P[c]).sum(), farthest)
                loss += 8 * (D + 8) * float(np.finfo(np.float64).eps) * distance
            steep = 1 if dof is None else (dof[c] + k) / dof[c]  # derivative of −2 log p by the squared distance
            if factored:
                loss += _OF_FACTORS * (1 + cost)
            loss += projected * (1 + cost)
            errors[:, c] = loss * steep + eps * np.abs(logs[:, c]) + eps * stiffness * (1 + cost)
    return logs, errors


def _covariances(mixture: Any, P: Floats) -> Iterator[Floats]:
    """Yield the covariance (D, D) of each component: the fitted one if it is a matrix, else that of P (C, D, D).

    The inverse of a nearly singular P would have fewer digits than the fitted covariances.
    """
    if mixture.covariance_type_ in ("full", "tied"):
        return iter(np.broadcast_to(np.asarray(mixture.covariances_, dtype=np.float64), P.shape))
    return map(covariance_of, P)


def _spread(covariance: Floats) -> tuple[Floats, float]:
    """Return the covariance (D, D) and the condition of its correlations, infinite if they are singular."""
    with np.errstate(all="ignore"):
        deviations = np.sqrt(np.diagonal(covariance))
        correlations = covariance / deviations / deviations[:, np.newaxis]
        least = np.linalg.eigvalsh(correlations).min() if np.isfinite(correlations).all() else 0.0
    return covariance, len(covariance) / least if least > 0 else np.inf


def _marginal(covariance: Floats, there: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Return the factor of the precision of the columns `there`, zeros elsewhere (D, D), and their own condition."""
    out = np.zeros_like(covariance)
    if there.any():
        own, condition = _spread(covariance[np.ix_(there, there)])
        try:
            out[np.ix_(there, there)] = np.linalg.inv(np.linalg.cholesky(own)).T
        except np.linalg.LinAlgError:
            return out, np.inf
        return out, condition
    return out, 0.0


def covariance_of(P: Floats) -> Floats:
    """Return the covariance (D, D) for the factor P of its inverse."""
    inverse = np.linalg.inv(P)
    return inverse.T @ inverse


def _log_t(squares: Floats, dof: float, D: int) -> Floats:
    """Return the log densities of t distributions with Σ = I for given squared distances."""
    normalizer = gammaln(D / 2) - betaln(dof / 2, D / 2) if D else 0.0
    return normalizer - D / 2 * np.log(dof * np.pi) - (dof + D) / 2 * np.log1p(squares / dof)


def conditional_means(mixture: Any, X: Floats, logs: Floats) -> Floats:
    """Return Σ_c q_c E[x | x_o, c] (n, D) of rows with missing values; logs (n, C): densities of observed values."""
    q = np.exp(logs - log_sum(logs)[:, np.newaxis])
    out, P = np.zeros_like(X), factors(mixture)
    for there, rows in patterns(X):
        for c, mean in enumerate(mixture.means_.astype(np.float64)):
            found = np.where(there, X[rows], mean)
            if there.any() and not there.all():
                covariance = covariance_of(P[c])
                inner = np.linalg.solve(covariance[np.ix_(there, there)], (X[rows][:, there] - mean[there]).T)
                found[:, ~there] += (covariance[np.ix_(~there, there)] @ inner).T
            out[rows] += q[rows, c, np.newaxis] * found
    return out


def log_sum(logs: Floats) -> Floats:
    """Return log Σ exp of each row."""
    most = logs.max(axis=1)
    with np.errstate(under="ignore", invalid="ignore"):
        return most + np.log(np.exp(logs - most[:, np.newaxis]).sum(axis=1))
