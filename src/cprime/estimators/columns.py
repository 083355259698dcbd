"""Selection of columns: convert the argument `columns` to indices, and read these columns of data of any kind."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime.sources import open_data
from cprime.sources.foreign import plain
from cprime.sources.kinds import described, library_of, listed

Columns = NDArray[np.intp]


def resolve_columns(columns: Any, n_features: int, names: NDArray | None) -> Columns:
    """Return the indices of the selected columns, distinct and counted from 0, in the given order.

    columns: numbers (negative ones count from the end), names, or a mask    n_features: number of all columns
    names: names of all columns, or None
    """
    single = isinstance(columns, str | Integral) and not isinstance(columns, bool | np.bool_)
    given = [columns] if single else list(columns) if np.iterable(columns) else None
    if given is None:
        raise TypeError(f"columns must be numbers, names or a mask, got {columns!r}.")
    if given and all(isinstance(column, bool | np.bool_) for column in given):
        if len(given) != n_features:
            raise ValueError(f"columns as a mask must have {n_features} entries, one a feature, got {len(given)}.")
        found = np.flatnonzero(given)
    else:
        known = None if names is None else {str(name): j for j, name in enumerate(names)}
        found = np.array([_number(column, n_features, known) for column in given], dtype=np.intp)
    if not len(found):
        raise ValueError("columns must name at least one, got none.")
    if len(np.unique(found)) < len(found):
        raise ValueError(f"columns must be distinct, got {given!r}.")
    return found


def _number(column: Any, n_features: int, names: dict[str, int] | None) -> int:
    if isinstance(column, str):
        if names is None:
            raise ValueError(f"columns must be numbers where the data of the fit had no names, got {column!r}.")
        if column not in names:
            raise ValueError(f"columns must be among {listed(list(names))}, got {column!r}.")
        return names[column]
    if not isinstance(column, Integral) or isinstance(column, bool | np.bool_):
        raise TypeError(f"columns must be numbers, names or a mask, got {column!r} among them.")
    number = int(column)
    if not -n_features <= number < n_features:
        raise ValueError(f"columns must be from {-n_features} to {n_features - 1}, got {number}.")
    return number % n_features


def some_columns(X: Any, columns: Columns, n_features: int, names: NDArray | None, name: str = "X") -> Any:
    """Return some columns of X without reading the others.

    Columns are selected by name if both X and the training data have names. Otherwise X must have all n_features
    columns of the training data, or only the requested columns; then X is returned unchanged. Raises ValueError if
    X lacks a name, or has another number of columns.
    columns: indices in the training data    names: names of all columns of the training data, or None
    name: name of the argument X, for the message
    """
    X = plain(X)
    dask = library_of(X) == "dask"
    X = X if dask else open_data(X)
    there = None if getattr(X, "columns", None) is None else list(X.columns)
    wanted = None if names is None else [str(name) for name in names[columns]]
    if there is not None and wanted is not None:
        missing = [name for name in wanted if name not in there]
        if missing:
            raise ValueError(f"{name} must have the columns {listed(wanted)}, it lacks {listed(missing)}.")
        return X[wanted] if dask else X.select(wanted)
    n = X.shape[1] if len(X.shape) == 2 else 1
    if n == len(columns):
        return X
    if n != n_features:
        asked = [str(j) for j in columns] if names is None else [repr(str(names[j])) for j in columns]
        raise ValueError(
            f"{name} must have the given columns alone ({len(columns)}: {described(asked)}) or all {n_features} "
            f"features of the fit, got {n} columns."
        )
    if not dask:
        return X.part(columns)
    return X[:, columns] if there is None else X[[there[j] for j in columns]]
