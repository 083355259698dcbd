"""Table of z-scores, clusters by features, ordered so that similar clusters and similar features are adjacent."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage

from cprime.report.clusters import ClusterProperties
from cprime.report.evidence import ReportData

_MOST_FEATURES = 200
_MOST_VALUES = 120_000


@dataclass(frozen=True)
class Fingerprints:
    """Table of the means of clusters, in standard deviations from the mean of all rows, as the page shows it.

    z (m, d): z-scores    clusters (m,), features (d,): indices of the rows and columns of z
    n_features: number of all features, shown or not
    """

    z: NDArray[np.float64]
    clusters: NDArray[np.intp]
    features: NDArray[np.intp]
    n_features: int


def fingerprints(evidence: ReportData, clusters: ClusterProperties) -> Fingerprints:
    """Return the z-scores of the shown clusters. Of many features, only those with the largest mean z² are included."""
    z = clusters.z[clusters.shown]
    D = z.shape[1]
    d = min(D, _MOST_FEATURES, max(_MOST_VALUES // len(z), 1))
    weight = clusters.sizes[clusters.shown] + 1e-12 * max(clusters.sizes.max(), 1e-300)
    told = np.average(np.square(z), axis=0, weights=weight)
    features = np.sort(np.argsort(-told, kind="stable")[:d])
    z = z[:, features]
    rows, columns = _order(z), _order(z.T)
    return Fingerprints(z[rows][:, columns], clusters.shown[rows], features[columns], D)


def _order(rows: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return an order (m,) of m rows in which similar rows are adjacent: the leaves of Ward's clustering tree.

    Of this order and the reverse order, the one is returned whose first half has the lower mean.
    """
    if len(rows) < 3:
        return np.arange(len(rows))
    order = leaves_list(linkage(np.clip(rows, -4, 4), "ward"))
    ends = rows[order].mean(axis=1)
    half = len(ends) // 2
    return order if ends[:half].mean() <= ends[half:].mean() else order[::-1]
