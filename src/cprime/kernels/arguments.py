"""What the kernels, compiled or not, ask of their arguments; errors say which, what came and what is expected."""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime._range import MOST_COLUMNS
from cprime.kernels.sparse import Sparse

Floats = NDArray[np.floating]


def contiguous(array: NDArray, dtype: DTypeLike | None = None) -> NDArray:
    """The array without gaps and at addresses that its type asks for, as the core reads it; a copy where it is not."""
    own = isinstance(array, np.ndarray) and (dtype is None or array.dtype == dtype)
    if own and array.flags.c_contiguous and array.flags.aligned:
        return array  # at once: of a small fit, checks are what takes time
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])


def matrix(array: Floats, name: str, like: Floats | None = None) -> Floats:
    """The array with contiguous rows, after checking that it is a float matrix (of the columns and dtype of `like`)."""
    if not isinstance(array, np.ndarray) or array.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{name} must be a NumPy array of float32 or float64, got {getattr(array, 'dtype', type(array))}"
        )
    if array.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got {array.ndim} dimension(s)")
    if like is not None:
        if array.dtype != like.dtype:
            raise TypeError(f"{name} must have the dtype of X, {like.dtype}, got {array.dtype}")
        if array.shape[1] != like.shape[1]:
            raise ValueError(f"{name} must have the {like.shape[1]} columns of X, got {array.shape[1]}")
    if array.shape[1] > MOST_COLUMNS:
        raise ValueError(f"{name} must have at most {MOST_COLUMNS} columns, got {array.shape[1]}")
    if not len(array):  # an array without rows may have strides of 0
        return np.empty((1, array.shape[1]), dtype=array.dtype)[:0]
    gaps = array.shape[1] > 1 and array.strides[1] != array.itemsize
    if gaps or array.strides[0] % array.itemsize or not array.flags.aligned:
        array = contiguous(array)
    return array


def rows(X: Floats, name: str) -> Floats:
    """As `matrix`; sparse rows, which stand for an array where annotations ask for one, as they are."""
    return X if isinstance(X, Sparse) else matrix(X, name)


def core(X: Floats) -> Any:
    """Checked rows of either kind as the core takes them."""
    return (X.values, X.columns, X.begins, X.shape[1]) if isinstance(X, Sparse) else X


def centers(array: Floats, X: Floats) -> Floats:
    """The array as `_matrix`, after checking that there is at least one centre."""
    array = matrix(array, "centers", X)
    if not len(array):
        raise ValueError("centers must have at least one row, got none")
    return array


def weights(sample_weight: Floats | None, n: int) -> NDArray[np.float64] | None:
    return None if sample_weight is None else vector(sample_weight, "sample_weight", n)


def scaled_weights(sample_weight: Floats | None, n: int) -> tuple[NDArray[np.float64] | None, float]:
    """Weights in units of a power of two near the largest, so that single precision has room for them; and the unit."""
    found = weights(sample_weight, n)
    largest = 0.0 if found is None else float(np.abs(found).max(initial=0.0))
    if found is None or not 0 < largest < math.inf:
        return found, 1.0
    unit = 2.0 ** math.floor(math.log2(largest))
    return found / unit, unit


def vector(array: Floats, name: str, n: int) -> NDArray[np.float64]:
    """The array as contiguous float64, after checking that it has n entries."""
    out: NDArray[np.float64] = contiguous(array, np.float64)
    if out.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {out.shape}")
    return out


def sums(array: NDArray[np.float64], name: str, n_components: int, like: Floats) -> NDArray[np.float64]:
    shape = (n_components, like.shape[1])
    if array.dtype != np.float64 or array.shape != shape or not array.flags.carray:
        raise ValueError(
            f"{name} must be contiguous, writeable float64 of shape {shape}, got {array.dtype} of {array.shape}"
        )
    return array


def kept(kept: NDArray[np.int32], name: str, shape: tuple[int, ...]) -> NDArray[np.int32]:
    kept = contiguous(kept)
    if kept.dtype != np.int32:
        raise TypeError(f"{name} must be int32, got {kept.dtype}")
    if kept.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {kept.shape}")
    return kept


def positions(rows: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    rows = contiguous(rows)
    if rows.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {rows.dtype}")
    if rows.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {rows.ndim} dimensions")
    return rows.astype(np.int64, copy=False)


def count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


def width(ids: NDArray[np.int32], name: str) -> int:
    if np.ndim(ids) != 2:
        raise ValueError(f"{name} must be two-dimensional, got {np.ndim(ids)} dimension(s)")
    return int(np.shape(ids)[1])


def factor(factor: Floats, name: str, like: Floats, n: int) -> Floats:
    factor = contiguous(factor, like.dtype)
    if factor.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {factor.shape}")
    if not (np.isfinite(factor) & (factor >= 0)).all():
        raise ValueError(f"{name} must be >= 0 and finite")
    return factor


def refuse_components(n_components: int, least: int, **ids: NDArray[np.int32]) -> None:
    """Names the argument in which the core has met a component outside [least, n_components)."""
    for name, array in ids.items():
        if array.size and (array.min() < least or array.max() >= n_components):
            raise ValueError(
                f"{name} must have components from {least} to {n_components - 1}, got {array.min()} to {array.max()}"
            )


def variance(variance: float) -> float:
    if not 0 < variance < math.inf:
        raise ValueError(f"variance must be > 0 and finite, got {variance!r}")
    return float(variance)


def line(values: Floats, weights: Floats, n_clusters: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Sorted distinct values with positive weights, both contiguous float64, and how many runs to cut them into."""
    values = vector(values, "values", np.size(values))
    weights = vector(weights, "weights", len(values))
    if not (np.isfinite(values).all() and (values[1:] > values[:-1]).all()):
        raise ValueError("values must be finite and rise strictly")
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ValueError("weights must be > 0 and finite")
    n_clusters = count(n_clusters, "n_clusters")
    if n_clusters > len(values):
        raise ValueError(f"n_clusters must be at most the number of values, {len(values)}, got {n_clusters}")
    return values, weights, n_clusters
