"""Cholesky factors of covariance matrices, and the repair of singular covariances and variances."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

logger = logging.getLogger("cprime")

# To repair a singular covariance, first this share of the component's mean variance is added to the diagonal.
_JITTER = 1e-10
# The least variance of a component is that in its narrowest direction. A component has collapsed onto a few points if
# its least variance is at most this share of the least variance of the component for which this variance is greatest.
_COLLAPSED = 1e-8
# A covariance is singular if, for a column, (variance given the columns before it) / variance is at most this.
_SINGULAR = 4 * np.finfo(np.float64).eps

# Least allowed variance, as a share of the data's variance, so that squared Mahalanobis distances do not overflow.
_LEAST_SHARE = {np.dtype(np.float32): 2.0**-80, np.dtype(np.float64): 2.0**-511}
# Least allowed variance, so that its inverse does not overflow.
_LEAST = {np.dtype(np.float32): 2.0**-120, np.dtype(np.float64): 2.0**-1000}


def least_variance(unit: float, dtype: DTypeLike) -> float:
    """Return the least variance allowed for data of variance `unit` and numbers of a dtype [data unit²]."""
    dtype = np.dtype(dtype)
    return max(_LEAST_SHARE[dtype] * unit, _LEAST[dtype])


class DataScale(NamedTuple):
    """Scale of the data of an M-step, for the repair of singular covariances.

    variance: mean variance of a column [data unit²]
    resolution (C, D): squared spacing of floating-point numbers near each mean [data unit²]; smaller variances about
        that mean cannot be measured
    """

    variance: float
    resolution: NDArray[np.float64]

    @classmethod
    def measure(
        cls, counts: NDArray[np.float64], means: NDArray[np.float64], variances: NDArray[np.float64], dtype: DTypeLike
    ) -> Self:
        """Compute the scale of data of a given dtype from means (C, D) and variances about the means (C, D).

        counts (C,): weights of the components
        If all points are equal, their variance is 0. Then `variance` is the squared spacing of floating-point numbers
        near the means, divided by 1e-10. The repair of a singular covariance adds 1e-10 of it, so it adds that spacing.
        """
        shares, eps = counts / counts.sum(), float(np.finfo(dtype).eps)
        squares = means - shares @ means
        np.square(squares, out=squares)
        squares += variances
        variance = max(float((shares @ squares).mean()), 0.0)  # rounding may make it negative
        resolution = np.multiply(eps, means, out=squares)
        np.square(resolution, out=resolution)
        return cls(variance or float(resolution.max()) / _JITTER or 1.0, resolution)

    def pool(self, shares: NDArray[np.float64]) -> Self:
        """Return the data's scale for one covariance that all components share, with a resolution of shape (1, D).

        shares (C,): share of the points in each component, by which resolutions are averaged
        """
        return self._replace(resolution=pooled(shares, self.resolution)[np.newaxis])

    def average_columns(self) -> Self:
        """Return the data's scale for components with one variance for all columns, with a resolution of shape (C,)."""
        return self._replace(resolution=self.resolution.mean(axis=1))


