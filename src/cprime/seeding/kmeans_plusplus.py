"""Seeding by k-means++, plain or greedy: each new center is a row drawn with probability ∝ w_n d(x_n, chosen)².

w_n is the weight of row x_n, and d its distance to the nearest chosen center. Greedy means that the best of several
drawn rows is chosen. Source: Arthur & Vassilvitskii, "k-means++: the advantages of careful seeding" (2007), section 2.2
for the draw and the closing remarks for the greedy choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime import kernels
from cprime._utils.arguments import check_integer
from cprime._utils.random import seeded
from cprime.kernels import Rows
from cprime.seeding.sampling import complete, draw
from cprime.seeding.validation import MOST_DRAWS, check_data, rows_at

# Maximum number of next centers for which candidate rows are drawn together, in one pass over the data.
_MOST_STEPS = 8
# After n centers have been chosen, candidates for the next n / 16 centers, at least one, are drawn together.
_CENTERS_PER_STEP = 16
# One extra candidate is drawn for this many candidates, to replace rejected ones.
_SPARE = 8
# Maximum size in bytes of the distances of all rows to the candidates that are drawn together, to limit memory.
_MOST_BYTES = 2**28


def kmeans_plusplus(
    X: ArrayLike,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    n_local_trials: int | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Choose rows of X as starting centers by greedy k-means++.

    The first center is a row drawn by weight. For each further center, `n_local_trials` rows are drawn with
    probability proportional to w_n d(x_n, chosen)², with the weight w_n and the distance d to the nearest chosen
    center; the row that gives the smallest potential Σ_n w_n d(x_n, chosen)² is chosen [1]_. Time O(n_samples ·
    n_clusters · n_features · n_local_trials).

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features)
        The data. float32 and float64 are used as they are, memory maps included; anything else becomes
        float64.
    n_clusters : int
        Number of centers C, at most n_samples.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; None means equal ones. A row of weight zero is chosen only if all others are.
    random_state : int, RandomState, Generator or None, default=None
        An int makes the choice reproducible, for any number of threads.
    n_local_trials : int or None, default=None
        Rows tried for each center, at most 65,536. None means 2 + ⌊ln C⌋, 1 is plain k-means++.
    n_threads : int or None, default=None
        Threads to use; None means all that the process may use.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features)
        The chosen rows, in the dtype of X.
    indices : ndarray of shape (n_clusters,), int64
        Row indices of the centers, all different: ``centers == X[indices]``.

    Raises
    ------
    ValueError
        If X is empty, not two-dimensional or not finite, n_clusters is not in 1 … n_samples, n_local_trials
        is below 1, or a weight is negative or all are zero.
    TypeError
        If n_clusters or n_local_trials is not an integer.

    Warns
    -----
    ConvergenceWarning
        If X has fewer distinct rows than n_clusters, so that some of the chosen rows are equal.

    References
    ----------
    .. [1] D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Examples
    --------
    >>> from cprime.datasets import birch
    >>> from cprime.seeding import kmeans_plusplus
    >>> X = birch(3, random_state=0).data
    >>> centers, indices = kmeans_plusplus(X, 9, random_state=0)
    >>> centers.shape, bool((centers == X[indices]).all())
    ((9, 2), True)
    """
    data, weights, rng = check_data(X, n_clusters, sample_weight, random_state)
    if n_local_trials is not None:
        check_integer(n_local_trials, "n_local_trials", 1, MOST_DRAWS)
    indices = choose_by_kmeans_plusplus(data, n_clusters, weights, rng, n_local_trials, n_threads)
    return rows_at(data, indices), indices


def choose_by_kmeans_plusplus(
    X: Rows,
    n_clusters: int,
    sample_weight: NDArray | None,
    rng: np.random.RandomState,
    n_local_trials: int | None = None,
    n_threads: int | None = None,
) -> NDArray:
    """Choose n_clusters = C distinct rows by (greedy) D² sampling, and return their indices (C,) int64.

    D² sampling draws rows with probability proportional to weight times squared distance to the nearest chosen center.
    Candidates for several centers are drawn together, so that X is read once for all of them. When a later center is
    chosen, a candidate is accepted with probability (squared distance now) / (squared distance when drawn). So accepted
    candidates are distributed like new draws (rejection sampling).

    X (n, D) float32 or float64; sample_weight (n,) float64 or None
    n_local_trials: number of rows tried for each center, None for 2 + ⌊ln C⌋
    """
    if n_local_trials is None:
        n_local_trials = 2 + int(math.log(n_clusters))
    order = order_of_values(X)  # so that draws depend on the points' values, not on their order
    indices = np.empty(n_clusters, dtype=np.int64)
    masses = np.ones(len(X)) if sample_weight is None else sample_weight
    n_weighted = int(np.count_nonzero(masses))
    indices[0] = order[draw(np.cumsum(masses[order]), rng.uniform(size=1))[0]]
    closest = X.distances(X[indices[:1]].dense(), n_threads=n_threads)[0]
    c, buffer = 1, np.empty((0, len(X)), dtype=X.dtype)
    while c < n_clusters:
        cumulative = cumulative_mass(closest, sample_weight, order)
        if not cumulative[-1] > 0:
            return complete(indices[:c], len(X), n_clusters, sample_weight, rng)
        n_proposed = _n_proposed(c, n_local_trials, n_weighted * X.dtype.itemsize)
        proposed = order[draw(cumulative, rng.uniform(size=n_proposed))]
        bars = rng.uniform(size=n_proposed) * closest[proposed]
        if n_proposed > len(buffer):
            buffer = np.empty((n_proposed, len(X)), dtype=X.dtype)
        distances = X.distances(X[proposed].dense(), closest, out=buffer[:n_proposed], n_threads=n_threads)
        places = iter(range(n_proposed))
        while c < n_clusters:
            candidates: list[int] = []
            # A loop replaces a generator expression, in which a KeyboardInterrupt could be lost.
            for i in places:
                if closest[proposed[i]] > bars[i]:
                    candidates.append(i)
                    if len(candidates) == n_local_trials:
                        break
            if len(candidates) < n_local_trials:
                break
            potentials = kernels.potentials(
                distances, closest, sample_weight, candidates=np.array(candidates), n_threads=n_threads
            )
            best = candidates[int(potentials.argmin())]
            indices[c] = proposed[best]
            np.minimum(distances[best], closest, out=closest)
            c += 1
    return indices


