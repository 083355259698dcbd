"""Seeding by AFK-MC²: k-means++ whose draws are replaced by short Metropolis chains.

Source: Bachem, Lucic, Hassani & Krause, "Fast and provably good seedings for k-means" (2016), algorithm 1.
Each new center is the last state of a chain of m proposals from
    q(x_n) = w_n g_n,   g_n = ½ d(x_n, x_1)² / Σ_i w_i d(x_i, x_1)² + ½ / Σ_i w_i,
where w_n is the weight of row x_n, d the distance and x_1 the first center. The target distribution of the chain is
∝ w_n d(x_n, chosen)², where d(x, chosen) is the distance to the nearest chosen center. So a proposal y replaces the
state x if d(y, chosen)² g(x) / (d(x, chosen)² g(y)) > u, with u uniform in [0, 1) (the weights cancel). With equal
weights q is the paper's.

The proposals do not depend on later centers, so all are drawn first. Centers are chosen in blocks: one kernel call
computes the distances of a block's proposals to all earlier centers, and each new center of the block then requires
one small update. Time O(m C² D) and two passes over X (n, D), memory O(n + C m + block · m · D).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime._utils.arguments import check_integer
from cprime.kernels import Rows
from cprime.seeding.kmeans_plusplus import cumulative_mass
from cprime.seeding.sampling import complete, draw, draw_first
from cprime.seeding.validation import MOST_DRAWS, check_data, rows_at

BLOCK = 64  # number of centers whose proposals are compared with earlier centers in one kernel call


def afk_mc2(
    X: ArrayLike,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
    chain_length: int = 20,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Choose rows of X as starting centers by AFK-MC².

    AFK-MC² approximates plain k-means++ and reads X only twice, for any number of centers [1]_. Time
    O(n_samples · n_features + chain_length · n_clusters² · n_features).

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
    chain_length : int, default=20
        Number of proposals m in the chain of each center. Longer chains approximate k-means++ better.
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
        If X is empty, not two-dimensional or not finite, n_clusters is not in 1 … n_samples, chain_length
        is below 1, or a weight is negative or all are zero.
    TypeError
        If n_clusters or chain_length is not an integer.

    Warns
    -----
    ConvergenceWarning
        If X has fewer distinct rows than n_clusters, so that some of the chosen rows are equal.

    Notes
    -----
    If all proposals of a chain coincide with chosen centers, the new center is drawn from the chain's target
    distribution itself, as in k-means++.

    References
    ----------
    .. [1] O. Bachem, M. Lucic, S. H. Hassani and A. Krause, "Fast and provably good seedings for k-means",
       NIPS 2016.

    Examples
    --------
    >>> from cprime.datasets import birch
    >>> from cprime.seeding import afk_mc2
    >>> X = birch(3, random_state=0).data
    >>> centers, indices = afk_mc2(X, 9, random_state=0)
    >>> centers.shape, bool((centers == X[indices]).all())
    ((9, 2), True)
    """
    data, weights, rng = check_data(X, n_clusters, sample_weight, random_state)
    check_integer(chain_length, "chain_length", 1, MOST_DRAWS)
    indices = choose_by_afk_mc2(data, n_clusters, weights, rng, chain_length, n_threads)
    return rows_at(data, indices), indices


