"""Online k-means: the step of `KMeans.partial_fit`. With many clusters it searches cells (groups of near centers)."""

from time import perf_counter
from typing import Any

import numpy as np

from cprime import em
from cprime._utils.random import Key, seed_of
from cprime.estimators.solutions import FitRecord, KMeansSolution
from cprime.estimators.validation import check_decay, check_integer, resolve_init, resolve_search
from cprime.execution import Data
from cprime.kernels import Floats, computing
from cprime.neighbors import OnlineCenterIndex
from cprime.search.nearby import CellIndexLookup

MANY = 16384  # number of clusters from which a search of near cells (groups of centers) is several times faster


def online_step(k_means: Any, X: Any, sample_weight: Any) -> KMeansSolution:
    """Assign a batch of points, and move the centers toward the means of their points; return the result as a solution.

    k_means: estimator, which is not changed    X, sample_weight: the batch, as in `KMeans.partial_fit`
    Centers of the result are those after the step; labels, J and F are for this batch and the centers before it.
    """
    begin = perf_counter()
    C = check_integer(k_means.n_clusters, "n_clusters", 1)
    decay, first = check_decay(k_means.learning_decay), not hasattr(k_means, "cluster_centers_")
    data = k_means._opened(X, sample_weight, reset=first)
    if data.gaps:
        raise ValueError("partial_fit needs complete rows: fit them, or impute first.")
    counts = np.zeros(C) if first else k_means.counts_
    # An estimator that `combine` returns is fitted, but has no convergence history.
    rows = em.history([]) if first else getattr(k_means, "history_", em.history([]))
    key = Key(seed_of(k_means.random_state), iteration=len(rows))
    with computing(k_means.n_threads):
        if first:
            init = resolve_init(k_means.init, C, data, quick=True)
            model = k_means._first_model(data, k_means._centers(data, init, key), True)
            data.begin(keep=False)
        else:
            model = k_means._parameters()
        cells = online_cells(k_means, data, model.centers)
        look = em.ALL if cells is None else CellIndexLookup(cells.near)
        model, counts, won = em.k_means_step(model, counts, data, decay, look)
        J, labels = won.error, data.labels()
        assert labels is not None
        bound = em.hard_free_energy(model, J, won.weight)
    row = ("online", bound, J, won.n_distances, won.n_weighted, perf_counter() - begin)
    final = "exact" if cells is None else "found"
    measured = {"labels": labels, "neighbors": None, "certificate": None, "final_assignment": final}
    record = FitRecord(np.concatenate([rows, em.history([row])]), False, measured)
    if cells is not None:
        cells = cells.following(won.ids, won.counts, won.n_weighted, model.centers)
    return KMeansSolution(model.centers, model.variance, counts, J, bound, record, cells=cells)


def online_cells(k_means: Any, data: Data, centers: Floats) -> OnlineCenterIndex | None:
    """Return the cells (groups of nearby centers) that are searched for a batch, or None if all centers are searched.

    All centers are searched for few clusters and for sparse rows, because this is faster for them. Otherwise the cells
    are those of the last batch. New ones are built if there are none, or if many rows went to centers that have left
    their cells.    centers (C, D): the present centers
    """
    search = resolve_search(k_means, k_means.n_clusters, 1, data.n_weighted, data.n_features, data.sparse)
    if search.exact or search.published or k_means.n_clusters < MANY or data.sparse:
        return None
    cells: OnlineCenterIndex | None = getattr(k_means, "_online_cells", None)
    if cells is None or cells.centers is not centers:
        given = getattr(k_means, "structure_", None)
        cells = OnlineCenterIndex(centers) if given is None else OnlineCenterIndex.from_dict(given, centers)
    return OnlineCenterIndex(centers) if cells.stale else cells
