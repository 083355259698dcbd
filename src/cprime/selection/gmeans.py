"""G-means: clusters are split until each looks Gaussian along the direction in which it would be cut."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import storage
from cprime.estimators.validation import check_real
from cprime.selection.bisection import Cell, bisect, distinct
from cprime.selection.normality import LEAST_WEIGHT, anderson_darling
from cprime.selection.splitting import Splitter


@storage.register
class GMeans(Splitter):
    """k-means that finds its number of clusters by a test of Gaussianity.

    In every round each cluster whose points, projected on the direction of a cut in two, fail the Anderson–Darling
    test is cut, and all points are fitted anew from the centers so far. Neighbors whose union passes the test are
    merged before and after, which repairs a Gaussian that earlier cuts have divided. It ends once nothing changes.

    The direction found by two-means is one in which noise looks divided, the more so the more dimensions there are. So
    it is found on one half of the points and the test made on the other, in both ways, and the smaller of the two
    p-values counts twice (Bonferroni).

    Parameters
    ----------
    min_clusters : int, default=1
        Number of clusters to start with, and the least to end with.
    max_clusters : int, default=256
        Most clusters.
    alpha : float, default=1e-4
        Significance of the test, between 0 and 1: how often a Gaussian is cut by mistake.
    n_active : int, default=1
        C′ of the fits of all points: 1 is k-means; a greater one k-means-C′ (a mixture of tied spherical covariance
        and equal weights), for clusters that overlap.
    n_init : int, default=1
        Starts of the first fit, of `min_clusters` centers by k-means++.
    max_rounds : int, default=30
        Most rounds.
    max_iter : int, default=300
        Most iterations of each fit of all points.
    tol : float, default=1e-4
        When such a fit has converged, as in `KMeans` or, with n_active > 1, as in `GaussianMixture`.
    callbacks : callback or sequence of them, default=None
        What is told of every round and may end the fit: functions of a row of `history_`, as a dictionary, and of
        the estimator as it is then, or objects with such a method `on_iteration`; see `cprime.callbacks.Callback`.
        True ends the fit. A model file does not hold them.
    n_threads : int or None, default=None
        Threads to use; None is every processor that the process may use.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of the first start; from one cluster nothing is random.
    verbose : int, default=0
        1 shows a progress bar: how many clusters there are, and the criterion; where no bar can be drawn, in a file
        say, the library's log, a line a round.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
        In the dtype of the data.
    n_clusters_ : int
    labels_ : ndarray of shape (n_samples,), int32
        The nearest center of each training point.
    inertia_ : float
        J, the weighted sum of squared distances to the nearest center, in data unit².
    variance_ : float
        σ² of the isotropic model, in data unit².
    lower_bound_ : float
        F of that model per point, in nats, with equal weights.
    n_active_ : int
        C′ as used, at most `n_clusters_`.
    n_rounds_ : int
    n_iter_ : int
        Iterations of the last fit of all points.
    converged_ : bool
        Whether it ended by itself within `max_rounds`.
    history_ : structured ndarray of shape (`n_rounds_ + 1`,)
        n_clusters and criterion (BIC with F, as in `XMeans`) at the start and after each round.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where the data have names of columns.

    References
    ----------
    G. Hamerly, C. Elkan: Learning the k in k-means. NIPS 2004. Lücke & Forster, *k-means as a variational EM
    approximation of Gaussian mixture models*, section 6, for k-means-C′ inside.

    Examples
    --------
    >>> from cprime.datasets import birch
    >>> GMeans().fit(birch(3, random_state=0).data).n_clusters_
    9
    """

    _descends = False

    def __init__(
        self,
        min_clusters: int = 1,
        max_clusters: int = 256,
        *,
        alpha: float = 1e-4,
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
        self.alpha = alpha
        self.n_active = n_active
        self.n_init = n_init
        self.max_rounds = max_rounds
        self.max_iter = max_iter
        self.tol = tol
        self.callbacks = callbacks
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def _check(self) -> None:
        super()._check()
        if not 0 < check_real(self.alpha, "alpha", 0.0) < 1:
            raise ValueError(f"alpha must be between 0 and 1, got {self.alpha}.")

    def _division(self, cell: Cell, most: int) -> tuple[float, NDArray | None]:
        p = self._p_value(cell)
        parts = bisect(cell, self.n_threads) if p < self.alpha and most > 1 else [cell]
        if len(parts) == 1:
            return 0.0, None
        return 1 - p, np.array([part.mean for part in parts], dtype=cell.points.dtype)

    def _better_joined(self, first: Cell, second: Cell, both: Cell) -> float:
        return self._p_value(both) - self.alpha

    def _p_value(self, cell: Cell) -> float:
        """How likely a Gaussian looks so divided; 1 where there are too few points to tell."""
        halves = in_halves(cell)
        tested = []
        for seen, held_out in (halves, halves[::-1]):
            parts = bisect(seen, self.n_threads) if len(seen.points) else [seen]
            if len(parts) == 1 or held_out.weight < LEAST_WEIGHT:
                continue
            direction = parts[1].mean - parts[0].mean
            projected = held_out.points.projected(direction)
            if np.ptp(projected) > 0:
                tested.append(anderson_darling(projected, held_out.weights)[1])
        return min(1.0, len(tested) * min(tested, default=1.0))


def in_halves(cell: Cell) -> tuple[Cell, Cell]:
    """Every other of the distinct points, in their order along a fixed direction; equal points stay together."""
    rank = distinct(cell)
    return cell.part(rank % 2 == 0), cell.part(rank % 2 == 1)
