"""Starting centers which the caller already has: an array, a fitted estimator, or a function to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _is_arraylike_not_scalar, check_array


def is_given(init: Any) -> bool:
    """Tell whether `init` is itself a set of centers, so that every start from it is the same."""
    return _is_estimator(init) or _is_arraylike_not_scalar(init)


def given_centers(
    X: NDArray,
    n_clusters: int,
    init: ArrayLike | BaseEstimator | Callable[..., ArrayLike],
    random_state: np.random.RandomState,
) -> NDArray:
    """Copy the centers that `init` holds or returns; (C, D), C-contiguous, in the dtype of X.

    Weights play no part here. Raises ValueError for a shape that does not fit or values that are not finite,
    NotFittedError for an estimator without centers, and TypeError for anything else.
    """
    centers: Any
    if _is_estimator(init):
        centers = _centers_of(init)
    elif _is_arraylike_not_scalar(init):
        centers = init
    elif callable(init):
        centers = init(X, n_clusters, random_state=random_state)
    else:
        raise TypeError(f"init should be {ACCEPTED}, got {init!r} of type {type(init).__name__} instead.")
    centers = check_array(centers, dtype=X.dtype, order="C", copy=True, input_name="init")
    if centers.shape[0] != n_clusters:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of clusters {n_clusters}."
        )
    if centers.shape[1] != X.shape[1]:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number of features of "
            f"the data {X.shape[1]}."
        )
    return centers


ACCEPTED = (
    "'k-means++', 'random', 'afk-mc2', 'two-level', an array of shape (n_clusters, n_features), a fitted "
    "estimator with "
    "cluster_centers_ or means_, or a callable"
)


def _is_estimator(init: Any) -> bool:
    """Tell an estimator instance, fitted or not, from arrays and functions."""
    return not isinstance(init, type) and (
        hasattr(init, "cluster_centers_") or hasattr(init, "means_") or isinstance(init, BaseEstimator)
    )


def _centers_of(estimator: Any) -> ArrayLike:
    """The centers or means of a fitted estimator."""
    for name in ("cluster_centers_", "means_"):
        if hasattr(estimator, name):
            return getattr(estimator, name)
    raise NotFittedError(
        f"init is a {type(estimator).__name__} with neither cluster_centers_ nor means_. Call 'fit' on it "
        "first, or pass an estimator that has one of them."
    )
