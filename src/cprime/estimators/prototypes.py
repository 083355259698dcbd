"""Base classes of estimators of the k-means family whose clusters are represented by centers."""

from typing import Annotated, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cprime._utils.declared import Number
from cprime.em import fuzzy
from cprime.estimators.nearest_center import NearestCenter
from cprime.estimators.opening import validated
from cprime.estimators.savable import SavableEstimator
from cprime.estimators.validation import check_flag, check_weights
from cprime.execution import Data, local
from cprime.execution.results import kept_entries
from cprime.kernels import ReadMissing, as_rows


class Prototypes(NearestCenter, SavableEstimator):
    """Base of estimators with `cluster_centers_` that are fitted to arrays in memory; labels are nearest centers."""

    n_clusters: int

    def _opened(self, X: Any, sample_weight: Any = None) -> Data:
        X = as_rows(self._validated(X, reset=False))
        return local(X, check_weights(sample_weight, X.given()))

    def _validated(self, X: Any, reset: bool) -> Any:
        """Return X as checked rows of finite numbers; narrow types such as uint8 are not converted.

        Raises ValueError if X is invalid.    reset: whether X is training data
        """
        has_missing = getattr(self, "missing", "error") == "marginal"
        rows = validated(self, X, reset, ReadMissing() if has_missing else as_rows)
        if reset and len(rows) < self.n_clusters:
            raise ValueError(f"n_samples={len(rows)} should be >= n_clusters={self.n_clusters}.")
        return rows


class FuzzyBase(Prototypes):
    """Base of estimators in which a point belongs to several clusters, with memberships that sum to 1."""

    n_active_: Annotated[int, Number(least=1, below="C+1")]

    def _rule(self) -> fuzzy.Rule:
        """Return the fitted rule: an object that computes memberships from squared distances of points to centers."""
        raise NotImplementedError

    @overload
    def predict_proba(self, X: Any, sparse: Literal[False] = False) -> NDArray: ...

    @overload
    def predict_proba(self, X: Any, sparse: Literal[True]) -> csr_array: ...

    @overload
    def predict_proba(self, X: Any, sparse: bool) -> NDArray | csr_array: ...

    def predict_proba(self, X: Any, sparse: bool = False) -> NDArray | csr_array:
        """Return the membership of each row in each cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sparse : bool, default=False
            True returns a CSR array of the `n_active_` nonzero entries of each row; False a dense N×C array with exact
            zeros elsewhere.

        Returns
        -------
        memberships : ndarray or csr_array of shape (n_samples, n_clusters)
            In the dtype of the centers. Rows sum to 1.
        """
        X = self._validated(X, reset=False)
        C, H = len(self.cluster_centers_), self.n_active_
        kept, values = np.empty((len(X), H), dtype=np.int32), np.empty((len(X), H), dtype=X.dtype)
        for rows, ids, _, found in fuzzy.blocks(X, self.cluster_centers_, self._rule(), H, self.n_threads):
            with np.errstate(under="ignore"):  # Memberships that are too small for float32 become 0.
                kept[rows], values[rows] = ids, found.memberships
        return values if H == C and not check_flag(sparse, "sparse") else kept_entries(kept, values, C, sparse)
