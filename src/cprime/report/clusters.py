"""Properties of each cluster: size, spread, typical rows, difference from the overall mean, and neighbors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.neighbors import exact_lists, without_self
from cprime.report.evidence import ReportData, shortened

MOST_SHOWN = 2_000
_TYPICAL = 3
_NEIGHBORS = 8
_FEATURES = 3
_LONGEST = 32  # maximum number of characters of a feature name in the description of a cluster


@dataclass(frozen=True)
class ClusterProperties:
    """Properties of all C clusters.

    shown (m,): indices of the clusters in the report, the largest first, at most `MOST_SHOWN`
    sizes (C,): sum of the weights of a cluster's rows
    spread (C,): root mean square of the deviations from the center, over rows and features, in `ReportData.unit`;
        NaN if no row of the cluster was examined
    typical (C, 3): the three rows nearest to the center, as positions among the examined rows, padded with −1
    neighbors (C, G): the at most G = 8 neighboring clusters, the nearest first, padded with −1
    z (C, D): (center − mean of all rows) / standard deviation of all rows, 0 if the deviation is 0
    """

    shown: NDArray[np.intp]
    sizes: NDArray[np.float64]
    spread: NDArray[np.float64]
    typical: NDArray[np.intp]
    neighbors: NDArray[np.int32]
    z: NDArray[np.float64]


def clusters(evidence: ReportData) -> ClusterProperties:
    C, D = evidence.centers.shape
    sizes, weights = evidence.sizes, evidence.weights_by_cluster
    squares = np.bincount(evidence.labels, evidence.weight * evidence.squared_distances, C)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(squares / weights / D)
        deviation = np.sqrt(evidence.variances)
        z = np.where(deviation > 0, (evidence.centers - evidence.mean) / deviation, 0.0)
    shown = np.argsort(-sizes, kind="stable")[:MOST_SHOWN]
    return ClusterProperties(shown, sizes, spread, _typical(evidence), _neighbors(evidence), z)


def _typical(evidence: ReportData) -> NDArray[np.intp]:
    order = np.lexsort((evidence.squared_distances, evidence.labels))
    labels = evidence.labels[order]
    first = np.searchsorted(labels, np.arange(evidence.n_clusters))
    rank = np.arange(len(order)) - first[labels]
    out = np.full((evidence.n_clusters, _TYPICAL), -1, dtype=np.intp)
    near = rank < _TYPICAL
    out[labels[near], rank[near]] = order[near]
    return out


def _neighbors(evidence: ReportData) -> NDArray[np.int32]:
    """Return ids (C, G) of at most 8 neighbors of each cluster: from the fit's search, or the nearest centers."""
    lists = getattr(evidence.estimator, "neighbors_", None)
    if lists is not None:
        return without_self(lists)[:, :_NEIGHBORS]
    return exact_lists(np.ascontiguousarray(evidence.centers / evidence.unit), _NEIGHBORS + 1)


def deviant(z: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of the at most 3 features with the greatest absolute z-scores for each cluster: (C, 3).

    z (C, D): z-scores; if D < 3, the result has D columns
    """
    n = min(_FEATURES, z.shape[1])
    top = np.argpartition(-np.abs(z), n - 1, axis=1)[:, :n]
    order = np.argsort(-np.abs(np.take_along_axis(z, top, axis=1)), axis=1, kind="stable")
    return np.take_along_axis(top, order, axis=1)


def level(z: float, levels: tuple[str, str]) -> str:
    """Return a z-score in words, for example "rather high"; "" if it is near 0. levels: those above and below 0"""
    size = abs(z)
    if size < 0.5:
        return ""
    word = levels[0] if z > 0 else levels[1]
    return f"{'very ' if size >= 2 else 'rather ' if size < 1 else ''}{word}"


def words(z: NDArray[np.float64], features: NDArray[np.intp], evidence: ReportData) -> str:
    """Return a description of a cluster such as "high redshift, low g − r".

    z (D,): z-scores of the cluster    features: indices of the at most 3 features to mention
    """
    found = [(level(float(z[j]), evidence.levels), shortened(evidence.names[j], _LONGEST)) for j in features]
    return ", ".join(f"{word} {name}" for word, name in found if word) or "near the mean in every feature"
