"""What estimators share whose labels are the nearest of their centers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from cprime import kernels
from cprime.estimators.validation import check_weights
from cprime.execution import Chunk


class NearestCenter(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin):
    """Mixin: `predict`, `transform` and `score` by `cluster_centers_`, of data that `_validated` lets in."""

    _validated: Any
    n_threads: int | None
    cluster_centers_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _nearest(self, X: NDArray) -> tuple[NDArray[np.int32], NDArray]:
        """The nearest center of each row (n,), and its squared distance (n,)."""
        kept, distances = kernels.nearest(X, self.cluster_centers_, n_threads=self.n_threads)
        return kept[:, 0], distances[:, 0]

    def _squared_distances(self, X: Any) -> NDArray:
        """Of each center to each row: (C, n)."""
        X = self._validated(X, reset=False)
        return kernels.min_distances(X, self.cluster_centers_, n_threads=self.n_threads)

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest center of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        return self._nearest(self._validated(X, reset=False))[0]

    def transform(self, X: Any) -> NDArray:
        """The Euclidean distance of each row to each center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In data units and of the data's dtype. An N×C array: it is what was asked for.
        """
        squared = self._squared_distances(X)
        return np.sqrt(squared, out=squared).T

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """−J: minus the weighted sum of squared distances to the nearest center, in data unit².

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : Ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        X = self._validated(X, reset=False)
        return -Chunk(X, check_weights(sample_weight, X)).weighted_sum(self._nearest(X)[1])
