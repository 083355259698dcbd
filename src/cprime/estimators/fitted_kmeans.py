"""What a fitted k-means says of data: the nearest centers, near ones, and distances."""

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
    """Mixin of a k-means by either metric."""

    metric: str
    _nearby: Callable[[Model], Nearby]
    _parameters: Callable[[], Model]

    def _scale(self, model: Model) -> None:
        return None

    def predict(self, X: Any, approximate: bool = False, *, out: Any = None) -> NDArray[np.int32]:
        """The nearest center of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        approximate : bool, default=False
            False searches all centers. True looks, where these are more than 4,096, in the cells near each row, of √C
            centers each; `certify` says how good that is.
        out : ndarray, str or path-like, default=None
            Where the result goes: an array of its shape and dtype, a memory map say, or the path of a .npy file, which
            is written whole or not at all and returned as a memory map.

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
        """The nearest center of each row, and how far it is.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        out : tuple of two, default=None
            Where labels and distances go, each as `predict` takes it.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            As `predict` gives them.
        distances : ndarray of shape (n_samples,), float64
            Euclidean, in data units, or 1 − cos where that is the metric.
        """
        data = self._opened(X)
        with computing(self.n_threads):
            job = partial(nearest_with_distances, self.cluster_centers_, self.metric)
            return data.map(job, None, (np.int32, np.float64), out)

    @property
    def _distances_to(self) -> Callable[[NDArray, Rows], NDArray]:
        return euclidean_distances if self.metric == "euclidean" else cosine_distances

    def transform(self, X: Any, *, out: Any = None) -> NDArray:
        """The Euclidean distance of each row to each center, or the cosine distance 1 − cos where that is the metric.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        out : ndarray, str or path-like, default=None
            Where the result goes: an array of its shape and dtype, a memory map say, or the path of a .npy file, which
            is written whole or not at all and returned as a memory map.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units (or 0 … 2) and of the data's dtype. An N×C array: it is what was asked for.
        """
        data = self._opened(X)
        with computing(self.n_threads):
            job = partial(self._distances_to, self.cluster_centers_)
            return data.map(job, len(self.cluster_centers_), data.dtype, out)

    def _searched_by(self) -> tuple[str, ...]:
        return ("cluster_centers_",)

    def to_sklearn(self) -> BaseEstimator:
        """A fitted scikit-learn `KMeans` of the same centers, for what takes only those (ONNX, say).

        Returns
        -------
        k_means : sklearn.cluster.KMeans, or Pipeline of a Normalizer and one for metric="cosine"
            It predicts by all centers.
        """
        check_is_fitted(self)
        return sklearn_k_means(self)
