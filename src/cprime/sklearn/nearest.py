"""Common code of the drop-in k-means classes: data validation, distances to centers, fallback to scikit-learn."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from cprime._utils.number_types import check_largest
from cprime.estimators.nearest_center import Inertia, euclidean_distances, nearest_labels
from cprime.estimators.opening import check_numbers, narrow_type, taken, taken_narrow
from cprime.estimators.savable import documented
from cprime.estimators.validation import check_weights
from cprime.execution import Data, local
from cprime.kernels import NarrowRows, Rows, as_rows, computing
from cprime.sklearn.parameters import CheckedOnce
from cprime.sources import as_matrix, unmasked

logger = logging.getLogger("cprime")

_PIECE = 2**20  # number of values of narrow types (uint8, float16 …) that are converted at a time


def hand_over(estimator: Any, why: str) -> None:
    """Log that scikit-learn's own code runs instead of cprime's. why: the reason, for the log line"""
    logger.info("%s: %s; scikit-learn's own code runs", type(estimator).__name__, why)


def squared(X: Any) -> Rows:
    """Return X as `Rows`; raise an error if the data type cannot represent squares of the values."""
    X = as_rows(X)
    check_largest(X.extent()[0], X.dtype, X.shape[1], "X")
    return X


def weighted(X: Any, sample_weight: Any) -> Data:
    """Return rows, dense or sparse, with their weights (n,) or None as `Data`, over which jobs can be run."""
    rows = as_rows(X)
    return local(rows, check_weights(sample_weight, rows.given()))


def as_given(X: Any) -> Any:
    """Return rows in a form that scikit-learn accepts: an array, or a sparse array in CSR format."""
    return X if isinstance(X, np.ndarray) or sp.issparse(X) else X.dense()


def variances(X: Any) -> NDArray:
    """Return the variances of the columns (D,), bit-identical to `numpy.var`, without a converted copy of X.

    `numpy.var` adds one row after the other, so the rows can be converted piece by piece. A single column is an
    exception: its values are added in another order, so it is converted at once.
    """
    rows = as_rows(X)
    n, D = rows.shape
    step = max(1, _PIECE // max(D, 1)) if D != 1 else max(n, 1)

    def mean(of: Callable[[NDArray], NDArray]) -> NDArray:
        total: NDArray | None = None
        for begin in range(0, n, step):
            piece = of(rows[begin : begin + step].dense())
            total = np.add.reduce(piece if total is None else np.vstack([total, piece]), axis=0)
        assert total is not None
        return total / n

    center = mean(lambda piece: piece)
    return mean(lambda piece: np.square(piece - center))


@documented
class Distances(CheckedOnce, TransformerMixin):
    """Mixin for a k-means class of scikit-learn: `transform` and `score` from distances to `cluster_centers_`."""

    cluster_centers_: NDArray
    _check_test_data: Any
    fit: Any

    def _training_data(
        self, X: Any, sample_weight: Any, reset: bool = True, keeps: Callable[[Any], bool] = lambda X: False
    ) -> tuple[Any, NDArray | None]:
        """Return the rows and their weights (n,) or None after scikit-learn's checks.

        The rows are a float array, a CSR array, or `NarrowRows` of a narrow type (uint8, float16 …).
        keeps: function of X that returns whether rows of a narrow type stay in this type in memory; it must return
        False if results would differ from those of converted rows
        """
        dtypes = [np.float64, np.float32]
        X, sample_weight = as_matrix(X), unmasked(sample_weight, "sample_weight")
        unmasked(getattr(self, "init", None), "init")
        kind = narrow_type(X)
        if kind is not None and keeps(X):
            given: Any = taken_narrow(self, X, kind, reset=reset)
            X = NarrowRows(given, np.float64)
        else:
            given = X = taken(self, X, reset=reset, dtype=dtypes, accept_sparse="csr", accept_large_sparse=False)
        check_numbers(self, as_rows(X), spread=reset)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, given, dtype=X.dtype)
        return X, sample_weight

    def _rows(self, X: Any) -> tuple[Rows, NDArray]:
        """Return validated rows (n, D) for a prediction, and the centers (C, D) in the data type of the rows."""
        check_is_fitted(self)
        X = as_matrix(X)
        kind = narrow_type(X)
        if kind is not None:
            rows: Rows = NarrowRows(taken_narrow(self, X, kind, reset=False), np.float64)
            check_numbers(self, rows, spread=False)
        else:
            X = self._check_test_data(X)
            rows = squared(X.astype(np.result_type(X.dtype, self.cluster_centers_), copy=False))
        return rows, np.ascontiguousarray(self.cluster_centers_, dtype=rows.dtype)

    def transform(self, X: Any) -> Any:
        """Return the Euclidean distance of each row to each center: (n_samples, n_clusters), in data units."""
        X, centers = self._rows(X)
        with computing(None):
            return weighted(X, None).map(partial(euclidean_distances, centers), len(centers), X.dtype)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Return the same as ``fit(X).transform(X)``."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return −J, minus the weighted sum of squared distances to the nearest center, in data unit²."""
        X, centers = self._rows(X)
        with computing(None):
            return -weighted(X, unmasked(sample_weight, "sample_weight")).each(Inertia(centers))


class Nearest(Distances):
    """Mixin like `Distances` that also has `predict`, which returns the nearest of all centers."""

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Return the nearest center of each row, (n_samples,); ties go to the lower index."""
        X, centers = self._rows(X)
        with computing(None):
            return weighted(X, None).map(partial(nearest_labels, centers), None, np.int32)