def repaired(
    covariances: NDArray[np.float64], dtype: DTypeLike = np.float64, scale: DataScale | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return covariances (C, D, D), made positive definite, and their lower Cholesky factors L, where Σ = L Lᵀ.

    The diagonal of a singular matrix is increased by the least of 1e-10, 1e-9 … times its typical variance
    (mean variance) that makes it positive definite, but at least by the data's resolution, the squared spacing of
    floating-point numbers. The number of repaired matrices is logged.
    scale: variance and resolution of the data; if None, these are the largest entry of the covariances, and 0
    """
    given, covariances = covariances, covariances.copy()
    lower, bad = _factors(covariances)
    for c in np.flatnonzero(bad):
        if not np.isfinite(given[c]).all():
            raise np.linalg.LinAlgError(f"the covariance of component {c} is not finite")
    variances = np.diagonal(given, axis1=1, axis2=2)
    unit = (scale.variance if scale else float(np.abs(given).max())) or 1.0
    least = least_variance(unit, dtype)
    bad |= variances.min(axis=1) < least
    if not bad.any():
        return covariances, lower
    left, D = np.flatnonzero(bad), given.shape[1]
    jitter = _JITTER * _typical_variances(variances, least, unit)[left, np.newaxis]
    floor = np.broadcast_to(np.maximum(scale.resolution if scale else 0.0, least), variances.shape)[left]
    while len(left):
        covariances[left] = given[left] + np.maximum(jitter, floor)[:, :, np.newaxis] * np.eye(D)
        lower[left], failed = _factors(covariances[left])
        failed |= np.diagonal(covariances[left], axis1=1, axis2=2).min(axis=1) < least
        left, jitter, floor = left[failed], 10 * jitter[failed], floor[failed]
    logger.info("%d singular covariance(s) repaired by a small addition to the diagonal", np.count_nonzero(bad))
    return covariances, lower


def _typical_variances(variances: NDArray[np.float64], least: float, unit: float) -> NDArray[np.float64]:
    """Return the mean variance of each component (C,), from variances (C, …) of which those up to `least` count as 0.

    If all variances of a component are 0, the mean of the other components is used, not the variance of the data,
    because a single distant point can make the latter huge. If all variances are 0, the data's variance `unit` is used.
    """
    means = np.where(variances > least, variances, 0.0).reshape(len(variances), -1).mean(axis=1)
    has_any = means > 0
    return np.where(has_any, means, means[has_any].mean() if has_any.any() else unit)


def _factors(covariances: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return lower Cholesky factors (C, D, D) of covariances, and the mask (C,) of those singular up to rounding."""
    try:
        # The conversion is for mypy: NumPy's type stubs give no dtype.
        lower = np.linalg.cholesky(covariances).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        # The matrices that failed are found by SciPy, because NumPy does not report them.
        lower, bad = np.zeros_like(covariances), np.array([dpotrf(each, lower=1)[1] != 0 for each in covariances])
        if bad.any():
            there = ~bad
            lower[there], bad[there] = _factors(covariances[there])
        else:  # no matrix failed in SciPy, which rounds differently, so NumPy factorizes the matrices one by one
            bad[:] = True
            for c in range(len(covariances) if len(covariances) > 1 else 0):
                lower[c : c + 1], bad[c : c + 1] = _factors(covariances[c : c + 1])
        return lower, bad
    left, given = (np.diagonal(array, axis1=1, axis2=2) for array in (lower, covariances))
    # The comparison is negated, because comparisons with NaN are false and not every LAPACK reports NaN.
    return lower, np.logical_not((np.square(left) > _SINGULAR * given).all(axis=1))


def inverses(lower: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverses L⁻¹ of Cholesky factors L (C, D, D); ‖L⁻¹ (x − μ)‖ is the Mahalanobis distance."""
    out, triangle = np.empty_like(lower), np.tri(lower.shape[-1])
    for c, factor in enumerate(lower):
        inverse, failed = dtrtri(factor, lower=1)
        if failed:
            raise np.linalg.LinAlgError(f"the factor of component {c} is singular")
        np.multiply(inverse, triangle, out=out[c])
    return out


def scaled_along(now: NDArray[np.float64], before: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return numbers `now` ≥ 0, extrapolated by a share of the change of their logarithms: now · (now / before)^share.

    EM with momentum extrapolates variances in this way.
    before: the previous numbers. The result differs from `now` at most by a factor e.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.log(now)
        step -= np.log(before)
        step *= share
    return now * np.exp(np.clip(np.nan_to_num(step, nan=0.0), -1, 1))


def covariances_along(now: NDArray[np.float64], before: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return covariances Σ (C, D, D), extrapolated to Σ + s Δ by a share s of their change Δ.

    A permutation of columns, or any other change of coordinates, changes the result in the same way as Σ. A covariance
    is extrapolated only if its variance in any direction stays above a quarter of that of Σ: ¾ Σ + s Δ is positive
    definite.
    """
    step = share * (now - before)
    bad = _factors(0.75 * now + step)[1]
    step[bad] = 0
    step += now
    return step


def factors_of_precisions(lower: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return upper triangular P (C, D, D) with P Pᵀ = Σ⁻¹, for covariances Σ = L Lᵀ given by `lower` L."""
    return inverses(lower).transpose(0, 2, 1).copy()


def fitted_covariances(attributes: Mapping[str, Any], full: bool) -> NDArray[np.float64]:
    """Return covariances Σ in float64 and in the shape of the attribute `covariances_`, from fitted attributes.

    If there are Cholesky factors P with P Pᵀ = Σ⁻¹, these are used, because covariances in float32 may be indefinite.
    full: whether covariances are matrices (…, D, D)
    """
    covariances, factors = attributes.get("covariances_"), attributes.get("precisions_cholesky_")
    if factors is None or not (covariances is None or np.asarray(covariances).dtype == np.float32):
        return np.asarray(covariances, dtype=np.float64)
    factors = np.asarray(factors, dtype=np.float64)
    if not full:
        return np.asarray(1 / np.square(factors))
    upper = factors.reshape(-1, *factors.shape[-2:])
    lower = inverses(np.ascontiguousarray(upper.transpose(0, 2, 1)))
    return (lower @ lower.transpose(0, 2, 1)).reshape(factors.shape)


def given_columns(
    covariances: NDArray[np.float64], known: NDArray[np.intp], others: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return regression matrices and conditional covariances of other columns given known ones, from covariances Σ.

    covariances (C, D, D): Σ    known (k,), others (M,): column indices, called o and m below
    The results are Σ_mo Σ_oo⁻¹ (C, M, k) and Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om (C, M, M). They are computed as L_mo L_oo⁻¹ and
    L_mm L_mmᵀ, with the Cholesky factor L of Σ whose known columns come first.
    """
    order, k = np.concatenate([known, others]), len(known)
    lower = repaired(covariances[:, order[:, np.newaxis], order])[1]
    rest = lower[:, k:, k:]
    return lower[:, k:, :k] @ inverses(lower[:, :k, :k]), rest @ rest.transpose(0, 2, 1)


def fewer_factors(
    loadings: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return loadings Λ (C, D, H) and noise ψ (C, D) with H < D and the same covariances ΛΛᵀ + diag ψ as those given.

    The model of a few columns of the data may have H ≥ D. Then the least eigenvalue of ΛΛᵀ is subtracted from all its
    eigenvalues and added to the noise variances of all coordinates. This removes one factor.
    """
    if loadings.shape[2] < loadings.shape[1]:
        return loadings, noise
    axes, lengths, _ = np.linalg.svd(loadings, full_matrices=False)
    squares = np.square(lengths)
    rest = squares[:, np.newaxis, :-1] - squares[:, np.newaxis, -1:]
    return axes[:, :, :-1] * np.sqrt(rest), noise + squares[:, -1:]


def n_collapsed(least: NDArray[np.float64], reg_covar: float) -> int:
    """Return the number of collapsed components, from the least variance of each (C,).

    A component has collapsed if its least variance is at most 2 reg_covar (the number added to variances) or 1e-8 of
    the largest such variance. If all have collapsed, return 0, because then the data have no extent in some direction
    (for example, a column is constant).
    """
    n = int(np.count_nonzero(least <= max(2 * reg_covar, _COLLAPSED * least.max())))
    return n if n < len(least) else 0


def are_singular(variances: NDArray[np.float64], precisions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the mask (C,) of covariances that were repaired: other columns determine a column, or a variance was 0.

    Such a variance is `_JITTER` times the mean of the other columns' or, if these are 0 too, of the other components'.
    Much smaller ones may be right: columns may have different units, and components different extents.
    variances, precisions: diagonals (C, D) of the covariances and of their inverses
    """
    means = variances.mean(axis=1, keepdims=True)
    bad = variances * precisions >= 0.1 / _JITTER
    for part, whole, n in ((variances, means, variances.shape[1]), (means, means.mean(), len(means))):
        bad = bad | ((part > 0.9 * _JITTER * whole) & (part < 1.1 * n * _JITTER * whole))
    return np.asarray(bad.any(axis=1))


def positive(variances: NDArray[np.float64], dtype: DTypeLike, scale: DataScale | None = None) -> NDArray[np.float64]:
    """Return variances (C, D) or (C,) in which those that are 0 up to rounding are replaced; their number is logged.

    The replaced variances become 1e-10 of the component's mean variance, but at least the data's resolution, the
    squared spacing of floating-point numbers.
    scale: variance and resolution of the data; if None, these are the largest of the given variances, and 0
    """
    unit = (scale.variance if scale else float(np.fmax.reduce(variances, axis=None, initial=0.0))) or 1.0
    least = least_variance(unit, dtype)
    bad = ~(variances > least)
    if not bad.any():
        return variances
    logger.info("%d variance(s) were 0 up to rounding and replaced by a small positive one", int(bad.sum()))
    typical = _typical_variances(variances, least, unit).reshape(-1, *[1] * (variances.ndim - 1))
    return np.where(
        bad, np.maximum(_JITTER * typical, np.maximum(scale.resolution if scale else 0.0, least)), variances
    )


def within(values: NDArray, dtype: DTypeLike) -> NDArray:
    """Return the values converted to a dtype; values outside its range become the nearest number of the dtype."""
    limit = np.finfo(dtype).max
    found = np.asarray(np.minimum(values, limit))
    return np.maximum(found, -limit, out=found).astype(dtype, copy=False)


def of_empty(shares: NDArray[np.float64], covariances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return covariances, replaced for components without points; the number of replaced ones is logged.

    The replacement is the mean of the other components' covariances, weighted by shares (C,), the share of the points
    in each component.
    """
    empty = ~(shares > 0)
    if not empty.any() or empty.all():
        return covariances
    logger.info("%d component(s) without points received the mean covariance of the others", int(empty.sum()))
    share = shares[~empty] / shares[~empty].sum()
    mean = np.tensordot(share, covariances[~empty], axes=1)
    return np.where(empty.reshape(-1, *[1] * (covariances.ndim - 1)), mean, covariances)


def pooled(shares: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of second moments (C, …) over components, weighted by shares (C,) of the points."""
    found: NDArray[np.float64] = shares[np.newaxis] @ second.reshape(len(second), -1)  # faster than np.tensordot
    return found.reshape(second.shape[1:])


def checked_precisions(precisions_init: Any, shape: tuple[int, ...], covariance_type: str) -> NDArray[np.float64]:
    """Return precisions given by users as an array; raise ValueError unless they are finite and of this `shape`."""
    precisions = np.asarray(precisions_init, dtype=np.float64)
    if precisions.shape != shape:
        raise ValueError(
            f"precisions_init must have shape {shape} for covariance_type={covariance_type!r}, got {precisions.shape}."
        )
    if not np.isfinite(precisions).all():
        raise ValueError("precisions_init must be finite, got entries that are not.")
    return precisions


def inverted(precisions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariances of precision matrices (…, D, D); raise ValueError unless they are positive definite."""
    if not np.allclose(precisions, np.swapaxes(precisions, -1, -2)) or np.linalg.eigvalsh(precisions).min() <= 0:
        raise ValueError("precisions_init must be symmetric and positive definite, got matrices that are not.")
    return np.linalg.inv(precisions).astype(np.float64, copy=False)
