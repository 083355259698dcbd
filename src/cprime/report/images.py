"""Pictures of the centers and of typical rows, for data whose rows are images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.estimators.validation import check_integer
from cprime.report.clusters import ClusterProperties
from cprime.report.evidence import ReportData

_MOST_FACTORED = 12  # maximum number of clusters whose factors (factor analyzers' loadings) are shown


@dataclass(frozen=True)
class Images:
    """Pictures of the m shown clusters, each of shape (height, width) or (height, width, 3).

    limits: values drawn as black and as white    centers (m, …): centers of the clusters
    typical (m, …): the row nearest to each center, black if no row of the cluster was examined
    factors (k, H + 1, …): center and factors of the first k clusters, from 0 to 1; a factor value of 0 is drawn as 0.5.
        None if components have no factors
    """

    centers: NDArray
    typical: NDArray
    limits: tuple[float, float]
    factors: NDArray | None = None


def image_shape_of(shape: Any, n_features: int) -> tuple[int, ...]:
    """Return the image shape as two or three ints whose product is the number of features; else raise an error."""
    if isinstance(shape, str) or not isinstance(shape, Sequence | np.ndarray):
        raise TypeError(f"image_shape must be (height, width) or (height, width, 3), got {shape!r}.")
    found = tuple(check_integer(side, "image_shape", 1) for side in shape)
    if len(found) not in (2, 3) or (len(found) == 3 and found[2] != 3):
        raise ValueError(f"image_shape must be (height, width) or (height, width, 3), got {found}.")
    if np.prod(found) != n_features:
        raise ValueError(
            f"image_shape must have as many values as there are features, {n_features}; {found} has {np.prod(found)}."
        )
    return found


def images(evidence: ReportData, clusters: ClusterProperties, shape: tuple[int, ...]) -> Images:
    """Return the pictures of centers and typical rows of the clusters in the report, in the order `clusters.shown`.

    shape: (height, width), or (height, width, 3)
    """
    restored = evidence.preparation.restored
    centers = restored(evidence.centers[clusters.shown])
    nearest = clusters.typical[clusters.shown, 0]
    typical = np.where((nearest >= 0)[:, np.newaxis], restored(evidence.X[nearest]), centers.min())
    tiles, rows = centers.reshape(-1, *shape), typical.reshape(-1, *shape)
    low, high = float(min(tiles.min(), rows.min())), float(max(tiles.max(), rows.max()))
    if len(shape) == 3 and low >= 0:
        low, high = 0.0, next((top for top in (1.0, 255.0) if high <= top), high)
    return Images(tiles, rows, (low, high), _factors(evidence, clusters, tiles, (low, high)))


def _factors(
    evidence: ReportData, clusters: ClusterProperties, centers: NDArray, limits: tuple[float, float]
) -> NDArray | None:
    """Return pictures (k, H + 1, …) of the center and the H factors of k components; None if there are no factors.

    The factors of a component are divided by their largest absolute value. centers (m, …)    limits: black, white
    """
    found = getattr(evidence.estimator, "factors_", None)
    if found is None or not found.shape[2]:
        return None
    k, (low, high) = min(len(centers), _MOST_FACTORED), limits
    loadings = evidence.preparation.restored_spread(found[clusters.shown[:k]].transpose(0, 2, 1))
    largest = np.abs(loadings).max(axis=(1, 2), keepdims=True)
    halves = 0.5 + 0.5 * loadings / np.where(largest > 0, largest, 1)
    first = np.clip((centers[:k] - low) / ((high - low) or 1.0), 0, 1)[:, np.newaxis]
    return np.concatenate([first, halves.reshape(*halves.shape[:2], *centers.shape[1:])], axis=1)
