"""Online k-means, batch by batch: steps of the centers, rows that are stored between batches, and jumps of centers.

With jumps, the first batch is fitted. If it has fewer than 20 rows per cluster (`ENOUGH`), all rows are stored until
there are 20 per cluster, and the fit is repeated on all of them whenever their number has doubled. Later, whenever the
batches since the last jumps have at least 20 rows per cluster together, centers jump to other clusters if this lowers J
of these rows. All other updates are those of `k_means_step`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from scipy.sparse import vstack as stacked_sparse

from cprime._utils.declared import Array, Count, Rising
from cprime._utils.random import Key
from cprime._utils.values import replace
from cprime.em.batch_jumps import jump_between_batches, labelled_data
from cprime.em.k_means import hard_free_energy
from cprime.em.online import ALL, k_means_step, rate
from cprime.em.solving import Problem, solve
from cprime.execution import Data, rows_of
from cprime.kernels import Floats, as_rows
from cprime.neighbors import OnlineCenterIndex
from cprime.search import Look, Search
from cprime.search.nearby import CellIndexLookup

MANY = 16384  # Number of clusters from which a search by cells is several times faster than one of all centers.
ENOUGH = 20  # Number of rows per cluster that are needed for a fit of the first batches, or for jumps of centers.


class _Recent(TypedDict):
    weights: Annotated[NDArray, Array("r", above=0)]
    labels: Annotated[NDArray[np.int32], Array("r", "int32", least=0, below="C")]
    n_fitted: Count
    shares: Annotated[NDArray, Array("C", least=0)]


class _RecentDense(_Recent):
    X: Annotated[NDArray, Array("r D")]


class _RecentSparse(_Recent):
    data: Annotated[NDArray, Array("e")]
    indices: Annotated[NDArray, Array("e", "i", least=0, below="D")]
    indptr: Annotated[NDArray, Array("r+1", "i"), Rising("e", 0)]


# Type of the dict that `RecentRows.as_dict` returns.
RecentArrays = _RecentDense | _RecentSparse | Annotated[_Recent, lambda value, sizes: not len(value["weights"])]


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
        return labelled_data(as_rows(self.X), None if (self.weights == 1).all() else self.weights, self.labels)

    def as_dict(self) -> dict[str, Any]:
        """Return a dict of the stored arrays by name: the value of the attribute `recent_`, also in model files.

        `RecentRows.from_dict` is the inverse.
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
    def from_dict(cls, given: dict[str, Any], n_features: int) -> "RecentRows":
        """Return `RecentRows` from the dict of arrays that `as_dict` returns. n_features: number of columns, D"""
        X, n = given.get("X"), len(given["weights"])
        if "indptr" in given:
            parts = tuple(given[name] for name in ("data", "indices", "indptr"))
            X = csr_array(parts, shape=(n, n_features))
        return cls(X, given["weights"], given["labels"], int(given["n_fitted"]), given["shares"])


class Online(NamedTuple):
    """State of online k-means between two batches.

    model: centers and variance, a `TiedSpherical`    counts (C,): total weight of the points of each cluster so far
    recent: stored rows, or None if there are none    cells: groups of near centers that were searched, or None
    """

    model: Any
    counts: NDArray[np.float64]
    recent: RecentRows | None = None
    cells: OnlineCenterIndex | None = None


@dataclass(frozen=True)
class OnlinePlan:
    """Options of online k-means.

    decay: κ of the learning rate    jumps: whether first batches are fitted and centers jump later
    search: search for the nearest centers, if there are many clusters
    problem: function that returns the problem of a fit of some data
    """

    decay: float
    jumps: bool
    search: Search
    problem: Callable[[Data], Problem]


class BatchResult(NamedTuple):
    """Values of a batch, computed with the centers before it, except for those of a first batch that was fitted.

    labels (n,): cluster of each row    error: J of the batch, the weighted sum of squared distances to these centers
    weight: total weight of the rows    n_distances: number of evaluated distances
    n_between: number of pairs of components that were compared for neighbor lists
    exact: whether rows were compared with all centers    bound: F per unit of weight, for the variance after the batch
    """

    labels: Any
    error: float
    weight: float
    n_distances: int
    n_between: int
    exact: bool
    bound: float


