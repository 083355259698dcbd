"""Conversion of the argument X of the estimators to `Data`: arrays and tables, sources, and Dask collections."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cprime.estimators.rows import validated
from cprime.estimators.validation import check_weights
from cprime.execution import Data, Local, local
from cprime.kernels import ReadGaps, as_rows
from cprime.sources import Source, is_source_like, open_data
from cprime.sources.foreign import plain
from cprime.sources.prepared import Preparation, PreparedSource


def opened(estimator: Any, X: Any, sample_weight: Any, dtype: Callable[[], Any] | None = None) -> Data:
    """Convert the argument X of an estimator's method to `Data`.

    An array is one chunk in memory. A source (for example a file) is read in chunks. A Dask collection stays on its
    cluster. During a fit, the names and the number of the features become attributes of the estimator; later X is
    compared with these.
    dtype: function that returns the data type to which a fitted estimator converts X; None during a fit
    """
    X = plain(X, narrow=True)
    gaps = getattr(estimator, "missing", "error") == "marginal"
    make = ReadGaps() if gaps else as_rows
    if dtype is not None:
        check_is_fitted(estimator)
        if hasattr(estimator, "preparation_") and not isinstance(X, PreparedSource):
            X = _prepared(estimator, X)
    if type(X).__module__.partition(".")[0] == "dask":
        return _distributed(estimator, X, sample_weight, dtype).read_by(make, gaps)
    if not is_source_like(X):
        X = validated(estimator, X, dtype, make)
        if dtype is None:
            estimator.__dict__.pop("preparation_", None)
        return local(X, check_weights(sample_weight, X.given()))
    source = open_data(X)
    if sample_weight is not None:
        source = source.with_weights(sample_weight)
    if dtype is None:
        _learn_features(estimator, source.n_features, source.columns)
        if source.preparation is not None:
            estimator.preparation_ = source.preparation.as_dict()
        return Local(source).read_by(make, gaps)
    source = _selected(estimator, source)
    _check_features(estimator, source.n_features)
    return Local(source.as_type(dtype()), spread=False).read_by(make, gaps)


def as_training_data(estimator: Any, X: Any) -> Any:
    """Return X in the form of a fitted estimator's training data, so that a further fit can use it.

    Columns are selected by the names of the fit, missing values are filled and columns are scaled as in the fit.
    """
    if hasattr(estimator, "preparation_"):
        return _prepared(estimator, X)
    X = plain(X, narrow=True)
    if not is_source_like(X) or type(X).__module__.partition(".")[0] == "dask":
        return X
    return _selected(estimator, open_data(X))


def _distributed(estimator: Any, X: Any, sample_weight: Any, dtype: Callable[[], Any] | None) -> Data:
    """Convert a Dask array or dataframe X to `Data`.

    Without a Dask client, this process computes the chunks, one at a time.
    dtype: function that returns the data type to which a fitted estimator converts X; None during a fit
    """
    from cprime.execution.dask_collections import collected
    from cprime.execution.dask_lists import rows_of_lists

    X = rows_of_lists(X)
    columns = list(X.columns) if hasattr(X, "columns") else None
    if columns is not None and dtype is not None:
        X = X[_known(estimator, columns)]
    data = collected(X, sample_weight, None if dtype is None else dtype(), columns)
    if dtype is None:
        _learn_features(estimator, data.n_features, columns)
    else:
        _check_features(estimator, data.n_features)
    return data


def _prepared(estimator: Any, X: Any) -> Source:
    """Return X as a source to which the preparation of the estimator's training data is applied.

    The preparation fills missing values, and shifts and scales columns. Raises ValueError if X is a Dask collection or
    sparse.
    """
    if type(X).__module__.partition(".")[0] == "dask" or hasattr(X, "tocsr"):
        raise ValueError(
            f"{type(estimator).__name__} prepares its data (preparation_): they cannot be Dask's or sparse."
        )
    source = _selected(estimator, open_data(X))
    _check_features(estimator, source.n_features)
    return PreparedSource(source, Preparation.from_dict(estimator.preparation_))


def _learn_features(estimator: Any, n_features: int, columns: list[str] | None) -> None:
    estimator.n_features_in_ = n_features
    estimator.__dict__.pop("preparation_", None)  # An earlier fit of this estimator may have left this attribute.
    estimator.__dict__.pop("feature_names_in_", None)
    if columns is not None and all(isinstance(name, str) for name in columns):
        estimator.feature_names_in_ = np.array(columns, dtype=object)


def _selected(estimator: Any, source: Source) -> Source:
    """Return the source with the columns of the estimator's training data, if it has columns of these names."""
    if source.columns is not None:
        source = source.select(_known(estimator, source.columns))
    return source


def _known(estimator: Any, columns: list[str]) -> list[str]:
    """Return the names of the columns to select from new data, which have the names `columns`.

    The names are those of the training data if `columns` contains all of them, otherwise `columns`.
    """
    known: NDArray | None = getattr(estimator, "feature_names_in_", None)
    return columns if known is None or not set(known) <= set(columns) else list(known)


def _check_features(estimator: Any, n_features: int) -> None:
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input."
        )
