"""Partial searches for model families without a compiled search.

A given function computes the costs of points under their candidates, and the best candidates are selected. The file
also has sums of costs over points, from which neighbor lists are estimated, eq. (8) of Forster & Lücke 2018.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cprime.kernels.measures import Floats
from cprime.kernels.partial import Evidence, SearchResult
from cprime.kernels.rows import Rows

Ids = NDArray[np.int32]
Costs = Callable[[Rows, Ids], Floats]  # maps rows and ids of components (n, m) >= 0 to costs (n, m)

_VALUES = 2**20  # maximum number of costs that are computed at a time, to limit memory


def least_offered(costs: Costs, points: Rows, offered: Ids, n_kept: int) -> tuple[Ids, Floats, Ids, Floats]:
    """Find for each of n points the n_kept components of least cost among its candidates.

    costs: function of points and component ids (n, m) that returns costs (n, m)
    offered (n, m): candidates of each point; −1 and repetitions are ignored
    Returns four arrays: ids of the best components (n, n_kept), and their costs; all candidates (n, m), sorted by id,
    with −1 for repetitions, and their costs.
    """
    ids = np.sort(offered, axis=1)
    ids[:, 1:][ids[:, 1:] == ids[:, :-1]] = -1
    found = np.empty(ids.shape, dtype=points.dtype)
    step = max(1, _VALUES // max(1, ids.shape[1]))
    for begin in range(0, len(points), step):
        piece = slice(begin, begin + step)
        found[piece] = costs(points[piece], np.maximum(ids[piece], 0))
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
) -> SearchResult:
    """Find for each point the n_kept components of least cost among its candidates.

    The candidates of point n are its active set K(n), the neighbor lists of all components in K(n), and `extra`.
    previous (n, H′): active sets K(n)    lists (C, G): neighbor lists    extra (n, E): extra candidates, or None
    costs: function of points and component ids that returns costs    sample_weight (n,): weights of points
    evidence: whether the result has the sums of costs for the means in eq. (8) of Forster & Lücke 2018
    Returns a `SearchResult`: components found, their costs, numbers of candidates, and the sums or None.
    """
    listed = np.where(previous[:, :, np.newaxis] >= 0, lists[previous], np.int32(-1)).reshape(len(previous), -1)
    offered = np.column_stack([previous, listed] + ([] if extra is None else [extra]))
    kept, least, ids, every = least_offered(costs, points, offered, n_kept)
    looked = evidence_of(kept[:, 0], ids, every, sample_weight, len(lists)) if evidence else None
    return SearchResult(kept, least, (ids >= 0).sum(axis=1, dtype=np.int32), looked)


def evidence_of(
    winners: Ids, looked: Ids, costs: Floats, sample_weight: NDArray[np.float64] | None, n_components: int
) -> Evidence:
    """Return, as `Evidence`, sums of weighted costs and of weights for each pair (c, c̃) of components.

    The sums of a pair are over the points whose best component is c, and which have c̃ among their candidates. Points
    of weight 0 are left out. The costs in the sum are those of the points under c̃.
    winners (n,): best component of each point    looked, costs (n, m): m candidates of each point, and their costs
    """
    weights = np.ones(len(winners)) if sample_weight is None else sample_weight
    row, column = np.nonzero((looked >= 0) & (winners >= 0)[:, np.newaxis] & (weights > 0)[:, np.newaxis])
    pairs = winners[row].astype(np.int64) * n_components + looked[row, column]
    return Evidence.of_pairs(pairs, weights[row] * costs[row, column], weights[row], n_components)
