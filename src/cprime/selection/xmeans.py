"""X-means: clusters are split and merged to lower the BIC, with the free energy in place of the log-likelihood."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.persistence import model_files
from cprime.selection.bisection import Cell, bisect, distinct
from cprime.selection.splitting import Splitter

_JUDGED_TOL = 1e-3  # Least tolerance `tol` of fits to the points of a cluster that evaluate a split or merge.
_LEAST_POINTS = 8  # Least number of distinct points per part, on average, in a split into more than two parts.


@model_files.register
class XMeans(Splitter):
    """k-means that finds its number of clusters by BIC, splitting and merging.

    In every round, each cluster is split in two along its principal direction, then its halves are split, and so on.
    The first number of parts whose BIC on the cluster's points is below that of one part replaces the cluster. Trying
    more than one split finds structure that two parts do not show, such as clusters on a grid. Pairs of neighboring
    clusters whose union has the lower BIC as one cluster are merged, and all points are fitted again from the new
    centers. The search ends once a round does not lower the BIC of all data.

    The BIC is −2 W F + (C (D + 1)) log W of the isotropic mixture with C − 1 free mixing weights, C·D coordinates and
    one variance; W is the sum of the point weights. The free energy F per point, a lower bound that the fit computes
    anyway, replaces the log-likelihood.

    Parameters
    ----------
    min_clusters : int, default=1
    max_clusters : int, default=256
    n_active : int, default=1
    n_init : int, default=1
    max_rounds : int, default=30
    max_iter : int, default=300
    tol : float, default=1e-4
    callbacks : callback or sequence of them, default=None
    n_threads : int or None, default=None
    random_state : int, RandomState, Generator or None, default=None
    verbose : int, default=0

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
    n_clusters_ : int
    labels_ : ndarray of shape (n_samples,), int32
    inertia_ : float
    variance_ : float
    lower_bound_ : float
    n_active_ : int
    n_rounds_ : int
    n_iter_ : int
    converged_ : bool
    history_ : structured ndarray of shape (`n_rounds_ + 1`,)
        n_clusters and criterion (BIC with F) at the start and after each round.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    References
    ----------
    D. Pelleg, A. Moore: X-means: extending K-means with efficient estimation of the number of clusters. ICML 2000.
    Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*, section 6,
    eq. (19), (20).

    Examples
    --------
    >>> from cprime.datasets import birch
    >>> XMeans(max_clusters=50).fit(birch(3, random_state=0).data).n_clusters_
    9
    """

    _descends = True

    def __init__(
        self,
        min_clusters: int = 1,
        max_clusters: int = 256,
        *,
        n_active: int = 1,
        n_init: int = 1,
        max_rounds: int = 30,
        max_iter: int = 300,
        tol: float = 1e-4,
        callbacks: Any = None,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.min_clusters = min_clusters
        self.max_clusters = max_clusters
        self.n_active = n_active
        self.n_init = n_init
        self.max_rounds = max_rounds
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def _division(self, cell: Cell, most: int) -> tuple[float, NDArray | None]:
        most = min(most, max(2, (int(distinct(cell).max()) + 1) // _LEAST_POINTS))
        parts = [cell]
        while 2 * len(parts) <= most:
            n_before = len(parts)
            parts = [half for part in parts for half in bisect(part, self.n_threads)]
            if len(parts) == n_before:
                break
            centers = np.array([part.mean for part in parts])
            gain = self._gain(cell, centers)
            if gain > 0:
                return gain, centers.astype(cell.points.dtype)
        return 0.0, None

    def _better_joined(self, first: Cell, second: Cell, both: Cell) -> float:
        if not len(first.points) or not len(second.points):
            return math.inf
        return -self._gain(both, np.array([first.mean, second.mean]))

    def _gain(self, cell: Cell, centers: NDArray) -> float:
        """Return the decrease of the BIC of a cluster's points if several centers replace its single center.

        centers (k, D): initial centers of the fit to these points
        """
        one, many = (self._refit(cell, start, tol=max(self.tol, _JUDGED_TOL)) for start in (cell.mean[None], centers))
        return self._criterion(cell, one) - self._criterion(cell, many)
