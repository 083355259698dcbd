"""Online k-means: the method `partial_fit` of `KMeans`, and the jumps of centers between batches.

With init="auto", the first batch is fitted as `fit` would do it. If it has fewer than 20 rows per cluster (`ENOUGH`),
all rows are stored until there are 20 per cluster, and the fit is repeated on all of them whenever their number has
doubled. Later, whenever the batches since the last jumps have at least 20 rows per cluster together, centers jump to
other clusters if this lowers J of these rows. All other updates are those of `em.k_means_step`.
"""

from time import perf_counter
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse import vstack as stacked_sparse

from cprime import em
from cprime._utils.random import Key, seed_of
from cprime._utils.values import replace
from cprime.estimators.constraints import refuse_labels
from cprime.estimators.problems import options_of
from cprime.estimators.solutions import KMeansSolution, history_of, record_of_batch
from cprime.estimators.validation import (
    as_search,
    check_common,
    check_decay,
    check_flag_or_auto,
    check_integer,
    resolve_search,
)
from cprime.estimators.watching import restore_on_error
from cprime.execution import Data, local, rows_of
from cprime.kernels import Floats, as_rows
from cprime.model import TiedSpherical
from cprime.neighbors import OnlineCenterIndex
from cprime.search import Look
from cprime.search.nearby import CellIndexLookup

T = TypeVar("T")

MANY = 16384  # Number of clusters from which a search by cells is several times faster than one of all centers.
ENOUGH = 20  # Number of rows per cluster that are needed for a fit of the first batches, or for jumps of centers.


class _Update(NamedTuple):
    """Result of a batch: the parameters after it, and values that were computed with the centers before it.

    model: new centers and variance    counts (C,): total weight of the points of each cluster so far
    labels (n,): cluster of each row    weight: total weight of the rows of the batch
    error: J of the batch, the weighted sum of squared distances to the nearest centers
    n_distances: number of evaluated distances    exact: whether rows were compared with all centers
    """

    model: TiedSpherical
    counts: NDArray[np.float64]
    labels: Any
    error: float
    weight: float
    n_distances: int
    exact: bool


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
    `n_init`, `callbacks`, `checkpoint`, `spill`, `max_memory`.

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
    for name in ("fixed_centers", "size_max", "size_min"):
        if getattr(k_means, name) is not None:
            raise ValueError(f"partial_fit needs {name}=None: it moves all centers and bounds no sizes.")
    refuse_labels(k_means, "partial_fit")
    C = check_integer(k_means.n_clusters, "n_clusters", 1)
    decay, first = check_decay(k_means.learning_decay), not hasattr(k_means, "cluster_centers_")
    if not first:
        _check_goes_on(k_means)
    adapts = centers_jump(k_means)
    data = k_means._opened(X, sample_weight, reset=first)
    if data.has_missing:
        raise ValueError("partial_fit needs complete rows, whatever `missing` is: fit them, or impute first.")
    history = history_of(k_means)
    key = Key(seed_of(k_means.random_state), iteration=len(history))
    recent: RecentRows | None = None
    cells: OnlineCenterIndex | None = None
    if first and adapts:
        step = _fitted(k_means, data, key)
    else:
        counts = np.zeros(C) if first else k_means.counts_
        if first:
            model = options_of(k_means).problem(data, quick=True).plain_start(data, key)
            data.begin(keep=False)
        else:
            model = k_means._parameters()
        cells = online_cells(k_means, data, model.centers)
        look: Look = em.ALL if cells is None else CellIndexLookup(cells.near)
        model, counts, won = em.k_means_step(model, counts, data, decay, look)
        step = _Update(model, counts, data.labels(), won.error, won.weight, won.n_distances, cells is None)
    assert step.labels is not None
    bound = em.hard_free_energy(step.model, step.error, step.weight)
    if cells is not None:
        cells = cells.following(won.ids, won.counts, won.n_weighted, step.model.centers)
    if adapts:
        before, (step, recent) = step.model, _reviewed(k_means, data, step, None if first else k_means.counts_, key)
        if step.model is not before:
            cells = None  # cells do not follow centers that jump, so the next batch needs new ones
    row = ("online", bound, step.error, step.n_distances, data.n_weighted, perf_counter() - begin)
    final = "exact" if step.exact else "found"
    record = record_of_batch(history, row, step.labels, final)
    solution = KMeansSolution(
        step.model.centers,
        step.model.variance,
        step.counts,
        step.error,
        bound,
        record,
        cells=cells,
        recent=None if recent is None else recent.as_dict(),
        metric=k_means.metric,
    )
    k_means._adopt(solution)
    return self


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
    wanted, init = check_flag_or_auto(k_means.jumps, "jumps"), k_means.init
    if k_means.n_clusters == 1:
        return False
    if wanted is None:
        return isinstance(init, str) and init == "auto" and as_search(k_means.search).exchanges and not k_means.epsilon
    return wanted


