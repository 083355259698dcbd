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
    nearest_with_squares,
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

    def predict(self, X: Any, approximate: bool = False) -> NDArray[np.int32]:
        """The nearest center of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
        approximate : bool, default=False
            False searches all centers. True looks, where these are more than 16,384, in the cells near each row, of √C
            centers each; `certify` says how good that is.

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        if not approximate:
            return super().predict(X)
        data = self._opened(X)
        with computing(self.n_threads):
            model = self._parameters()
            return data.map(partial(near_best, model, self._nearby(model)), None, np.int32)

    def nearest(self, X: Any) -> tuple[NDArray[np.int32], NDArray]:
        """The nearest center of each row, and how far it is.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
            As `predict` gives them.
        distances : ndarray of shape (n_samples,), float64
            Euclidean, in data units, or 1 − cos where that is the metric.
        """
        data = self._opened(X)
        with computing(self.n_threads):
            found = np.asarray(data.map(partial(nearest_with_squares, self.cluster_centers_), 2, np.float64))
        distances = np.sqrt(found[:, 1]) if self.metric == "euclidean" else found[:, 1] / 2
        return found[:, 0].astype(np.int32), distances

    @property
    def _distances_to(self) -> Callable[[NDArray, Rows], NDArray]:
        return euclidean_distances if self.metric == "euclidean" else cosine_distances

    def transform(self, X: Any) -> NDArray:
        """The Euclidean distance of each row to each center, or the cosine distance 1 − cos where that is the metric.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units (or 0 … 2) and of the data's dtype. An N×C array: it is what was asked for.
        """
        return super().transform(X)

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
