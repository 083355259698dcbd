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
from cprime.kernels.measures import Floats, costs_of


class LloydResult(NamedTuple):
    """Result of Lloyd's iterations for B problems with N rows in all.

    centers (B, C, D): final centers    labels (N,) int32: nearest final center of each row, counted within its problem
    squares (N,): squared distances to these centers
    n_iterations (B,): number of iterations of each problem, or −1 if the problem was omitted or one of its clusters
    became empty. The other results of a problem with −1 are undefined.
    """

    centers: Floats
    labels: NDArray[np.int32]
    squares: Floats
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


def plus_plus_many_twin(
    X: Floats,
    offsets: NDArray,
    sample_weight: NDArray | None,
    order: NDArray,
    uniform: NDArray,
    n_trials: int,
    n_proposed: NDArray,
    chosen: NDArray,
    n_threads: int,
) -> None:
    """Choose starting centers by greedy k-means++ in NumPy, problem by problem; write rows' indices to `chosen` (B, C).

    A problem's indices are −1 if its random numbers `uniform` do not suffice, or if too few of its rows differ.
    Problem b has the rows offsets[b] … offsets[b + 1] − 1 of X. order (N,): order of each problem's rows in draws
    n_trials: number of candidates for a center    n_proposed (C,): numbers of candidates that are drawn together
    """
    for b in range(len(chosen)):
        problem = slice(offsets[b], offsets[b + 1])
        w = np.ones(offsets[b + 1] - offsets[b]) if sample_weight is None else sample_weight[problem]
        found = _plus_plus(X[problem], w, order[problem], uniform[b], n_trials, n_proposed)
        chosen[b] = -1 if found is None else found


def _plus_plus(
    X: Floats, w: NDArray, order: NDArray, uniform: NDArray, n_trials: int, n_proposed: NDArray
) -> list[int] | None:
    """Return the indices of the C rows of one problem X (n, D) that greedy k-means++ chooses.

    Return None if the random numbers `uniform` (U,) do not suffice, or if fewer than C rows differ.
    w (n,): weights of the rows    order (n,): order of the rows in draws    n_trials: number of candidates for a center
    n_proposed (C,): number of candidates that are drawn together when c centers have been chosen
    """

    def draw(mass: NDArray, numbers: NDArray) -> NDArray:
        cumulative = np.cumsum(mass[order])
        places = np.searchsorted(cumulative, numbers * cumulative[-1], side="right")
        return order[np.minimum(places, np.searchsorted(cumulative, cumulative[-1], side="left"))]

    chosen = draw(w, uniform[:1]).tolist() if len(uniform) and w.any() else []
    closest, used = costs_of(X, X[chosen]).min(axis=1, initial=np.inf).astype(X.dtype), 1
    while chosen and len(chosen) < len(n_proposed):
        n = int(n_proposed[len(chosen)])
        if not (w * closest).any() or used + 2 * n > len(uniform):
            return None
        proposed = draw(w * closest.astype(np.float64), uniform[used : used + n])
        bars = uniform[used + n : used + 2 * n] * closest[proposed]
        squares, rest, used = costs_of(X, X[proposed]).T.astype(X.dtype), list(range(n)), used + 2 * n
        while len(chosen) < len(n_proposed):
            accepted = [i for i in rest if closest[proposed[i]] > bars[i]][:n_trials]
            if len(accepted) < n_trials:
                break
            potentials = np.minimum(squares[accepted], closest).astype(np.float64) @ w
            best = accepted[int(potentials.argmin())]
            chosen.append(int(proposed[best]))
            closest, rest = np.minimum(closest, squares[best]), [i for i in rest if i > accepted[-1]]
    return chosen or None


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

    Returns a `LloydResult` with final centers, nearest centers, squared distances and numbers of iterations.
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
    results = labels, squares, n_iterations, resolve_threads(n_threads)
    ends = check.count(max_iter, "max_iter"), float(tol), None if least_shift is None else float(least_shift)
    X.kernels.lloyd_many(X.core, offsets, sample_weight, final, *ends, *results)
    return LloydResult(final.reshape(centers.shape), labels, squares, n_iterations)


