"""Constraints of a fit: known clusters of some points (labels), fixed centers or components, bounds of sizes."""

import logging
import math
import re
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from cprime._utils.number_types import check_largest
from cprime.em import SizeBounds
from cprime.em.hard import SumLabeled
from cprime.estimators.validation import as_search
from cprime.execution import Data
from cprime.kernels import Dense, Floats
from cprime.model.unit import have_directions
from cprime.search import Auto, Full, Search
from cprime.search.labelled import Labelled
from cprime.seeding.methods import copied
from cprime.sources.foreign import array_of

logger = logging.getLogger("cprime")

_ROUNDING = 1e-9  # relative rounding error of sums of weights
_MULTIPLE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*x\s*")


class KnownCenters(NamedTuple):
    """Known starting centers of some clusters.

    ids (m,): the clusters    centers (m, D): their centers
    n_fixed: number of clusters whose centers do not change in the fit; these are the clusters 0 … n_fixed − 1
    """

    ids: NDArray[np.intp]
    centers: NDArray
    n_fixed: int = 0

    def inserted(self, data: Data, start: Floats, exact_ids: bool) -> Floats:
        """Return starting centers (C, D): the m known centers in the rows `ids`, and C − m of the C centers `start`.

        If `exact_ids` is true, each known center replaces the center of `start` in the same row. Otherwise it replaces
        one near it, such that the sum of squared distances of these m pairs is least; the remaining centers of `start`
        fill the other rows in their order. Also deletes the active sets in `data`.
        """
        data.begin(keep=False)  # Stored active sets become invalid, because centers get other ids.
        centers = start.copy()
        known = self.centers.astype(start.dtype)
        if not exact_ids:
            replaced = linear_sum_assignment(Dense(start).distances(known, n_threads=1))[1]
            others = np.setdiff1d(np.arange(len(start)), self.ids)
            centers[others] = np.delete(start, replaced, axis=0)
        centers[self.ids] = known
        return centers


def partial_labels(estimator: Any, y: Any, n_points: int, n_clusters: int) -> NDArray[np.int32] | None:
    """Return the known cluster of each point (N,), −1 if it is unknown, from the argument `y` of `fit`.

    Returns None if y has no labels, or if the estimator's argument `semi_supervised` is not True.

    Raises ValueError if y does not have one integer from −1 to C − 1 for each point.
    """
    if y is None or not getattr(estimator, "semi_supervised", False):
        return None
    labels = array_of(y, "y")
    if labels.shape != (n_points,):
        raise ValueError(f"y must have one label for each of the {n_points} rows, got shape {labels.shape}.")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"y must be integers, −1 for unknown, got values of type {labels.dtype}.")
    wrong = np.flatnonzero((labels < -1) | (labels >= n_clusters))
    if len(wrong):
        raise ValueError(
            f"y must have labels from −1 (unknown) to {n_clusters - 1}, got {labels[wrong[0]]} in row {wrong[0]}."
        )
    n_known = np.count_nonzero(labels >= 0)
    logger.info("y gives the cluster of %d of %d points", n_known, n_points)
    return labels.astype(np.int32) if n_known else None


def refuse_labels(estimator: Any, what: str) -> None:
    """Raise ValueError if the estimator expects labels; `what` is the method or function that takes none."""
    if getattr(estimator, "semi_supervised", False):
        raise ValueError(f"{what} needs semi_supervised=False: it uses no labels.")


def labelled_search(estimator: Any, labels: NDArray[np.int32], data: Data) -> Search:
    """Return the search of a fit in which some points have labels.

    It is exact. The active set of a labeled point contains its known cluster.
    labels (N,): known cluster of each point, −1 if unknown    Raises ValueError if an argument does not allow labels.
    """
    search = estimator.search
    if type(as_search(search)) not in (Auto, Full):
        raise ValueError(f"y with labels needs search='auto' or 'full', got {search!r}.")
    for name in ("checkpoint", "size_max", "size_min"):
        if getattr(estimator, name, None) is not None:
            raise ValueError(f"y with labels needs {name}=None, got {getattr(estimator, name)!r}.")
    if getattr(estimator, "epsilon", 0.0):
        raise ValueError(f"y with labels needs epsilon=0.0, got {estimator.epsilon!r}.")
    if data.has_missing:
        raise ValueError("y with labels needs complete rows: impute missing values first.")
    return Labelled(labels)


def known_centers(
    options: Any, fixed: NDArray | None, data: Data, labels: NDArray[np.int32] | None
) -> KnownCenters | None:
    """Return the known centers of a fit, or None if there are none.

    These are the centers `fixed` (m, D) of the first clusters, and for other clusters the means of their labeled points
    of positive weight. With metric="cosine", the means must not be 0, because they would have no direction.
    labels (N,): known cluster of each point, −1 if unknown; or None
    """
    if labels is None:
        return None if fixed is None else KnownCenters(np.arange(len(fixed)), fixed, len(fixed))
    found, n_fixed = data.each(SumLabeled(labels, options.n_components)), 0 if fixed is None else len(fixed)
    known = found.counts > 0
    if getattr(options, "metric", "") == "cosine":
        known = have_directions(np.linalg.norm(found.sums, axis=1), found.counts)
    ids = n_fixed + np.flatnonzero(known[n_fixed:])
    means = found.sums[ids] / found.counts[ids, np.newaxis]
    if fixed is None:
        return KnownCenters(ids, means) if len(ids) else None
    return KnownCenters(np.concatenate([np.arange(n_fixed), ids]), np.concatenate([fixed, means]), n_fixed)


def fixed_centers(options: Any, data: Data) -> NDArray | None:
    """Return the option `fixed` of a k-means, centers (m, D), or None; raise ValueError if it is invalid."""
    if options.fixed is None:
        return None
    if options.size_max is not None or options.size_min is not None:
        raise ValueError("fixed needs size_max=None and size_min=None.")
    if data.has_missing:
        raise ValueError("fixed needs complete rows: impute missing values first.")
    return check_known(options.fixed, "fixed", options.n_components, data)


def n_fixed(estimator: Any) -> int:
    """Return the number of known components that the argument `fixed` of an estimator has, 0 for None."""
    fixed = getattr(estimator, "fixed", None)
    return 0 if fixed is None else len(fixed if hasattr(estimator, "n_clusters") else fixed[0])


def check_known(given: Any, name: str, n_components: int, data: Data) -> NDArray:
    """Return known centers (m, D) of the first m components in the dtype of the data; raise ValueError otherwise."""
    centers = copied(given, data, name)
    if centers.shape[1] != data.n_features or len(centers) > n_components:
        raise ValueError(
            f"{name} must have shape (m, {data.n_features}), with m from 1 to {n_components}, the number of "
            f"components, got {centers.shape}."
        )
    check_largest(Dense(centers).extent()[0], data.dtype, data.n_features, name)
    return centers


def resolve_bounds(options: Any, data: Data) -> SizeBounds:
    """Return the bounds of sizes that the options size_min and size_max of a k-means mean, for the data of a fit.

    Raises ValueError or TypeError if an argument is invalid, if sizes cannot be bounded because of missing values or
    Dask collections, or if no assignment is within the bounds (with weights: not even of divided points).
    """
    C, size_min, size_max = options.n_clusters, options.size_min, options.size_max
    if data.has_missing:
        raise ValueError("size_max and size_min need complete rows: impute missing values first.")
    if not data.is_local:
        raise ValueError(
            "size_max and size_min need an array, a table or a source: they are not bounded for Dask collections."
        )
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
    return SizeBounds(lower, upper)


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
