"""Seeding in two levels: about √C coarse cells, and in each cell a share of the C centers.

The share of a cell is proportional to J_cell^(d/(d+2)), where J_cell is the cell's sum of squared distances to its
center and d the intrinsic dimension of the data, estimated from the cells. So every cluster has about the same sum of
squared distances, as in an optimal quantizer (Zador 1982, Gersho 1979). Within a cell of N_cell points, candidates are
drawn with probability ½ / N_cell + ½ ‖x − center of cell‖² / J_cell, the proposal of AFK-MC²; centers are chosen among
the candidates by greedy D² sampling, as in k-means++. Total time O(N √C D).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime._utils.random import Key, Purpose
from cprime.execution import Data, local
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums
from cprime.kernels import Floats, Rows, computing, grouped_order
from cprime.neighbors import SAMPLE_PER_CELL, Cells, GroupedCenters, coarse_centers, table
from cprime.seeding.keys import FindSmallestKeys, SelectWeightedRows
from cprime.seeding.sampling import complete
from cprime.seeding.validation import check_data, rows_at

# Number of rows that are drawn as candidates for each center to be chosen.
_CANDIDATES = 4
# Number of candidates that greedy sampling tries for each center; the best one becomes the center.
_TRIALS = 3
# Maximum number of candidates in one run of greedy sampling, because its time grows with the square of this number.
_MOST_CANDIDATES = 2048
# A cell with more than this multiple of the mean number of centers per cell, √C, is searched approximately.
_MOST_OFFERED = 16


def two_level(
    X: ArrayLike,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Choose rows of X as starting centers, a number from each of about √C coarse cells (groups of rows).

    Cells with a larger sum of squared distances (distortion) get more centers.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features)
        The data. float32 and float64 are used as they are; anything else becomes float64.
    n_clusters : int
        Number of centers C, at most n_samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; None means equal ones.
    random_state : int, RandomState, Generator or None, default=None
        An int makes the choice reproducible.
    n_threads : int or None, default=None
        Threads to use; None means all that the process may use. The choice does not depend on it.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features)
        The chosen rows, in the dtype of X.
    indices : ndarray of shape (n_clusters,), int64
        Row indices of the centers: ``centers == X[indices]``.

    Raises
    ------
    ValueError
        If X is empty, not two-dimensional or not finite, n_clusters is not in 1 … n_samples, or a weight is
        negative or all are zero.
    TypeError
        If n_clusters is not an integer.

    Warns
    -----
    ConvergenceWarning
        If some of the chosen rows are equal.

    Examples
    --------
    >>> from cprime.datasets import birch
    >>> from cprime.seeding import two_level
    >>> centers, indices = two_level(birch(10, random_state=0).data, 100, random_state=0)
    >>> centers.shape
    (100, 2)
    """
    data, weights, rng = check_data(X, n_clusters, sample_weight, random_state)
    with computing(n_threads):
        indices, _ = choose_by_two_levels(local(data, weights), n_clusters, rng)
    return rows_at(data, indices), indices


