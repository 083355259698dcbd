"""Rows of the data used in a report (a sample if there are many), and the model's results for each row.

This file decides which rows are read and how many. The sections of the report compute their values from a `ReportData`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cprime._utils.values import fitted_centers
from cprime.estimators.fitted import centers_of, data_for, feature_names, model_of, without_preparation
from cprime.estimators.opening import preparation_of
from cprime.estimators.validation import check_integer, check_weights
from cprime.execution import Data, local
from cprime.kernels import Floats, Rows, posterior, with_nan
from cprime.model import Model
from cprime.sources.prepared import Preparation

_PRODUCTS = 2 * 10**10  # Maximum number of multiplications to compare all examined rows with all components.
# Maximum number of values (rows times features) of the examined rows, which are in memory.
_VALUES = 2**26
_LEAST_ROWS = 10_000
_LONGEST = 80  # Maximum number of characters of a feature name on the page.
# Number of components stored for each row in addition to the C′ active ones, to show what larger active sets gain.
_MORE = 2


@dataclass(frozen=True)
class Best:
    """The H best components of each of n rows, H = C′ + 2 or less.

    ids (n, H): indices, the best component first    log_joint (n, H): log p(c, x) [nats]
    """

    ids: NDArray[np.int32]
    log_joint: NDArray[np.float64]


@dataclass(frozen=True)
class ReportData:
    """Examined rows of the data, in their order, with the results of the fitted model.

    estimator           fitted estimator             model: its parameters for mixtures and k-means, else None
    n_points            N, rows of the data          rows (n,): indices of the examined rows
    X (n, D)            rows, filled and scaled as the training data were, the units of `centers` and of the model
    weight (n,)         sample weights
    labels (n,)         component of each row        best: see `Best`, None if there is no model
    centers (C, D)      float64                      names: of the D features, as written on the page
    """

    estimator: Any
    model: Model | None
    n_points: int
    rows: NDArray[np.int64]
    X: Floats
    weight: NDArray[np.float64]
    labels: NDArray[np.int32]
    best: Best | None
    centers: NDArray[np.float64]
    names: tuple[str, ...]

    @property
    def n_clusters(self) -> int:
        return len(self.centers)

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        """Return the weighted mean of the examined rows: (D,)."""
        return np.average(self.X, axis=0, weights=self.weight).astype(np.float64)

    @cached_property
    def variances(self) -> NDArray[np.float64]:
        """Return the weighted variance of each feature in the examined rows: (D,) [data unit²]."""
        squares = np.zeros(self.X.shape[1])
        for begin in range(0, len(self.X), 2**15):
            part = slice(begin, begin + 2**15)
            squares += self.weight[part] @ np.square(self.X[part] - self.mean)
        return squares / self.weight.sum()

    @property
    def preparation(self) -> Preparation:
        """Return the preparation by which rows became X; `restored` returns values in the units of the data."""
        return preparation_of(self.estimator)

    @property
    def levels(self) -> tuple[str, str]:
        """Return the words for features above and below their mean: those of categories are shares of rows."""
        return ("often", "seldom") if hasattr(self.estimator, "categories_") else ("high", "low")

    @property
    def scale_free(self) -> bool:
        """Return whether each component has its own variance of each column, so that units of columns do not matter."""
        return self.model is not None and self.model.scale_free

    @cached_property
    def unit(self) -> NDArray[np.float64]:
        """Return the number by which each feature is divided before distances are computed: (D,).

        It is the standard deviation of the feature if `scale_free`, otherwise 1.
        """
        if not self.scale_free:
            return np.ones(len(self.mean))
        return np.sqrt(np.where(self.variances > 0, self.variances, 1))

    @cached_property
    def squared_distances(self) -> NDArray[np.float64]:
        """Return the squared distance of each row to the center of its cluster (n,), after division by `unit`."""
        out = np.empty(len(self.X))
        for begin in range(0, len(self.X), 2**15):
            part = slice(begin, begin + 2**15)
            out[part] = np.square((self.X[part] - self.centers[self.labels[part]]) / self.unit).sum(axis=1)
        return out

    @cached_property
    def weights_by_cluster(self) -> NDArray[np.float64]:
        """Return the weight of the examined rows in each cluster: (C,)."""
        return np.bincount(self.labels, self.weight, self.n_clusters).astype(np.float64)

    @property
    def fit_sizes(self) -> NDArray[np.float64] | None:
        """Return the total weight of each component's points in the fit (C,); None if the estimator lacks `counts_`."""
        return getattr(self.estimator, "counts_", None)

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Return the total weight of each cluster's points (C,): from the fit, or estimated from the examined rows."""
        if self.fit_sizes is not None:
            return np.asarray(self.fit_sizes, dtype=np.float64)
        return self.weights_by_cluster * (self.n_points / len(self.rows))


