"""Squared distances of rows to a few candidate centers, matrix products, and the range of the values in rows."""

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats, costs_of


def distances(
    X: CoreRows,
    candidates: Floats,
    current: Floats | None = None,
    *,
    out: Floats | None = None,
    n_threads: int | None = None,
) -> Floats:
    """Return min(‖x_n − candidate_l‖², current_n) for L candidates and all n rows of X: (L, n) of X's dtype.

    candidates (L, D): centers    current (n,): upper limit of the result for each row, None for no limit
    out: C-contiguous array of this shape and dtype to which the result is written, or None
    """
    candidates = check.matrix(candidates, "candidates", X)
    if current is not None:
        current = check.contiguous(current, X.dtype)
        if current.shape != (len(X),):
            raise ValueError(f"current must have shape ({len(X)},), got {current.shape}")
    out = _room(out, (len(candidates), len(X)), X.dtype)
    X.kernels.distances(X.core, candidates, current, out, resolve_threads(n_threads))
    return out


def _room(out: Floats | None, shape: tuple[int, int], dtype: np.dtype) -> Floats:
    """Return the result array `out` after a check of shape, dtype and layout, or a new array if `out` is None."""
    if out is None:
        return np.empty(shape, dtype=dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous:
        raise ValueError(f"out must be contiguous {dtype} of shape {shape}, got {out.dtype} of shape {out.shape}")
    return out


def distances_twin(X: Floats, candidates: Floats, current: Floats | None, out: Floats, n_threads: int) -> None:
    """Write squared distances of n rows to L candidates, limited by `current`, to `out` (L, n); computed in NumPy."""
    out[:] = costs_of(X, candidates).T.astype(X.dtype)
    if current is not None:
        np.minimum(out, current, out=out)


def extent(X: CoreRows, origin: Floats | None = None, *, n_threads: int | None = None) -> tuple[float, float]:
    """Return the greatest |x_nk| and |x_nk − origin_k| over rows n and columns k of X [data unit]; 0, 0 if X is empty.

    If a number in X is infinite or NaN, the first result is infinite or NaN.    origin (D,): None means the first row
    """
    if not len(X) or not X.shape[1]:
        return 0.0, 0.0
    origin = X.first() if origin is None else origin
    origin = check.contiguous(check.matrix(origin[None], "origin", X)[0])
    return X.kernels.extent(X.core, origin, resolve_threads(n_threads))


def extent_twin(X: Floats, origin: Floats, n_threads: int) -> tuple[float, float]:
    """Return the greatest |x_nk| and |x_nk − origin_k| over rows n and columns k of X, computed in NumPy."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.abs(X).max()), float(np.fmax.reduce(np.abs(X - origin), axis=None))


def products(
    X: CoreRows, B: Floats, shift: Floats | None = None, *, out: Floats | None = None, n_threads: int | None = None
) -> NDArray[np.floating]:
    """Return the matrix product (X − shift) Bᵀ (n, m) for B (m, D) and shift (D,) or None.

    The result is bit-identical for any number of threads.

    out: C-contiguous array of this shape and of X's dtype to which the result is written, or None
    """
    B = check.matrix(B, "B", X)
    if shift is not None:
        shift = check.contiguous(shift, X.dtype)
        if shift.shape != (X.shape[1],):
            raise ValueError(f"shift must have shape ({X.shape[1]},), got {shift.shape}")
    out = _room(out, (len(X), len(B)), X.dtype)
    X.kernels.products(X.core, B, shift, out, resolve_threads(n_threads))
    return out


def products_twin(X: Floats, B: Floats, shift: Floats | None, out: Floats, n_threads: int) -> None:
    """Compute the products (X − shift) Bᵀ in NumPy, in float64, and write them to `out`."""
    rows = np.ascontiguousarray(X, dtype=np.float64) - (0 if shift is None else shift)
    out[:] = rows @ np.ascontiguousarray(B, dtype=np.float64).T
