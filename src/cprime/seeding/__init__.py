"""Initialization of fits: the choice of starting centers.

Each method has one file, with a public function that can be used alone, such as `random_rows`, `kmeans_plusplus` or
`afk_mc2`. Estimators call `place` with validated `Data`. For arrays, `seed` returns the centers, and `start` also the
index of a center near every point. These three accept every form of the argument `init`: a name, an object with
options, centers, an estimator, or a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from cprime._utils.random import check_random_state
from cprime.execution import local
from cprime.kernels import computing
from cprime.seeding.afk_mc2 import afk_mc2
from cprime.seeding.kmeans_plusplus import kmeans_plusplus
from cprime.seeding.methods import (
    AFKMC2,
    Jumps,
    KMeansParallel,
    KMeansPlusPlus,
    Method,
    OwnStart,
    Random,
    TwoLevel,
    is_given,
    place,
)
from cprime.seeding.random_rows import random_rows
from cprime.seeding.two_level import two_level

__all__ = [
    "AFKMC2",
    "Jumps",
    "KMeansParallel",
    "KMeansPlusPlus",
    "OwnStart",
    "Random",
    "Start",
    "TwoLevel",
    "afk_mc2",
    "is_given",
    "kmeans_plusplus",
    "place",
    "random_rows",
    "seed",
    "start",
    "two_level",
]


def __dir__() -> list[str]:
    return __all__


class Start(NamedTuple):
    """Starting centers (C, D), and labels (N,): the index of a center near each point, or None if not computed."""

    centers: NDArray
    labels: NDArray[np.int32] | None


def seed(
    X: NDArray,
    n_clusters: int,
    init: str | Method | ArrayLike | BaseEstimator | Callable[..., ArrayLike],
    *,
    sample_weight: NDArray | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    n_threads: int | None = None,
    chain_length: int = 20,
) -> NDArray:
    """Return starting centers for validated data.

    Duplicate centers are not reported here, because the estimators count the distinct clusters of the result.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float32 or float64
        Finite data, in any layout.
    n_clusters : int
        Number of centers C, 1 … n_samples.
    init : str, value, array-like, fitted estimator or callable
        A method of this package, "k-means++", "k-means||", "random", "afk-mc2", "two-level" or "jumps", or an object
        with a method's options, such as ``AFKMC2(chain_length=200)``; an array
        of shape (n_clusters, n_features); an estimator with ``cluster_centers_`` or ``means_``; or
        ``init(X, n_clusters, random_state=...)`` that returns such an array.
    sample_weight : ndarray of shape (n_samples,), float64, default=None
        Non-negative weights, not all zero. They have no effect if `init` is an array, an estimator or a function.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random numbers.
    n_threads : int or None, default=None
        Threads to use; None means all that the process may use. The centers do not depend on it.
    chain_length : int, default=20
        Number of proposals per center of init="afk-mc2", as `AFKMC2.chain_length`.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features)
        A new C-contiguous array in the dtype of X.

    Raises
    ------
    ValueError
        If init is an unknown name, or its centers have the wrong shape or values that are not finite.
    NotFittedError
        If init is an estimator without centers.
    TypeError
        If init is none of the above.
    """
    return start(
        X,
        n_clusters,
        init,
        sample_weight=sample_weight,
        random_state=random_state,
        n_threads=n_threads,
        chain_length=chain_length,
    ).centers


def start(
    X: NDArray,
    n_clusters: int,
    init: str | Method | ArrayLike | BaseEstimator | Callable[..., ArrayLike],
    *,
    sample_weight: NDArray | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    n_threads: int | None = None,
    chain_length: int = 20,
) -> Start:
    """Return starting centers for validated data and, if the method finds it, the index of a center near every point.

    Arguments are those of `seed`, which returns only the centers.
    """
    data = local(X, sample_weight)
    with computing(n_threads):
        chosen = AFKMC2(chain_length) if isinstance(init, str) and init == "afk-mc2" else init
        centers = place(data, n_clusters, chosen, lambda: check_random_state(random_state))
    return Start(centers, data.labels())
