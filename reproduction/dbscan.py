"""DBSCAN by scikit-learn, with the two parameters that maximize the sum of purity and NMI."""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import DBSCAN

from reproduction.scores import Agreement, agreement

# Radii in standard deviations of a cluster, and least numbers of points; both ends of either range give poor results.
EPS = tuple(np.round(np.arange(0.25, 1.75, 0.125), 3).tolist())
MIN_SAMPLES = (2, 3, 4, 5, 7, 10, 14, 20, 28, 40)


class Setting(NamedTuple):
    """Parameters of DBSCAN and the result; noise counts as one more cluster.

    n_clusters: without noise    noise: share of points in no cluster
    """

    eps: float
    min_samples: int
    n_clusters: int
    noise: float
    agreement: Agreement


def settings(
    X: NDArray, target: NDArray, eps: tuple[float, ...] = EPS, min_samples: tuple[int, ...] = MIN_SAMPLES
) -> Iterator[Setting]:
    """Yield the result of each pair of parameters.  X (n, D) data units    target (n,) true clusters."""
    for radius, least in product(eps, min_samples):
        labels = DBSCAN(eps=radius, min_samples=least).fit_predict(X)
        noise = float(np.mean(labels < 0))
        yield Setting(radius, least, int(labels.max()) + 1, noise, agreement(target, labels))


def tuned(X: NDArray, target: NDArray) -> Setting:
    """Return the result with the largest sum of purity and NMI."""
    return max(settings(X, target), key=lambda setting: setting.agreement.combined)
