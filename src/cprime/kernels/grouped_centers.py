"""Nearest center for rows in groups, where each group has its own few candidate centers."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from cprime.kernels.cells import Found, search_cells
from cprime.kernels.measures import Floats
from cprime.kernels.rows import Dense, Rows


class GroupedCenters:
    """Centers (C, D), and for each of g groups of rows its candidates: the centers that are searched for these rows.

    origins (g, D): a point near the rows of each group, used as origin of differences for precision
    offered (g, m): ids of up to m candidates of each group, at least one, padded with −1
    """

    def __init__(self, origins: Floats, centers: Floats, offered: NDArray[np.int32]):
        self.n_groups = len(origins)
        self.offered = offered
        self.places = np.concatenate([origins, centers])
        self.lists = np.where(offered < 0, np.int32(-1), offered + np.int32(self.n_groups))
        self.inside = np.ones(len(self.places), dtype=centers.dtype)
        # Rows are first assigned to the origin of their group. Squared distances to origins are multiplied by a huge
        # number, so that every candidate is better than an origin.
        self.inside[: self.n_groups] = np.finfo(centers.dtype).max ** 0.5

    def moved(self, ids: NDArray[np.int32], centers: Floats) -> "GroupedCenters":
        """Return a copy in which the centers with these ids (m,) are replaced by `centers` (m, D)."""
        offer = copy(self)
        offer.places = self.places.copy()
        offer.places[self.n_groups + ids] = centers
        return offer

    def choose(self, X: Rows, group: NDArray[np.int32]) -> tuple[NDArray[np.int32], Floats]:
        """Return for every row the nearest candidate of its group: ids of centers (n,), and squared distances (n,).

        A group is a set of rows with common candidate centers.    group (n,): index of each row's group
        """
        n_groups, centers = self.n_groups, self.places[self.n_groups :]
        labels, distances = X.reassign(self.places, self.lists, group, self.inside, share=1.0)
        # A row remains assigned to the origin of its group only if it equals the origin, because a distance of 0 stays
        # 0 when it is multiplied by the huge factor of origins. Its nearest center is the one of the origin.
        stayed = labels < n_groups
        if stayed.any():
            used, place = np.unique(group[stayed], return_inverse=True)
            no_lists = np.empty((len(centers), 0), dtype=np.int32)
            found = Dense(self.places[used]).search_lists(centers, no_lists, self.offered[used], 1)
            labels[stayed] = n_groups + found.kept[place, 0]
            distances[stayed] = X[stayed].own_distances(centers, labels[stayed] - np.int32(n_groups))
        return labels - np.int32(n_groups), distances


class GroupedCells:
    """Search structure for centers in cells (groups), for classes of rows without a compiled search (sparse rows)."""

    def __init__(self, places: Floats, begins: NDArray[np.int64], between: Floats):
        g = len(begins) - 1
        self.cells, centers, self.sizes, self.between = places[:g], places[g:], np.diff(begins), between
        inside = begins[:-1, np.newaxis] + np.arange(self.sizes.max(initial=1))
        offered = np.where(inside < begins[1:, np.newaxis], inside, -1).astype(np.int32)
        self._offer = GroupedCenters(centers[begins[:-1]], centers, offered)

    def find(self, X: Rows, n_kept: int, n_searched: int) -> Found:
        """Find the nearest center of each row in the `n_searched` cells (groups of centers) near it.

        Returns ids and squared distances, (n, n_kept) each, and the number of evaluated distances. Only the first
        column has results; in the other n_kept − 1 columns ids are −1 and distances infinite.
        """

        def improve(rows: NDArray, cells: NDArray, kept: NDArray, squares: Floats) -> int:
            if len(rows):
                there, squared = self._offer.choose(X[rows], np.ascontiguousarray(cells))
                nearer = squared < squares[rows, 0]
                kept[rows[nearer], 0], squares[rows[nearer], 0] = there[nearer], squared[nearer]
            return int(self.sizes[cells].sum())

        return search_cells(X.nearest(self.cells, n_searched), self.between, improve, n_kept)