def learn_batch(data: Data, before: Online | None, plan: OnlinePlan, key: Key) -> tuple[Online, BatchResult]:
    """Update the centers with one batch, and return the new state and the values of the batch.

    data: the batch    before: state after the batches so far, or None if this is the first    key: random key
    """
    if before is not None:
        after, result = _step(data, before, plan, key)
    elif plan.jumps:
        after, result = _fitted(plan.problem(data), data, key)
    else:
        model = plan.problem(data).plain_start(data, key)
        data.begin(keep=False)
        after, result = _step(data, Online(model, np.zeros(model.n_components)), plan, key)
    return (_reviewed(data, before, after, result, plan, key) if plan.jumps else after), result


def _step(data: Data, before: Online, plan: OnlinePlan, key: Key) -> tuple[Online, BatchResult]:
    """Move the centers towards the means of their points in the batch, as `k_means_step`."""
    cells = _cells(data, before, plan.search)
    look: Look = ALL if cells is None else CellIndexLookup(cells.near)
    model, counts, won = k_means_step(before.model, before.counts, data, plan.decay, look)
    if cells is not None:
        cells = cells.following(won.ids, won.counts, won.n_weighted, model.centers)
    bound = hard_free_energy(model, won.error, won.weight)
    result = BatchResult(data.labels(), won.error, won.weight, won.n_distances, 0, cells is None, bound)
    return Online(model, counts, before.recent, cells), result


def _fitted(problem: Problem, data: Data, key: Key) -> tuple[Online, BatchResult]:
    """Fit some rows from one start of the problem."""
    plan = replace(problem.plan, search=problem.plan.search.with_params(certificate=0))
    run, found = solve(data, replace(problem, plan=plan, n_starts=1), key)
    assert run.counts is not None
    n_distances, n_between = int(run.history["n_distances"].sum()), int(run.history["n_between"].sum())
    weight, labels = float(run.counts.sum()), found["labels"]
    bound, exact = hard_free_energy(run.model, run.error, weight), found["final_assignment"] == "exact"
    return Online(run.model, run.counts), BatchResult(labels, run.error, weight, n_distances, n_between, exact, bound)


def _reviewed(
    data: Data, before: Online | None, after: Online, result: BatchResult, plan: OnlinePlan, key: Key
) -> Online:
    """Improve the centers after a batch by a fit of the stored rows, or by jumps of centers, if these rows suffice.

    The rows of the batch are stored with those of earlier batches until there are enough. With 16384 or more clusters
    (`MANY`) no rows are stored, because they would take much memory.

    before, after: states before and after the batch; there is none before the first one
    """
    C, n = len(after.counts), data.n_weighted
    stores = C < MANY
    if before is None:
        recent = RecentRows.empty(after.counts)
        stored = recent.joined(data, result.labels)._replace(n_fitted=n) if stores and n < ENOUGH * C else recent
        return replace(after, recent=stored)
    recent = RecentRows.empty(before.counts) if before.recent is None else before.recent
    batch, total = after.counts - before.counts, float(after.counts.sum())
    share = float(rate(result.weight, total, plan.decay))
    recent = replace(recent, shares=(1 - share) * recent.shares + share * batch / result.weight)
    if not len(recent.weights) and n >= ENOUGH * C:
        rows = data
    elif stores:
        recent = recent.joined(data, result.labels)
        n = len(recent.weights)
        if n < (min(ENOUGH * C, 2 * recent.n_fitted) if recent.n_fitted else ENOUGH * C):
            return replace(after, recent=recent)
        rows = recent.data()
    else:
        return replace(after, recent=recent)
    if recent.n_fitted:
        fit, _ = _fitted(plan.problem(rows), rows, key)
        recent = replace(recent, n_fitted=n, shares=fit.counts / fit.counts.sum())
        return replace(fit, recent=recent if n < ENOUGH * C else recent.without_rows())
    remembered = max(total**plan.decay, float(batch.sum()) if rows is data else float(recent.weights.sum()))
    model, counts, weights = jump_between_batches(rows, after.model, after.counts, remembered * recent.shares, key)
    recent = replace(recent, shares=weights / weights.sum())
    # Cells do not follow centers that jump, so the next batch needs new ones.
    return Online(model, counts, recent.without_rows(), after.cells if model is after.model else None)


def _cells(data: Data, before: Online, search: Search) -> OnlineCenterIndex | None:
    """Return the cells (groups of nearby centers) that are searched for a batch, or None if all centers are searched.

    All centers are searched for few clusters and for sparse rows, because this is faster for them. Otherwise the cells
    are those of the last batch. New ones are built if there are none, or if many rows were assigned to centers that
    have left their cells.
    """
    centers: Floats = before.model.centers
    if search.exact or search.published or len(centers) < MANY or data.sparse:
        return None
    return OnlineCenterIndex(centers) if before.cells is None or before.cells.stale else before.cells