def gather(estimator: Any, X: Any, sample_weight: Any = None, max_rows: Any = "auto") -> ReportData:
    """Read all rows of X, or `max_rows` random ones, and compare them with all components; return a `ReportData`.

    Raise TypeError for an estimator without centers, ValueError for data that it does not accept.
    """
    check_is_fitted(estimator)
    if fitted_centers(estimator) is None:
        raise TypeError(f"a report needs an estimator with centers in the space of the data, got {estimator!r}.")
    if getattr(estimator, "metric", None) == "precomputed":
        raise TypeError("a report needs rows of features: this model was fitted to dissimilarities.")
    centers = centers_of(estimator)
    data = _opened(estimator, X, sample_weight)
    model = model_of(estimator) if hasattr(estimator, "_parameters") else None
    rows, fitted = _chosen(data, max_rows, products(model, *centers.shape)), without_preparation(estimator)
    taken = data.take(rows)
    weight = np.ones(len(rows)) if taken.sample_weight is None else taken.sample_weight
    if not weight.sum() > 0:
        raise ValueError(f"sample_weight must have a positive sum over the {len(rows)} rows of the report, got 0.")
    if model is not None:
        model = model_of(estimator, data)
        n_kept = min(estimator.n_active_ + _MORE, len(model.centers))
        ids, costs = model.components().best(model.embed(taken.X), n_kept)
        best = Best(ids, model.log_scale + model.scale * costs.astype(np.float64))
        labels = best.ids[:, 0]
        X = _completed(taken.X, fitted, model)
    else:
        X = taken.X.dense()
        best, labels = None, fitted.predict(X)
    names = tuple(shortened(name, _LONGEST) for name in feature_names(estimator))
    return ReportData(estimator, model, data.n_points, rows, X, weight, labels, best, centers, names)


def _completed(X: Rows, fitted: Any, model: Model) -> Floats:
    """Return rows with missing values replaced by their means given the observed values.

    fitted: the estimator that takes such rows    model: its parameters
    """
    if X.observed is None:
        return X.dense()
    if hasattr(fitted, "impute"):
        found: Floats = fitted.impute(with_nan(X))
        return found
    ids, costs = model.components().best(model.embed(X), model.n_components)
    return model.imputed(X, ids, posterior(costs, model.scale).responsibilities)


def shortened(name: str, longest: int) -> str:
    """Return a feature name of at most `longest` characters: a longer one is cut, with an ellipsis at its end."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def log_sum(log_joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return log Σ_c p(c, x) (n,) for the components c in each row of `log_joint` (n, H), which has log p(c, x)."""
    return posterior(np.ascontiguousarray(log_joint)).log_sum


def _opened(estimator: Any, X: Any, sample_weight: Any) -> Data:
    if hasattr(estimator, "_opened"):
        return data_for(estimator, X, sample_weight)
    X = estimator._validated(X, reset=False)
    return local(X.reshape(len(X), -1), check_weights(sample_weight, X))


def products(model: Model | None, C: int, D: int) -> int:
    """Return the number of multiplications to compare one row with all C components, in D dimensions."""
    return C * D * (D if model is not None and model.full else 1)


def _chosen(data: Data, max_rows: Any, products: int) -> NDArray[np.int64]:
    """Return the indices (n,) of the rows to examine, ascending: all, or a random sample that is always the same.

    max_rows: number of rows, or "auto"    products: number of multiplications to compare a row with all components
    """
    N = data.n_points
    if isinstance(max_rows, str):
        if max_rows != "auto":
            raise ValueError(f'max_rows must be "auto" or a positive int, got {max_rows!r}.')
        n = min(max(_PRODUCTS // products, _LEAST_ROWS), max(_VALUES // data.n_features, 1))
    else:
        n = check_integer(max_rows, "max_rows", 1)
    if n >= N:
        return np.arange(N)
    return np.sort(np.random.default_rng(0).choice(N, n, replace=False, shuffle=False))