def _fitted(k_means: Any, data: Data, key: Key) -> _Update:
    """Fit the rows of `data` as `KMeans.fit` would do it, but from one start; return its results as `_Update`."""
    problem = options_of(k_means).problem(data)
    plan = replace(problem.plan, search=problem.plan.search.with_params(certificate=0))
    run, found = em.solve(data, replace(problem, plan=plan, n_starts=1), key)
    assert run.counts is not None
    n_distances, exact = int(run.history["n_distances"].sum()), found["final_assignment"] == "exact"
    return _Update(run.model, run.counts, found["labels"], run.error, float(run.counts.sum()), n_distances, exact)


class RecentRows(NamedTuple):
    """Rows of the last batches, which are stored until there are enough for a fit or for jumps of centers.

    X (n, D): the rows, a dense or sparse array, or None without rows    weights (n,): their weights
    labels (n,): cluster to which each row was assigned when its batch arrived
    n_fitted: number of rows of the last fit, if the rows here are all rows so far; otherwise 0
    shares (C,): share of each cluster in the weight of all rows, in which early rows are gradually forgotten
    """

    X: Any
    weights: NDArray[np.float64]
    labels: NDArray[np.int32]
    n_fitted: int
    shares: NDArray[np.float64]

    def joined(self, data: Data, labels: Any) -> "RecentRows":
        """Return new `RecentRows`: the rows of this instance, followed by the rows of positive weight of a batch.

        data: the batch    labels (n,): cluster of each row of the batch, also of those without weight
        """
        rows = rows_of(data, np.arange(data.n_weighted))
        taken = data.take(rows)
        weights = np.ones(len(rows)) if taken.sample_weight is None else taken.sample_weight
        X, last = self.X, taken.X.given() if data.sparse else taken.X.dense()
        if len(self.weights):
            if data.sparse or issparse(X):
                last = stacked_sparse([csr_array(X), csr_array(last)], format="csr")
            else:
                last = np.concatenate([X, last])
        weights, last_labels = np.concatenate([self.weights, weights]), np.asarray(labels)[rows]
        return RecentRows(last, weights, np.concatenate([self.labels, last_labels]), self.n_fitted, self.shares)

    def without_rows(self) -> "RecentRows":
        """Return new `RecentRows` that store no rows, but have the `shares` (C,) of the clusters of this instance."""
        return RecentRows(None, self.weights[:0], self.labels[:0], 0, self.shares)

    def data(self) -> Data:
        """Return the rows as `Data`, in which the active set of each row is its label."""
        data = local(as_rows(self.X), None if (self.weights == 1).all() else self.weights)
        data.begin(keep=False)
        data.each(em.SetLabels(self.labels))
        data.commit()
        return data

    def as_dict(self) -> dict[str, Any]:
        """Return a dict of the stored arrays by name: the value of the attribute `recent_`, also in model files.

        `RecentRows.of` is the inverse.
        """
        parts = {"data": self.X.data, "indices": self.X.indices, "indptr": self.X.indptr} if issparse(self.X) else {}
        parts |= {} if parts or self.X is None else {"X": self.X}
        return parts | {name: value for name, value in self._asdict().items() if name != "X"}

    @classmethod
    def empty(cls, counts: NDArray[np.float64]) -> "RecentRows":
        """Return `RecentRows` that store no rows; the `shares` are those of `counts`.

        counts (C,): total weight of the rows of each cluster so far
        """
        return cls(None, np.zeros(0), np.zeros(0, dtype=np.int32), 0, counts / counts.sum())

    @classmethod
    def of(cls, k_means: Any, counts: NDArray[np.float64]) -> "RecentRows":
        """Return the `RecentRows` that the estimator's attribute `recent_` describes.

        If the estimator lacks the attribute, the result stores no rows, and its `shares` are those of `counts`.
        counts (C,): total weight of the rows of each cluster so far
        """
        given = getattr(k_means, "recent_", None)
        if given is None:
            return cls.empty(counts)
        X, n = given.get("X"), len(given["weights"])
        if "indptr" in given:
            parts = tuple(given[name] for name in ("data", "indices", "indptr"))
            X = csr_array(parts, shape=(n, k_means.n_features_in_))
        return cls(X, given["weights"], given["labels"], int(given["n_fitted"]), given["shares"])