def choose_by_afk_mc2(
    X: Rows,
    n_clusters: int,
    sample_weight: NDArray | None,
    rng: np.random.RandomState,
    chain_length: int = 20,
    n_threads: int | None = None,
) -> NDArray:
    """Choose C distinct rows by Metropolis chains (AFK-MC²), and return their indices (C,) int64.

    X (n, D) float32 or float64; sample_weight (n,) float64 or None; chain_length: number of proposals per chain
    """
    indices = np.empty(n_clusters, dtype=np.int64)
    indices[0] = draw_first(len(X), sample_weight, rng)
    centers = np.empty((n_clusters, X.shape[1]), dtype=X.dtype)
    centers[0] = X[indices[:1]].dense()[0]
    exact = _ExactDraw(X, centers, sample_weight, n_threads)
    density = _proposal_density(exact.closest, sample_weight)
    proposal = np.cumsum(density if sample_weight is None else density * sample_weight)
    # Row c of `rows` has the indices of the proposed rows of X for center c; row 0 is unused.
    rows = draw(proposal, rng.uniform(size=(n_clusters, chain_length)))
    thresholds = rng.uniform(size=(n_clusters, chain_length))

    for start in range(1, n_clusters, BLOCK):
        stop = min(start + BLOCK, n_clusters)
        points = X[rows[start:stop].ravel()]
        closest = points.nearest(centers[:start], n_threads=n_threads)[1][:, 0]
        for c in range(start, stop):
            position = _walk(closest[:chain_length], density[rows[c]], thresholds[c])
            if position is None:
                row = exact.row(c, rng)
                if row is None:
                    return complete(indices[:c], len(X), n_clusters, sample_weight, rng)
            else:
                row = int(rows[c, position])
            indices[c] = row
            centers[c] = X[indices[c : c + 1]].dense()[0]
            points = points[chain_length:]
            closest = closest[chain_length:]
            if len(points):
                closest = points.distances(centers[c : c + 1], closest, n_threads=1)[0]
    return indices


def _proposal_density(distances: NDArray, sample_weight: NDArray | None) -> NDArray:
    """Return the proposal density g_n, (n,) float64: half uniform, half ∝ squared distance to the first center.

    The probability of proposing row n, with weight w_n, is w_n g_n.
    distances (n,): squared distances to the first center    sample_weight (n,): weights, or None
    """
    mass = cumulative_mass(distances, sample_weight)[-1]
    total_weight = len(distances) if sample_weight is None else sample_weight.sum()
    uniform = 0.5 / total_weight
    if not mass > 0:
        return np.full(len(distances), 2 * uniform)
    return 0.5 * distances.astype(np.float64) / mass + uniform


def _walk(distances: NDArray, density: NDArray, thresholds: NDArray) -> int | None:
    """Run one Metropolis chain; return the position of its last state among its m proposals.

    Return None if all proposals coincide with chosen centers. Each argument (m,) has one number per proposal.
    distances: squared distance to the nearest chosen center    density: proposal probability / weight
    thresholds: uniform random numbers in [0, 1); a proposal is accepted if its acceptance ratio is greater
    """
    importance = (distances / density).tolist()
    state, current = 0, importance[0]
    for step, (proposed, u) in enumerate(zip(importance, thresholds.tolist(), strict=True)):
        if proposed > u * current:
            state, current = step, proposed
    return state if current > 0 else None


class _ExactDraw:
    """Draws of rows x_n with probability proportional to w_n d(x_n, nearest chosen center)², for weights w_n.

    AFK-MC² approximates such draws by Metropolis chains. An exact draw replaces a chain whose proposals all coincide
    with chosen centers.
    closest (n,): squared distance of each row to the nearest of the first n_seen centers; updated only if needed
    """

    def __init__(self, X: Rows, centers: NDArray, sample_weight: NDArray | None, n_threads: int | None) -> None:
        self.X = X
        self.centers = centers
        self.sample_weight = sample_weight
        self.n_threads = n_threads
        self.closest = X.distances(centers[:1], n_threads=n_threads)[0]
        self.n_seen = 1

    def row(self, n_centers: int, rng: np.random.RandomState) -> int | None:
        """Draw a row, where the chosen centers are the first n_centers centers, and return the row's index.

        Return None if all rows of positive weight coincide with chosen centers.
        """
        if n_centers > self.n_seen:
            new = self.centers[self.n_seen : n_centers]
            np.minimum(
                self.closest,
                self.X.nearest(new, n_threads=self.n_threads)[1][:, 0],
                out=self.closest,
            )
            self.n_seen = n_centers
        cumulative = cumulative_mass(self.closest, self.sample_weight)
        if not cumulative[-1] > 0:
            return None
        return int(draw(cumulative, rng.uniform(size=1))[0])