def choose_by_two_levels(
    data: Data, n_clusters: int, rng: np.random.RandomState, n_cells: int | None = None
) -> tuple[NDArray[np.int64], Floats]:
    """Choose rows as starting centers in two levels (coarse cells, centers of each cell).

    Returns the indices of the rows (C,), and the rows as centers (C, D).

    The active set of each point in `data` becomes the nearest center of the point's own cell. Two passes read the data:
    one finds the cell of each point, the other this nearest center.
    """
    key = Key(int(rng.randint(2**31)))
    heavy = data.each(SelectWeightedRows(n_clusters)) if data.weighted else None
    # If too few rows have positive weight, all of these are chosen, and some of zero weight.
    if heavy is not None and heavy.n < n_clusters:
        indices = complete(heavy.rows, data.n_points, n_clusters, None, rng)
        centers = data.take(indices).X.dense()
        _label(data, np.zeros((1, data.n_features), dtype=data.dtype), centers, np.zeros(n_clusters, int))
        return indices, centers
    n_cells = math.isqrt(n_clusters - 1) + 1 if n_cells is None else min(n_cells, n_clusters)
    n = min(data.n_weighted, SAMPLE_PER_CELL * n_cells)
    if data.weighted:
        sampled = data.each(FindSmallestKeys(key, n)).rows
    else:
        sampled = np.sort(key.generator(Purpose.SEEDING).choice(data.n_points, n, replace=False, shuffle=False))
    sample = data.take(sampled).X
    cells = coarse_centers(sample, n_cells, rng)
    coarse = data.each(NearestCells(cells))
    data.commit()
    spread = _spread(sample) * coarse.mass.sum() / n
    share = _shares(coarse.distortion, spread, coarse.available, n_clusters)

    mass, distortion = coarse.mass.copy(), coarse.distortion.copy()
    mass[mass == 0] = distortion[distortion == 0] = 1.0  # no division by zero in cells without weight or distortion
    drawn = data.each(Candidates(key, mass, distortion, _CANDIDATES * share))
    groups, n_chosen = list[NDArray](), list[int]()
    for rows, n_own in zip(np.split(np.arange(len(drawn.rows)), np.cumsum(drawn.counts)[:-1]), share, strict=True):
        if len(rows):
            # Candidates are divided into blocks, because the time grows with the squared size of a block.
            n_blocks = -(-len(rows) // _MOST_CANDIDATES)
            groups += np.array_split(rows, n_blocks)
            n_chosen += map(len, np.array_split(np.arange(n_own), n_blocks))
    offsets = np.cumsum([0, *map(len, groups)])
    candidates = data.take(drawn.rows).X
    uniform = rng.uniform(size=(n_clusters, _TRIALS))
    chosen = np.repeat(offsets[:-1], n_chosen) + candidates.spread_out(
        offsets, drawn.ratios, np.array(n_chosen), uniform
    )
    owner = np.repeat(np.arange(len(cells)), drawn.counts)
    chosen = chosen[np.lexsort((drawn.rows[chosen], owner[chosen]))]
    centers = candidates[chosen].dense()
    _label(data, cells, centers, owner[chosen])
    return drawn.rows[chosen], centers


def _label(data: Data, cells: Floats, centers: Floats, owner: NDArray) -> None:
    """Set the active set of each point to the nearest center of the point's own cell.

    In a cell with more than 16 √C of the C centers, the search is approximate: it uses coarse cells of these centers.
    cells: centers of the coarse cells    owner (C,): index of the cell to which each center belongs
    """
    limit = _MOST_OFFERED * (math.isqrt(len(centers) - 1) + 1)
    share = np.bincount(owner, minlength=len(cells))
    crowds = {}
    for cell in np.flatnonzero(share > limit):
        ids = np.flatnonzero(owner == cell).astype(np.int32)
        crowds[int(cell)] = ids, Cells(centers[ids])
    others = np.flatnonzero(share[owner] <= limit)
    places = table(owner[others], len(cells))
    offered = np.where(places < 0, np.int32(-1), np.append(others, -1).astype(np.int32)[places])
    # A cell without points of positive weight has no center. Center 0 is compared instead, as a list must not be empty.
    offered[offered[:, 0] < 0, 0] = 0
    data.each(NearestInCell(cells, centers, offered, crowds))
    data.commit()


@dataclass(frozen=True)
class CellSummary(Sums):
    """Sums over the points x_n, of weights w_n, of each coarse cell (group of points).

    distortion (n_cells,): Σ w_n ‖x_n − center of cell‖²    mass (n_cells,): Σ w_n
    available (n_cells,): number of points of positive weight
    """

    distortion: NDArray[np.float64]
    mass: NDArray[np.float64]
    available: NDArray[np.int64]


@dataclass(frozen=True)
class NearestCells:
    """Job that finds the nearest of the cells' centers (n_cells, D) for every point, and sums the points of each cell.

    The nearest cell becomes the active set of the point.
    """

    cells: Floats

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[ActiveSet, CellSummary]:
        kept = ActiveSet(*block.X.nearest(self.cells))
        assert kept.costs is not None
        cell, squared, n, weights = kept.winners, kept.costs[:, 0], len(self.cells), block.sample_weight
        distortion = np.bincount(cell, squared if weights is None else weights * squared, n).astype(np.float64)
        mass = np.bincount(cell, weights, n).astype(np.float64)
        available = np.bincount(cell if weights is None else cell[weights > 0], minlength=n)
        return kept, CellSummary(distortion, mass, available)


@dataclass(frozen=True)
class CandidatesByCell:
    """Rows drawn as candidates for centers, sorted by cell and row.

    counts (n_cells,): number of candidates of each cell    rows (m,): row indices of all candidates
    keys (m,): random keys of the candidates; in each cell, the rows with the smallest keys are drawn
    ratios (m,): weight / (draw probability) of the candidates    limit (n_cells,): upper limits of `counts`
    """

    counts: NDArray[np.int64]
    rows: NDArray[np.int64]
    keys: NDArray[np.float64]
    ratios: NDArray[np.float64]
    limit: NDArray[np.int64]

    def __add__(self, other: CandidatesByCell) -> CandidatesByCell:
        cells = np.arange(len(self.counts))
        cell = np.concatenate([np.repeat(cells, self.counts), np.repeat(cells, other.counts)])
        rows, keys, ratios = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("rows", "keys", "ratios")
        )
        first = np.lexsort((rows, keys, cell))
        counts = self.counts + other.counts
        rank = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        first = first[rank < self.limit[cell[first]]]
        first = first[np.lexsort((rows[first], cell[first]))]
        return CandidatesByCell(np.minimum(counts, self.limit), rows[first], keys[first], ratios[first], self.limit)


