"""Seeding in two levels: about √C coarse cells, and in each its share of the C centers.

A cell gets centers in proportion to J_cell^(d/(d+2)), d being the intrinsic dimension that the coarse level shows: so
every center answers for about the same distortion, as in an optimal quantiser (Zador 1982, Gersho 1979). Within a cell
candidates are drawn with probability ½ / N_cell + ½ d(x, cell)² / J_cell, the proposal of AFK-MC², and of these
the centers by greedy D² sampling, as in k-means++. O(N √C D) in all.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime.kernels import grouped_order, spread_out
from cprime.kernels.native import Floats
from cprime.search.cells import Cells, choose_from, coarse_centers, nearest_of_few, table
from cprime.seeding.sampling import complete, draw_distinct, gather
from cprime.seeding.validation import check_data, warn_of_duplicates

_CANDIDATES = 4  # rows drawn for each center, of which one is taken
_TRIALS = 3  # of the candidates, those tried for each center
_MOST_CANDIDATES = 2048  # among which centers are spread at a time


def two_level(
    X: ArrayLike,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Choose rows of X as starting centers, spread over coarse cells by the distortion in each.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data. float32 and float64 are used as they are; anything else becomes float64.
    n_clusters : int
        Number of centers C, at most n_samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; None means equal ones.
    random_state : int, RandomState instance or None, default=None
        An int makes the choice reproducible.
    n_threads : int or None, default=None
        Threads to use; None means all that the process may use. The choice does not depend on it.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features)
        The chosen rows, in the dtype of X.
    indices : ndarray of shape (n_clusters,), int64
        Their positions: ``centers == X[indices]``.

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
    """
    data, weights, rng = check_data(X, n_clusters, sample_weight, random_state)
    indices, _ = choose_by_two_levels(data, n_clusters, weights, rng, n_threads)
    centers = gather(data, indices)
    warn_of_duplicates(centers)
    return centers, indices


def choose_by_two_levels(
    X: Floats, n_clusters: int, sample_weight: NDArray | None, rng: np.random.RandomState, n_threads: int | None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Rows to start from (C,), and for every point of X the nearest of those in its own cell (N,)."""
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    if np.count_nonzero(weights) < n_clusters:  # all rows of weight, and then some of the others
        indices = complete(np.flatnonzero(weights), len(X), n_clusters, None, rng)
        return indices, Cells(gather(X, indices), n_threads).find(X)[0]
    n_cells = math.isqrt(n_clusters - 1) + 1
    heavy = X if sample_weight is None else X[draw_distinct(len(X), min(len(X), 128 * n_cells), weights, rng)]
    cells = coarse_centers(heavy, n_cells, rng, n_threads)
    cell, squared = nearest_of_few(X, cells, n_threads)
    distortion = np.bincount(cell, weights * squared, len(cells))
    mass = np.bincount(cell, weights, len(cells))
    available = np.bincount(cell[weights > 0], minlength=len(cells))
    share = _shares(distortion, _spread(X, weights), available, n_clusters)

    mass[mass == 0] = distortion[distortion == 0] = 1.0  # of cells where nothing, or no distance, is to be shared
    chance = weights * (0.5 / mass[cell] + 0.5 * squared / distortion[cell])
    with np.errstate(divide="ignore"):
        key = np.log(rng.standard_exponential(len(X))) - np.log(chance)  # the smallest are such a draw
    members = np.split(
        grouped_order(cell, len(cells), n_threads=n_threads), np.cumsum(np.bincount(cell, minlength=len(cells)))[:-1]
    )
    drawn, n_chosen = [], []
    for rows, n in zip(members, share, strict=True):
        m = min(_CANDIDATES * int(n), int(np.isfinite(key[rows]).sum()))
        if m:
            rows = np.sort(rows[np.argpartition(key[rows], m - 1)[:m]])
            n_blocks = -(-m // _MOST_CANDIDATES)  # the work grows with the square of a block
            drawn += np.array_split(rows, n_blocks)
            n_chosen += [len(block) for block in np.array_split(np.arange(n), n_blocks)]
    candidates = np.concatenate(drawn)
    offsets = np.cumsum([0] + [len(rows) for rows in drawn])
    chosen = spread_out(
        gather(X, candidates),
        offsets,
        weights[candidates] / chance[candidates],
        np.array(n_chosen),
        rng.uniform(size=(n_clusters, _TRIALS)),
        n_threads=n_threads,
    )
    indices = np.sort(candidates[np.repeat(offsets[:-1], n_chosen) + chosen])
    indices = indices[np.argsort(cell[indices], kind="stable")]
    owner = np.repeat(np.arange(len(cells)), share)
    offered = table(owner, len(cells))
    inhabited = offered[:, 0] >= 0
    offered[~inhabited, 0] = 0  # a cell without points of weight has no center of its own
    labels, _ = choose_from(X, cell, cells, X[indices], offered, n_threads)
    return indices.astype(np.int64), labels


def _spread(X: Floats, weights: NDArray) -> float:
    """Σ_n w_n ‖x_n − mean‖² [data unit²], from some ten thousand rows: it only has to show a rate."""
    step = -(-len(X) // 10_000)
    rows, w = X[::step], weights[::step]
    if not w.any():
        return 0.0
    mean = (w[:, np.newaxis] * rows).sum(axis=0) / w.sum()
    return float((w * np.square(rows - mean).sum(axis=1)).sum() * weights.sum() / w.sum())


def _shares(distortion: NDArray, spread: float, available: NDArray, n_clusters: int) -> NDArray[np.int64]:
    """How many centers each cell gets: Σ = n_clusters, at most what is available, by J^(d/(d+2)) and largest remainder.

    J falls with the number of cells k as k^(−2/d); the coarse level, from 1 cell to all, shows d.
    """
    total = distortion.sum()
    if total > 0 and spread > total and len(distortion) > 1:
        dimension = 2 * math.log(len(distortion)) / math.log(spread / total)
    else:
        dimension = math.inf
    power = 1 / (1 + 2 / dimension)
    wanted = np.maximum(distortion, total * 1e-12) ** power if total > 0 else available.astype(float)
    share = np.zeros(len(distortion), dtype=np.int64)
    while (left := n_clusters - share.sum()) > 0:  # a full cell hands on what it cannot take
        room = available > share
        ideal = np.where(room, wanted, 0.0)
        ideal *= left / ideal.sum()
        more = np.minimum(np.floor(ideal).astype(np.int64), available - share)
        if not more.any():
            more = np.zeros_like(share)
            more[np.argsort(-ideal, kind="stable")[: min(left, np.count_nonzero(room))]] = 1
        share += more
    return share
