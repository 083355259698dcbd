"""What a report looks at: rows of the data, a sample where there are many, and what the model says of each.

Owns which rows are read and how many. The sections make their values of this; it knows none of them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cprime.estimators.fitted import centers_of, feature_names, without_names
from cprime.estimators.validation import check_integer, check_weights
from cprime.execution import Data, local
from cprime.kernels import Floats, Rows, computing, posterior, with_nan
from cprime.model import Model

_PRODUCTS = 2 * 10**10  # multiplications that rows are compared with all components by
_VALUES = 2**26  # values of the rows that are held in memory
_LEAST_ROWS = 10_000
_LONGEST = 80  # letters of a name on the page
_MORE = 2  # components beyond C′ that are looked at


@dataclass(frozen=True)
class Best:
    """The best components of each row: ids (n, C′ + 2 at most), and log p(c, x) of each [nats]."""

    ids: NDArray[np.int32]
    log_joint: NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """Some rows of the data, in their order, and what the fitted model makes of them.

    estimator           fitted; `model` holds its parameters where it is a mixture or k-means, else None
    n_points            N, rows of the data; `rows` (n,) are the numbers of those that were looked at
    X (n, D)            as the model takes them      weight (n,)
    labels (n,)         the component of each        best: see `Best`, None where there is no model
    centers (C, D)      float64                      names: of the D features, as the page writes them
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

    @property
    def n_active(self) -> int:
        return int(self.estimator.n_active_)

    @property
    def sampled(self) -> bool:
        return len(self.rows) < self.n_points

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        """(D,)"""
        return np.average(self.X, axis=0, weights=self.weight).astype(np.float64)

    @cached_property
    def variances(self) -> NDArray[np.float64]:
        """(D,) [data unit²]"""
        squares = np.zeros(self.X.shape[1])
        for begin in range(0, len(self.X), 2**15):
            part = slice(begin, begin + 2**15)
            squares += self.weight[part] @ np.square(self.X[part] - self.mean)
        return squares / self.weight.sum()

    @property
    def scale_free(self) -> bool:
        """Whether the unit of a column makes no difference to the model: each has variances of its own."""
        return self.model is not None and self.model.scale_free

    @cached_property
    def unit(self) -> NDArray[np.float64]:
        """What distances count in, by feature (D,): 1, or the standard deviation where the model has one of its own."""
        if not self.scale_free:
            return np.ones(len(self.mean))
        return np.sqrt(np.where(self.variances > 0, self.variances, 1))

    @cached_property
    def squared_distances(self) -> NDArray[np.float64]:
        """Of each row to the center of its label, in squared units: (n,)."""
        out = np.empty(len(self.X))
        for begin in range(0, len(self.X), 2**15):
            part = slice(begin, begin + 2**15)
            out[part] = np.square((self.X[part] - self.centers[self.labels[part]]) / self.unit).sum(axis=1)
        return out

    @cached_property
    def weights_by_cluster(self) -> NDArray[np.float64]:
        """Of the rows looked at: (C,)."""
        return np.bincount(self.labels, self.weight, self.n_clusters).astype(np.float64)

    @property
    def fit_sizes(self) -> NDArray[np.float64] | None:
        """The weight that each component won in the fit (C,), where the estimator keeps it."""
        return getattr(self.estimator, "counts_", None)

    @property
    def sizes(self) -> NDArray[np.float64]:
        """Those of the fit; where they are not kept, of all rows by those looked at: (C,)."""
        if self.fit_sizes is not None:
            return np.asarray(self.fit_sizes, dtype=np.float64)
        return self.weights_by_cluster * (self.n_points / len(self.rows))


def gather(estimator: Any, X: Any, sample_weight: Any = None, max_rows: Any = "auto") -> Evidence:
    """Reads the rows, all or `max_rows` of them at random, and compares them with all components.

    Raises TypeError for an estimator without centers, ValueError for data that it does not take.
    """
    check_is_fitted(estimator)
    if getattr(estimator, "cluster_centers_", getattr(estimator, "means_", None)) is None:
        raise TypeError(f"a report needs an estimator with centers in the space of the data, got {estimator!r}.")
    if getattr(estimator, "metric", None) == "precomputed":
        raise TypeError("a report needs rows of features: this model was fitted to dissimilarities.")
    centers = centers_of(estimator)
    data = _opened(estimator, X, sample_weight)
    rows = _chosen(data, max_rows, _products(estimator, centers))
    taken = data.take(rows)
    X = taken.X.dense() if taken.X.observed is None else without_names(estimator).impute(with_nan(taken.X))
    weight = np.ones(len(rows)) if taken.sample_weight is None else taken.sample_weight
    if not weight.sum() > 0:
        raise ValueError(f"sample_weight must have a positive sum, that of the {len(rows)} rows looked at is 0.")
    with computing(estimator.n_threads):
        if hasattr(estimator, "_parameters"):
            model = estimator._model_of(data)
            best = _best(model, taken.X, estimator.n_active_ + _MORE)
            labels = best.ids[:, 0]
        else:
            model, best, labels = None, None, without_names(estimator).predict(X)
    names = tuple(name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in feature_names(estimator))
    return Evidence(estimator, model, data.n_points, rows, X, weight, labels, best, centers, names)


def _best(model: Model, X: Rows, n_kept: int) -> Best:
    ids, costs = model.components().best(model.embed(X), min(n_kept, len(model.centers)))
    return Best(ids, model.log_scale + model.scale * costs.astype(np.float64))


def log_sum(log_joint: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ_c p(c, x) over the columns: (n,)."""
    return posterior(np.ascontiguousarray(log_joint)).log_sum


def _opened(estimator: Any, X: Any, sample_weight: Any) -> Data:
    if hasattr(estimator, "_opened"):
        return estimator._opened(X, sample_weight)
    X = estimator._validated(X, reset=False)
    return local(X.reshape(len(X), -1), check_weights(sample_weight, X))


def _products(estimator: Any, centers: NDArray) -> int:
    """Multiplications that a row costs."""
    C, D = centers.shape
    model = estimator._parameters() if hasattr(estimator, "_parameters") else None
    return C * D * (D if model is not None and model.full else 1)


def _chosen(data: Data, max_rows: Any, products: int) -> NDArray[np.int64]:
    """The numbers of the rows to look at, in rising order; the same for the same data."""
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
