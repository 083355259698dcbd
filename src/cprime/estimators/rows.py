"""Checks and conversion of data in memory, as in scikit-learn, but faster for arrays that need no conversion."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from cprime._utils.number_types import bits_of, check_largest, check_spread, is_narrow
from cprime.kernels import Rows, SparseRows, as_rows
from cprime.sources.checked import refuse_not_finite
from cprime.sources.foreign import plain
from cprime.sources.kinds import Kind, kind_of, precision
from cprime.sources.tables import kinds


def validated(
    estimator: Any, X: Any, dtype: Callable[[], Any] | None = None, make: Callable[[Any], Rows] = as_rows
) -> Rows:
    """Check X and return it as rows of finite numbers in C order, or sparse rows if the estimator's tags allow these.

    Rows of a narrow type such as uint8 are not converted; only the computation uses the wider type.
    Raises ValueError or TypeError, with scikit-learn's messages, if X is invalid.
    make: function that converts a dense or CSR array to rows
    dtype: function that returns the data type to which X is converted. None during a fit: X then becomes float32 if
    this can represent all numbers of the type of X, otherwise float64.
    """
    X, reset = plain(X, narrow=True), dtype is None
    if dtype is not None:
        check_is_fitted(estimator)
        wanted = dtype()
    else:
        found: list[Kind] = ["unknown"]
        if type(X).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow"):
            found = kinds(X) if len(getattr(X, "shape", ())) == 2 else found
        elif isinstance(getattr(X, "dtype", None), np.dtype):
            found = [kind_of(X.dtype)]
        # "numeric" is scikit-learn's name for any numeric type. A str names a type that is not numeric, or not known.
        wanted = "numeric" if str in map(type, found) else precision(found)
    narrow = narrow_type(X)
    with np.errstate(over="ignore", invalid="ignore"):  # Numbers out of range become infinite; `check_numbers` raises.
        if narrow is not None:
            rows = make(taken_narrow(estimator, X, narrow, reset=reset)).as_type(wanted)
        else:
            X = taken(estimator, X, reset=reset, dtype=wanted)
            rows = make(X.astype(precision([X.dtype]), copy=False) if wanted == "numeric" else X)
    check_numbers(estimator, rows, spread=reset)
    return rows


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
    largest, extent = rows.extent(n_threads=getattr(estimator, "n_threads", None))
    if not np.isfinite(largest):
        refuse_missing(estimator, rows)
    check_largest(largest, rows.dtype, rows.shape[1], "X")
    if spread:
        check_spread(extent, rows.dtype, "X")


def narrow_type(X: Any) -> np.dtype | None:
    """Return the data type of a 2-D array, or of all columns of a pandas table, if it is narrow; otherwise None.

    Narrow types such as uint8 and float16 need not be converted before a fit.
    """
    if type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "dtypes") and hasattr(X, "columns"):
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
    if can_fit and (isinstance(X, SparseRows) or metric != "euclidean"):
        can_fit, limits = False, " in sparse rows" if isinstance(X, SparseRows) else f" with metric={metric!r}"
    if can_fit:
        fits = f'Use {name}(missing="marginal"), which fits the values that are there'
        remedy = f"{fits}, or fill them, or drop such rows"
    else:
        remedy = f"{name} takes no missing values{limits}: fill them (sklearn.impute.SimpleImputer), or drop such rows"
    refuse_not_finite(X, getattr(estimator, "feature_names_in_", None), remedy)
