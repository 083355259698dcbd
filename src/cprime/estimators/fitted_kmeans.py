"""Methods of a fitted k-means: exact and approximate prediction, distances, and export to scikit-learn."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from cprime.estimators.approximate import near_best
from cprime.estimators.exported import sklearn_k_means
from cprime.estimators.nearest_center import (
    NearestCenter,
    cosine_distances,
    euclidean_distances,
    nearest_labels,
    nearest_with_distances,
)
from cprime.kernels import Rows, computing
from cprime.model import Model
from cprime.search.nearby import Nearby


class FittedKMeans(NearestCenter):
    """Mixin with the methods of a fitted k-means, for the Euclidean and the cosine metric."""

    metric: str
    _nearby: Callable[[Model], Nearby]
    _parameters: Callable[[], Model]

    def _scale(self, model: Model) -> None:
        return None

    def predict(self, X: Any, approximate: bool = False, *, out: Any = None) -> NDArray[np.int32]:
        """Return the index of the nearest center of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        approximate : bool, default=False
            False searches all centers. True searches, if there are more than 4,096 centers, only the cells near each
            row, of √C centers each; `certify` measures the quality.
        out : ndarray, str or path-like, default=None
            Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
            file, which is written completely or not at all and returned as a memory map.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        data = self._opened(X)
        with computing(self.n_threads):
            job: Callable[[Rows], NDArray[np.int32]] = partial(nearest_labels, self.cluster_centers_)
            if approximate:
                model = self._parameters()
                job = partial(near_best, model, self._nearby(model))
            return data.map(job, None, np.int32, out)

    def nearest(self, X: Any, *, out: Any = None) -> tuple[NDArray[np.int32], NDArray]:
        """Return the index of the nearest center of each row and its distance.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        out : tuple of two, default=None
            Destinations of labels and distances, each like `out` of `predict`.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            The same as those of `predict`.
        distances : ndarray of shape (n_samples,), float64
            Euclidean, in data units; 1 − cos if metric is "cosine".
        """
        data = self._opened(X)
        with computing(self.n_threads):
            job = partial(nearest_with_distances, self.cluster_centers_, self.metric)
            return data.map(job, None, (np.int32, np.float64), out)

    @property
    def _distances_to(self) -> Callable[[NDArray, Rows], NDArray]:
        return euclidean_distances if self.metric == "euclidean" else cosine_distances

    def transform(self, X: Any, *, out: Any = None) -> NDArray:
        """Return the distance of each row to each center: Euclidean, or 1 − cos if metric is "cosine".

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        out : ndarray, str or path-like, default=None
            Destination of the result: an array of its shape and dtype (for example a memory map), or the path of a .npy
            file, which is written completely or not at all and returned as a memory map.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units (cosine distances: 0 … 2), in the dtype of the data. This is a dense N×C array.
        """
        data = self._opened(X)
        with computing(self.n_threads):
            job = partial(self._distances_to, self.cluster_centers_)
            return data.map(job, len(self.cluster_centers_), data.dtype, out)

    def _searched_by(self) -> tuple[str, ...]:
        return ("cluster_centers_",)

    def to_sklearn(self) -> BaseEstimator:
        """Return a fitted scikit-learn `KMeans` with the same centers, for tools that require one (ONNX converters).

        Returns
        -------
        k_means : sklearn.cluster.KMeans, or Pipeline of a Normalizer and one for metric="cosine"
            Its predictions are exact: they compare rows with all centers.
        """
        check_is_fitted(self)
        return sklearn_k_means(self)
