"""Bounds of the sizes of clusters: the arguments size_min and size_max of `KMeans`, checked and as arrays."""

import math
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.execution import Data
from cprime.sources import array_of

_MULTIPLE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*x\s*")


class Bounds(NamedTuple):
    """Bounds of the sizes of clusters.

    lower, upper (C,): least and greatest number of points of positive weight in each cluster
    """

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]

    def match(self, counts: NDArray[Any]) -> NDArray[np.intp]:
        """Return an order (C,) of clusters of these `counts` (C,) in which greater clusters have greater bounds."""
        order = np.empty(len(counts), dtype=np.intp)
        order[np.argsort(self.lower + self.upper, kind="stable")] = np.argsort(counts, kind="stable")
        return order


def resolve_bounds(k_means: Any, data: Data) -> "Bounds":
    """Return the bounds of sizes that the arguments size_min and size_max of an estimator mean, for the data of a fit.

    Raises ValueError or TypeError if an argument is invalid, if sizes cannot be bounded because of missing values or
    Dask collections, or if no assignment of the points (or a division of their weight) is within the bounds.
    """
    C, size_min, size_max = k_means.n_clusters, getattr(k_means, "size_min", None), k_means.size_max
    if data.gaps:
        raise ValueError("size_max and size_min need complete rows: impute missing values first.")
    if not data.is_local:
        raise ValueError("size_max and size_min need an array, a table or a source: Dask collections have no sizes.")
    total = data.n_weighted
    lower = np.zeros(C, dtype=np.int64) if size_min is None else _sizes(size_min, "size_min", total, C, math.floor)
    upper = np.full(C, total) if size_max is None else _sizes(size_max, "size_max", total, C, math.ceil)
    least, most = int(lower.sum()), int(upper.sum())
    if least > total:
        raise ValueError(f"size_min={size_min!r} needs {least} points in {C} clusters, got {total} of positive weight.")
    if most < total:
        raise ValueError(f"size_max={size_max!r} allows {most} points in {C} clusters, got {total} of positive weight.")
    if (lower > upper).any():
        c = int(np.argmax(lower > upper))
        raise ValueError(
            f"size_min={size_min!r} ({lower[c]} points in cluster {c}) must not exceed size_max={size_max!r} "
            f"({upper[c]})."
        )
    return Bounds(lower, upper)


def _sizes(value: Any, name: str, n_points: int, n_clusters: int, rounded: Any) -> NDArray[np.int64]:
    """Return the bound of each cluster (C,) that an argument means; numbers above `n_points` become `n_points`.

    name: name of the argument    n_points: number of points of positive weight
    rounded: function that rounds multiples of the mean size
    """
    expected = f'an integer, an array of n_clusters={n_clusters} or a text such as "1.2x"'
    if isinstance(value, str):
        found = _MULTIPLE.fullmatch(value)
        if found is None:
            raise ValueError(f"{name} must be {expected}, got {value!r}.")
        exact = float(found[1]) * n_points / n_clusters
        size = int(rounded(exact - 1e-9 if rounded is math.ceil else exact + 1e-9))
        return np.full(n_clusters, min(size, n_points))
    is_scalar = isinstance(value, int | np.integer) and not isinstance(value, bool)
    given = array_of(min(value, n_points) if is_scalar else value, name)
    if given.dtype.kind not in "iu" or (given.ndim == 0 and not is_scalar):
        raise TypeError(f"{name} must be {expected}, got {value!r}.")
    if given.shape not in ((), (n_clusters,)):
        raise ValueError(f"{name} must be {expected}, got an array of shape {given.shape}.")
    if not (given >= 0).all():
        raise ValueError(f"{name} == {value!r}, must be >= 0.")
    return np.broadcast_to(np.minimum(given, n_points), n_clusters).astype(np.int64)
