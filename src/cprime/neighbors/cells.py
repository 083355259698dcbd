"""Division of C components into roughly √C coarse cells: groups of components whose centers are near each other.

With the cells, a near component of every point is found in O(N √C D), and neighbor lists of the components in
O(C √C D). No previous assignment and no previous lists are needed.
"""

import math

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Dense, Floats, Rows

SAMPLE_PER_CELL = 128
_ITERATIONS = 6
# A cell is cut if it has more than this multiple of the average number of components per cell, because searches compare
# points with all components of a cell.
_MOST = 4
# Default number of nearest cells that are searched for the components near a point.
_NEAR = 8
# Default number of nearest cells that are searched for the neighbors of a component.
_NEAR_OF_LISTS = 32


class GroupedCenters:
    """Centers (C, D), and for each of g groups of rows its candidates: the centers that are searched for these rows.

    origins (g, D): a point near the rows of each group; differences from it are computed for precision
    offered (g, m): ids of up to m candidates of each group, at least one, padded with −1
    """

    def __init__(self, origins: Floats, centers: Floats, offered: NDArray[np.int32]):
        self.n_groups = len(origins)
        self.offered = offered
        self.places = np.concatenate([origins, centers])
        self.lists = np.where(offered < 0, np.int32(-1), offered + np.int32(self.n_groups))
        self.inside = np.ones(len(self.places), dtype=centers.dtype)
        # The kernel starts from an assignment of each row to a center, so rows are assigned to `origins` at first.
        # Squared distances to `origins` are multiplied by a huge number, so that each candidate center is preferred.
        self.inside[: self.n_groups] = np.finfo(centers.dtype).max ** 0.5

    def choose(self, X: Rows, group: NDArray[np.int32]) -> tuple[NDArray[np.int32], Floats]:
        """Return for every row the nearest candidate of its group: ids of centers (n,), and squared distances (n,).

        A group is a set of rows with the same candidate centers.    group (n,): index of each row's group
        """
        n_groups, centers = self.n_groups, self.places[self.n_groups :]
        labels, distances = X.reassign(self.places, self.lists, group, self.inside, share=1.0)
        # A row that equals the point of its group in `origins` remains assigned to it, because its distance is 0.
        # Such a row gets the candidate center that is nearest to this point.
        stayed = labels < n_groups
        if stayed.any():
            used, place = np.unique(group[stayed], return_inverse=True)
            no_lists = np.empty((len(centers), 0), dtype=np.int32)
            found = Dense(self.places[used]).search_lists(centers, no_lists, self.offered[used], 1)
            labels[stayed] = n_groups + found.kept[place, 0]
            distances[stayed] = X[stayed].own_distances(centers, labels[stayed] - np.int32(n_groups))
        return labels - np.int32(n_groups), distances


def coarse_centers(sample: Rows, n_cells: int, rng: np.random.RandomState) -> Floats:
    """Divide sampled rows into coarse cells (groups of rows) by a few k-means iterations, and return their centers.

    sample (n, D): the rows    n_cells: number of initial cells    rng: source of random numbers
    The result has shape (m, D) with m ≤ n_cells, because empty cells are removed.
    """
    centers = sample[rng.choice(len(sample), min(n_cells, len(sample)), replace=False)].dense()
    found = sample.lloyd(centers, _ITERATIONS, 0.0, keep_empty=True)
    assert found is not None
    return found.centers[found.counts > 0]


def table(groups: NDArray, n_groups: int) -> NDArray[np.int32]:
    """Return the indices of each group's items: (n_groups, size of the largest group) int32, ascending, −1 padded.

    groups (n,): index of the group of each of n items    n_groups: number of groups
    """
    counts = np.bincount(groups, minlength=n_groups)
    out = np.full((n_groups, max(int(counts.max(initial=0)), 1)), -1, dtype=np.int32)
    order = np.argsort(groups, kind="stable")
    begin = np.concatenate([[0], np.cumsum(counts)[:-1]])
    out[groups[order], np.arange(len(groups)) - begin[groups[order]]] = order
    return out


