"""Sufficient statistics for M-steps: sums over the active sets of points, eq. (6) of Lücke & Forster 2019.

The file also has functions that sort points by component, and project them on directions.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, GaussianParameters, Measure

_SMALL, _SOME_ROWS = 2.0**-30, 64
# Greatest exponent of the powers of two by which columns of small float32 numbers are multiplied before they are
# squared, because their squares would underflow.
_MOST_UNIT = 126

# Subnormal coordinates of means are set to 0 below this share of the largest in their column. At such a ratio, the
# squares of both hardly fit into the range of normal numbers of the dtype.
_NEGLIGIBLE = {np.dtype(np.float32): np.float32(2.0**-62), np.dtype(np.float64): np.float64(2.0**-510)}


def accumulate(
    X: CoreRows,
    kept: NDArray[np.int32],
    responsibilities: NDArray[np.float64] | None = None,
    sample_weight: Floats | None = None,
    *,
    n_components: int,
    rows: NDArray[np.int64] | None = None,
    onto: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return sufficient statistics N_c = Σ_n w_n q_nc (C,) and S_c = Σ_n w_n q_nc x_n (C, D), in float64.

    w are sample weights, q responsibilities.
    kept (n, H) int32: components of each row    responsibilities (n, H): q, of any sign, or None for ones if H = 1
    rows (n,): indices of the rows of X and sample_weight to use; None is all
    onto (C, D) float64: array to which S_c is added in place, and which is returned; None starts with zeros
    """
    rows = check.array(rows, "rows", np.int64, -1)
    kept = check.array(kept, "kept", np.int32, len(X) if rows is None else len(rows), -1)
    responsibilities = check.array(responsibilities, "responsibilities", np.float64, *kept.shape)
    if responsibilities is None and kept.shape[1] != 1:
        raise ValueError(f"responsibilities are needed where more than one component is kept, got {kept.shape[1]}")
    counts = np.empty(check.count(n_components, "n_components"))
    sums = check.output(onto, "onto", np.float64, len(counts), X.shape[1])
    weights, threads = check.array(sample_weight, "sample_weight", np.float64, len(X)), resolve_threads(n_threads)
    X.kernels.accumulate(X.core, kept, responsibilities, weights, rows, counts, sums, onto is not None, threads)
    return counts, sums


def weighted_sum(values: Floats, sample_weight: Floats | None = None, *, kernels: Any = _core) -> float:
    """Return Σ_n w_n v_n in float64, the same bits for any number of threads.

    values (n,): numbers v of float32 or float64    sample_weight (n,): weights w, None for ones
    """
    values = check.contiguous(values)
    return kernels.weighted_sum(values, check.array(sample_weight, "sample_weight", np.float64, len(values)))