@dataclass(frozen=True)
class Candidates:
    """Job that draws up to limit[i] distinct rows in each cell i, with probability ∝ ½ w / mass + ½ w d² / distortion.

    w and d: weight of a row and its distance to the cell's center    mass, distortion (n_cells,): sums of w and w d²
    key: counter-based random key    limit (n_cells,): maximum numbers of rows
    """

    key: Key
    mass: NDArray[np.float64]
    distortion: NDArray[np.float64]
    limit: NDArray[np.int64]

    reads: ClassVar[bool] = False
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, CandidatesByCell]:
        assert kept is not None
        assert kept.costs is not None
        cell, n_cells = np.ascontiguousarray(kept.winners), len(self.mass)
        ratio = 0.5 / self.mass[cell] + 0.5 * kept.costs[:, 0] / self.distortion[cell]
        chance = ratio if block.sample_weight is None else block.sample_weight * ratio
        with np.errstate(divide="ignore"):  # rows of probability 0 have the random key ∞, and are not drawn
            keys = np.log(-np.log1p(-block.uniform(self.key, Purpose.SEEDING, 1))) - np.log(chance)
        ends = np.cumsum(np.bincount(cell, minlength=n_cells))[:-1]
        drawn = []
        for places, limit in zip(np.split(grouped_order(cell, n_cells), ends), self.limit, strict=True):
            m = min(int(limit), int(np.isfinite(keys[places]).sum()))
            drawn.append(np.sort(places[np.argpartition(keys[places], m - 1)[:m]]) if m else places[:0])
        places = np.concatenate(drawn)
        counts = np.array(list(map(len, drawn)))
        return None, CandidatesByCell(counts, block.rows(places), keys[places], 1 / ratio[places], self.limit)


@dataclass(frozen=True)
class NearestInCell:
    """Job that assigns every point to the nearest of the centers in its own cell.

    The nearest center becomes the active set of the point.
    offered (n_cells, m): indices of the at most m centers in each cell, padded by −1
    crowds: for each cell with more than 16 √C of the C centers, the indices of these centers, and a structure for
    approximate search
    """

    cells: Floats
    centers: Floats
    offered: NDArray[np.int32]
    crowds: dict[int, tuple[NDArray[np.int32], Cells]]

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[ActiveSet, int]:
        cell = np.zeros(len(block), dtype=np.int32) if kept is None else np.ascontiguousarray(kept.winners)
        labels, _ = GroupedCenters(self.cells, self.centers, self.offered).choose(block.X, cell)
        for crowded, (ids, inner) in self.crowds.items():
            rows = np.flatnonzero(cell == crowded)
            labels[rows] = ids[inner.find(block.X[rows])[0]]
        return ActiveSet(labels[:, np.newaxis]), len(block)


def _spread(X: Rows) -> float:
    """Return an estimate of Σ_n ‖x_n − mean‖² over all rows [data unit²], from at most ten thousand of them.

    From this and the same sum within cells, the intrinsic dimension of the data is computed.
    """
    rows = X[:: -(-len(X) // 10_000)]
    counts, sums = rows.accumulate(np.zeros((len(rows), 1), dtype=np.int32), n_components=1)
    squared = rows.distances((sums / counts[:, np.newaxis]).astype(rows.dtype))[0]
    return float(squared.astype(np.float64).sum() * len(X) / len(rows))


def _shares(distortion: NDArray, spread: float, available: NDArray, n_clusters: int) -> NDArray[np.int64]:
    """Return the number of centers for each cell: proportional to distortion^(d/(d+2)), rounded by largest remainder.

    distortion (n_cells,): sum of squared distances to the center of each cell    spread: the same for a single cell
    available (n_cells,): numbers of points of positive weight, which are upper limits of the result
    The sum of the result (n_cells,) is n_clusters. The total distortion decreases with the number of cells k as
    k^(−2/d). So the intrinsic dimension d is computed from the totals for one cell and for all cells.
    """
    total = distortion.sum()
    if total > 0 and spread > total and len(distortion) > 1:
        dimension = 2 * math.log(len(distortion)) / math.log(spread / total)
    else:
        dimension = math.inf
    power = 1 / (1 + 2 / dimension)
    wanted = np.maximum(distortion / total, 1e-12) ** power if total > 0 else available.astype(float)
    share = np.zeros(len(distortion), dtype=np.int64)
    # Centers that a cell with too few points cannot get are distributed among other cells.
    while (left := n_clusters - share.sum()) > 0:
        has_room = available > share
        ideal = np.where(has_room, wanted, 0.0)
        ideal *= left / ideal.sum()
        more = np.minimum(np.floor(ideal).astype(np.int64), available - share)
        if not more.any():
            more = np.zeros_like(share)
            more[np.argsort(-ideal, kind="stable")[: min(left, np.count_nonzero(has_room))]] = 1
        share += more
    return share