def choose_in_problems(
    X: Rows,
    offsets: NDArray[np.int64],
    n_clusters: int,
    sample_weight: NDArray | None,
    draw_uniform: Callable[[int, int], NDArray],
    n_local_trials: int | None = None,
) -> NDArray[np.int64]:
    """Choose C distinct rows of each of B small problems by (greedy) D² sampling: row indices in the problem (B, C).

    Problem b has the rows offsets[b] … offsets[b + 1] − 1 of X, and their weights. The chosen rows are those that
    `choose_by_kmeans_plusplus` chooses. If too few rows of a problem are different, or far more random numbers are
    needed than expected, its first index is −1, and the caller must use `choose_by_kmeans_plusplus` instead.
    draw_uniform: function of b and m that returns the first m random numbers in [0, 1) of problem b
    """
    trials = 2 + int(math.log(n_clusters)) if n_local_trials is None else n_local_trials
    sizes = np.diff(offsets)
    n_bytes = trials * int(sizes.max()) * X.dtype.itemsize
    assert sizes.max() <= most_rows(n_clusters, X.dtype.itemsize, trials), "the memory of a problem limits proposals"
    n_proposed = np.array([_n_proposed(c, trials, n_bytes // trials) for c in range(n_clusters)])
    n_uniform, c = 1, 1
    # The number of random numbers suffices even if half of the candidates drawn together are rejected.
    while c < n_clusters:
        n_uniform += 2 * int(n_proposed[c])
        c += max(1, _steps_ahead(c, n_bytes) // 2)
    order = np.concatenate([order_of_values(X[offsets[b] : offsets[b + 1]]) for b in range(len(sizes))])
    uniform = np.stack([draw_uniform(b, n_uniform) for b in range(len(sizes))])
    return kernels.plus_plus_many(X, offsets, order, uniform, trials, n_proposed, sample_weight)


def most_rows(n_clusters: int, itemsize: int, n_local_trials: int | None = None) -> int:
    """Return the greatest number of rows of a small problem that `choose_in_problems` accepts.

    itemsize: bytes of a number of the data    n_local_trials: rows tried for each center, None for 2 + ⌊ln C⌋
    """
    trials = 2 + int(math.log(n_clusters)) if n_local_trials is None else n_local_trials
    return _MOST_BYTES // (_MOST_STEPS * trials * itemsize)


def trial_bytes(n_points: int, n_clusters: int, itemsize: int) -> int:
    """Return the peak memory of k-means++ seeding in bytes, in addition to the data; itemsize: bytes of a number."""
    n_trials = 2 + int(math.log(n_clusters))
    n_proposed = _n_proposed(n_clusters - 1, n_trials, n_points * itemsize)
    # There are two arrays of distances at the peak: while a larger one is allocated, the old one still exists.
    alive = 1 if n_proposed == n_trials else 2
    # Further memory for each row: index, weighted squared distance, cumulative sum (8 bytes each), and a distance.
    return alive * n_proposed * n_points * itemsize + n_points * (3 * 8 + itemsize)


def _n_proposed(n_chosen: int, n_trials: int, n_bytes: int) -> int:
    """Return the number of candidate rows that k-means++ draws together, for the next center or several next centers.

    n_chosen: number of centers chosen so far    n_trials: candidates per center
    n_bytes: size of the array of distances to one candidate
    """
    steps = _steps_ahead(n_chosen, n_trials * n_bytes)
    return n_trials * steps + (n_trials * steps // _SPARE if steps > 1 else 0)


def _steps_ahead(n_chosen: int, n_bytes: int) -> int:
    """Return the number of next centers for which candidates are drawn together: few if few centers are chosen.

    The first centers change the distances most, so that many candidates drawn before would be rejected. The distances
    to all candidates that are drawn together must also fit into a fixed amount of memory.
    n_chosen: number of centers chosen so far
    n_bytes: size of the array of distances to all candidates of one center
    """
    return max(1, min(_MOST_STEPS, n_chosen // _CENTERS_PER_STEP, _MOST_BYTES // n_bytes))


def order_of_values(X: Rows) -> NDArray:
    """Return indices (n,) that sort the rows by a fixed random projection of their values.

    Draws in this order do not depend on the original order of rows, except for different rows of equal projection. A
    row of weight 2 is drawn by the same random numbers as a row that occurs twice.
    """
    with seeded(0) as rng:
        direction = rng.standard_normal((X.shape[1],))
    return np.argsort(X.projected(direction), kind="stable")


def cumulative_mass(distances: NDArray, sample_weight: NDArray | None, order: NDArray | slice = slice(None)) -> NDArray:
    """Return the cumulative sums (n,) of weight times squared distance over rows in the given order, for draws of rows.

    distances (n,): squared distances to the nearest chosen centers    order (n,): row indices
    """
    mass = distances if sample_weight is None else distances * sample_weight
    return np.cumsum(mass[order], dtype=np.float64)
