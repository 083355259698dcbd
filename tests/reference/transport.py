"""Assignment of points to clusters of bounded sizes."""

import numpy as np

from cprime.kernels import Infeasible
from cprime.kernels import arguments as check

# First tolerance ε of the NumPy version, as a multiple of the greatest cost.
# It is large, because prices may have to rise as far as the greatest cost.
_FIRST = 0.1
# The auction is repeated with smaller and smaller tolerances ε of cost + price; ε is divided by this number each time.
_SCALING = 5.0
# Least tolerance ε, as a multiple of the greatest cost, so that ε is not lost by rounding when it is added to prices.
_RESOLUTION = 1e-9


def assign_bounded(ids, costs, lower, upper, accuracy, limit, prices, labels):
    """Assign points to clusters of bounded sizes in NumPy, by an auction in which all prices change at once.

    ids, costs (n, K): candidate clusters of each point, and their costs    lower, upper (C,): bounds of sizes
    The price of a cluster is a number that is added to its costs. Prices (C,) are changed in place. The cluster of each
    point is written to `labels` (n,). Returns False, with undefined labels, if no assignment is within the bounds, or
    if it needs prices above `limit` times the greatest cost; otherwise True.
    """
    check.ids(len(lower), ids=(ids, -1))
    offered = ids >= 0
    if not (np.isfinite(costs) & (costs >= 0) | ~offered).all():
        raise ValueError("costs must be >= 0 and finite")
    if not offered.any(axis=1).all():
        raise ValueError("ids must have a candidate for each point")
    auction = _Auction(ids, costs, lower, upper, limit, prices)
    resolution = max(_RESOLUTION * auction.greatest, float(np.finfo(np.float64).tiny))
    last = max(accuracy * float(auction.costs.min(axis=1).mean()) if len(ids) else 0.0, resolution)
    eps = max(_FIRST * auction.greatest, last)
    eps = min(_SCALING**2 * last, eps) if prices.any() else eps
    try:
        auction.settle(eps)
        while eps > last:
            eps = max(eps / _SCALING, last)
            auction.improve(eps)
            auction.settle(eps)
    except Infeasible:
        return False
    labels[:] = auction.labels
    return True


