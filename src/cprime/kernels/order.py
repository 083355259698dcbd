"""Sorting of points by component, comparison of active sets, and copies of rows in another order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.compiled import _core
from cprime.kernels.measures import Floats

# Least length of a row that is divided by its length. Shorter rows are scaled up first, because their squared lengths
# would be subnormal numbers, which have less precision. The bounds are powers of two, so scaling by them is exact.
LEAST_LENGTH = {np.dtype(np.float32): 2.0**-100, np.dtype(np.float64): 2.0**-480}


def grouped_order(
    labels: NDArray[np.int32], n_components: int, *, n_threads: int | None = None, kernels: Any = _core
) -> NDArray[np.int64]:
    """Return the indices (n,) that sort points by component, by a stable counting sort.

    labels (n,) int32: component of each point
    """
    labels = check.kept(labels, "labels", (np.size(labels),))
    n_components = check.count(n_components, "n_components")
    order = np.empty(len(labels), dtype=np.int64)
    with check.naming(n_components, labels=(labels, 0)):
        kernels.grouped_order(labels, n_components, order, resolve_threads(n_threads))
    return order


def grouped_order_twin(labels: NDArray, n_components: int, order: NDArray, n_threads: int) -> None:
    """Sort points by component with NumPy's stable sort; write the indices (n,) of the sorted points to `order`."""
    check.inside(labels, 0, n_components)
    order[:] = np.argsort(labels, kind="stable")


def changed(
    after: NDArray[np.int32],
    before: NDArray[np.int32],
    n_columns: int | None = None,
    *,
    n_threads: int | None = None,
    kernels: Any = _core,
) -> NDArray[np.bool_]:
    """Return the mask (n,) of points whose components (active sets) have changed.

    after (n, H), before (n, H') int32: components of each point
    n_columns: number of columns to compare; None compares all, which requires H = H'
    """
    widths = check.width(after, "after"), check.width(before, "before")
    after = check.kept(after, "after", (len(after), widths[0]))
    before = check.kept(before, "before", (len(after), widths[0 if n_columns is None else 1]))
    n_columns = widths[0] if n_columns is None else check.count(n_columns, "n_columns")
    if n_columns > min(widths):
        raise ValueError(f"n_columns must be at most {min(widths)}, the columns of both, got {n_columns}")
    out = np.empty(len(after), dtype=bool)
    kernels.changed(after, before, n_columns, out, resolve_threads(n_threads))
    return out


def changed_twin(after: NDArray, before: NDArray, n_columns: int, out: NDArray, n_threads: int) -> None:
    """Compare the first `n_columns` columns of two arrays in NumPy; write the mask (n,) of unequal rows to `out`."""
    out[:] = (after[:, :n_columns] != before[:, :n_columns]).any(axis=1)


def gather(X: CoreRows, order: NDArray[np.int64], *, n_threads: int | None = None) -> Floats:
    """Return a C-contiguous copy (m, D) of the rows of an array with the m indices `order`, made by several threads."""
    order = check.positions(order, "order")
    out = np.empty((len(order), X.shape[1]), dtype=X.dtype)
    X.kernels.gather(X.core, order, out, resolve_threads(n_threads))
    return out


def gather_twin(X: Floats, order: NDArray, out: Floats, n_threads: int) -> None:
    """Copy the rows with the indices `order` to `out` in NumPy; raise ValueError if an index is out of range."""
    if order.size and not (order.min() >= 0 and order.max() < len(X)):
        raise ValueError("order has a row outside X")
    out[:] = X[order]


def normalized(
    X: CoreRows, order: NDArray[np.int64] | None = None, *, n_threads: int | None = None
) -> tuple[Floats, NDArray[np.float64]]:
    """Return rows in the order of indices `order`, divided by their Euclidean lengths (n, D), and the lengths (n,).

    A row of zeros is unchanged, and its length is 0.
    """
    order = None if order is None else check.positions(order, "order")
    n = len(X) if order is None else len(order)
    out, lengths = np.empty((n, X.shape[1]), dtype=X.dtype), np.empty(n)
    X.kernels.normalized(X.core, order, LEAST_LENGTH[X.dtype], out, lengths, resolve_threads(n_threads))
    return out, lengths


def normalized_twin(
    X: Floats, order: NDArray | None, least: float, out: Floats, lengths: NDArray, n_threads: int
) -> None:
    """Write rows divided by their Euclidean lengths to `out`, and the lengths to `lengths`, in NumPy.

    Rows are first divided by their greatest absolute values to avoid overflow.
    """
    if order is None:
        out[:] = X
    else:
        gather_twin(X, order, out, n_threads)
    largest = np.abs(out).max(axis=1, initial=0)
    largest = np.where(largest > 0, largest, 1).astype(np.float64)
    scaled = out / largest[:, np.newaxis]
    of_scaled = np.sqrt(np.square(scaled).sum(axis=1))
    lengths[:] = largest * of_scaled
    out[:] = scaled / np.where(of_scaled > 0, of_scaled, 1)[:, np.newaxis]
