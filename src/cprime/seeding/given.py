"""Starting centers from the caller: an array, a fitted estimator, or a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _is_arraylike_not_scalar, check_array

from cprime._utils.number_types import check_largest
from cprime.execution import Data
from cprime.kernels import Dense, Rows
from cprime.sources import unmasked


@dataclass(frozen=True)
class OwnStart:
    """Initialization by an internal function that is not random and returns centers (C, D) in the data's dtype."""

    centers: Callable[[], NDArray]

    def __call__(self, *_: Any, **__: Any) -> NDArray:
        return self.centers()


def is_given(init: Any) -> bool:
    """Return whether `init` is an array or an estimator with centers, so that every initialization is the same."""
    return _is_estimator(init) or _is_arraylike_not_scalar(init)


def in_memory(data: Data, what: str) -> tuple[Rows, NDArray[np.float64] | None]:
    """Return the rows X and their weights if all rows are one chunk in memory; raise ValueError otherwise.

    what: name, in the error message, of the initialization that needs the data in memory
    """
    whole = data.whole()
    if whole is None:
        raise ValueError(
            f"{what} needs the data as one chunk in memory, got {data.n_points} rows in {len(data.sizes)} chunk(s) "
            "that are read: use 'two-level', 'k-means||' or 'random', or give the centers."
        )
    return whole


def given_centers(
    data: Data,
    n_clusters: int,
    init: ArrayLike | BaseEstimator | Callable[..., ArrayLike],
    make_rng: Callable[[], np.random.RandomState],
) -> NDArray:
    """Return a copy of the centers that `init` contains or returns; (C, D), C-contiguous, in the dtype of the data.

    Weights have no effect. Raises ValueError for a wrong shape or values that are not finite, NotFittedError for an
    estimator without centers, and TypeError for any other `init`.
    """
    if isinstance(init, OwnStart):
        return init()
    centers: Any
    if _is_estimator(init):
        centers = _centers_of(init)
    elif _is_arraylike_not_scalar(init):
        centers = init
    elif callable(init):
        centers = init(in_memory(data, "init as a callable")[0].given(), n_clusters, random_state=make_rng())
    else:
        raise TypeError(f"init should be {ACCEPTED}, got {init!r} of type {type(init).__name__} instead.")
    centers = copied(centers, data, "init")
    if centers.shape[0] != n_clusters:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of clusters {n_clusters}."
        )
    if centers.shape[1] != data.n_features:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of features of "
            f"the data {data.n_features}."
        )
    check_largest(Dense(centers).extent()[0], data.dtype, data.n_features, "init")
    return centers


def copied(numbers: Any, data: Data, name: str, **checks: Any) -> NDArray:
    """Return a C-contiguous copy of an array in the dtype of the data; raise ValueError unless values are finite.

    name: argument that errors name    checks: further arguments of scikit-learn's `check_array`
    """
    numbers = unmasked(numbers, name)
    plain = type(numbers) is np.ndarray and numbers.dtype == data.dtype and numbers.ndim == 2 and not checks
    if plain and numbers.size and np.isfinite(Dense(numbers).extent()[0]):
        # This takes less time than scikit-learn's `check_array`, which would return the same array.
        return np.array(numbers, order="C")
    # NumPy's warnings of overflow are not needed: it gives infinity, for which `check_array` raises ValueError.
    with np.errstate(over="ignore", invalid="ignore"):
        return check_array(numbers, dtype=data.dtype, order="C", copy=True, input_name=name, **checks)


ACCEPTED = (
    "'k-means++', 'k-means||', 'random', 'afk-mc2', 'two-level', 'jumps', a value of cprime.seeding, an array of shape "
    "(n_clusters, n_features), a fitted estimator with cluster_centers_ or means_, or a callable"
)


def _is_estimator(init: Any) -> bool:
    """Return whether `init` is an estimator instance, fitted or not."""
    return not isinstance(init, type) and (
        hasattr(init, "cluster_centers_") or hasattr(init, "means_") or isinstance(init, BaseEstimator)
    )


def _centers_of(estimator: Any) -> ArrayLike:
    """Return the attribute `cluster_centers_` or `means_` of a fitted estimator."""
    for name in ("cluster_centers_", "means_"):
        if hasattr(estimator, name):
            return getattr(estimator, name)
    raise NotFittedError(
        f"init is a {type(estimator).__name__} with neither cluster_centers_ nor means_. Call 'fit' on it "
        "first, or pass an estimator that has one of them."
    )
