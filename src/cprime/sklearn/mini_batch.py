"""`MiniBatchKMeans` with scikit-learn's signature, batches and stopping rule; `em.toward_means` moves the centers."""

import math
import sys
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import sklearn.cluster
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils.extmath import row_norms

from cprime import em
from cprime._utils.random import check_random_state
from cprime._utils.threads import resolve_threads
from cprime.estimators.nearest_center import Inertia
from cprime.estimators.validation import check_weights
from cprime.execution.block import Block
from cprime.kernels import Floats, as_rows, computing
from cprime.seeding import is_given
from cprime.sklearn.draws import Choice, Draws
from cprime.sklearn.kmeans import check_with_tolerance, given_centers
from cprime.sklearn.nearest import Nearest, as_given, variances, weighted
from cprime.sklearn.parameters import with_generator


class MiniBatchKMeans(Nearest, Draws, sklearn.cluster.MiniBatchKMeans):
    """k-means by batches with the arguments, attributes and errors of scikit-learn's `MiniBatchKMeans`.

    Batches, initializations and reassigned centers are drawn as in scikit-learn 1.9, so the same `random_state` gives
    the same fit up to rounding. Assignments and means are computed by cprime.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_iter_, n_steps_, n_features_in_, feature_names_in_
        Fitted attributes with the same meaning as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.sklearn import MiniBatchKMeans
    >>> X = np.array([[1, 2], [1, 4], [4, 2], [9, 2], [9, 4], [9, 0]])
    >>> km = MiniBatchKMeans(n_clusters=2, random_state=0, batch_size=6, n_init=3).fit(X)
    >>> km.predict([[0, 0], [10, 4]]).tolist()
    [0, 1]
    """

    _counts: NDArray[np.float64]
    _random_state: np.random.RandomState

    @with_generator
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the centers to batches of rows, one batch after another.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; None means equal weights. Batches are drawn with probability proportional to weight.

        Returns
        -------
        self : MiniBatchKMeans
        """
        with computing(None), self._drawing() as random_state:
            X, sample_weight = self._training_data(X, sample_weight, keeps=lambda _: True)
            if self.tol == 0 or sp.issparse(X):
                self._check_params_vs_input(X)
            else:
                check_with_tolerance(self, X, variances(X))
            n, batch = X.shape[0], self._batch_size
            weighs = check_weights(sample_weight, as_rows(X).given()) is not None
            weights = sample_weight if weighs else np.ones(n, dtype=X.dtype)
            centers = self._best_start(X, weights, random_state)
            self._begin()
            self._ewa_inertia = self._ewa_inertia_min = None
            self._no_improvement = 0
            chosen = Choice(weights)
            n_steps = (self.max_iter * n) // batch
            for i in range(n_steps):
                rows = chosen(random_state.random_sample(batch))
                before = centers
                centers, J = self._step(centers, X[rows], None, random_state)
                moved = float(np.square(centers - before).sum()) if self._tol > 0 else 0.0
                if self._mini_batch_convergence(i, n_steps, n, moved, J):
                    break
            self.n_steps_, self.n_iter_ = i + 1, math.ceil((i + 1) * batch / n)
            self._set_centers(centers)
            if self.compute_labels:
                self._label(X, sample_weight)
            else:
                self.inertia_ = self._ewa_inertia * weights.sum()
        return self

    @with_generator
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the centers with one batch.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; None means equal weights.

        Returns
        -------
        self : MiniBatchKMeans
        """
        first = not hasattr(self, "cluster_centers_")
        X, sample_weight = self._training_data(X, sample_weight, reset=first)
        weights = np.ones(X.shape[0], dtype=X.dtype) if sample_weight is None else sample_weight
        self._random_state = getattr(self, "_random_state", check_random_state(self.random_state))
        with computing(None):
            if first:
                self._check_params_vs_input(X)
                centers = self._start(X, weights, self._random_state)
                self._begin()
            else:
                centers = np.asarray(self.cluster_centers_, dtype=X.dtype)
            centers, _ = self._step(centers, X, sample_weight, self._random_state)
            self._set_centers(centers)
            if self.compute_labels:
                self._label(X, sample_weight)
        self.n_steps_ = getattr(self, "n_steps_", 0) + 1
        return self

    def _best_start(self, X: Any, weights: NDArray, random_state: np.random.RandomState) -> NDArray:
        """Return the best of `n_init` sets of initial centers, (C, D), with the least J of a random sample of rows."""
        rows = self._sample(weights, random_state)
        judge = weighted(X[rows], weights[rows])
        best: tuple[float, NDArray] | None = None
        for run in range(1, self._n_init + 1):
            if self.verbose:
                sys.stdout.write(f"Init {run}/{self._n_init} with method {self.init}\n")
            centers = self._start(X, weights, random_state)
            J = judge.each(Inertia(centers))
            if self.verbose:
                sys.stdout.write(f"Inertia for init {run}/{self._n_init}: {J}\n")
            if best is None or best[0] > J:
                best = J, centers
        assert best is not None
        return best[1]

    def _sample(self, weights: NDArray, random_state: np.random.RandomState) -> NDArray:
        """Return indices of `init_size` random rows, drawn as in scikit-learn from all rows.

        If all of them have weight 0, they are drawn again from the rows of positive weight.
        """
        rows = np.asarray(random_state.randint(0, len(weights), self._init_size))
        if weights[rows].any():
            return rows
        return random_state.choice(np.flatnonzero(weights), self._init_size)

    def _start(self, X: Any, weights: NDArray, random_state: np.random.RandomState) -> NDArray:
        """Return initial centers (C, D), drawn as in scikit-learn from `init_size` random rows."""
        if self._init_size < X.shape[0]:
            sample = self._sample(weights, random_state)
            X, weights = X[sample], weights[sample]
        X = as_given(X)
        centers = self._init_centroids(
            X,
            x_squared_norms=row_norms(X, squared=True),
            init=given_centers(self, X) if is_given(self.init) else self.init,
            random_state=random_state,
            sample_weight=weights,
        )
        return np.array(centers, dtype=X.dtype, order="C")

    def _begin(self) -> None:
        """Set the counts (weights) of the clusters to 0."""
        self._counts = np.zeros(self.n_clusters)
        self._n_since_last_reassign = 0
        self._n_threads = resolve_threads(None)

    def _step(
        self, centers: Floats, X: Any, weights: NDArray | None, random_state: np.random.RandomState
    ) -> tuple[Floats, float]:
        """Update the centers (C, D), which are running means, by a batch of rows X with their weights (n,) or None.

        Then, in some of the calls, at the same ones as in scikit-learn, centers of low weight move to random rows.
        Returns the new centers and J, the weighted sum of squared distances of the batch to the centers before.
        """
        rows = as_rows(X)
        block = Block(rows, check_weights(weights, rows.given()))
        found = rows.assign(centers, None, block.sample_weight)
        self._counts = self._counts + found.counts
        here, moved = found.counts > 0, centers.copy()
        counts = found.counts[here]
        before = centers[here].astype(np.float64)
        moved[here] = em.toward_means(before, found.sums[here], counts, counts / self._counts[here])
        if self._random_reassign() and self.reassignment_ratio > 0:
            self._reassign(moved, X, random_state)
        return moved, block.weighted_sum(found.costs[:, 0])

    def _reassign(self, centers: Floats, X: Any, random_state: np.random.RandomState) -> None:
        """Move centers with low counts to random rows of the batch X, in place.

        The count of a center is its total weight so far. A count is low if it is less than `reassignment_ratio` times
        the greatest count. At most half as many centers as rows are moved. The counts of moved centers are set to the
        least count of all other centers, so that moved centers are not moved again at once.
        """
        (n, _), counts = X.shape, self._counts
        light = counts < self.reassignment_ratio * counts.max()
        if light.sum() > 0.5 * n:
            light[np.argsort(counts)[n // 2 :]] = False
        if not light.any():
            return
        rows = random_state.choice(n, replace=False, size=light.sum())
        if self.verbose:
            sys.stdout.write(f"[MiniBatchKMeans] Reassigning {len(rows)} cluster centers.\n")
        centers[light] = as_rows(X)[rows].dense()
        counts[light] = counts[~light].min()

    def _set_centers(self, centers: Floats) -> None:
        self.cluster_centers_, self._n_features_out = centers, len(centers)

    def _label(self, X: Any, sample_weight: NDArray | None) -> None:
        rows = as_rows(X)
        ids, costs = rows.nearest(self.cluster_centers_)
        self.labels_, self.inertia_ = ids[:, 0], Block(rows, sample_weight).weighted_sum(costs[:, 0])
