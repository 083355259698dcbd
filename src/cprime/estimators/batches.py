"""Search by cells (groups of nearby centers), which `KMeans.partial_fit` uses if there are many clusters."""

from typing import Any

from cprime.estimators.validation import resolve_search
from cprime.execution import Data
from cprime.kernels import Floats
from cprime.neighbors import OnlineCenterIndex
from cprime.search import Graph

MANY = 16384  # number of clusters from which a search by cells is several times faster than one of all centers


def in_cells(k_means: Any, data: Data) -> bool:
    """Return whether `partial_fit` assigns a batch by cells (groups of nearby centers).

    This is false for few clusters, and for sparse rows, because exact search is faster for these.
    """
    search = resolve_search(k_means, k_means.n_clusters, 1, data.n_weighted, data.n_features, data.sparse)
    return isinstance(search, Graph) and k_means.n_clusters >= MANY and not data.sparse


def followed(k_means: Any, centers: Floats) -> OnlineCenterIndex:
    """Return the cells (groups of nearby centers): those of the last batch if they are not outdated, else new ones."""
    cells: OnlineCenterIndex | None = getattr(k_means, "_followed", None)
    if cells is None or cells.centers is not centers:
        given = getattr(k_means, "structure_", None)
        cells = OnlineCenterIndex(centers) if given is None else OnlineCenterIndex.from_dict(given, centers)
    return OnlineCenterIndex(centers) if cells.stale else cells
