"""k-means of many problems and of sorted values."""

import numpy as np

from reference.distances import costs_of


def plus_plus_many(X, offsets, sample_weight, order, uniform, n_trials, n_proposed, chosen, n_threads):
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


def _plus_plus(X, w, order, uniform, n_trials, n_proposed):
    """Return the indices of the C rows of one problem X (n, D) that greedy k-means++ chooses.

    Return None if the random numbers `uniform` (U,) do not suffice, or if fewer than C rows differ.
    w (n,): weights of the rows    order (n,): order of the rows in draws    n_trials: number of candidates for a center
    n_proposed (C,): number of candidates that are drawn together when c centers have been chosen
    """

    def draw(mass, numbers):
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


def lloyd(X, w, centers, max_iter, tol, least_shift, keep_empty, labels, squares, counts, errors, n_moved, n_threads):
    """Make all Lloyd iterations of one problem X (n, D) in NumPy: the twin of the compiled kernel of `lloyd`.

    The run has converged if no row is reassigned, or if the error J changes by at most tol · J. If `least_shift` is not
    None, the condition on J is replaced: the sum of squared shifts of the centers must be at most `least_shift`.
    centers (C, D): initial centers, which are replaced by the final ones    w (n,): weights of the rows, or None
    keep_empty: whether centers of empty clusters stay
    Results are also written to the other arrays, which are fields of `LloydRun`: labels, squares, counts, errors and
    n_moved. Returns the number of iterations, at most `max_iter`, and whether the run has converged; if a cluster
    becomes empty and `keep_empty` is false, the number is −1.
    """
    w = np.ones(len(X)) if w is None else w
    before, last = None, np.inf
    for step in range(max_iter):
        costs = costs_of(X, centers).astype(X.dtype)
        labels[:], squares[:] = costs.argmin(axis=1), costs.min(axis=1)
        shares, J = w[:, np.newaxis] * (labels[:, np.newaxis] == np.arange(len(centers))), float((w * squares).sum())
        counts[:], errors[step] = shares.sum(axis=0), J
        n_moved[step] = np.count_nonzero(w > 0 if before is None else (labels != before) & (w > 0))
        if not (counts.all() or keep_empty):
            return -1, False
        if before is not None and not n_moved[step]:
            return step + 1, True
        old = centers.astype(np.float64)
        held = counts > 0
        centers[held] = (shares.T @ X.astype(np.float64))[held] / counts[held, np.newaxis]
        if least_shift is None:
            converged = abs(last - J) <= tol * (J or 1.0)
        else:
            converged = float(np.square(centers - old).sum()) <= least_shift
        if converged:
            return step + 1, True
        before, last = labels.copy(), J
    return max_iter, False


def lloyd_many(
    X, offsets, sample_weight, centers, max_iter, tol, least_shift, labels, squares, errors, n_iterations, n_threads
):
    """Make Lloyd's iterations of B problems in NumPy: the twin of the compiled kernel that `lloyd_many` calls.

    Problem b has the rows offsets[b] … offsets[b + 1] − 1 of X, and ends after at most `max_iter` iterations. It ends
    earlier if no row is reassigned, or if its error J changes by at most tol · J. If `least_shift` is not None, the
    condition on J is replaced: the sum of squared shifts of the problem's centers must be at most `least_shift`.
    centers (B · C, D): initial centers, which are replaced by the final ones
    n_iterations (B,): the caller writes −1 for problems that are not to be computed, and 0 for all others; this
    function replaces 0 by the number of iterations, or by −1 if a cluster becomes empty
    The nearest final center of each row is written to `labels` (N,), the squared distance to it to `squares` (N,), and
    the error J of each problem to `errors` (B,).
    """
    each = centers.reshape(len(n_iterations), -1, X.shape[1])
    for b in np.flatnonzero(n_iterations >= 0):
        problem, m = slice(offsets[b], offsets[b + 1]), each[b]
        w, n_moved = None if sample_weight is None else sample_weight[problem], np.empty(max_iter, np.int64)
        results = labels[problem], squares[problem], np.empty(len(m)), np.empty(max_iter), n_moved
        n, _ = lloyd(X[problem], w, m, max_iter, tol, least_shift, False, *results, n_threads)
        n_iterations[b] = n
        # If the last iteration reassigned rows, centers moved after it, so nearest centers are found again.
        if n > 0 and (n == 1 or n_moved[n - 1]):
            costs = costs_of(X[problem], m).astype(X.dtype)
            labels[problem], squares[problem] = costs.argmin(axis=1), costs.min(axis=1)
        errors[b] = ((1.0 if w is None else w) * squares[problem]).sum()


def cut_line(values, weights, starts, n_threads):
    """Cut sorted values into C runs of least cost by dynamic programming, in O(C n²) time and O(n²) memory.

    The least cost of the first e values in k runs is E_k(e) = min_b E_{k−1}(b) + cost(b, e), where cost(b, e) is the
    sum of squares of the run [b, e). The runs are found by tracing back from E_C(n); indices go to `starts`.
    """
    n = len(values)
    cost = np.full((n, n + 1), np.inf)
    for begin in range(n):
        x, w = values[begin:] - values[begin], weights[begin:]
        mean = np.cumsum(w * x) / np.cumsum(w)
        # The cost of a run is summed value by value: value x of weight w adds w (x − mean before) (x − mean after).
        cost[begin, begin + 1 :] = np.cumsum(w * (x - np.append(0, mean[:-1])) * (x - mean))
    least = np.append(0, np.full(n, np.inf))
    begins = []
    for _ in range(len(starts)):
        total = least[:n, np.newaxis] + cost
        begins.append(total.argmin(axis=0))
        least = total.min(axis=0)
    found = [n]
    for begin in reversed(begins):
        found.append(begin[found[-1]])
    starts[:] = found[:0:-1]