def moments(
    X: CoreRows,
    components: Measure,
    kept: NDArray[np.int32],
    responsibilities: NDArray[np.float64] | None = None,
    sample_weight: Floats | None = None,
    *,
    full: bool,
    n_threads: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return weighted counts, and first and second moments about the means μ_c, of C components.

    The weights of the sums over rows x are w q, where w are sample weights and q responsibilities.
    components: means (C, D), or Gaussians, which also complete rows with missing values
    kept (n, H) int32: components of each row, repetitions allowed
    responsibilities (n, H): q, of any sign, or None for ones
    full: whether second moments are matrices
    ->    Σ w q (C,), Σ w q (x − μ_c) (C, D), and Σ w q (x − μ_c)² (C, D) or, if `full`, Σ w q (x − μ_c)(x − μ_c)ᵀ
    (C, D, D), all float64.
    """
    means = components.means if isinstance(components, GaussianParameters) else components
    means = check.matrix(means, "means", X, 1)
    kept = check.array(kept, "kept", np.int32, len(X), -1)
    responsibilities = check.array(responsibilities, "responsibilities", np.float64, *kept.shape)
    weights = check.array(sample_weight, "sample_weight", np.float64, len(X))
    units = None if full else small_units(X, means)
    if units is not None:
        X, means = X.times(units), means * units
    C, D = means.shape
    sums = np.zeros(C), np.zeros((C, D)), np.zeros((C, D, D) if full else (C, D))
    try:
        X.kernels.moments(X.core, means, kept, responsibilities, weights, *sums, resolve_threads(n_threads))
    except ValueError:
        check.ids(C, kept=(kept, 0))
        raise
    if units is not None:
        return sums[0], sums[1] / units, sums[2] / np.square(units, dtype=np.float64)
    return sums[0], sums[1], symmetric(sums[2]) if full else sums[2]


def small_units(X: CoreRows, means: Floats) -> Floats | None:
    """Return powers of two (D,) by which columns must be multiplied to prevent underflow of their squares in float32.

    Return None if no column needs it. The size of a column's numbers is estimated from the means and some rows.
    """
    if X.dtype != np.float32:
        return None
    sample = X[:: max(1, len(X) // _SOME_ROWS)].dense()
    largest = np.maximum(np.abs(means).max(axis=0), np.abs(sample).max(axis=0, initial=0))
    small = (largest > 0) & (largest < _SMALL)
    if not small.any():
        return None
    return np.ldexp(np.float32(1), np.where(small, np.minimum(-np.frexp(largest)[1], _MOST_UNIT), 0))


def symmetric(second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make second moments (C, D, D) symmetric: copy lower triangles to upper ones, in place; return the array.

    An array (C, D) of diagonals is returned unchanged.
    """
    if second.ndim == 3:
        for k in range(second.shape[1]):
            second[:, k, k + 1 :] = second[:, k + 1 :, k]
    return second


def along(
    X: CoreRows,
    centers: Floats,
    directions: Floats,
    labels: NDArray[np.int32],
    *,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Return the projection (x_n − m_c)·v_c of each point on the direction of its component c = labels[n]: (n,).

    Clusters are divided by these numbers. centers (C, D): m_c    directions (C, D): v_c    labels (n,) int32
    """
    centers, directions = check.matrix(centers, "centers", X, 1), check.matrix(directions, "directions", X)
    if len(directions) != len(centers):
        raise ValueError(f"directions must have shape {centers.shape}, got {directions.shape}")
    labels = check.array(labels, "labels", np.int32, len(X))
    out = np.empty(len(X))
    try:
        X.kernels.along(X.core, centers, directions, labels, out, resolve_threads(n_threads))
    except ValueError:
        check.ids(len(centers), labels=(labels, 0))
        raise
    return out


def means(
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    centers: Floats,
    origin: NDArray[np.float64] | None = None,
    *,
    n_threads: int | None = None,
    kernels: Any = _core,
) -> tuple[Floats, NDArray[np.float64]]:
    """Return the means S_c / N_c in the dtype of the centers (C, D), and their squared distances to `origin` (C,).

    From these distances the M-step of k-means computes the error J about the means.
    counts (C,): N_c, weight of a component's points    sums (C, D): S_c, weighted sum of these points
    centers (C, D): previous means    origin (D,): None means the previous means
    The mean of a component without points is its previous one. Squared distances are computed from unrounded means.
    """
    centers = np.ascontiguousarray(check.matrix(centers, "centers"))
    C, D = centers.shape
    counts, sums = check.array(counts, "counts", np.float64, C), check.array(sums, "sums", np.float64, C, D)
    origin = check.array(origin, "origin", np.float64, D)
    out, squares = np.empty_like(centers), np.empty(C)
    kernels.means(counts, sums, centers, origin, out, squares, resolve_threads(n_threads))
    return out, squares


def without_negligible(centers: Floats) -> Floats:
    """Return centers (C, D) in which subnormal coordinates below 2⁻⁶² of the largest of their column are set to 0.

    For float64 the share is 2⁻⁵¹⁰. Responsibilities may be as small as the least positive number. So may be the mean of
    a component in a column in which all points near it are 0, such as a pixel at the border of an image. Processors
    compute slowly with subnormal numbers. The change is less than the least normal number of the dtype, so of the data.
    """
    magnitudes = np.abs(centers)
    least = np.minimum(magnitudes.max(axis=0) * _NEGLIGIBLE[centers.dtype], np.finfo(centers.dtype).tiny)
    return np.where(magnitudes < least, centers.dtype.type(0), centers)


def grouped_order(
    labels: NDArray[np.int32], n_components: int, *, n_threads: int | None = None, kernels: Any = _core
) -> NDArray[np.int64]:
    """Return the indices (n,) that sort points by component, by a stable counting sort.

    labels (n,) int32: component of each point
    """
    labels = check.array(labels, "labels", np.int32, -1)
    n_components = check.count(n_components, "n_components")
    order = np.empty(len(labels), dtype=np.int64)
    try:
        kernels.grouped_order(labels, n_components, order, resolve_threads(n_threads))
    except ValueError:
        check.ids(n_components, labels=(labels, 0))
        raise
    return order
