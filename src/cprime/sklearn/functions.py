"""`k_means` and `kmeans_plusplus` with scikit-learn's signatures."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import cluster

from cprime import seeding
from cprime._utils.random import check_random_state
from cprime.sklearn.kmeans import KMeans, is_small
from cprime.sklearn.nearest import logger
from cprime.sources import as_matrix

_theirs = cluster.kmeans_plusplus  # scikit-learn's own function, which `patch` replaces in its module
F = TypeVar("F", bound=Callable[..., Any])


def signed_as(other: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that makes `inspect.signature` of a function return the signature of `other`."""

    def signed(function: F) -> F:
        function.__signature__ = inspect.signature(other)  # type: ignore[attr-defined]
        return function

    return signed


@signed_as(cluster.k_means)
def k_means(X: Any, n_clusters: int, *, sample_weight: Any = None, return_n_iter: bool = False, **params: Any) -> tuple:
    """Fit `cprime.sklearn.KMeans` with the given arguments, those of `sklearn.cluster.k_means`, and return the results.

    Returns
    -------
    centroid : ndarray of shape (n_clusters, n_features)
    label : ndarray of shape (n_samples,), int32
    inertia : float
    best_n_iter : int
        Only with ``return_n_iter=True``.

    Examples
    --------
    >>> from cprime.sklearn import k_means
    >>> centers, labels, inertia = k_means([[0.0], [1.0], [9.0], [10.0]], 2, random_state=0)
    >>> inertia
    1.0
    """
    km = KMeans(n_clusters, **params).fit(X, sample_weight=sample_weight)
    found = km.cluster_centers_, km.labels_, km.inertia_
    return (*found, km.n_iter_) if return_n_iter else found


@signed_as(cluster.kmeans_plusplus)
def kmeans_plusplus(X: Any, n_clusters: int, **params: Any) -> tuple[NDArray, NDArray]:
    """Choose initial centers by greedy k-means++; for small data, with the same random draws as scikit-learn.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features)
    indices : ndarray of shape (n_clusters,)
        Row indices of the centers.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.sklearn import kmeans_plusplus
    >>> centers, indices = kmeans_plusplus(np.array([[0.0], [1.0], [9.0], [10.0]]), 2, random_state=0)
    >>> centers.shape
    (2, 1)
    """
    X = as_matrix(X)
    if isinstance(params.get("random_state"), np.random.Generator):
        params["random_state"] = check_random_state(params["random_state"])
    if params.get("x_squared_norms") is not None:
        logger.info("kmeans_plusplus: x_squared_norms is given; scikit-learn's own code runs")
    elif hasattr(X, "shape") and len(X.shape) == 2 and not is_small(X, max(n_clusters, 1)):
        params.pop("x_squared_norms", None)
        return seeding.kmeans_plusplus(X, n_clusters, **params)
    return _theirs(X, n_clusters, **params)
