"""Validation of data in memory, with errors that locate values that are not finite."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight

from cprime._utils.arguments import naming
from cprime._utils.number_types import check_total_weight
from cprime.kernels import ReadMissing, Rows, as_rows
from cprime.sources.foreign import array_of, plain

_FILL = "Fill missing values (sklearn.impute.SimpleImputer), or drop such rows"


def checked(X: Any, name: str = "X", *, allow_missing: bool = False, **checks: Any) -> Any:
    """Convert data of any type to an array of finite numbers, dense or sparse, by scikit-learn's `check_array`.

    allow_missing: whether NaN is allowed, as a missing value
    checks: further arguments of `check_array`

    Raises ValueError with row, column and remedy if values are not finite.
    """
    X = plain(X, name)
    names = X.column_names if hasattr(X, "column_names") else getattr(X, "columns", None)
    with naming(name):
        found = check_array(X, input_name=name, ensure_all_finite=False, **checks)
    refuse_not_finite(ReadMissing()(found) if allow_missing else as_rows(found), names, _FILL, name)
    return found


def check_weights(sample_weight: Any, X: Any) -> NDArray[np.float64] | None:
    """Return the argument `sample_weight` as an array (n,) of float64 for the n rows of X; None stays None.

    A number is the weight of every row. Raises ValueError or TypeError if a weight is negative or not finite, all
    weights are zero, or their sum is too large.
    """
    if sample_weight is None:
        return None
    given = array_of(sample_weight, "sample_weight", np.float64)
    with naming("sample_weight"):
        weights = _check_sample_weight(
            given if given.ndim else float(given), X, dtype=np.float64, ensure_non_negative=True
        )
    if not weights.any():
        raise ValueError("sample_weight must have at least one positive entry, got zeros only.")
    with np.errstate(over="ignore"):
        check_total_weight(float(weights.sum()))
    return weights


def refuse_not_finite(rows: Rows, names: Any, remedy: str, name: str = "X") -> None:
    """Raise ValueError if a value is NaN or infinite; the message names the first one, in scikit-learn's wording.

    names: column names, or None    remedy: advice in the message if values are missing    name: name of the data
    """
    largest, _ = rows.extent()
    found = None if np.isfinite(largest) else rows.not_finite()
    if found is None:
        return
    row, column, value = found
    where = f"in row {row}, column {column if names is None else repr(str(names[column]))}"
    if np.isnan(value):
        raise ValueError(f"Input {name} contains NaN {where}. {remedy}.")
    what = f"infinity or a value too large for {rows.dtype!r}"
    raise ValueError(f"Input {name} contains {what} {where}: {value}. Correct it, or drop such rows.")
