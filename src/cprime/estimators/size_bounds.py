"""Bounds of the sizes of clusters: the arguments size_min and size_max of `KMeans`, checked and as arrays."""

import math
import re
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.execution import Data
from cprime.sources import array_of

_ROUNDING = 1e-9  # relative rounding error of sums of weights
_MULTIPLE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*x\s*")


class Bounds(NamedTuple):
    """Bounds of the sizes of clusters.

    lower, upper (C,): least and greatest size of each cluster: the number of its points, int64, or if points have
    weights the sum of these, float64
    """

    lower: NDArray[Any]
    upper: NDArray[Any]

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
    total: Any = data.n_points
    if data.weighted:
        total = float(data.source.weights(0, data.n_points).sum())  # type: ignore[attr-defined]
    kind = np.asarray(total).dtype
    lower = np.zeros(C, dtype=kind) if size_min is None else _sizes(size_min, "size_min", total, C, math.floor)
    upper = np.full(C, total) if size_max is None else _sizes(size_max, "size_max", total, C, math.ceil)
    size = "a weight of {:g}" if data.weighted else "{} points"
    if (least := lower.sum()) > total * (1 + _ROUNDING):
        raise ValueError(f"size_min={size_min!r} needs {size.format(least)} in {C} clusters, got {total:g}.")
    if (most := upper.sum()) < total * (1 - _ROUNDING):
        raise ValueError(f"size_max={size_max!r} allows {size.format(most)} in {C} clusters, got {total:g}.")
    if (lower > upper).any():
        c = int(np.argmax(lower > upper))
        raise ValueError(
            f"size_min={size_min!r} ({lower[c]} in cluster {c}) must not exceed size_max={size_max!r} ({upper[c]})."
        )
    return Bounds(lower, upper)


def _sizes(value: Any, name: str, total: Any, n_clusters: int, rounded: Any) -> NDArray[Any]:
    """Return the bound of each cluster (C,) that an argument means; numbers above `total` become `total`.

    name: name of the argument    total: number of points, an integer, or total weight, a float
    rounded: function that rounds multiples of the mean number of points
    """
    counts = isinstance(total, int)
    expected = f'{"an integer" if counts else "a number"}, an array of n_clusters={n_clusters} or a text such as "1.2x"'
    if isinstance(value, str):
        found = _MULTIPLE.fullmatch(value)
        if found is None:
            raise ValueError(f"{name} must be {expected}, got {value!r}.")
        size = float(found[1]) * total / n_clusters
        if counts:
            size = int(rounded(size - 1e-9 if rounded is math.ceil else size + 1e-9))
        return np.full(n_clusters, min(size, total))
    is_scalar = isinstance(value, Real) and not isinstance(value, bool)
    given = array_of(min(value, total) if isinstance(value, Integral) else value, name)
    if counts and given.dtype.kind == "f":
        raise ValueError(f"{name} must be {expected}, or be used with sample_weight, got {value!r}.")
    if given.dtype.kind not in "iuf" or (given.ndim == 0 and not is_scalar):
        raise TypeError(f"{name} must be {expected}, got {value!r}.")
    if given.shape not in ((), (n_clusters,)):
        raise ValueError(f"{name} must be {expected}, got an array of shape {given.shape}.")
    if not (given >= 0).all():
        raise ValueError(f"{name} == {value!r}, must be >= 0.")
    return np.broadcast_to(np.minimum(given, total), n_clusters).astype(np.int64 if counts else np.float64)
