"""Searches among components whose costs are computed as tables of rows × components, by matrix products.

A subclass of `TabulatedCosts` computes the tables. All rows that have the same component, or the same neighbor list of
a component, are in one table. Tables are computed in blocks of rows. Neither the blocks nor the results depend on the
number of threads.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime._utils.threads import by_pieces, union_of_ids
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats

Ids = NDArray[np.int32]
# Type of a pair: id of a component, and the positions at which it occurs in an array of ids.
Group = tuple[int, NDArray[np.intp]]
# Type of a triple: id of a component, indices of the rows with nonzero responsibilities for it, these responsibilities.
Givers = tuple[int, NDArray[np.intp], NDArray[np.float64]]
RowsOf = Callable[[int, NDArray[np.intp]], NDArray[np.float64]]

# Tables of costs are computed in blocks, to limit memory. Maximum numbers of entries and of rows in a block.
TABLE, _ROWS = 2**22, 2048
# If at most this number of components of least cost is needed for each row, these are found one after the other;
# otherwise by a partial sort, which is slower if only few are needed.
_ROUNDS = 8


class TabulatedCosts(ABC):
    """Base class of C components whose costs are computed as tables of rows × components.

    centers (C, D): centers of the components
    n_numbers: number of temporary values in memory for each entry of a table while it is computed
    """

    centers: Floats
    n_numbers: int = 1

    @abstractmethod
    def table(self, points: CoreRows, ids: Ids | slice, origin: NDArray) -> NDArray[np.float64]:
        """Return the costs of n points under each of m components: (n, m).

        ids (m,): the components    origin (D,): a place near the points; differences from it are computed for precision
        """

    def origin(self) -> NDArray[np.float64]:
        """Return the mean of the centers (D,): the origin of coordinates for tables of the costs of all components."""
        return self.centers.mean(axis=0, dtype=np.float64)

    def blocks(self, n: int, n_numbers: int | None = None) -> Iterator[slice]:
        """Return slices that divide n rows into blocks, whose tables of rows × components are small.

        n_numbers: number of temporary values for each entry of a table; None is the attribute of this name
        """
        C, D = self.centers.shape
        step = min(_ROWS, max(1, TABLE // max(C * (n_numbers or self.n_numbers), D)))
        return (slice(begin, begin + step) for begin in range(0, n, step))

    def best(self, points: CoreRows, n_kept: int, hint: Ids | None = None) -> tuple[Ids, Floats]:
        """Return the n_kept components of least cost for every point, sorted by (cost, id), and their costs.

        Both have shape (n, n_kept). hint: probably good components, which this search does not use
        """
        every, origin = np.arange(len(self.centers), dtype=np.int32), self.origin()
        ids = np.empty((len(points), n_kept), dtype=np.int32)
        costs = np.empty((len(points), n_kept), dtype=points.dtype)

        def piece(rows: slice) -> None:
            found = narrowed(self.table(points[rows], slice(None), origin), points.dtype)
            ids[rows], costs[rows] = least_of(every, found, n_kept)

        by_pieces(piece, self.blocks(len(points)))
        return ids, costs

    def top_k(self, points: CoreRows, lists: Ids, previous: Ids, n_kept: int) -> tuple[Ids, Floats]:
        """Return for each point the n_kept components of least cost among its candidates, and their costs.

        The candidates are the point's previous components, and the neighbor list of the first of these.
        previous (n, H′): previous components, best first    lists (C, G): neighbor lists
        Returns ids and costs, (n, n_kept) each. One table is computed for all points with the same first component. The
        costs under other previous components are computed separately.
        """
        C = len(self.centers)
        ids = np.full((len(points), n_kept), -1, dtype=np.int32)
        costs = np.full((len(points), n_kept), np.inf, dtype=points.dtype)
        others = previous.copy()

        def look(group: Group) -> None:
            c, rows = group
            near = union_of_ids(lists[c][: np.argmax(lists[c] < 0)] if (lists[c] < 0).any() else lists[c])
            if len(near):
                found = narrowed(self.table(points[rows], near, self.centers[c]), points.dtype)
                ids[rows], costs[rows] = least_of(near, found, n_kept)
                listed = np.zeros(C + 1, dtype=bool)  # the additional last entry is read for the id −1 (no component)
                listed[near] = True
                others[rows] = np.where(listed[others[rows]], -1, others[rows])

        by_pieces(look, groups(previous[:, 0], C))
        joined = np.column_stack([ids, others])
        all_costs = np.column_stack([costs, self.costs(points, others)])
        order = np.lexsort((joined, all_costs), axis=1)[:, :n_kept]
        kept, found = np.take_along_axis(joined, order, axis=1), np.take_along_axis(all_costs, order, axis=1)
        return np.where(np.isfinite(found), kept, np.int32(-1)), found

    def costs(self, points: CoreRows, ids: Ids) -> Floats:
        """Return the costs (n, m) of each of n points under its own m components.

        ids (n, m): the components of each point; −1 means no component, and has an infinite cost
        """
        out = np.full(ids.size, np.inf, dtype=points.dtype)

        def measure(group: Group) -> None:
            c, places = group
            rows = points[places // ids.shape[1]]
            out[places] = narrowed(self.table(rows, np.array([c], dtype=np.int32), self.centers[c]), points.dtype)[:, 0]

        by_pieces(measure, groups(ids.reshape(-1), len(self.centers)))
        return out.reshape(ids.shape)


def narrowed(costs: NDArray[np.float64], dtype: DTypeLike) -> Floats:
    """Return costs converted to a narrower type.

    Costs beyond its range become its largest finite number, because an infinite cost means that there is no component.
    """
    limit = np.finfo(dtype).max
    return np.minimum(costs, limit).astype(dtype)


def groups(components: Ids, n_components: int) -> Iterator[Group]:
    """Yield every component that occurs in an array of ids, with the positions at which it occurs, ascending.

    components (n,): ids from 0 to n_components − 1, or −1 for no component, which is left out
    """
    order = np.argsort(components, kind="stable")
    ends = np.searchsorted(components[order], np.arange(n_components + 1))
    for c in np.flatnonzero(np.diff(ends)).tolist():
        yield c, order[ends[c] : ends[c + 1]]


def givers(kept: Ids, q: NDArray[np.float64], n_components: int) -> Iterator[Givers]:
    """Yield every component that has nonzero responsibilities, the indices of their rows, and these responsibilities.

    kept, q (n, H): components of each row, and their responsibilities
    """
    shares = q.reshape(-1)
    for c, places in groups(np.where(shares != 0, kept.reshape(-1), np.int32(-1)), n_components):
        yield c, places // kept.shape[1], shares[places]


def mixed(ids: Ids, q: NDArray[np.float64], shape: tuple[int, ...], rows_of: RowsOf) -> NDArray[np.float64]:
    """Return for each row n the weighted sum Σ_h q_nh x_nh (n, D) over its H components.

    x_nh is a vector that depends on the row and on the component, for example an expected value.
    ids, q (n, H): components of each row, and their responsibilities
    rows_of(c, rows): function that returns the vectors (m, D) of m rows with these indices for component c
    shape: (n, D)
    """
    out = np.zeros(shape)
    for h in range(ids.shape[1]):

        def add(group: Group, h: int = h) -> None:
            c, rows = group
            out[rows] += q[rows, h, np.newaxis] * rows_of(c, rows)

        by_pieces(add, groups(ids[:, h], int(ids.max(initial=-1)) + 1))
    return out


def least_of(ids: Ids, costs: Floats, n_kept: int) -> tuple[Ids, Floats]:
    """Return the n_kept components of least cost for each of n rows, best first, and their costs.

    Components of equal cost are in the order of their positions in `ids`.
    ids (n, m): candidates of each row, or (m,): candidates of all rows    costs (n, m): their costs
    ->  components (n, n_kept) int32, and costs (n, n_kept). If a row has fewer candidates of finite cost, components
    are −1 and costs infinite.
    """
    n, m = costs.shape
    n_found = min(n_kept, m)
    if n_found <= _ROUNDS:
        left, row = costs.copy(), np.arange(n)
        places, found = np.empty((n, n_found), dtype=np.intp), np.empty((n, n_found), dtype=costs.dtype)
        for h in range(n_found):
            places[:, h] = left.argmin(axis=1)
            found[:, h] = left[row, places[:, h]]
            left[row, places[:, h]] = np.inf
    else:
        places = np.broadcast_to(np.arange(m), costs.shape)
        if n_found < m:
            places = np.sort(np.argpartition(costs, n_found - 1, axis=1)[:, :n_found], axis=1)
            bar = np.take_along_axis(costs, places, axis=1).max(axis=1, keepdims=True)
            # If the greatest selected cost also occurs elsewhere in the row, a stable sort selects its first positions.
            tied = np.count_nonzero(costs <= bar, axis=1) != n_found
            places[tied] = np.sort(np.argsort(costs[tied], axis=1, kind="stable")[:, :n_found], axis=1)
        order = np.argsort(np.take_along_axis(costs, places, axis=1), axis=1, kind="stable")[:, :n_found]
        places = np.take_along_axis(places, order, axis=1)
        found = np.take_along_axis(costs, places, axis=1)
    theirs = ids[places] if ids.ndim == 1 else np.take_along_axis(ids, places, axis=1)
    kept = np.where(np.isfinite(found), theirs, np.int32(-1)).astype(np.int32)
    missing = ((0, 0), (0, n_kept - n_found))
    return np.pad(kept, missing, constant_values=-1), np.pad(found, missing, constant_values=np.inf)
