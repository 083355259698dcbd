"""Assignment of points to given centers, without an estimator: the n nearest by distance, cosine or inner product."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _get_feature_names

from cprime import em
from cprime._utils.number_types import check_largest
from cprime._utils.threads import by_pieces
from cprime.estimators.constraints import resolve_bounds
from cprime.estimators.kmeans import KMeans
from cprime.estimators.nearest_center import distances_from
from cprime.estimators.opening import precision_of
from cprime.estimators.validation import check_at_most, check_choice
from cprime.kernels import Dense, Floats, Rows, SparseRows, as_rows, computing
from cprime.model.unit import unit_rows
from cprime.sources.checked import checked
from cprime.sources.foreign import plain, unmasked

_METRICS = ("euclidean", "cosine", "inner_product")
# For metric="inner_product", a thread compares max(_ROWS, _BLOCK / C) rows at a time with all C centers: at most _BLOCK
# scalar products, unless there are so many centers that fewer than _ROWS rows would remain.
_BLOCK = 2**18
_ROWS = 32


def assign(
    X: Any,
    centers: Any,
    n_nearest: int = 1,
    metric: str = "euclidean",
    *,
    size_max: Any = None,
    size_min: Any = None,
    n_threads: int | None = None,
    out: Any = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Find the nearest of the given centers for each row of X, exactly.

    The result equals that of `KMeans.nearest`, but the centers can have any origin, such as a codebook or class means.
    Some rows are compared at a time, so no array of all N·C distances is made.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features), path or source
        Data of all kinds that `KMeans.predict` accepts: arrays, tables, tensors in main memory, files, Dask
        collections. Arrays of narrow types (uint8, float16) are not converted as a whole. Other types are converted to
        the type of the comparison: float32 if that represents all numbers of the type of `centers`, otherwise float64.
    centers : array-like of shape (n_centers, n_features)
        Finite numbers.
    n_nearest : int, default=1
        Number of centers that are found for each row, at most n_centers.
    metric : {"euclidean", "cosine", "inner_product"}, default="euclidean"
        "euclidean" and "cosine" search the least distance, "inner_product" the greatest scalar product x·c. "cosine"
        does not accept rows of zeros, which have no direction.
    size_max, size_min : int, str, array-like of shape (n_centers,) or None, default=None
        Most and fewest rows of a center, as in `KMeans`; "1.2x" is a multiple of the mean number. The rows are then
        assigned within these bounds, with the least sum of squared distances, not all to their nearest centers. All
        rows are in memory; n_nearest must be 1, and metric not "inner_product".
    n_threads : int or None, default=None
        Threads to use; None is every processor that the process may use. Results do not depend on it.
    out : tuple of two, default=None
        Destinations of ids and distances: each an array of the result's shape and dtype (for example a memory map), the
        path of a .npy file, which is written completely or not at all and returned as a memory map, or None.

    Returns
    -------
    ids : ndarray of shape (n_samples,), or (n_samples, n_nearest) if n_nearest > 1, int32
        Indices of the nearest centers, nearest first. Of equally near centers, those of lower index come first.
    distances : ndarray of the shape of `ids`, float64
        By `metric`: Euclidean distances in data units, 1 − cos(x, c), or the scalar products x·c.

    Raises
    ------
    ValueError
        If shapes do not fit, numbers are not finite, or an argument is out of its range.
    TypeError
        If n_nearest is not an integer, or data are not numbers.

    Examples
    --------
    >>> import cprime
    >>> cprime.assign([[0.0, 0.0], [3.0, 4.0]], [[0.0, 1.0], [3.0, 0.0]])
    (array([0, 1], dtype=int32), array([1., 4.]))
    """
    check_choice(metric, "metric", _METRICS)
    with computing(n_threads):
        rows = as_rows(_checked_centers(centers))
        n = check_at_most(n_nearest, "n_nearest", len(rows), "len(centers)")
        if metric == "cosine":
            rows = unit_rows(rows, "centers")
        kind = "cosine" if metric == "cosine" else "euclidean"
        model = KMeans(len(rows), metric=kind, size_max=size_max, size_min=size_min, n_threads=n_threads)
        model.cluster_centers_, model.n_features_in_ = rows.dense(), rows.shape[1]
        X = plain(X, narrow=True)
        if (isinstance(X, np.ndarray) or issparse(X)) and X.ndim == 2 and X.shape[1] != rows.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns, but centers have {rows.shape[1]}.")
        names = _get_feature_names(X)
        if names is not None:  # centers have no column names, so any names of X are accepted
            model.feature_names_in_ = names
        data = model._opened(X)
        if size_max is not None or size_min is not None:
            if n > 1 or metric == "inner_product":
                raise ValueError(f"size_max and size_min need n_nearest=1 and distances, got {n} and {metric!r}.")
            labels, squared = em.assign_within(data, model.cluster_centers_, resolve_bounds(model, data))
            own = partial(_of_rows, labels, distances_from(squared, metric))
            return data.map(own, None, (np.int32, np.float64), out, numbered=True)
        if metric == "inner_product":
            job = partial(_most_similar, model.cluster_centers_, n)
        else:
            job = partial(_nearest, model.cluster_centers_, n, metric)
        return data.map(job, None if n == 1 else n, (np.int32, np.float64), out)


