"""k-means of many small problems in one call: initialization by greedy k-means++, and Lloyd's iterations.

Problem b has the rows offsets[b] … offsets[b + 1] − 1 of X, and their weights. Results are bit-identical to those of
the kernels `distances`, `potentials`, `assign` and `means`, called for one problem after another.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.threads import resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import CoreRows
from cprime.kernels.measures import Floats


class LloydResult(NamedTuple):
    """Result of Lloyd's iterations for B problems with N rows in all.

    centers (B, C, D): final centers    labels (N,) int32: nearest final center of each row, counted within its problem
    squares (N,): squared distances to these centers
    errors (B,): error J of each problem, the weighted sum of these squared distances
    n_iterations (B,): number of iterations of each problem, or −1 if the problem was omitted or one of its clusters
    became empty. The other results of a problem with −1 are undefined.
    """

    centers: Floats
    labels: NDArray[np.int32]
    squares: Floats
    errors: NDArray[np.float64]
    n_iterations: NDArray[np.int64]


class LloydRun(NamedTuple):
    """Result of all Lloyd iterations of one problem with n rows x_n of weights w_n, and C centers μ_c.

    centers (C, D): centers after the last iteration
    labels (n,) int32, squares (n,), counts (C,): nearest center of each row in the last iteration, squared distance to
    it, and Σ w_n over the rows of each center
    errors (T,), n_moved (T,): J = Σ w_n ‖x_n − μ‖² with the nearest centers of each iteration, and number of rows of
    positive weight whose nearest center changed
    converged: whether the iterations ended because of convergence, and not because of their maximum number
    settled: whether the last iteration reassigned no row
    """

    centers: Floats
    labels: NDArray[np.int32]
    squares: Floats
    counts: NDArray[np.float64]
    errors: NDArray[np.float64]
    n_moved: NDArray[np.int64]
    converged: bool
    settled: bool


def plus_plus_many(
    X: CoreRows,
    offsets: NDArray[np.int64],
    order: NDArray[np.int64],
    uniform: NDArray[np.float64],
    n_trials: int,
    n_proposed: NDArray[np.int64],
    sample_weight: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> NDArray[np.int64]:
    """Choose C starting centers for each of B problems by greedy k-means++.

    Candidates are drawn with probability proportional to weight times squared distance to the nearest chosen center. Of
    `n_trials` candidates, the one that gives the least potential (sum of weighted squared distances) is chosen.
    offsets (B + 1,): problem b has the rows offsets[b] … offsets[b + 1] − 1
    order (N,): indices of each problem's rows within the problem, in the order in which weights are added up for draws
    uniform (B, U): random numbers in [0, 1) of each problem, used from left to right
    n_proposed (C,): number of candidates, at least n_trials, that are drawn together when c centers have been chosen
    Returns the indices (B, C) of the chosen rows within their problem. If a problem has too few random numbers, or all
    its rows equal chosen ones, its first index is −1, and its others are undefined.
    """
    offsets, sample_weight = _problems(X, offsets, sample_weight)
    order = check.array(order, "order", np.int64, len(X))
    n_proposed, n_trials = check.array(n_proposed, "n_proposed", np.int64, -1), check.count(n_trials, "n_trials")
    uniform = check.array(uniform, "uniform", np.float64, len(offsets) - 1, -1)
    if not len(n_proposed) or n_proposed.min() < n_trials:
        raise ValueError(f"n_proposed must be numbers >= n_trials={n_trials}, got {n_proposed}")
    chosen = np.empty((len(uniform), len(n_proposed)), dtype=np.int64)
    call = offsets, sample_weight, order, uniform, n_trials, n_proposed, chosen, resolve_threads(n_threads)
    X.kernels.plus_plus_many(X.core, *call)
    return chosen


def lloyd_many(
    X: CoreRows,
    offsets: NDArray[np.int64],
    centers: Floats,
    max_iter: int,
    tol: float,
    sample_weight: Floats | None = None,
    *,
    least_shift: float | None = None,
    omitted: NDArray[np.bool_] | None = None,
    n_threads: int | None = None,
) -> LloydResult:
    """Make Lloyd's iterations of B problems, from C centers each, until they converge or `max_iter` is reached.

    Returns a `LloydResult` with final centers, nearest centers, squared distances, errors and numbers of iterations.
    A problem has converged if no row is reassigned, or if its error J (the sum of weighted squared distances to nearest
    centers) changes by no more than the share `tol` of J.
    offsets (B + 1,): problem b has the rows offsets[b] … offsets[b + 1] − 1    centers (B, C, D): initial centers
    least_shift: None, or a limit that replaces the condition on J: a problem has converged if the sum of squared shifts
    of its centers in an iteration is at most this limit [data unit²]
    omitted (B,): mask of problems that are not computed, or None
    """
    offsets, sample_weight = _problems(X, offsets, sample_weight)
    B, D = len(offsets) - 1, X.shape[1]
    if centers.ndim != 3 or len(centers) != B or not centers.shape[1] or centers.shape[2] != D:
        raise ValueError(f"centers must have shape ({B}, at least 1, {D}), got {centers.shape}")
    final = check.matrix(centers.reshape(-1, D), "centers", X).copy()
    n_iterations = np.zeros(B, dtype=np.int64)
    if omitted is not None:
        n_iterations[omitted] = -1
    labels, squares = np.empty(len(X), dtype=np.int32), np.empty(len(X), dtype=X.dtype)
    errors = np.empty(B)
    results = labels, squares, errors, n_iterations, resolve_threads(n_threads)
    ends = check.count(max_iter, "max_iter"), float(tol), None if least_shift is None else float(least_shift)
    X.kernels.lloyd_many(X.core, offsets, sample_weight, final, *ends, *results)
    return LloydResult(final.reshape(centers.shape), labels, squares, errors, n_iterations)


def lloyd(
    X: CoreRows,
    centers: Floats,
    max_iter: int,
    tol: float,
    sample_weight: Floats | None = None,
    *,
    least_shift: float | None = None,
    keep_empty: bool = False,
    n_threads: int | None = None,
) -> LloydRun | None:
    """Make all Lloyd iterations of rows X from the given centers (C, D), until convergence or `max_iter` is reached.

    Returns a `LloydRun`, or None if a cluster becomes empty and `keep_empty` is false.
    tol: the run has converged if J changes by at most this share of J, or if no row is reassigned
    least_shift: None, or a limit that replaces the condition on J: the run has converged if the sum of squared shifts
    of the centers in an iteration is at most this limit [data unit²]
    keep_empty: whether the center of a cluster that becomes empty stays where it is
    """
    final = check.matrix(centers, "centers", X, 1).copy()
    weights = check.array(sample_weight, "sample_weight", np.float64, len(X))
    labels, squares, counts = np.empty(len(X), np.int32), np.empty(len(X), X.dtype), np.empty(len(final))
    errors, n_moved = np.empty(check.count(max_iter, "max_iter")), np.empty(max_iter, np.int64)
    call = max_iter, float(tol), None if least_shift is None else float(least_shift), bool(keep_empty)
    results = labels, squares, counts, errors, n_moved
    n, converged = X.kernels.lloyd(X.core, weights, final, *call, *results, resolve_threads(n_threads))
    if n < 0:
        return None
    settled = n > 1 and not n_moved[n - 1]
    return LloydRun(final, labels, squares, counts, errors[:n], n_moved[:n], converged, bool(settled))


def _problems(
    X: CoreRows, offsets: NDArray[np.int64], sample_weight: Floats | None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Check and return the first rows of B problems, and the weights (N,) of the rows; None means weights of 1.

    offsets (B + 1,): problem b has the rows offsets[b] … offsets[b + 1] − 1 of X, so the last offset is N
    """
    offsets = check.array(offsets, "offsets", np.int64, -1)
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != len(X) or (np.diff(offsets) < 1).any():
        raise ValueError(f"offsets must rise strictly from 0 to {len(X)}, got {offsets}")
    return offsets, check.array(sample_weight, "sample_weight", np.float64, len(X))