class Cells:
    """Coarse cells of the components' centers, and for each cell the components of the cells nearest to it.

    A cell is a group of components whose centers are near each other. A cell with more than four times the average
    number of components (a clump that k-means did not divide) is cut into smaller cells. If components in such a cell
    have equal centers, the first of them represents the others.

    coarse (g, D): centers of the g cells    members (g, m): components of each cell, padded with −1
    first (C,): for each component, the first component with the same center    clumped: whether a large cell was cut
    """

    def __init__(self, centers: Floats, n_near: int = _NEAR):
        self.centers = centers
        rng = np.random.RandomState(0)  # the seed is constant, because cells affect only time and recall of a search
        C, n_cells = len(centers), math.isqrt(len(centers) - 1) + 1
        few = n_cells * SAMPLE_PER_CELL < C
        sample = centers[np.sort(rng.choice(C, n_cells * SAMPLE_PER_CELL, replace=False))] if few else centers
        self.coarse = coarse_centers(Dense(sample), n_cells, rng)
        self.first = np.arange(C, dtype=np.int32)
        cell, limit = Dense(centers).nearest(self.coarse)[0][:, 0], _MOST * -(-C // n_cells)
        self.clumped = bool(np.bincount(cell).max() > limit)
        if self.clumped:
            cell = self._cut(cell, limit)
        used, places = np.unique(cell, return_inverse=True)
        self.coarse = self.coarse[used]
        standing = np.flatnonzero(self.first == np.arange(C)).astype(np.int32)
        members = table(places[standing], len(used))
        self.members = np.where(members < 0, np.int32(-1), standing[members])
        self.offer = GroupedCenters(self.coarse, centers, self._offered(n_near))

    def _cut(self, cell: NDArray[np.int32], limit: int) -> NDArray[np.int32]:
        """Cut cells with more than `limit` components, and append the centers of the new cells to `self.coarse`.

        cell (C,): index of each component's cell before the cut    Returns these indices after the cut (C,).
        """
        coarse = [self.coarse]
        for big in np.flatnonzero(np.bincount(cell) > limit):
            members = np.flatnonzero(cell == big)
            _, first, same = np.unique(self.centers[members], axis=0, return_index=True, return_inverse=True)
            self.first[members] = members[first][same.reshape(-1)]
            pieces = halved(self.centers, np.sort(members[first]), limit)
            for number, piece in enumerate(pieces, start=sum(map(len, coarse))):
                cell[piece] = number
            coarse.append(np.stack([self.centers[piece].mean(axis=0) for piece in pieces]))
            cell[members] = cell[self.first[members]]
        self.coarse = np.concatenate(coarse)
        return cell

    def _near(self, n_near: int) -> NDArray[np.int32]:
        """Return the n_near cells (groups of components) nearest to each of g cells, itself first: (g, n_near).

        If there are fewer than n_near cells, all g are returned.
        """
        return Dense(self.coarse).nearest(self.coarse, min(n_near, len(self.coarse)))[0]

    def _offered(self, n_near: int) -> NDArray[np.int32]:
        """Return all components in the n_near cells (groups of components) nearest to each of g cells.

        The result is (g, largest number of components), padded with −1.
        """
        rows = [self._components(near) for near in self._near(n_near)]
        out = np.full((len(rows), max(map(len, rows))), -1, dtype=np.int32)
        for i, row in enumerate(rows):
            out[i, : len(row)] = row
        return out

    def _components(self, cells: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the ids (m,) of all components in the given cells (groups of components), cell by cell."""
        members = self.members[cells]
        return members[members >= 0]

    def find(self, X: Rows) -> tuple[NDArray[np.int32], Floats]:
        """Return each row's nearest component in the cells (groups of components) near it.

        Returns ids of components (n,), and squared distances to their centers (n,).
        """
        return self.offer.choose(X, X.nearest(self.coarse)[0][:, 0])

    def lists(self, n_neighbors: int, n_near: int = _NEAR_OF_LISTS) -> NDArray[np.int32]:
        """Return approximate neighbors of every component, itself included: (C, n_neighbors), nearest first.

        n_near: number of nearest cells (groups of components) that are searched. If they have fewer than n_neighbors
        components, lists are padded with −1. Of components with equal centers only one is listed, unless there are too
        few others.
        """
        C = len(self.centers)
        out = np.full((C, n_neighbors), -1, dtype=np.int32)
        copies = np.flatnonzero(self.first != np.arange(C)).astype(np.int32)
        of = self.first[copies]
        copies, of = copies[np.argsort(of, kind="stable")], np.sort(of)
        for members, near in zip(self.members, self._near(n_near), strict=True):
            members, offered = members[members >= 0], self._components(near)
            for first in offered if len(offered) < n_neighbors else ():
                begin, end = np.searchsorted(of, [first, first + 1])
                offered = np.append(offered, copies[begin : min(end, begin + n_neighbors)])
            n = min(n_neighbors, len(offered))
            kept, _ = Dense(self.centers[members]).nearest(self.centers[offered], n)
            out[members, :n] = offered[kept]
        out[copies] = out[of]
        absent = np.flatnonzero((out != np.arange(C, dtype=np.int32)[:, np.newaxis]).all(axis=1)).astype(np.int32)
        out[absent] = np.column_stack([absent, out[absent, :-1]])
        return out


def halved(points: Floats, members: NDArray, limit: int) -> list[NDArray]:
    """Divide some points into pieces of at most `limit` / 2 points by repeated cuts at the median.

    Each cut is along the coordinate in which the piece's points have the widest range.
    members (m,): indices of the points to divide in `points` (n, D)    Returns the indices of each piece.
    """
    if len(members) <= limit // 2:
        return [members]
    held = points[members]
    order = np.argsort(held[:, np.ptp(held, axis=0).argmax()], kind="stable")
    middle = len(members) // 2
    return halved(points, members[order[:middle]], limit) + halved(points, members[order[middle:]], limit)
