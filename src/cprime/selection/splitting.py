"""Base class of X-means and G-means: rounds of splits and merges, each followed by a fit of all data.

A subclass makes the decisions: `_division` returns the new centers of a cluster that is split, and `_better_joined`
evaluates whether two clusters are merged. Points are always assigned to their nearest center.
"""

import logging
import math
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime._utils.declared import Columns, Count, Positive, Presence, Size
from cprime.estimators import GaussianMixture, KMeans
from cprime.estimators.base import Clusterer
from cprime.estimators.fitted import centers_of
from cprime.estimators.nearest_center import NearestCenter, nearest_of
from cprime.estimators.opening import validated
from cprime.estimators.validation import check_integer, check_real, check_weights
from cprime.estimators.watching import Watch, restore_on_error, unfitted_copy, with_callbacks
from cprime.execution.block import Block
from cprime.kernels import computing
from cprime.model import TiedSpherical
from cprime.search import Auto
from cprime.selection.bisection import Cell, cells, union
from cprime.selection.criteria import bic, share_gain
from cprime.selection.results import Mixture

HISTORY = np.dtype([("n_clusters", np.int64), ("criterion", np.float64)])
_logger = logging.getLogger(__name__)


class Splitter(NearestCenter, Clusterer):
    """Base class of `XMeans` and `GMeans`.

    Parameters
    ----------
    min_clusters : int
        Number of clusters at the start, and the minimum at the end.
    max_clusters : int
        Maximum number of clusters.
    n_active : int
        C′ of the fits of all points: 1 is k-means; a greater value is k-means-C′ (a mixture with tied spherical
        covariance and equal weights), for clusters that overlap.
    n_init : int
        Number of k-means++ initializations of the first fit, which has `min_clusters` centers.
    max_rounds : int
        Maximum number of rounds.
    max_iter : int
        Maximum number of iterations of each fit of all points.
    tol : float
        Tolerance at which such a fit has converged, as in `KMeans` or, if n_active > 1, as in `GaussianMixture`.
    callbacks : callback or sequence of them
        Called after every round: functions that take a row of `history_` as a dictionary and the estimator in its
        current state, or objects with such a method `on_iteration`; see `cprime.callbacks.Callback`. A return value of
        True ends the fit. Callbacks are not saved in model files.
    random_state : int, RandomState, Generator or None
        Source of the random numbers of the first initialization; with min_clusters=1 nothing is random.
    verbose : int
        1 shows a progress bar with the number of clusters and the criterion. If no bar can be drawn, for example
        because the output is a file, the log gets one line for each round.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters that the fit has found.
    n_rounds_ : int
        Number of rounds of the fit.
    variance_ : float
        σ² of the isotropic model, in data unit².
    lower_bound_ : float
        F of this model per point, in nats, with equal weights.
    n_active_ : int
        C′ of the last fit, at most `n_clusters_`.
    n_iter_ : int
        Iterations of the last fit of all points.
    converged_ : bool
        Whether the search ended by itself within `max_rounds`.
    """

    min_clusters: int
    max_clusters: int
    n_active: int
    max_rounds: int
    max_iter: int
    tol: float
    callbacks: Any
    n_clusters_: Annotated[int, Size("C")]
    n_rounds_: Count
    variance_: Positive
    history_: Annotated[NDArray, Columns(HISTORY), Presence.RECORD]
    lower_bounds_: Annotated[Any, Presence.OPTIONAL]
    neighbors_: Annotated[Any, Presence.OPTIONAL]
    certificate_: Annotated[Any, Presence.OPTIONAL]
    _descends: bool
    _log = __name__  # name of the logger for the rounds; the fits within a round use other loggers

    def _division(self, cell: Cell, most: int) -> tuple[float, NDArray | None]:
        """Return the benefit of a cluster's split, and the new centers (k, D), k ≤ most; 0 and None if it is not split.

        The benefit is the decrease of BIC (X-means), or 1 − p with the p-value of the test of Gaussianity (G-means).
        Clusters of greater benefit are split first.
        cell: points of the cluster    most: largest number of new centers
        """
        raise NotImplementedError

    def _better_joined(self, first: Cell, second: Cell, both: Cell) -> float:
        """Return the benefit of a merge of two clusters, which are merged if it is positive.

        It is the decrease of BIC (X-means), or p − alpha with the p-value of the test of Gaussianity of all their
        points (G-means).    first, second: points of each cluster    both: the points of both, as one cell
        """
        raise NotImplementedError

    @restore_on_error
    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the number of clusters and their centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. Rows of uint8, int8, bool, float16 and bfloat16 keep their type in memory and are converted
            to float32 in computations; 16-bit integers and float32 become float32, wider types float64.
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 is equivalent to the point occurring twice, also in the criterion and the test; None is 1 for
            each. Weights with another meaning should therefore be scaled to sum to the number of points they represent.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If an argument is out of its range, or there are fewer points than `min_clusters`.
        """
        self._check()
        watch = Watch(self, (X, y, sample_weight), lambda run: unfitted_copy(self)._set_rounds(*run))
        X = validated(self, X)
        weights = check_weights(sample_weight, X.given())
        if len(X) < self.min_clusters:
            raise ValueError(f"n_samples={len(X)} should be >= min_clusters={self.min_clusters}.")
        counted = np.ones(len(X)) if weights is None else weights
        data = Cell(X, counted) if counted.all() else Cell(X[counted > 0], counted[counted > 0])
        with watch.fit(1, self.max_rounds), watch.start(1) as callback:
            self._search(data, callback)
        with computing(self.n_threads):
            self.labels_, distances = nearest_of(self.cluster_centers_, X)
        self.inertia_ = Block(X, weights).weighted_sum(distances)
        return self

    def _check(self) -> None:
        check_integer(self.min_clusters, "min_clusters", 1)
        if check_integer(self.max_clusters, "max_clusters", 1) < self.min_clusters:
            raise ValueError(f"max_clusters == {self.max_clusters}, must be >= min_clusters={self.min_clusters}.")
        for name in ("n_active", "n_init", "max_rounds", "max_iter"):
            check_integer(getattr(self, name), name, 1)
        check_real(self.tol, "tol", 0.0)

    def _search(self, data: Cell, callback: Callable[[Mapping[str, Any], Any, bool], bool]) -> None:
        """Run rounds of splits and merges of clusters, and set the fitted attributes.

        If the class attribute `_descends` is true (X-means), the rounds end once the BIC does not fall. Otherwise they
        end once a round repeats an earlier result.
        """
        n_start = min(self.min_clusters, len(data.points))
        start = KMeans(n_start, n_init=self.n_init, random_state=self.random_state, n_threads=self.n_threads)
        fit = self._refit(data, start.fit(data.points.given(), None, data.weights).cluster_centers_)
        rows = [(len(centers_of(fit, None)), self._criterion(data, fit))]
        converged = stopped = False
        while not converged and not stopped and len(rows) <= self.max_rounds:
            begun, best = perf_counter(), fit
            for step in (self._join, self._cut, self._join):
                centers = step(data, centers_of(fit, None))
                if centers is not None:
                    fit = self._refit(data, centers)
            row = (len(centers_of(fit, None)), self._criterion(data, fit))
            number, change = len(rows), rows[-1][1] - row[1]
            _logger.info("round %d: %d clusters, criterion %.6g", number, *row, extra={"iteration": number})
            converged = change <= 0 if self._descends else row in rows
            rows.append(row)
            if converged and self._descends:
                fit = best
            told = {"iteration": number, "n_clusters": row[0], "criterion": row[1], "change": change}
            told["seconds"] = perf_counter() - begun
            stopped = callback(told, (fit, rows, converged), converged or number == self.max_rounds)
        self._set_rounds(fit, rows, converged)

    def _set_rounds(self, fit: Mixture, rows: list[tuple[int, float]], converged: bool) -> Self:
        """Set the fitted attributes from the present fit, and return the estimator.

        rows: number of clusters and criterion after each round    converged: whether the rounds have converged
        """
        self.converged_, self.n_rounds_ = converged, len(rows) - 1
        self.history_ = np.array(rows, dtype=HISTORY)
        self.cluster_centers_ = centers_of(fit, None)
        self.n_clusters_ = len(self.cluster_centers_)
        self.variance_ = float(fit.variance_)
        self.lower_bound_ = float(fit.lower_bound_)
        self.n_active_ = fit.n_active_
        self.n_iter_ = fit.n_iter_
        return self

    def _refit(self, data: Cell, centers: NDArray, **changes: Any) -> Mixture:
        """Fit k-means, or k-means-C′ if n_active = C′ > 1, from initial centers (C, D), and return the fit.

        changes: arguments of the fit that replace those of this estimator, such as `tol`
        """
        C = len(centers)
        centers = np.asarray(centers, dtype=data.points.dtype)
        common: dict[str, Any] = {
            "max_iter": self.max_iter,
            "tol": self.tol,
            "n_threads": self.n_threads,
            "random_state": 0,
            "search": Auto(certificate=0),
        } | changes
        if self.n_active == 1 or C == 1:
            return KMeans(C, init=centers, **common).fit(data.points.given(), None, data.weights)
        mixture = GaussianMixture(
            C,
            covariance_type="tied_spherical",
            weights="equal",
            n_active=min(self.n_active, C),
            means_init=centers,
            reg_covar=0.0,
            **common,
        )
        return mixture.fit(data.points.given(), None, data.weights)

    def _criterion(self, data: Cell, fit: Mixture) -> float:
        """Return the BIC of the isotropic mixture with cluster sizes as weights; F replaces the log-likelihood.

        F is the free energy. The parameters are C·D coordinates, one variance and C − 1 free weights.
        """
        C, D = centers_of(fit, None).shape
        if fit.n_active_ == 1:
            counts: NDArray = np.bincount(fit.labels_, weights=data.weights, minlength=C)
        else:
            counts = fit.predict_proba(data.points.given(), sparse=True).T @ data.weights
        return bic(fit.lower_bound_ + share_gain(counts), data.weight, C * (D + 1))

    def _clusters(self, data: Cell, centers: NDArray) -> list[Cell]:
        labels = data.points.nearest(centers, n_threads=self.n_threads)[0][:, 0]
        return cells(data.points, data.weights, labels, len(centers))

    def _cut(self, data: Cell, centers: NDArray) -> NDArray | None:
        """Return the centers after one round of splits, at most `max_clusters` centers; None if no cluster is split.

        A cluster is split if the test or the criterion of the subclass (`_division`) says so. Splits are made in the
        order of their benefit: decrease of BIC (X-means), or 1 − p-value (G-means). A split into more centers than
        `max_clusters` leaves is omitted. The centers that remain come first, then those of the split clusters.
        """
        room = self.max_clusters - len(centers)
        wanted = []
        for c, cell in enumerate(self._clusters(data, centers)):
            urgency, parts = self._division(cell, room + 1) if room and not cell.is_one else (0.0, None)
            if parts is not None:
                wanted.append((-urgency, c, parts))
        kept, new = np.ones(len(centers), dtype=bool), []
        for _, c, parts in sorted(wanted, key=lambda row: row[:2]):
            if len(parts) - 1 <= room:
                room -= len(parts) - 1
                kept[c] = False
                new.append(parts)
        return np.concatenate([centers[kept], *new]) if new else None

    def _join(self, data: Cell, centers: NDArray) -> NDArray | None:
        """Return the centers after merges of neighboring clusters, at least `min_clusters`; None if there is no merge.

        Pairs are merged in the order of their benefit (`_better_joined`), and each cluster at most once. The neighbor
        of a cluster is the one whose center is second nearest to most of its points.
        """
        C = len(centers)
        if self.min_clusters >= C or C == 1:
            return None
        clusters = self._clusters(data, centers)
        pairs = set()
        for c, cell in enumerate(clusters):
            if len(cell.points):
                kept = cell.points.nearest(centers, 2, n_threads=self.n_threads)[0]
                other = kept.sum(axis=1) - c
                neighbor = int(np.bincount(other, weights=cell.weights, minlength=C).argmax())
                pairs.add((min(c, neighbor), max(c, neighbor)))
        judged = []
        for a, b in pairs:
            both = union([clusters[a], clusters[b]])
            gain = math.inf if both.is_one else self._better_joined(clusters[a], clusters[b], both)
            judged.append((-gain, a, b))
        judged.sort()
        kept, new = np.ones(C, dtype=bool), list[NDArray]()
        for loss, a, b in judged:
            if loss < 0 and kept[a] and kept[b] and C - len(new) > self.min_clusters:
                kept[[a, b]] = False
                new.append(union([clusters[a], clusters[b]]).mean)
        return np.concatenate([centers[kept], np.array(new, dtype=centers.dtype)]) if new else None

    def _parameters(self) -> TiedSpherical:
        return TiedSpherical(self.cluster_centers_, self.variance_, 0.0)
