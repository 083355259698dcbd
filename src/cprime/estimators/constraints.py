"""Constraints of a fit: known clusters of some points (labels), and known centers or components that do not change."""

import logging
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from cprime._utils.number_types import check_largest
from cprime.em.hard import SumLabeled
from cprime.execution import Data
from cprime.kernels import Dense, Floats
from cprime.model.unit import have_directions
from cprime.search import Full, Search
from cprime.search.labelled import Labelled
from cprime.seeding.methods import copied
from cprime.sources.foreign import array_of

logger = logging.getLogger("cprime")


class KnownCenters(NamedTuple):
    """Known starting centers of some clusters.

    ids (m,): the clusters    centers (m, D): their centers
    n_fixed: number of clusters whose centers do not change in the fit; these are the clusters 0 … n_fixed − 1
    """

    ids: NDArray[np.intp]
    centers: NDArray
    n_fixed: int = 0

    def placed(self, data: Data, start: Floats, exact_ids: bool) -> Floats:
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

    Returns None if y has no labels, or unless the estimator's argument `semi_supervised` is True.

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
    if not (isinstance(search, str) and search in ("auto", "full")) and type(search) is not Full:
        raise ValueError(f"y with labels needs search='auto' or 'full', got {search!r}.")
    for name, allowed in (("checkpoint", None), ("size_max", None), ("size_min", None), ("epsilon", 0.0)):
        value = getattr(estimator, name, allowed)
        if value != allowed:
            raise ValueError(f"y with labels needs {name}={allowed}, got {value!r}.")
    if data.gaps:
        raise ValueError("y with labels needs complete rows: impute missing values first.")
    return Labelled(labels)


def known_centers(
    estimator: Any, n_components: int, data: Data, labels: NDArray[np.int32] | None
) -> KnownCenters | None:
    """Return the known centers of a fit, or None if there are none.

    These are the argument `fixed_centers`, and for other clusters the means of their labeled points of positive weight.
    With metric="cosine", the means must not be 0, because they would have no direction.
    labels (N,): known cluster of each point, −1 if unknown; or None
    """
    fixed = check_fixed_centers(estimator, data)
    if labels is None:
        return None if fixed is None else KnownCenters(np.arange(len(fixed)), fixed, len(fixed))
    found, n_fixed = data.each(SumLabeled(labels, n_components)), 0 if fixed is None else len(fixed)
    known = found.counts > 0
    if getattr(estimator, "metric", "") == "cosine":
        known = have_directions(np.linalg.norm(found.sums, axis=1), found.counts)
    ids = n_fixed + np.flatnonzero(known[n_fixed:])
    means = found.sums[ids] / found.counts[ids, np.newaxis]
    if fixed is None:
        return KnownCenters(ids, means) if len(ids) else None
    return KnownCenters(np.concatenate([np.arange(n_fixed), ids]), np.concatenate([fixed, means]), n_fixed)


def check_fixed_centers(estimator: Any, data: Data) -> NDArray | None:
    """Return the argument `fixed_centers` (m, D), or None if there is none; raise ValueError if it is invalid."""
    if getattr(estimator, "fixed_centers", None) is None:
        return None
    if estimator.size_max is not None or estimator.size_min is not None:
        raise ValueError("fixed_centers needs size_max=None and size_min=None.")
    if data.gaps:
        raise ValueError("fixed_centers needs complete rows: impute missing values first.")
    n_clusters, n_features = estimator.n_clusters, data.n_features
    centers = copied(estimator.fixed_centers, data, "fixed_centers")
    if centers.shape[1] != n_features or len(centers) > n_clusters:
        raise ValueError(
            f"fixed_centers must have shape (m, {n_features}), with 1 to n_clusters={n_clusters} rows, got "
            f"{centers.shape}."
        )
    check_largest(Dense(centers).extent()[0], data.dtype, n_features, "fixed_centers")
    return centers
