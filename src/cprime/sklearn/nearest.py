"""What the drop-in classes of k-means share: how data come in, distances to centers, what is handed over."""

import logging
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from cprime._documentation import Documented
from cprime._range import check_largest
from cprime.estimators.nearest_center import Inertia, euclidean_distances, nearest_labels
from cprime.estimators.rows import check_numbers, taken
from cprime.estimators.validation import check_weights
from cprime.execution import Data, local
from cprime.kernels import Rows, as_rows, computing
from cprime.sklearn.parameters import CheckedOnce
from cprime.sources import as_matrix, unmasked

logger = logging.getLogger("cprime")


def hand_over(estimator: Any, why: str) -> None:
    """Say that scikit-learn's own code runs."""
    logger.info("%s: %s; scikit-learn's own code runs", type(estimator).__name__, why)


def squared(X: Any) -> Rows:
    """Rows whose squares their type holds, or an error that says what came."""
    X = as_rows(X)
    check_largest(X.extent()[0], X.dtype, X.shape[1], "X")
    return X


def weighted(X: Any, sample_weight: Any) -> Data:
    """Checked rows of either kind with weights that are not negative, or None."""
    return local(X, check_weights(sample_weight, X))


class Distances(Documented, CheckedOnce, TransformerMixin):
    """Mixin before a class of scikit-learn: `transform` and `score` by `cluster_centers_`."""

    cluster_centers_: NDArray
    _check_test_data: Any
    fit: Any

    def _training_data(self, X: Any, sample_weight: Any, reset: bool = True) -> tuple[Any, NDArray | None]:
        """What `fit` is given, checked as scikit-learn checks it: an array, or CSR."""
        dtypes = [np.float64, np.float32]
        X, sample_weight = as_matrix(X), unmasked(sample_weight, "sample_weight")
        unmasked(getattr(self, "init", None), "init")
        X = taken(self, X, reset=reset, dtype=dtypes, accept_sparse=lambda _: "csr", accept_large_sparse=False)
        check_numbers(self, as_rows(X), spread=reset)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=X.dtype)
        return X, sample_weight

    def _rows(self, X: Any) -> tuple[Any, NDArray]:
        """Rows to predict, an array or CSR, and the centers in their type."""
        check_is_fitted(self)
        X = self._check_test_data(as_matrix(X))
        dtype = np.result_type(X.dtype, self.cluster_centers_)
        X = X.astype(dtype, copy=False)
        squared(X)
        return X, np.ascontiguousarray(self.cluster_centers_, dtype=dtype)

    def transform(self, X: Any) -> Any:
        """The Euclidean distance of each row to each center: (n_samples, n_clusters), in data units."""
        X, centers = self._rows(X)
        with computing(None):
            return weighted(X, None).map(partial(euclidean_distances, centers), len(centers), X.dtype)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """As ``fit(X).transform(X)``."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """−J: minus the weighted sum of squared distances to the nearest center, in data unit²."""
        X, centers = self._rows(X)
        with computing(None):
            return -weighted(X, unmasked(sample_weight, "sample_weight")).each(Inertia(centers))


class Nearest(Distances):
    """The same, and `predict` by the nearest of all centers."""

    def predict(self, X: Any) -> NDArray[np.int32]:
        """The nearest center of each row, (n_samples,); ties go to the lower index."""
        X, centers = self._rows(X)
        with computing(None):
            return weighted(X, None).map(partial(nearest_labels, centers), None, np.int32)
