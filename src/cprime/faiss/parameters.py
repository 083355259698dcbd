"""Conversion of FAISS's clustering parameters to arguments of `KMeans`."""

import inspect
import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import KMeans
from cprime.estimators.validation import as_search
from cprime.faiss.progressive import steps_of
from cprime.faiss.vectors import Vectors, directions, drawn, faiss
from cprime.sources import Source, array_of

logger = logging.getLogger("cprime")

ALL_POINTS = 2**31 - 1  # value of max_points_per_centroid that disables random sampling of the training points
OURS = frozenset(inspect.signature(KMeans).parameters) - {"n_clusters", "metric", "verbose"}
_STARTS = {1: "k-means++", 2: "afk-mc2"}  # argument `init` for each ClusteringInitMethod of FAISS but 0, the default


def fitted(
    cp: Any, C: int, X: Vectors, weights: NDArray | None, arguments: dict[str, Any], start: str = "auto"
) -> KMeans:
    """Fit a `KMeans` of C centers to X with FAISS's parameters `cp`, overridden by the `arguments` of `KMeans`.

    With cp.spherical, vectors are compared by inner products and centers have length 1.
    start: argument `init` of `KMeans` if `cp` has FAISS's default initialization
    """
    search = arguments.get("search", "auto")
    if isinstance(search, str):  # labels are not used
        arguments = arguments | {"search": as_search(search).with_params(final_assignment="found")}
    estimator = KMeans(C, **_arguments(cp, start) | arguments)
    if cp.spherical:
        estimator.metric = "cosine"
        X, weights = directions(X, weights)
    return estimator.fit(X, sample_weight=weights)


def sampled(cp: Any, C: int, X: Vectors, weights: NDArray | None) -> tuple[Vectors, NDArray | None]:
    """Return the training points (m, d) and their weights (m,) or None: all points, or a random sample.

    A sample of `cp.max_points_per_centroid` · C points is drawn if there are more, and this is logged. A warning is
    logged if there are fewer than `cp.min_points_per_centroid` · C points.    C: number of centers
    """
    n, limit, least = len(X), C * cp.max_points_per_centroid, C * cp.min_points_per_centroid
    if n < least:
        logger.warning("x has %d points for %d centroids, min_points_per_centroid expects %d points", n, C, least)
    if n <= limit:
        return X, weights
    logger.info("max_points_per_centroid=%d: the fit uses %d of %d points", cp.max_points_per_centroid, limit, n)
    ids = drawn(n, limit, cp.seed)
    return X.subset(ids) if isinstance(X, Source) else X[ids], None if weights is None else weights[ids]


def check_served(cp: Any) -> None:
    """Raise ValueError if the clustering parameters `cp` include values that only FAISS supports."""
    if cp.frozen_centroids:
        raise ValueError("frozen_centroids=True is not served by cprime.faiss, faiss.Kmeans has it.")
    if cp.int_centroids and cp.spherical:
        raise ValueError("int_centroids=True has no meaning with spherical=True, whose centroids have length 1.")
    if cp.spherical and steps_of(cp) > 1:
        raise ValueError(
            f"spherical=True is not served with progressive_dim_steps={steps_of(cp)}, by FAISS neither: give 1."
        )
    for name in ("niter", "nredo"):
        if getattr(cp, name) < 1:
            raise ValueError(f"{name} == {getattr(cp, name)}, must be >= 1.")


def check_empty(index: Any) -> None:
    """Raise ValueError if the index contains vectors, because training would leave them in wrong lists."""
    if index.ntotal:
        raise ValueError(f"index must be empty to be trained, it holds {index.ntotal} vectors: reset() comes first.")


def _arguments(cp: Any, start: str) -> dict[str, Any]:
    check_served(cp)
    return {
        "max_iter": cp.niter,
        "n_init": cp.nredo,
        "tol": cp.early_stop_threshold,
        "init": _STARTS.get(cp.init_method, start),
        "random_state": cp.seed if cp.seed >= 0 else None,
        "verbose": int(cp.verbose),
        "n_threads": faiss.omp_get_max_threads(),
    }


def checked_weights(weights: Any, n: int) -> NDArray[np.float64] | None:
    """Return validated weights (n,) as float64; None if no weights are given."""
    if weights is None:
        return None
    weights = array_of(weights, "weights", np.float64)
    if weights.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), got {weights.shape}.")
    if not (weights >= 0).all() or not np.isfinite(weights).all():
        raise ValueError(f"weights must be {n} finite numbers that are not negative, got {weights!r}.")
    return weights
