"""Conversion of the argument X of the estimators to `Data`: arrays and tables, sources, and Dask collections.

Data in memory are checked and converted as in scikit-learn, but faster if an array needs no conversion.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from cprime._utils.arguments import naming
from cprime._utils.number_types import bits_of, check_largest, check_spread, is_narrow
from cprime._utils.threads import limited
from cprime.estimators.covariances import Factors, as_covariances
from cprime.estimators.noise import Noisy, checked_errors
from cprime.estimators.validation import check_weights
from cprime.execution import Data, Local, local
from cprime.kernels import ReadMissing, ReadNoisy, Rows, SparseRows, as_rows
from cprime.sources import Source, is_source_like, open_data
from cprime.sources.checked import refuse_not_finite
from cprime.sources.foreign import plain
from cprime.sources.kinds import Kind, kind_of, library_of, precision
from cprime.sources.opening import open_alike
from cprime.sources.prepared import Preparation, PreparedSource
from cprime.sources.tables import kinds


def opened(estimator: Any, X: Any, sample_weight: Any, reset: bool = True) -> Data:
    """Convert the argument X of an estimator's method to `Data`.

    An array is one chunk in memory. A source (for example a file) is read in chunks. A Dask collection stays on its
    cluster. During a fit, the names and the number of the features become attributes of the estimator; later X is
    compared with these.
    reset: whether X is training data; other X is converted to the data type that the method `_dtype` returns
    """
    if isinstance(X, Noisy):
        return _with_noise(estimator, X, sample_weight, reset)
    X = plain(X, narrow=True)
    has_missing = getattr(estimator, "missing", "error") == "marginal"
    make = ReadMissing() if has_missing else as_rows
    if not reset:
        check_is_fitted(estimator)
    if not reset or (getattr(estimator, "warm_start", False) and hasattr(estimator, "means_")):
        X = as_prepared(estimator, X)
    if type(X) is np.ndarray or not (library_of(X) == "dask" or is_source_like(X)):
        X = validated(estimator, X, reset, make)
        if reset:
            for name in ("preparation_", "list_column_"):
                estimator.__dict__.pop(name, None)
        return local(X, check_weights(sample_weight, X.given()))
    if library_of(X) == "dask":
        return _distributed(estimator, X, sample_weight, reset).read_by(make, has_missing)
    source = open_data(X) if reset else _opened_alike(estimator, X)
    if source.sparse and not get_tags(estimator).input_tags.sparse:
        raise TypeError(f"X must have dense rows for {type(estimator).__name__}, {source.name} has sparse rows.")
    if sample_weight is not None:
        source = source.with_weights(sample_weight)
    if reset:
        _learn_features(estimator, source.n_features, source.columns, source.list_column)
        if source.preparation is not None:
            estimator.preparation_ = source.preparation.as_dict()
        return Local(source).read_by(make, has_missing)
    _check_features(estimator, source.n_features)
    return Local(source.as_type(estimator._dtype()), spread=False).read_by(make, has_missing)


def _with_noise(estimator: Any, noisy: Noisy, sample_weight: Any, reset: bool) -> Data:
    """Convert rows with known errors to `Data`, whose arrays have the errors in columns beside those of the rows."""
    name, takes_noise = type(estimator).__name__, getattr(estimator, "_takes_noise", False)
    if not takes_noise or isinstance(as_covariances(estimator.covariance_type), Factors):
        what = f" with covariance_type={estimator.covariance_type!r}" if takes_noise else ""
        raise TypeError(f"X must be rows without errors for {name}{what}, got {type(noisy).__name__}.")
    for argument, value in (("missing", "error"), ("checkpoint", None), ("semi_supervised", False)):
        if getattr(estimator, argument) != value:
            raise ValueError(f"{argument} must be {value!r} if X is Noisy, got {getattr(estimator, argument)!r}.")
    if not preparation_of(estimator).is_identity:
        raise ValueError(f"X must be rows without errors for a {name} that was fitted to scaled or filled rows.")
    rows = validated(estimator, noisy.X, reset)
    with naming("covariance"):
        errors = checked_errors(noisy, rows.shape).reshape(len(rows), -1).astype(rows.dtype)
    data = local(np.column_stack([rows.dense(), errors]), check_weights(sample_weight, rows.given()))
    return data.read_by(ReadNoisy(rows.shape[1]), True, rows.shape[1])


def as_training_data(estimator: Any, X: Any) -> Any:
    """Return X in the form of a fitted estimator's training data, so that a further fit can use it.

    Columns are selected by the names of the fit, missing values are filled and columns are scaled as in the fit.
    """
    if hasattr(estimator, "categories_"):
        return X
    X = as_prepared(estimator, plain(X, narrow=True))
    if not is_source_like(X) or library_of(X) == "dask":
        return X
    return _opened_alike(estimator, X)


def _distributed(estimator: Any, X: Any, sample_weight: Any, reset: bool) -> Data:
    """Convert a Dask array or dataframe X to `Data`.

    Without a Dask client, this process computes the chunks, one at a time.    reset: whether X is training data
    """
    from cprime.execution.dask_collections import collected, rows_of_lists

    X = rows_of_lists(X)
    columns = list(X.columns) if hasattr(X, "columns") else None
    if columns is not None and not reset:
        X = X[_known(estimator, columns)]
    data = collected(X, sample_weight, None if reset else estimator._dtype(), columns)
    if reset:
        _learn_features(estimator, data.n_features, columns)
    else:
        _check_features(estimator, data.n_features)
    return data


def preparation_of(estimator: Any) -> Preparation:
    """Return the preparation that an estimator applies to rows; one that changes nothing if there is none.

    The fitted parameters are in the units of the prepared rows; those of rows and results of methods are the user's.
    """
    return Preparation.from_dict(getattr(estimator, "preparation_", {}))


def as_given(estimator: Any, X: Any) -> Source:
    """Return the columns of X that a fitted estimator uses, as a source of the values as they were given.

    Raises ValueError if X is a Dask collection or sparse, because no estimator prepares such data.
    """
    if library_of(X) == "dask" or hasattr(X, "tocsr"):
        raise ValueError(
            f"{type(estimator).__name__} prepares its data (preparation_): they cannot be Dask's or sparse."
        )
    source = _opened_alike(estimator, X)
    _check_features(estimator, source.n_features)
    return source


def as_prepared(estimator: Any, X: Any) -> Any:
    """Return X, as a source, after the preparation of the estimator's training data; X itself if there is none.

    The preparation fills missing values, and shifts and scales columns. It is not applied to a source of rows that have
    been prepared alike. Raises ValueError if X has another preparation, is a Dask collection or is sparse.
    """
    preparation = preparation_of(estimator)
    if preparation.is_identity:
        return X
    source = as_given(estimator, X)
    if source.preparation is None:
        return PreparedSource(source, preparation)
    if not source.preparation.equals(preparation):
        raise ValueError(
            f"X must be rows as they were given, or prepared as the training data of this {type(estimator).__name__}, "
            f"got rows of {source.name} that were scaled or filled otherwise."
        )
    return source


def names_of(estimator: Any) -> NDArray | None:
    """Return the column names of the data that an estimator was fitted to, or None if they had none."""
    names: NDArray | None = getattr(estimator, "feature_names_in_", None)
    return names


def _learn_features(estimator: Any, n_features: int, columns: list[str] | None, list_column: str | None = None) -> None:
    """Set the attributes that describe the columns of training data, and delete those that an earlier fit has left."""
    estimator.n_features_in_ = n_features
    for name in ("preparation_", "feature_names_in_", "list_column_"):
        estimator.__dict__.pop(name, None)
    if list_column is not None:
        estimator.list_column_ = list_column
    if columns is not None and all(isinstance(name, str) for name in columns):
        estimator.feature_names_in_ = np.array(columns, dtype=object)


def stored_columns_of(estimator: Any) -> list[str] | None:
    """Return the stored columns of a table that an estimator was fitted to, maybe one of lists; None without names."""
    names, column = names_of(estimator), getattr(estimator, "list_column_", None)
    return [column] if column is not None else None if names is None else names.tolist()


def _opened_alike(estimator: Any, X: Any) -> Source:
    """Return X as a source of the columns of the training data, or of its own if it lacks one of their names."""
    return open_alike(X, stored_columns_of(estimator))


def _known(estimator: Any, columns: list[str]) -> list[str]:
    """Return the names of the columns to select from new data that have columns of the names `columns`.

    They are the names in the training data if `columns` contains all of these, otherwise `columns` itself.
    """
    known = names_of(estimator)
    return columns if known is None or not set(known) <= set(columns) else list(known)


def _check_features(estimator: Any, n_features: int) -> None:
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input."
        )


def validated(estimator: Any, X: Any, reset: bool = True, make: Callable[[Any], Rows] = as_rows) -> Rows:
    """Check X and return it as rows of finite numbers in C order, or sparse rows if the estimator's tags allow these.

    Rows of a narrow type such as uint8 are not converted; only the computation uses the wider type.
    Raises ValueError or TypeError, with scikit-learn's messages, if X is invalid.
    reset: whether X is training data, which becomes float32 if this can represent all numbers of the type of X,
    otherwise float64; other X is converted to the data type that the method `_dtype` of the estimator returns
    make: function that converts a dense or CSR array to rows
    """
    X = plain(X, narrow=True)
    needs_nothing = is_plain(X)
    if not reset:
        check_is_fitted(estimator)
        wanted = estimator._dtype()
    elif needs_nothing:
        wanted = X.dtype
    else:
        wanted = precision_of(X)
    narrow = None if needs_nothing else narrow_type(X)
    with np.errstate(over="ignore", invalid="ignore"):  # Numbers out of range become infinite; `check_numbers` raises.
        if narrow is not None:
            rows = make(taken_narrow(estimator, X, narrow, reset=reset)).as_type(wanted)
        else:
            X = taken(estimator, X, reset=reset, dtype=wanted)
            rows = make(X.astype(precision([X.dtype]), copy=False) if wanted == "numeric" else X)
    check_numbers(estimator, rows, spread=reset)
    return rows


def precision_of(X: Any) -> Any:
    """Return float32 if this can represent all numbers of the types in an array or a table X, otherwise float64.

    If the types are unknown or not numeric, the result is "numeric", scikit-learn's name for any numeric type.
    """
    found: list[Kind] = ["unknown"]
    if library_of(X) in ("pandas", "polars", "pyarrow") and len(getattr(X, "shape", ())) == 2:
        found = kinds(X)
    elif isinstance(getattr(X, "dtype", None), np.dtype):
        found = [kind_of(X.dtype)]
    return "numeric" if any(isinstance(kind, str) for kind in found) else precision(found)


def taken(
    estimator: Any, X: Any, *, reset: bool, dtype: Any, accept_sparse: Any = None, least: int = 1, **more: Any
) -> Any:
    """Check and convert X as scikit-learn's `validate_data` does, but without a check for finite numbers.

    Returns a 2-D array or a sparse array. For arrays that need no conversion, `validate_data` is not called.
    reset: whether X is training data, which sets `n_features_in_` and the names of features
    dtype: data type of the result, or a list of allowed types
    accept_sparse: accepted sparse format, or False; None is "csr" if the estimator's tags allow sparse data
    least: minimum number of rows    more: further arguments of `validate_data`
    """
    wanted = dtype if isinstance(dtype, list) else (dtype,)
    if is_plain(X, wanted) and len(X) >= least:
        if reset:
            estimator.n_features_in_ = X.shape[1]
            estimator.__dict__.pop("feature_names_in_", None)  # An earlier fit of this estimator may have left names.
            return X
        if not hasattr(estimator, "feature_names_in_") and X.shape[1] == getattr(estimator, "n_features_in_", None):
            return X
    if accept_sparse is None:
        accept_sparse = "csr" if get_tags(estimator).input_tags.sparse else False
    checks = {"order": "C", "accept_sparse": accept_sparse, "ensure_min_samples": least, **more}
    with naming("X"):
        return validate_data(estimator, X, reset=reset, dtype=dtype, ensure_all_finite=False, **checks)


def is_plain(X: Any, dtypes: Any = (np.float32, np.float64)) -> bool:
    """Return whether X is a contiguous, aligned 2-D array of one of the `dtypes`, so that it needs no conversion."""
    if type(X) is not np.ndarray or X.dtype not in dtypes or X.ndim != 2:
        return False
    return bool(X.size) and X.flags.c_contiguous and X.flags.aligned


def check_numbers(estimator: Any, rows: Rows, *, spread: bool) -> None:
    """Raise ValueError unless all numbers in the rows are finite and their squares do not overflow.

    spread: whether to check also that squared differences between rows do not underflow
    """
    with limited(getattr(estimator, "n_threads", None)):
        largest, extent = rows.extent()
    if not np.isfinite(largest):
        refuse_missing(estimator, rows)
    check_largest(largest, rows.dtype, rows.shape[1], "X")
    if spread:
        check_spread(extent, rows.dtype, "X")


def narrow_type(X: Any) -> np.dtype | None:
    """Return the data type of a 2-D array, or of all columns of a pandas table, if it is narrow; otherwise None.

    Narrow types such as uint8 and float16 need not be converted before a fit.
    """
    if library_of(X) == "pandas" and hasattr(X, "dtypes") and hasattr(X, "columns"):
        found = set(X.dtypes)
        dtype = found.pop() if len(found) == 1 else None
    else:
        dtype = X.dtype if isinstance(X, np.ndarray) and X.ndim == 2 else None
    return dtype if is_narrow(dtype) else None


def taken_narrow(estimator: Any, X: Any, dtype: np.dtype, *, reset: bool) -> np.ndarray:
    """Return X, whose values have the narrow type `dtype`, as a checked array of this type.

    Values are not converted, so types that scikit-learn does not support, such as bfloat16, are allowed.
    reset: whether X is training data
    """
    bits = bits_of(X) if isinstance(X, np.ndarray) else X
    wanted = bits.dtype if isinstance(X, np.ndarray) else dtype
    return taken(estimator, bits, reset=reset, dtype=wanted).view(dtype)


def refuse_missing(estimator: Any, X: Rows) -> None:
    """Raise ValueError if X has a missing or infinite value; the message states its row and column, and remedies."""
    name, metric = type(estimator).__name__, getattr(estimator, "metric", "euclidean")
    can_fit, limits = hasattr(estimator, "missing"), ""
    if can_fit and (isinstance(X, SparseRows) or metric == "cosine"):
        can_fit, limits = False, " in sparse rows" if isinstance(X, SparseRows) else f" with metric={metric!r}"
    if can_fit:
        fits = f'Use {name}(missing="marginal"), which fits the values that are there'
        remedy = f"{fits}, or fill them, or drop such rows"
    else:
        remedy = f"{name} takes no missing values{limits}: fill them (sklearn.impute.SimpleImputer), or drop such rows"
    refuse_not_finite(X, names_of(estimator), remedy)