def lloyd(
    X: CoreRows,
    centers: Floats,
    max_iter: int,
    tol: float,
    sample_weight: Floats | None = None,
    *,
    least_shift: float | None = None,
    n_threads: int | None = None,
) -> LloydRun | None:
    """Make all Lloyd iterations of rows X from the given centers (C, D), until convergence or `max_iter` is reached.

    Returns a `LloydRun`, or None if a cluster becomes empty.
    tol: the run has converged if J changes by at most this share of J, or if no row is reassigned
    least_shift: None, or a limit that replaces the condition on J: the run has converged if the sum of squared shifts
    of the centers in an iteration is at most this limit [data unit²]
    """
    final = check.matrix(centers, "centers", X, 1).copy()
    weights = check.array(sample_weight, "sample_weight", np.float64, len(X))
    labels, squares, counts = np.empty(len(X), np.int32), np.empty(len(X), X.dtype), np.empty(len(final))
    errors, n_moved = np.empty(check.count(max_iter, "max_iter")), np.empty(max_iter, np.int64)
    call = max_iter, float(tol), None if least_shift is None else float(least_shift)
    results = labels, squares, counts, errors, n_moved
    n, converged = X.kernels.lloyd(X.core, weights, final, *call, *results, resolve_threads(n_threads))
    if n < 0:
        return None
    settled = n > 1 and not n_moved[n - 1]
    return LloydRun(final, labels, squares, counts, errors[:n], n_moved[:n], converged, bool(settled))


def lloyd_twin(
    X: Floats,
    sample_weight: NDArray | None,
    centers: NDArray,
    max_iter: int,
    tol: float,
    least_shift: float | None,
    labels: NDArray,
    squares: NDArray,
    counts: NDArray,
    errors: NDArray,
    n_moved: NDArray,
    n_threads: int,
) -> tuple[int, bool]:
    """Make all Lloyd iterations of one problem X (n, D) in NumPy: the twin of the compiled kernel of `lloyd`.

    The run has converged if no row is reassigned, or if the error J changes by at most tol · J. If `least_shift` is not
    None, the condition on J is replaced: the sum of squared shifts of the centers must be at most `least_shift`.
    centers (C, D): initial centers, which are replaced by the final ones
    Results are also written to the other arrays, which are fields of `LloydRun`: labels, squares, counts, errors and
    n_moved. Returns the number of iterations, at most `max_iter`, and whether the run has converged; if a cluster
    becomes empty, the number is −1.
    """
    w = np.ones(len(X)) if sample_weight is None else sample_weight
    before, last = None, np.inf
    for step in range(max_iter):
        costs = costs_of(X, centers).astype(X.dtype)
        labels[:], squares[:] = costs.argmin(axis=1), costs.min(axis=1)
        shares, J = w[:, np.newaxis] * (labels[:, np.newaxis] == np.arange(len(centers))), float((w * squares).sum())
        counts[:], errors[step] = shares.sum(axis=0), J
        n_moved[step] = np.count_nonzero(w > 0 if before is None else (labels != before) & (w > 0))
        if not counts.all():
            return -1, False
        if before is not None and not n_moved[step]:
            return step + 1, True
        old = centers.astype(np.float64)
        centers[:] = (shares.T @ X.astype(np.float64)) / counts[:, np.newaxis]
        if least_shift is None:
            converged = abs(last - J) <= tol * (J or 1.0)
        else:
            converged = float(np.square(centers - old).sum()) <= least_shift
        if converged:
            return step + 1, True
        before, last = labels.copy(), J
    return max_iter, False


def lloyd_many_twin(
    X: Floats,
    offsets: NDArray,
    sample_weight: NDArray | None,
    centers: NDArray,
    max_iter: int,
    tol: float,
    least_shift: float | None,
    labels: NDArray,
    squares: NDArray,
    n_iterations: NDArray,
    n_threads: int,
) -> None:
    """Make Lloyd's iterations of B problems in NumPy: the twin of the compiled kernel that `lloyd_many` calls.

    Problem b has the rows offsets[b] … offsets[b + 1] − 1 of X, and ends after at most `max_iter` iterations. It ends
    earlier if no row is reassigned, or if its error J changes by at most tol · J. If `least_shift` is not None, the
    condition on J is replaced: the sum of squared shifts of the problem's centers must be at most `least_shift`.
    centers (B · C, D): initial centers, which are replaced by the final ones
    n_iterations (B,): the caller writes −1 for problems that are not to be computed, and 0 for all others; this
    function replaces 0 by the number of iterations, or by −1 if a cluster becomes empty
    The nearest final center of each row is written to `labels` (N,), the squared distance to it to `squares` (N,).
    """
    each = centers.reshape(len(n_iterations), -1, X.shape[1])
    for b in np.flatnonzero(n_iterations >= 0):
        problem, m = slice(offsets[b], offsets[b + 1]), each[b]
        w, n_moved = None if sample_weight is None else sample_weight[problem], np.empty(max_iter, np.int64)
        results = labels[problem], squares[problem], np.empty(len(m)), np.empty(max_iter), n_moved
        n, _ = lloyd_twin(X[problem], w, m, max_iter, tol, least_shift, *results, n_threads)
        n_iterations[b] = n
        # If the last iteration reassigned rows, centers moved after it, so nearest centers are found again.
        if n > 0 and (n == 1 or n_moved[n - 1]):
            costs = costs_of(X[problem], m).astype(X.dtype)
            labels[problem], squares[problem] = costs.argmin(axis=1), costs.min(axis=1)


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
