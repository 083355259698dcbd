"""Assignment of points to clusters of bounded size: min Σ_n cost(n, a(n)) with lower_c ≤ |{n: a(n) = c}| ≤ upper_c.

a(n) is the cluster of point n. This is a transport problem, which is solved by an auction with ε-scaling (Bertsekas
1988). Each cluster has a price, a number that is added to its costs for all points. Each point is assigned to the one
of its candidate clusters whose cost + price is least, up to ε. If a cluster is too large, its price rises, and the
points whose cost + price rises least by a change of cluster leave it. If a cluster is too small, or if it has a
positive price and is smaller than its upper bound, its price falls. At the end, the sum of costs exceeds the least
possible sum by at most N·ε. If many points have nearly equal costs, prices rise slowly. Then single points move along
shortest paths of clusters (Ahuja, Magnanti & Orlin 1993, chapter 9), until the sum is the least possible.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime.kernels import arguments as check
from cprime.kernels.measures import Floats

Ids = NDArray[np.int32]
Costs = NDArray[np.float64]
Counts = NDArray[np.int64]

# If only some clusters are candidates of a point, the auction fails if a price exceeds this multiple of the greatest
# cost, because points then need more candidates. The price of a cluster is a number that is added to its costs.
_GREATEST_PRICE = 4.0
# Total number of copies of weighted points, as a multiple of the number of points.
COPIES_OF_POINTS = 2
# Points of at least 1/8 of the weight that a cluster has too much, or too little, move first, which takes few moves.
_MOVES = 8


class Infeasible(ValueError):
    """Error that is raised if the candidates of the points allow no assignment within the bounds of cluster sizes."""


def assign_bounded(
    ids: Ids,
    costs: Floats,
    lower: Counts,
    upper: Counts,
    prices: Costs | None = None,
    *,
    accuracy: float = 1e-4,
    kernels: Any = _core,
) -> tuple[Ids, Costs]:
    """Assign points to clusters of bounded size, so that the sum of costs is nearly minimal.

    ids (n, K) int32: distinct candidate clusters of each point, −1 for none
    costs (n, K): costs of the points in these clusters, >= 0; it takes less time if the costs of each point ascend
    lower, upper (C,): least and greatest number of points of each cluster
    prices (C,): initial prices (numbers that are added to the costs of clusters), for example the final prices of a
    similar problem; None for zeros
    accuracy: greatest relative difference of the sum of costs from the minimum
    ->  cluster of each point (n,) int32, and final prices (C,)
    Raises `Infeasible` if no assignment of points to their candidates is within the bounds. It also does so if only
    some clusters are candidates of a point, and prices exceed four times the greatest cost.
    """
    lower = check.array(lower, "lower", np.int64, -1)
    C, ids, costs = len(lower), check.array(ids, "ids", np.int32, -1, -1), check.matrix(costs, "costs")
    upper, costs = check.array(upper, "upper", np.int64, C), check.array(costs, "costs", costs.dtype, *ids.shape)
    if not ((lower >= 0) & (lower <= upper)).all() or not int(lower.sum()) <= len(ids) <= int(upper.sum()):
        raise Infeasible(
            f"the sizes of {C} clusters of {lower.sum()} to {upper.sum()} points cannot have the sum {len(ids)}"
        )
    limit = np.inf if ids.shape[1] >= C and (ids >= 0).all() else _GREATEST_PRICE
    prices = np.zeros(C) if prices is None else check.array(prices, "prices", np.float64, C).copy()
    labels = np.empty(len(ids), dtype=np.int32)
    try:
        found = kernels.assign_bounded(ids, costs, lower, upper, accuracy, limit, prices, labels)
    except ValueError:
        check.ids(C, ids=(ids, -1))
        raise
    if not found:
        raise Infeasible("the candidates of the points allow no assignment within the bounds at a low cost")
    return labels, prices


def assign_weighted(
    ids: Ids,
    costs: Floats,
    weights: Costs,
    lower: Costs,
    upper: Costs,
    prices: Costs | None = None,
    *,
    accuracy: float = 1e-4,
) -> tuple[Ids, Costs]:
    """Assign weighted points to clusters, so that the weights of clusters are within bounds and the cost is low.

    Copies of the points, in numbers about proportional to their weights, are assigned by `assign_bounded`. A point goes
    where most of its copies are. Then single points move, each at the least rise of the cost, from clusters above their
    bounds and into those below them. Because points are not divided, a cluster's weight may remain outside its bounds,
    by less than the greatest weight of a point.

    weights (n,): > 0    costs (n, K): costs per unit of weight    lower, upper (C,): least and greatest weights
    The other arguments and the results are those of `assign_bounded`. Raises `Infeasible` as this does.
    """
    capped = np.minimum(weights, upper.max())  # a heavier point fills a cluster alone
    copies = _copies(capped)
    unit, rows = capped.sum() / copies.sum(), np.repeat(np.arange(len(ids)), copies)
    lower = lower * min(1.0, capped.sum() / max(lower.sum(), capped.sum()))  # the others are left for other clusters
    fewest, most = np.floor(lower / unit + 1e-9).astype(np.int64), np.ceil(upper / unit - 1e-9).astype(np.int64)
    found, prices = assign_bounded(ids[rows], costs[rows], fewest, most, prices, accuracy=accuracy)
    place = (ids[rows] == found[:, np.newaxis]).argmax(axis=1)
    votes = np.bincount(rows * ids.shape[1] + place, minlength=ids.size).reshape(ids.shape)
    values = np.where(ids < 0, np.inf, costs + prices[ids])
    places = np.where(votes == votes.max(axis=1, keepdims=True), values, np.inf).argmin(axis=1)
    labels = np.take_along_axis(ids, places[:, np.newaxis], axis=1)[:, 0]
    _move_into_bounds(labels, ids, costs, weights, lower, upper)
    return labels, prices


def _copies(weights: Costs) -> NDArray[np.int64]:
    """Return numbers of copies (n,) of points of these weights (n,), which are multiples of one or about 2 n in all."""
    multiples = weights / weights.min()
    exact = np.rint(multiples)
    if exact.sum() <= 2 * COPIES_OF_POINTS * len(weights) and np.allclose(multiples, exact, rtol=1e-9, atol=0):
        return exact.astype(np.int64)
    up_to = np.rint(np.cumsum(weights) * (COPIES_OF_POINTS * len(weights) / weights.sum()))
    return np.diff(up_to, prepend=0).astype(np.int64)


def _move_into_bounds(labels: Ids, ids: Ids, costs: Floats, weights: Costs, lower: Costs, upper: Costs) -> None:
    """Move points, in place, until no cluster's weight is outside its bounds by as much as the weight of a point.

    Smaller differences are removed by moves that bring no cluster outside its bounds, if there are such moves.
    labels (n,): cluster of each point; the other arguments are those of `assign_weighted`
    Raises `Infeasible` if a cluster has no points that can leave it, or enter it.
    """
    sizes, slack = np.bincount(labels, weights, len(lower)), 1e-9 * weights.sum()
    for c in np.flatnonzero((sizes > upper + slack) | (sizes < lower - slack)).tolist():
        over = bool(sizes[c] > upper[c])
        rows = np.flatnonzero(labels == c if over else (ids == c).any(axis=1) & (labels != c))
        at, places = np.nonzero((ids[rows] >= 0) & (ids[rows] != labels[rows, np.newaxis]) & (over | (ids[rows] == c)))
        rows, after = rows[at], ids[rows[at], places]  # all moves of a point that may help
        before, w = labels[rows], weights[rows]
        rise = w * (costs[rows, places] - costs[rows, (ids[rows] == before[:, np.newaxis]).argmax(axis=1)])
        while (excess := float(sizes[c] - upper[c] if over else lower[c] - sizes[c])) > slack:
            there = labels[rows] == before
            allowed = there & (sizes[before] - w >= lower[before] - slack) & (sizes[after] + w <= upper[after] + slack)
            if not allowed.any():
                if excess < w[there].max(initial=0.0):
                    break
                allowed = there & (sizes[before] > lower[before]) & (sizes[after] < upper[after])
            if not allowed.any():
                raise Infeasible("the candidates of the points allow no assignment within the bounds of their weights")
            if (some := allowed & (w >= excess / _MOVES)).any():
                allowed = some
            i = np.where(allowed, rise, np.inf).argmin()
            sizes[before[i]] -= w[i]
            sizes[after[i]] += w[i]
            labels[rows[i]] = after[i]