class _Auction:
    """State of an auction that assigns N points to C clusters: the assignment, and sizes and prices of the clusters.

    place, labels (N,): cluster of each point, as a column of its candidates `ids` (N, K), and as an id
    sizes (C,): numbers of points    prices (C,): numbers that are added to the costs of the clusters
    """

    def __init__(self, ids, costs, lower, upper, limit, prices):
        self.lower, self.upper, self.C, self.prices = lower, upper, len(lower), prices
        self.ids = np.maximum(ids, 0)
        self.costs = np.where(ids < 0, np.inf, costs.astype(np.float64))
        self.place = (self.costs + self.prices[self.ids]).argmin(axis=1)
        self.labels = self.ids[np.arange(len(ids)), self.place].astype(np.int32)
        self.sizes = np.bincount(self.labels, minlength=self.C)
        clusters = np.where(ids < 0, self.C, ids).ravel()
        order = np.argsort(clusters, kind="stable")[: np.count_nonzero(ids >= 0)]
        # All pairs of a point (row of `ids`) and one of its candidates (column of `ids`), sorted by candidate.
        self.rows, self.ranks = np.divmod(order, ids.shape[1])
        self.begins = np.searchsorted(clusters[order], np.arange(self.C + 1))
        self.greatest = float(self.costs.max(initial=0.0, where=np.isfinite(self.costs)))
        self.limit = limit if np.isinf(limit) else limit * self.greatest

    def values(self, rows):
        """Return cost + price (m,) of m points in their present clusters; rows (m,): indices of the points."""
        return self.costs[rows, self.place[rows]] + self.prices[self.labels[rows]]

    def move(self, rows, places):
        """Move m points to other clusters: change their entries in `place` and `labels`, and the sizes of clusters.

        rows (m,): indices of the points    places (m,): for each of them, the column of `ids` with the new cluster
        """
        after = self.ids[rows, places]
        np.subtract.at(self.sizes, self.labels[rows], 1)
        np.add.at(self.sizes, after, 1)
        self.place[rows], self.labels[rows] = places, after

    def improve(self, eps):
        """Move each point to its best candidate cluster if this lowers its cost + price by more than ε, in place.

        `settle` then changes the prices with the same ε.
        """
        values = self.costs + self.prices[self.ids]
        best = values.argmin(axis=1)
        every = np.arange(len(best))
        moves = np.flatnonzero(self.values(every) > values[every, best] + eps)
        self.move(moves, best[moves])

    def settle(self, eps):
        """Change assignment and prices, in place, until all sizes are within their bounds and all prices consistent.

        A consistent price is 0, or positive with a size at the upper bound, or negative with a size at the lower bound.
        """
        while True:
            self._raise_prices(eps)
            if not self._lower_prices(eps):
                return
            if np.abs(self.prices).max() > self.limit:
                raise Infeasible("the candidates of the points allow no assignment within the bounds at a low cost")

    def _raise_prices(self, eps):
        """Raise the prices of clusters that are larger than their upper bound, or than their lower one at a price < 0.

        The surplus points are those whose cost + price rises least by a change to their best other candidate. The price
        rises until these points prefer the other candidate, to which they are moved. A negative price rises to at most
        0, unless the cluster is larger than its upper bound. Assignment and prices are changed in place.
        """
        while True:
            over = (self.sizes > self.upper) | ((self.prices < 0) & (self.sizes > self.lower))
            if not over.any():
                return
            rows = np.flatnonzero(over[self.labels])
            values = self.costs[rows] + self.prices[self.ids[rows]]
            own = np.take_along_axis(values, self.place[rows, np.newaxis], axis=1)[:, 0]
            np.put_along_axis(values, self.place[rows, np.newaxis], np.inf, axis=1)
            best = values.argmin(axis=1)
            regret = values[np.arange(len(rows)), best] - own
            order = np.lexsort((-regret, self.labels[rows]))
            rows, best, regret = rows[order], best[order], regret[order]
            cluster = self.labels[rows]
            rank = np.arange(len(rows)) - np.searchsorted(cluster, cluster)
            must = rank >= self.upper[cluster]
            may = (self.prices[cluster] < 0) & (rank >= self.lower[cluster])
            leaves = must | (may & (regret <= -self.prices[cluster]))
            if not np.isfinite(regret[must]).all():
                raise Infeasible("points without another candidate are in a cluster that is too large")
            rise = np.zeros(self.C)
            np.maximum.at(rise, cluster[leaves], np.maximum(regret[leaves], 0) + eps)
            forced, stays = np.zeros((2, self.C), dtype=bool)
            forced[cluster[must]] = stays[cluster[may & ~leaves]] = True
            to_zero = np.where(stays, -self.prices, np.minimum(rise, -self.prices))
            self.prices += np.where((self.prices < 0) & over & ~forced, to_zero, rise)
            self.move(rows[leaves], best[leaves])
            if self.prices.max() > self.limit:
                raise Infeasible("the candidates of the points allow no assignment within the bounds at a low cost")

    def _lower_prices(self, eps):
        """Lower the prices of clusters that are smaller than their lower bound, or than their upper one at a price > 0.

        The price falls until as many points prefer the cluster as are missing. These are the points whose cost + price
        rises least by a change to this cluster. A positive price falls to at least 0, unless the cluster is smaller
        than its lower bound. Assignment and prices are changed in place. Returns whether there were such clusters.
        """
        short = (self.sizes < self.lower) | ((self.prices > 0) & (self.sizes < self.upper))
        for c in np.flatnonzero(short).tolist():
            needed = int(self.lower[c] - self.sizes[c])
            wanted = needed if needed > 0 else int(self.upper[c] - self.sizes[c])
            part = slice(self.begins[c], self.begins[c + 1])
            rows, ranks = self.rows[part], self.ranks[part]
            outside = self.labels[rows] != c
            rows, ranks = rows[outside], ranks[outside]
            if needed > len(rows):
                raise Infeasible(f"cluster {c} is a candidate of too few points")
            discount = self.costs[rows, ranks] + self.prices[c] - self.values(rows)
            some = np.argsort(discount, kind="stable")[: wanted + 1]
            fall = eps + (discount[some[min(wanted, len(some) - 1)]] if len(some) else np.inf)
            if needed <= 0:
                fall = min(fall, float(self.prices[c]))
            fall = max(float(fall), 0.0)
            taken = some[:wanted][discount[some[:wanted]] <= fall]
            self.prices[c] -= fall
            self.move(rows[taken], ranks[taken])
        return bool(short.any())
