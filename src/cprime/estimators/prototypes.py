"""What the members of the k-means family share that represent clusters by points of the data's space."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from cprime import fuzzy, kernels
from cprime.estimators.stored import Stored
from cprime.estimators.validation import validated


class Prototypes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Stored):
    """Base: `cluster_centers_`, the nearest of which is a point's label."""

    n_clusters: int
    n_threads: int | None
    cluster_centers_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _validated(self, X: Any, reset: bool) -> NDArray:
        X = validated(self, X, None if reset else lambda: self.cluster_centers_.dtype)
        if reset and len(X) < self.n_clusters:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}.")
        return X

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest center of each row; ties go to the lower index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray of shape (n_samples,), int32
        """
        X = self._validated(X, reset=False)
        return kernels.nearest(X, self.cluster_centers_, n_threads=self.n_threads)[0][:, 0]

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
        X = self._validated(X, reset=False)
        squared = kernels.min_distances(X, self.cluster_centers_, n_threads=self.n_threads)
        return np.sqrt(squared, out=squared).T


class Graded(Prototypes):
    """Base of the members whose points belong to several clusters at once."""

    n_active_: int

    def _rule(self) -> fuzzy.Rule:
        """What makes memberships of distances, for the fitted parameters."""
        raise NotImplementedError

    def predict_proba(self, X: Any, sparse: bool = False) -> NDArray[np.float64] | csr_array:
        """The membership of each row in each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sparse : bool, default=False
            True gives a CSR array of the n_active_ kept entries of each row; False an N×C array with exact zeros
            elsewhere.

        Returns
        -------
        memberships : ndarray or csr_array of shape (n_samples, n_clusters), float64
            Rows sum to 1.
        """
        X = self._validated(X, reset=False)
        C, H = len(self.cluster_centers_), self.n_active_
        kept, values = np.empty((len(X), H), dtype=np.int32), np.empty((len(X), H))
        for rows, ids, _, found in fuzzy.blocks(X, self.cluster_centers_, self._rule(), H, self.n_threads):
            kept[rows], values[rows] = ids, found.memberships
        if sparse:
            indptr = np.arange(0, len(X) * H + 1, H)
            result = csr_array((values.ravel(), kept.ravel(), indptr), shape=(len(X), C))
            result.sort_indices()
            return result
        if H == C:
            return values
        dense = np.zeros((len(X), C))
        np.put_along_axis(dense, kept.astype(np.intp), values, axis=1)
        return dense
