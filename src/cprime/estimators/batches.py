"""Cells by which batches of a k-means of many clusters are searched."""

from typing import Any

from cprime.estimators.validation import resolve_search
from cprime.execution import Data
from cprime.kernels import Floats
from cprime.neighbors import Followed
from cprime.search import Graph

MANY = 16384  # clusters from which on a batch is searched in cells several times faster than among all


def in_cells(k_means: Any, data: Data) -> bool:
    """Whether a batch is searched in cells; of sparse rows, which have few products, all centers take less time."""
    search = resolve_search(k_means, k_means.n_clusters, 1, data.n_weighted, data.n_features, data.sparse)
    return isinstance(search, Graph) and k_means.n_clusters >= MANY and not data.sparse


def followed(k_means: Any, centers: Floats) -> Followed:
    """The cells of these centers: those of before while they serve, else new ones."""
    cells: Followed | None = getattr(k_means, "_followed", None)
    if cells is None or cells.centers is not centers:
        given = getattr(k_means, "structure_", None)
        cells = Followed(centers) if given is None else Followed.of(given, centers)
    return Followed(centers) if cells.stale else cells
