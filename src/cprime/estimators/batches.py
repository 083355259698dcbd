"""Online k-means: the method `partial_fit` of `KMeans`. Its algorithm is `em.learn_batch`."""

from functools import partial
from time import perf_counter
from typing import Any, TypeVar, cast

from cprime import em
from cprime._utils.random import Key, seed_of
from cprime.estimators.constraints import refuse_labels
from cprime.estimators.fitted import model_of
from cprime.estimators.problems import options_of
from cprime.estimators.solutions import KMeansSolution, adopt, history_of, record_of_batch
from cprime.estimators.validation import (
    as_search,
    check_common,
    check_decay,
    check_enough,
    check_integer,
    check_jumps,
    resolve_search,
)
from cprime.estimators.watching import restore_on_error
from cprime.neighbors import OnlineCenterIndex

T = TypeVar("T")


@restore_on_error
def partial_fit(self: T, X: Any, y: Any = None, sample_weight: Any = None) -> T:
    """Update the centers with one batch of points: online k-means, eq. (9.5) of Bishop for batches of one point.

    Points are assigned to the nearest of the present centers. Then every center moves toward the mean of its points
    by the share min(1, W/n^κ): W is their weight, n the weight of all points assigned to it so far, and κ is
    `learning_decay`. The first batch initializes the centers by `init`; after a `fit`, batches update its result.

    If `jumps` is True, or "auto" with init="auto" and a search "auto" or "graph", the first 20 rows per cluster
    are fitted as by `fit`. Then, after every 20 rows per cluster, centers jump to other clusters if this lowers J of
    these rows. Rows are stored until then, but none for 16,384 clusters or more. With given initial centers and
    jumps="auto", `partial_fit` is MacQueen's algorithm.

    Assignments are exact, except with `search="graph"` (also if "auto" selects it for a batch of this size), at least
    16,384 clusters, and rows that are not sparse. There, only the cells (groups of near centers) near a point
    are searched. Cells are stored with the model. They are built again if at least one point per four clusters has
    come since they were built, and more than a quarter of this weight went to centers that have left their cells.

    Options of the iterations of a fit, and of its memory, have no effect on later batches: `max_iter`, `tol`,
    `n_init`, `callbacks`, `checkpoint`, `max_memory`.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features)
        A batch. The first one must have at least n_clusters points. Points of a later batch go to their nearest
        centers also with `epsilon` > 0, because they have no centers before.
    y : Ignored
        Batches have no labels, so `semi_supervised` must be False.
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 counts the point twice; None is 1 for each.

    Returns
    -------
    self : KMeans
        `labels_`, `inertia_`, `lower_bound_` and `final_assignment_` are those of this batch, for the centers
        before the update. `history_` has one more row.
    """
    begin, k_means = perf_counter(), cast(Any, self)
    check_common(k_means)
    for name in ("fixed", "size_max", "size_min"):
        if getattr(k_means, name) is not None:
            raise ValueError(f"partial_fit needs {name}=None: it moves all centers and bounds no sizes.")
    refuse_labels(k_means, "partial_fit")
    C = check_integer(k_means.n_clusters, "n_clusters", 1)
    decay, first = check_decay(k_means.learning_decay), not hasattr(k_means, "cluster_centers_")
    if not first:
        _check_goes_on(k_means)
    jumps = centers_jump(k_means)
    data = k_means._opened(X, sample_weight, reset=first)
    if first:
        check_enough(k_means, data.n_points, "partial_fit")
    if data.has_missing:
        raise ValueError("partial_fit needs complete rows, whatever `missing` is: fit them, or impute first.")
    history = history_of(k_means)
    search = resolve_search(k_means, C, 1, data.n_weighted, data.n_features, data.sparse)
    plan = em.OnlinePlan(decay, jumps, search, partial(options_of(k_means).problem, quick=not jumps))
    key = Key(seed_of(k_means.random_state), iteration=len(history))
    online, batch = em.learn_batch(data, None if first else _state(k_means), plan, key)
    counts = batch.n_distances, batch.n_between, data.n_weighted
    row = ("online", batch.bound, batch.error, *counts, perf_counter() - begin)
    record = record_of_batch(history, row, batch.labels, "exact" if batch.exact else "found")
    solution = KMeansSolution(
        online.model.centers,
        online.model.variance,
        online.counts,
        batch.error,
        batch.bound,
        record,
        cells=online.cells,
        recent=None if online.recent is None else online.recent.as_dict(),
        metric=k_means.metric,
    )
    adopt(k_means, solution)
    return self


def _state(k_means: Any) -> em.Online:
    """Return the state of online k-means after the batches so far, from the fitted attributes."""
    model, given = model_of(k_means), getattr(k_means, "recent_", None)
    recent = None if given is None else em.RecentRows.from_dict(given, k_means.n_features_in_)
    cells: OnlineCenterIndex | None = getattr(k_means, "_online_cells", None)
    if cells is None or cells.centers is not model.centers:
        stored = getattr(k_means, "structure_", None)
        cells = None if stored is None else OnlineCenterIndex.from_dict(stored, model.centers)
    return em.Online(model, k_means.counts_, recent, cells)


def _check_goes_on(k_means: Any) -> None:
    """Raise ValueError if batches cannot continue the earlier fit of this estimator with its present arguments."""
    if not hasattr(k_means, "counts_"):
        raise ValueError("partial_fit goes on from a fit: centers set by hand have no counts_.")
    fitted = {"n_clusters": len(k_means.cluster_centers_), "metric": getattr(k_means, "metric_", k_means.metric)}
    for name, value in fitted.items():
        if getattr(k_means, name) != value:
            raise ValueError(
                f"partial_fit goes on from a fit with {name}={value!r}, got {name}={getattr(k_means, name)!r}."
            )


def centers_jump(k_means: Any) -> bool:
    """Return whether `partial_fit` fits the first batches again and lets centers jump, as the argument `jumps` says.

    "auto" is true if neither the initialization nor an exact search is chosen by name, because algorithms chosen by
    name, such as MacQueen's from given centers, are not altered.
    """
    wanted, init = check_jumps(k_means.jumps), k_means.init
    if k_means.n_clusters == 1:
        return False
    if wanted is None:
        return isinstance(init, str) and init == "auto" and as_search(k_means.search).exchanges and not k_means.epsilon
    return wanted
