"""Properties of each cluster: size, spread, typical rows, difference from the overall mean, and neighbors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cprime.neighbors import exact_lists
from cprime.neighbors.lists import without_self
from cprime.report.evidence import ReportData

MOST_SHOWN = 2_000
_TYPICAL = 3
_NEIGHBORS = 8
_FEATURES = 3
_LONGEST = 32  # characters of a feature name in a phrase


@dataclass(frozen=True)
class Clusters:
    """Properties of all C clusters.

    shown (m,): indices of the clusters in the report, the largest first, at most `MOST_SHOWN`
    sizes (C,): weights
    spread (C,): root of the squared deviation from the center, averaged over rows and features, in the
        unit of distances; NaN if no row was examined
    typical (C, 3): positions among the examined rows of those nearest to the center, padded with −1
    neighbors (C, G): neighboring clusters, the nearest first, padded with −1
    z (C, D): (center − mean) / standard deviation of all rows, 0 if the deviation is 0
    """

    shown: NDArray[np.intp]
    sizes: NDArray[np.float64]
    spread: NDArray[np.float64]
    typical: NDArray[np.intp]
    neighbors: NDArray[np.int32]
    z: NDArray[np.float64]


def clusters(evidence: ReportData) -> Clusters:
    C, D = evidence.centers.shape
    sizes, weights = evidence.sizes, evidence.weights_by_cluster
    squares = np.bincount(evidence.labels, evidence.weight * evidence.squared_distances, C)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt(squares / weights / D)
        deviation = np.sqrt(evidence.variances)
        z = np.where(deviation > 0, (evidence.centers - evidence.mean) / deviation, 0.0)
    shown = np.argsort(-sizes, kind="stable")[:MOST_SHOWN]
    return Clusters(shown, sizes, spread, _typical(evidence), _neighbors(evidence), z)


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
    """Return the neighbor lists of the fit's search if there are any, else the nearest centers."""
    lists = getattr(evidence.estimator, "neighbors_", None)
    if lists is not None:
        return without_self(lists)[:, :_NEIGHBORS]
    return exact_lists(np.ascontiguousarray(evidence.centers / evidence.unit), _NEIGHBORS + 1)


def deviant(z: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return, for each cluster, the features that differ most from the mean: (C, at most 3)."""
    n = min(_FEATURES, z.shape[1])
    top = np.argpartition(-np.abs(z), n - 1, axis=1)[:, :n]
    order = np.argsort(-np.abs(np.take_along_axis(z, top, axis=1)), axis=1, kind="stable")
    return np.take_along_axis(top, order, axis=1)


def short(name: str) -> str:
    """Shorten a long feature name for use in phrases; it ends in an ellipsis. Lists of features show the full name."""
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def level(z: float) -> str:
    """Describe a z-score in words; "" if it is near the mean."""
    size = abs(z)
    if size < 0.5:
        return ""
    word = "high" if z > 0 else "low"
    return f"{'very ' if size >= 2 else 'rather ' if size < 1 else ''}{word}"


def words(z: NDArray[np.float64], features: NDArray[np.intp], names: tuple[str, ...]) -> str:
    """Describe a cluster in words, such as "high redshift, low g − r": z (D,), features (3,) that differ most."""
    phrases = [f"{level(float(z[j]))} {short(names[j])}" for j in features if level(float(z[j]))]
    return ", ".join(phrases) or "near the mean in every feature"
