"""Walks by which batches of a k-means of many clusters are searched."""

from typing import Any

from cprime.estimators.validation import resolve_search
from cprime.execution import Data
from cprime.kernels import Floats
from cprime.neighbors import Walks
from cprime.search import Graph

WALKED = 16384  # clusters from which on walks of batches are several times faster than to look at all


def is_walked(k_means: Any, data: Data) -> bool:
    """Whether a batch is searched by walks."""
    search = resolve_search(k_means, k_means.n_clusters, 1, data.n_weighted, data.n_features, data.sparse)
    return isinstance(search, Graph) and k_means.n_clusters >= WALKED


def walks_of(k_means: Any, centers: Floats) -> Walks:
    """The walks among these centers: those of before while they serve, else new ones."""
    walks: Walks | None = getattr(k_means, "_walks", None)
    if walks is None or walks.centers is not centers:
        given = getattr(k_means, "structure_", None)
        walks = Walks(centers) if given is None else Walks.of(given, centers)
    return Walks(centers) if walks.stale else walks
