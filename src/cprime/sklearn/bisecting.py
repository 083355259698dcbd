"""`BisectingKMeans` with scikit-learn's signature: its tree, each cut by a k-means of ours."""

from typing import Any, Self

import numpy as np
import sklearn.cluster
from numpy.typing import NDArray

from cprime import em
from cprime._random import Key
from cprime.estimators.nearest_center import nearest_labels
from cprime.kernels import as_rows, computing
from cprime.model import TiedSpherical
from cprime.model.tied_spherical import variance_floor
from cprime.search import Full
from cprime.sklearn.draws import Draws
from cprime.sklearn.nearest import Distances, squared, weighted
from cprime.sources import as_matrix, unmasked


class BisectingKMeans(Distances, Draws, sklearn.cluster.BisectingKMeans):
    """Bisecting k-means with the arguments, attributes and errors of scikit-learn's `BisectingKMeans`.

    Which cluster is cut next and the draws of its starts are scikit-learn's; the k-means of each cut and the way down
    the tree are cprime's.

    Attributes
    ----------
    cluster_centers_, labels_, inertia_, n_features_in_, feature_names_in_
        As scikit-learn's.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.sklearn import BisectingKMeans
    >>> X = np.array([[1, 1], [10, 1], [3, 1], [10, 0], [2, 1], [10, 2], [10, 8], [10, 9], [10, 10]])
    >>> BisectingKMeans(n_clusters=3, random_state=0).fit(X).inertia_
    6.0
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cut clusters until there are as many as wanted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None
            None is 1 for each.

        Returns
        -------
        self : BisectingKMeans
        """
        self.__dict__.pop("_X_mean", None)  # of dense data that were fitted before
        with computing(None):
            return super().fit(as_matrix(X), y, unmasked(sample_weight, "sample_weight"))

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The cluster of each row, (n_samples,): down the tree, always to the nearer center."""
        return super().predict(as_matrix(X))

    def _check_params_vs_input(self, X: Any) -> None:
        """What every fit asks first, and whether squares can be held."""
        squared(X)
        super()._check_params_vs_input(X)

    def _bisect(self, X: Any, x_squared_norms: NDArray, sample_weight: NDArray, cluster_to_bisect: Any) -> None:
        """Cut one cluster of the tree into the best two of `n_init` starts."""
        rows = cluster_to_bisect.indices
        X, norms, weights = X[rows], x_squared_norms[rows], sample_weight[rows]
        data = weighted(X, None if (weights == 1).all() else weights)  # what fit has made of none
        settings = em.Settings(self.max_iter, self.tol, least_shift=self.tol)
        plan = em.Plan(1, Full(), lambda model, data: em.Lloyd(settings))
        best: tuple[float, NDArray, NDArray] | None = None
        for _ in range(self.n_init):
            start = self._init_centroids(
                X,
                x_squared_norms=norms,
                init=self.init,
                random_state=self._random_state,
                n_centroids=2,
                sample_weight=weights,
            )
            start = np.ascontiguousarray(start)
            data.begin(keep=False)
            fit = em.run(data, TiedSpherical(start, 1.0, variance_floor(start)), plan, Key(0))
            if best is None or fit.error < best[0] * (1 - 1e-6):
                labels = data.labels()
                assert labels is not None
                best = fit.error, labels, fit.model.centers
        assert best is not None
        _, labels, centers = best
        if self.bisecting_strategy == "biggest_inertia":
            squares = np.where(labels == 0, *as_rows(X).distances(centers))
            scores = np.bincount(labels, weights * squares, minlength=2)
        else:
            scores = np.bincount(labels, minlength=2)
        cluster_to_bisect.split(labels, centers, scores)

    def _predict_recursive(self, X: Any, sample_weight: NDArray, cluster_node: Any) -> NDArray[np.int32]:
        """The label of every row that has come to a node of the tree."""
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
