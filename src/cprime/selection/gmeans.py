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
    max_clusters : int, default=256
    alpha : float, default=1e-4
        Significance level of the test, between 0 and 1: the probability that a Gaussian cluster is split by mistake.
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
        n_clusters and criterion (BIC with F, as in `XMeans`) at the start and after each round.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

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
