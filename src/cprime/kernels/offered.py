"""Partial searches from nothing but costs: the best of what rows are offered, and what they have looked at."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cprime.kernels.among import Evidence, Found
from cprime.kernels.measures import Floats
from cprime.kernels.rows import Rows

Ids = NDArray[np.int32]
Costs = Callable[[Rows, Ids], Floats]  # of rows and components ids (n, m) >= 0: (n, m)

_VALUES = 2**20  # costs at a time


def least_offered(costs: Costs, points: Rows, offered: Ids, n_kept: int) -> tuple[Ids, Floats, Ids, Floats]:
    """The n_kept best of what is offered (n, m), −1 and repetitions aside; and all that was measured, by id."""
    ids = np.sort(offered, axis=1)
    ids[:, 1:][ids[:, 1:] == ids[:, :-1]] = -1
    found = np.empty(ids.shape, dtype=points.dtype)
    step = max(1, _VALUES // max(1, ids.shape[1]))
    for begin in range(0, len(points), step):
        some = slice(begin, begin + step)
        found[some] = costs(points[some], np.maximum(ids[some], 0))
    found[ids < 0] = np.inf
    order = np.argsort(np.where(found == found, found, np.inf), axis=1, kind="stable")[:, :n_kept]
    kept, least = (np.take_along_axis(array, order, axis=1) for array in (ids, found))
    missing = n_kept - kept.shape[1]
    if missing > 0:
        kept = np.pad(kept, ((0, 0), (0, missing)), constant_values=-1)
        least = np.pad(least, ((0, 0), (0, missing)), constant_values=np.inf)
    return kept, least, ids, found


def among_offered(
    costs: Costs,
    points: Rows,
    lists: Ids,
    previous: Ids,
    n_kept: int,
    extra: Ids | None,
    evidence: bool,
    sample_weight: NDArray[np.float64] | None,
) -> Found:
    """The n_kept best of K(n), of the lists of all in K(n), and of extra ones; on request what (8) averages."""
    listed = np.where(previous[:, :, np.newaxis] >= 0, lists[previous], np.int32(-1)).reshape(len(previous), -1)
    offered = np.column_stack([previous, listed] + ([] if extra is None else [extra]))
    kept, least, ids, every = least_offered(costs, points, offered, n_kept)
    looked = evidence_of(kept[:, 0], ids, every, sample_weight, len(lists)) if evidence else None
    return Found(kept, least, (ids >= 0).sum(axis=1, dtype=np.int32), looked)


def evidence_of(
    winners: Ids, looked: Ids, costs: Floats, sample_weight: NDArray[np.float64] | None, n_components: int
) -> Evidence:
    """The sums of costs by winner and by what was looked at, of points of positive weight."""
    weights = np.ones(len(winners)) if sample_weight is None else sample_weight
    row, column = np.nonzero((looked >= 0) & (winners >= 0)[:, np.newaxis] & (weights > 0)[:, np.newaxis])
    pairs = winners[row].astype(np.int64) * n_components + looked[row, column]
    return Evidence.of_pairs(pairs, weights[row] * costs[row, column], weights[row], n_components)