def _checked_centers(centers: Any) -> Floats:
    """Return the argument `centers` as a contiguous matrix (C, D) of float32 or float64; raise an error if invalid."""
    centers = plain(unmasked(centers, "centers"), "centers")
    with np.errstate(over="ignore"):
        found = checked(centers, "centers", dtype=precision_of(centers), order="C")
    check_largest(Dense(found).extent()[0], found.dtype, found.shape[1], "centers")
    return found


def _of_rows(
    labels: NDArray[np.int32], distances: NDArray[np.float64], X: Rows, first: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the labels and distances of the rows X, of which the first one has the index `first`: (n,) each."""
    return labels[first : first + len(X)], distances[first : first + len(X)]


def _nearest(centers: Floats, n: int, metric: str, X: Rows) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the ids of the n nearest centers of each row, and their distances: (N, n) each, or (N,) if n is 1."""
    ids, squared = X.nearest(centers, n)
    distances = distances_from(squared, metric)
    return (ids[:, 0], distances[:, 0]) if n == 1 else (ids, distances)


def _most_similar(centers: Floats, n: int, X: Rows) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the ids of the n centers of greatest scalar product with each row, and these products.

    Both have the shape (N, n), or (N,) if n is 1. The greatest product comes first.
    """
    step = max(_ROWS, _BLOCK // len(centers))
    pieces = [slice(begin, begin + step) for begin in range(0, len(X), step)]

    def greatest(piece: slice) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        rows = X[piece]
        sparse = isinstance(rows, SparseRows)
        return _greatest(rows.given() @ centers.T if sparse else rows.products(centers, n_threads=1), n)

    found = by_pieces(greatest, pieces)
    ids, products = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return (ids[:, 0], products[:, 0]) if n == 1 else (ids, products)


def _greatest(values: Floats, n: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the column indices of the n greatest values in each row, in descending order, and the values: (N, n) each.

    Of equal values, those of lower columns come first.
    """
    if n == 1:
        ids = values.argmax(axis=1)[:, np.newaxis]
    else:
        least = np.partition(values, -n, axis=1)[:, -n, np.newaxis]
        candidates = values >= least
        # Mask of the rows in which no tie must be resolved: exactly n values are at least the n-th greatest one.
        plain = np.count_nonzero(candidates, axis=1) == n
        ids = np.empty((len(values), n), dtype=np.intp)
        ids[plain] = np.nonzero(candidates[plain])[1].reshape(-1, n)
        order = np.argsort(-np.take_along_axis(values[plain], ids[plain], axis=1), axis=1, kind="stable")
        ids[plain] = np.take_along_axis(ids[plain], order, axis=1)
        ids[~plain] = np.argsort(-values[~plain], axis=1, kind="stable")[:, :n]
    return ids.astype(np.int32), np.take_along_axis(values, ids, axis=1).astype(np.float64)
