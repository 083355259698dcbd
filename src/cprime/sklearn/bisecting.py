"""`BisectingKMeans` with scikit-learn's signature; each split of a cluster is computed by k-means of this library."""

from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import sklearn.cluster
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.cluster._bisect_k_means import _BisectingTree
from sklearn.utils.extmath import row_norms

from cprime import em
from cprime._utils.random import Key
from cprime._utils.threads import resolve_threads
from cprime.estimators.nearest_center import nearest_labels
from cprime.estimators.validation import check_weights
from cprime.execution.block import Block
from cprime.kernels import Dense, Rows, as_rows, computing
from cprime.model import TiedSpherical
from cprime.model.tied_spherical import variance_floor
from cprime.search import Full
from cprime.sklearn.draws import Draws
from cprime.sklearn.kmeans import Centered
from cprime.sklearn.nearest import Distances, weighted
from cprime.sklearn.parameters import with_generator
from cprime.sources import as_matrix

_AT_ONCE = 2**21  # Largest number of values (rows · columns) of a cluster that one call of compiled code splits in two.


class BisectingKMeans(Distances, Draws, sklearn.cluster.BisectingKMeans):
    """Bisecting k-means with the arguments, attributes and errors of scikit-learn's `BisectingKMeans`.

    The choice of the next cluster to split and the random draws of the initializations are scikit-learn's; the k-means
    of each split and the prediction along the tree are cprime's. `copy_x` has no effect, because data are not changed.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_features_in_, feature_names_in_
        Fitted attributes with the same meaning as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.sklearn import BisectingKMeans
    >>> X = np.array([[1, 1], [10, 1], [3, 1], [10, 0], [2, 1], [10, 2], [10, 8], [10, 9], [10, 10]])
    >>> BisectingKMeans(n_clusters=3, random_state=0).fit(X).inertia_
    6.0
    """

    @with_generator
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Split clusters of the rows of X in two until there are `n_clusters`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; None means equal weights.

        Returns
        -------
        self : BisectingKMeans
        """
        with computing(None), self._drawing() as random_state:
            X, sample_weight = self._training_data(X, sample_weight)
            # scikit-learn's method gets one column only, because it checks only the number of rows.
            self._check_params_vs_input(X[:, :1])
            self.__dict__.pop("_X_mean", None)  # Delete the mean of an earlier fit to dense data.
            rows = X
            if not sp.issparse(X):
                self._X_mean, rows = Centered.from_rows(X)
            weights = np.ones(X.shape[0], dtype=X.dtype) if sample_weight is None else sample_weight
            tree = _BisectingTree(indices=np.arange(X.shape[0]), center=rows.mean(axis=0), score=0)
            norms = row_norms(rows, squared=True)
            for _ in range(self.n_clusters - 1):
                # A leaf (cluster) without rows results from a split of equal rows.
                leaves = (leaf for leaf in tree.iter_leaves() if len(leaf.indices))
                self._cut(max(leaves, key=lambda leaf: leaf.score), rows, norms, weights, random_state)
            self._set_leaves(tree, X, sample_weight)
        return self

    def _set_leaves(self, tree: Any, X: Any, sample_weight: NDArray | None) -> None:
        """Set the fitted attributes from the tree after all splits, whose leaves are the clusters."""
        leaves = list(tree.iter_leaves())
        labels, centers = np.empty(X.shape[0], dtype=np.int32), np.empty((len(leaves), X.shape[1]), dtype=X.dtype)
        for label, leaf in enumerate(leaves):
            labels[leaf.indices], centers[label] = label, leaf.center
            leaf.label, leaf.indices = label, None
        if not sp.issparse(X):
            centers += self._X_mean
        points = as_rows(X)
        squares = points.own_distances(centers, labels)
        self._bisecting_tree, self._n_features_out, self._n_threads = tree, len(leaves), resolve_threads(None)
        self.labels_, self.cluster_centers_ = labels, centers
        self.inertia_ = Block(points, check_weights(sample_weight, X)).weighted_sum(squares)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the cluster of each row, (n_samples,), found by following the nearer center at each tree node."""
        return super().predict(as_matrix(X))

    def _cut(self, leaf: Any, X: Any, norms: NDArray, weights: NDArray, random_state: np.random.RandomState) -> None:
        """Split a leaf (cluster) of the tree in two, by the best of `n_init` runs of k-means.

        X (n, D), norms (n,), weights (n,): rows of all clusters, their squared norms and weights
        """
        rows = leaf.indices
        X, norms, weights = X[rows], norms[rows], weights[rows]
        points, free_weights = as_rows(X), None if (weights == 1).all() else weights
        best: tuple[float, NDArray, NDArray, NDArray] | None = None
        for _ in range(self.n_init):
            start = self._init_centroids(
                X,
                x_squared_norms=norms,
                init=self.init,
                random_state=random_state,
                n_centroids=2,
                sample_weight=weights,
            )
            found = self._two_means(points, free_weights, np.ascontiguousarray(start))
            if best is None or found[0] < best[0] * (1 - 1e-6):
                best = found
        assert best is not None
        _, labels, centers, squares = best
        if self.bisecting_strategy == "biggest_inertia":
            scores = np.bincount(labels, weights * squares, minlength=2)
        else:
            scores = np.bincount(labels, minlength=2)
        leaf.split(labels, centers, scores)

    def _two_means(
        self, points: Rows, weights: NDArray | None, start: NDArray
    ) -> tuple[float, NDArray, NDArray, NDArray]:
        """Run k-means on some rows from two starting centers (2, D), up to `max_iter` iterations.

        Returns J, labels (n,), centers (2, D), and squared distances (n,) of the rows to their centers.
        """
        if isinstance(points, Dense) and points.array.size <= _AT_ONCE:
            fit = points.lloyd(start, self.max_iter, 0.0, weights, least_shift=self.tol)
            if fit is not None:  # `lloyd` returns None if a cluster becomes empty, which only `em.run` supports.
                labels, squares = fit.labels, fit.squares
                if not fit.settled:
                    ids, costs = points.nearest(fit.centers)
                    labels, squares = ids[:, 0], costs[:, 0]
                return Block(points, weights).weighted_sum(squares), labels, fit.centers, squares
        data = weighted(points.given(), weights)
        plan = em.FitPlan(1, Full(), em.Lloyd(em.Settings(self.max_iter, self.tol, least_shift=self.tol)))
        run = em.run(data, partial(TiedSpherical, start, 1.0, variance_floor(start)), plan, Key(0))
        labels = data.labels()
        assert labels is not None
        return run.error, labels, run.model.centers, points.own_distances(run.model.centers, labels)

    def _predict_recursive(self, X: Any, sample_weight: NDArray, cluster_node: Any) -> NDArray[np.int32]:
        """Return the labels (n,) of the rows X of a tree node; each row descends to the child of nearer center."""
        if cluster_node.left is None:
            return np.full(X.shape[0], cluster_node.label, dtype=np.int32)
        centers = np.vstack([cluster_node.left.center, cluster_node.right.center])
        if hasattr(self, "_X_mean"):
            centers += self._X_mean
        right = nearest_labels(centers.astype(X.dtype, copy=False), as_rows(X)) == 1
        labels = np.empty(X.shape[0], dtype=np.int32)
        for rows, node in ((~right, cluster_node.left), (right, cluster_node.right)):
            labels[rows] = self._predict_recursive(X[rows], sample_weight[rows], node)
        return labels
