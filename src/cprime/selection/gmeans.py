"""G-means: clusters are split until each passes a test of Gaussianity along the direction of its split."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.estimators.validation import check_real
from cprime.persistence import model_files
from cprime.selection.bisection import Cell, bisect, distinct
from cprime.selection.normality import LEAST_WEIGHT, anderson_darling
from cprime.selection.splitting import Splitter


@model_files.register
class GMeans(Splitter):
    """k-means that finds its number of clusters by a test of Gaussianity.

    In every round, the points of each cluster are projected on the direction between the two halves of the cluster. A
    cluster whose projection fails the Anderson–Darling test is split, and all points are fitted again from the new
    centers. Before and after the splits, neighboring clusters whose union passes the test are merged, which repairs a
    Gaussian that earlier splits have divided. The search ends once a round repeats an earlier result.

    Along a direction that k-means finds, even a Gaussian looks divided, the more so in high dimensions. Therefore the
    direction is found on one half of a cluster's points and tested on the other half, then with the halves exchanged.
    The p-value is twice the smaller of the two (Bonferroni).

    Parameters
    ----------
    min_clusters : int, default=1
        Number of clusters at the start, and the minimum at the end.
    max_clusters : int, default=256
        Maximum number of clusters.
    alpha : float, default=1e-4
        Significance level of the test, between 0 and 1: the probability that a Gaussian cluster is split by mistake.
    n_active : int, default=1
        C′ of the fits of all points: 1 is k-means; a greater value is k-means-C′ (a mixture with tied spherical
        covariance and equal weights), for clusters that overlap.
    n_init : int, default=1
        Number of k-means++ initializations of the first fit, which has `min_clusters` centers.
    max_rounds : int, default=30
        Maximum number of rounds.
    max_iter : int, default=300
        Maximum number of iterations of each fit of all points.
    tol : float, default=1e-4
        Tolerance at which such a fit has converged, as in `KMeans` or, if n_active > 1, as in `GaussianMixture`.
    callbacks : callback or sequence of them, default=None
        Called after every round: functions that take a row of `history_` as a dictionary and the estimator in its
        current state, or objects with such a method `on_iteration`; see `cprime.callbacks.Callback`. A return value of
        True ends the fit. Callbacks are not saved in model files.
    n_threads : int or None, default=None
        Number of threads; None uses every processor that the process may use.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers of the first initialization; with min_clusters=1 nothing is random.
    verbose : int, default=0
        1 shows a progress bar with the number of clusters and the criterion. If no bar can be drawn, for example
        because the output is a file, the log gets one line for each round.

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
        C′ of the last fit, at most `n_clusters_`.
    n_rounds_ : int
    n_iter_ : int
        Iterations of the last fit of all points.
    converged_ : bool
        Whether the search ended by itself within `max_rounds`.
    history_ : structured ndarray of shape (`n_rounds_ + 1`,)
        n_clusters and criterion (BIC with F, as in `XMeans`) at the start and after each round.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if the data have column names.

    References
    ----------
    G. Hamerly, C. Elkan: Learning the k in k-means. NIPS 2004. Lücke & Forster, *k-means as a variational EM
    approximation of Gaussian mixture models*, section 6, for k-means-C′ inside G-means.

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
        """Return the p-value of the hypothesis that the points of a cluster are from one Gaussian.

        Each half of the points is tested for normality (Anderson & Darling) along the direction in which k-means splits
        the other half in two. The result is twice the lesser of the two p-values (Bonferroni), and 1 if the cluster has
        too few points for the test.
        """
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
    """Divide the points of a cluster into two halves, and return these as cells.

    A direction found in one half is tested in the other half. The points are sorted along a fixed random direction and
    assigned to the halves alternately; equal points belong to the same half.
    """
    rank = distinct(cell)
    return cell.part(rank % 2 == 0), cell.part(rank % 2 == 1)