def _reviewed(
    k_means: Any, data: Data, step: _Update, before: NDArray[np.float64] | None, key: Key
) -> tuple[_Update, RecentRows]:
    """Improve the centers after a batch by a fit of the stored rows, or by jumps of centers, if these rows suffice.

    The rows of the batch are stored with those of earlier batches until there are enough. With 16384 or more clusters
    (`MANY`) no rows are stored, because they would take much memory. Returns `step`, whose parameters are improved if
    there were enough rows, and the rows to store.
    step: result of the batch    before (C,): total weight of each cluster's points before the batch; None for the first
    """
    C, n, decay = k_means.n_clusters, data.n_weighted, k_means.learning_decay
    stores = C < MANY
    if before is None:
        recent = RecentRows.empty(step.counts)
        return step, recent.joined(data, step.labels)._replace(n_fitted=n) if stores and n < ENOUGH * C else recent
    recent, batch, total = RecentRows.of(k_means, before), step.counts - before, float(step.counts.sum())
    share = float(em.rate(step.weight, total, decay))
    recent = recent._replace(shares=(1 - share) * recent.shares + share * batch / step.weight)
    if not len(recent.weights) and n >= ENOUGH * C:
        rows = data
    elif stores:
        recent = recent.joined(data, step.labels)
        n = len(recent.weights)
        if n < (min(ENOUGH * C, 2 * recent.n_fitted) if recent.n_fitted else ENOUGH * C):
            return step, recent
        rows = recent.data()
    else:
        return step, recent
    if recent.n_fitted:
        fit = _fitted(k_means, rows, key)
        recent = recent._replace(n_fitted=n, shares=fit.counts / fit.counts.sum())
        return step._replace(model=fit.model, counts=fit.counts), recent if n < ENOUGH * C else recent.without_rows()
    remembered = max(total**decay, float(batch.sum()) if rows is data else float(recent.weights.sum()))
    model, counts, weights = em.jump_between_batches(rows, step.model, step.counts, remembered * recent.shares, key)
    recent = recent._replace(shares=weights / weights.sum())
    return step._replace(model=model, counts=counts), recent.without_rows()


def online_cells(k_means: Any, data: Data, centers: Floats) -> OnlineCenterIndex | None:
    """Return the cells (groups of nearby centers) that are searched for a batch, or None if all centers are searched.

    All centers are searched for few clusters and for sparse rows, because this is faster for them. Otherwise the cells
    are those of the last batch. New ones are built if there are none, or if many rows were assigned to centers that
    have left their cells.    centers (C, D): the present centers
    """
    search = resolve_search(k_means, k_means.n_clusters, 1, data.n_weighted, data.n_features, data.sparse)
    if search.exact or search.published or k_means.n_clusters < MANY or data.sparse:
        return None
    cells: OnlineCenterIndex | None = getattr(k_means, "_online_cells", None)
    if cells is None or cells.centers is not centers:
        given = getattr(k_means, "structure_", None)
        cells = OnlineCenterIndex(centers) if given is None else OnlineCenterIndex.from_dict(given, centers)
    return OnlineCenterIndex(centers) if cells.stale else cells
