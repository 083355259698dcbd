"""k-means with jumps of centers, by calls of other kernels of the rows."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Floats

# Lloyd's steps end if a step lowers the error J by at most this share of J. First number: for the steps after a jump.
# Second number: for the steps before single jumps are tried, when all jumps that certainly lower J have been made.
_AFTER_JUMPS, _BEFORE_TRIES = 1e-2, 1e-3
# _FEW_STEPS: largest number of Lloyd's steps after jumps. _ROUNDS: largest number of rounds, each of several jumps at
# once that certainly lower J together. _AROUND: number of centers near each center of a jump that Lloyd's steps also
# move. _LEAST_RATIO: a single jump is tried only if the predicted decrease of J by the division of a cluster is at
# least this part of the increase by the removal of a center.
_FEW_STEPS, _ROUNDS, _AROUND, _LEAST_RATIO = 3, 10, 8, 0.3
# A single jump is undone early if J is still above its value before the jump by more than this multiple of the last
# step's decrease.
_PATIENCE = 2.0
# In steps with momentum, the center of a cluster of weight W is extrapolated beyond the mean, by W/(W + this number ·
# mean weight of a point) times the last change of the mean.
_LIGHT = 32
# A cluster is cut in two at a border between histogram bins along a direction of high variance.
# These are the numbers of power iterations for the direction, of bins, and of 2-means iterations after the cut.
_TURNS, _BINS, _ITERATIONS = 2, 64, 6


def jump(X, weights, centers, n_tries, n_iterations, tol, n_threads):
    """Improve centers by jumps (moves of a center to another cluster), in place, and return the error J.

    weights (n,): weights of the rows X    n_tries: number of consecutive single jumps that may fail
    n_iterations: number of Lloyd's iterations on the points around each single jump
    tol: least relative decrease of J with which the last steps go on, if it is less than that before single jumps
    """
    jumps = _Jumps(X, np.ones(len(X)) if weights is None else weights)
    centers[:], error = jumps.improve(centers, n_tries, n_iterations, tol)
    return error


class _State(NamedTuple):
    """Assignment of n points to C centers.

    Let w be the weights of points x.
    labels (n,): nearest centers    squares (n, 2): squared distances to the two nearest centers
    counts (C,), sums (C, D): Σ w and Σ w x of each center's points    error: J, the weighted sum of squared distances
    """

    labels: NDArray[np.int32]
    squares: NDArray[np.float64]
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    error: float

    def recentred(self, centers: Floats) -> Floats:
        """Return the means (C, D) of the clusters as new centers; a cluster without points keeps its center."""
        held = self.counts > 0
        new = centers.copy()
        new[held] = self.sums[held] / self.counts[held, np.newaxis]
        return new


class _JumpProspects(NamedTuple):
    """Predicted changes of the error J for jumps, which move a center from its cluster to another cluster.

    gains (C,): decrease of J if the cluster is cut in two    halves (C, 2, D): centers of its two parts
    prices (C,): upper bound of the increase of J if the cluster's center is removed
    partners (C,): for each cluster, the other cluster with which a union raises J least
    joined (C,): mask of clusters whose bound in `prices` is the increase by this union; for the others it is the
    increase if all points are reassigned to their second nearest centers
    near (C, C − 1): ids of the other centers, nearest first
    """

    gains: NDArray[np.float64]
    halves: NDArray[np.float64]
    prices: NDArray[np.float64]
    partners: NDArray[np.intp]
    joined: NDArray[np.bool_]
    near: NDArray[np.intp]


class _Jumps(NamedTuple):
    """Search for better centers of rows X by jumps (moves of a center to another cluster). w (n,): weights of rows"""

    X: Any
    w: NDArray[np.float64]

    def improve(self, centers: Floats, n_tries: int, n_iterations: int, tol: float) -> tuple[Floats, float]:
        """Improve centers (C, D) by rounds of jumps that certainly lower the error J, then by single jumps.

        n_tries: number of consecutive single jumps that may fail
        n_iterations: number of Lloyd's iterations around a single jump    tol: tolerance of the last steps
        Returns the improved centers (C, D), and their error J.
        """
        centers, state = self.steps(centers, self.assigned(centers))
        for _ in range(_ROUNDS):
            moved = self.sure_round(centers, state)
            if moved is None:
                break
            after, found = self.steps(moved, self.assigned(moved))
            if not found.error < state.error:
                break
            centers, state = after, found
        centers, state = self.settled(centers, state, _BEFORE_TRIES)
        failures, failed, cut = 0, dict[tuple[int, int], bytes](), self.prospects(centers, state)
        while failures < n_tries:
            jump = _promising(cut, failed)
            if jump is None:
                break
            moved = self.tried(centers, state, cut, jump, n_iterations)
            if moved is not None:
                after, found = self.steps(moved, self.assigned(moved))
            # A decrease of J on the points around a jump can be a rounding error, so J of all points is compared, too.
            if moved is None or not found.error < state.error:
                failed[jump] = cut.halves[list(jump)].tobytes()
                failures += 1
            else:
                centers, state, failures, cut = after, found, 0, self.prospects(after, found)
        if tol < _BEFORE_TRIES:
            centers, state = self.settled(centers, state, tol)
        return centers, state.error

    def assigned(self, centers: Floats, rows: NDArray | None = None) -> _State:
        """Return the assignment of rows to their nearest centers (C, D), as a `_State`.

        rows (m,): indices of the rows to assign, None for all. The returned labels, sums and error J are those of these
        rows only.
        """
        X, w = (self.X, self.w) if rows is None else (self.X[rows], self.w[rows])
        n_kept = min(2, len(centers))
        ids, squares = X.nearest(centers, n_kept)
        labels, squares = ids[:, 0], squares.astype(np.float64)
        counts, sums = X.accumulate(np.ascontiguousarray(ids[:, :1]), None, w, n_components=len(centers))
        return _State(labels, squares, counts, sums, float(w @ squares[:, 0]))

    def settled(self, centers: Floats, state: _State, tol: float) -> tuple[Floats, _State]:
        """Return new centers (C, D) after steps with momentum, and the assignment of the points to them.

        If the means of extrapolated centers do not lower the error J, steps go on from the means before. They end if J
        falls by at most tol · J.    state: assignment of the points to the given centers
        """
        last, least, plain = centers, state.error, True
        while True:
            means = state.recentred(centers)
            shift = means.astype(np.float64) - centers
            error = state.error - float((state.counts * np.square(shift).sum(axis=1)).sum())
            if not error < least and not plain:
                centers, plain = last, True
            elif not error < (1 - tol) * least:
                return (means, self.assigned(means)) if error < least else (centers, state)
            else:
                share = (state.counts / (state.counts + _LIGHT * self.w.mean())).astype(means.dtype)
                centers, last, least, plain = means + share[:, np.newaxis] * (means - last), means, error, False
            state = self.assigned(centers)

    def steps(self, centers: Floats, state: _State) -> tuple[Floats, _State]:
        """Return new centers (C, D) after the few of Lloyd's steps that follow jumps, and the assignment to them.

        state: assignment of the points to the given centers
        """
        for _ in range(_FEW_STEPS):
            before = state.error
            centers = state.recentred(centers)
            state = self.assigned(centers)
            if not before - state.error > _AFTER_JUMPS * before:
                break
        return centers, state

    def prospects(self, centers: Floats, state: _State) -> _JumpProspects:
        """Return predicted changes of the error J, for every cluster, if it is cut in two or its center is removed.

        centers (C, D)    state: assignment of the points to these centers
        """
        C = len(centers)
        means = state.recentred(centers.astype(np.float64))
        gains, halves = self.cuts(means.astype(centers.dtype), state)
        removal = np.bincount(state.labels, self.w * (state.squares[:, 1] - state.squares[:, 0]), C)
        apart = np.array([np.square(means - mean).sum(axis=1) for mean in means])
        with np.errstate(divide="ignore"):
            costs = apart / (1 / state.counts[:, np.newaxis] + 1 / state.counts)
        costs[np.arange(C), np.arange(C)] = apart[np.arange(C), np.arange(C)] = np.inf
        partners = costs.argmin(axis=1)
        least = costs[np.arange(C), partners]
        near = np.argsort(apart, axis=1, kind="stable")[:, : C - 1]
        return _JumpProspects(gains, halves, np.minimum(least, removal), partners, least < removal, near)

    def cuts(self, means: Floats, state: _State) -> tuple[NDArray, NDArray]:
        """Cut each cluster in two, first by a plane orthogonal to a direction of high variance, then by 2-means.

        means (C, D): means of the clusters    state: assignment of the points to the clusters
        Returns the decrease of the error J by the cut of each cluster (C,), and the centers of both parts (C, 2, D).
        """
        C, labels, w = len(means), state.labels, self.w
        far = np.lexsort((np.arange(len(w)), -state.squares[:, 0] * (w > 0), labels))
        first = far[np.searchsorted(labels[far], np.arange(C)).clip(max=len(far) - 1)]
        held = (labels[first] == np.arange(C)) & (state.counts > 0)
        directions = np.where(held[:, np.newaxis], self.X[first].dense() - means, 0)
        for _ in range(_TURNS):
            p = w * self.along(means, directions, labels)
            total, sums = np.bincount(labels, p, C), self.sums(labels, p, C)
            directions = sums - total[:, np.newaxis] * means
        gains, halves, open_ = np.zeros(C), np.zeros((C, 2, means.shape[1])), held.copy()
        origins, above = means, _above_thresholds(self.along(means, directions, labels), w, labels, C)
        for iteration in range(1 + _ITERATIONS):
            if iteration:
                above = self.along(origins.astype(means.dtype), directions, labels) > 0
            counts, sums = np.empty((C, 2)), np.empty_like(halves)
            for half, side in enumerate((~above, above)):
                counts[:, half], sums[:, half] = np.bincount(labels, w * side, C), self.sums(labels, w * side, C)
            open_ &= (counts > 0).all(axis=1)
            if not open_.any():
                break
            halves[open_] = sums[open_] / counts[open_][:, :, np.newaxis]
            directions, origins = halves[:, 1] - halves[:, 0], halves.mean(axis=1)
            square = np.square(directions).sum(axis=1)
            gains[open_] = square[open_] / (1 / counts[open_]).sum(axis=1)
        return gains, halves

    def along(self, origins: Floats, directions: NDArray, labels: NDArray) -> NDArray[np.float64]:
        """Return the projection (x_n − m_c)·v_c (n,) of each row x_n, where c is the row's cluster labels[n].

        The rows of a cluster are divided into two parts by these numbers.
        origins (C, D): a point m_c for each cluster, for example its mean    directions (C, D): directions
        v_c is the direction divided by its greatest absolute value, to prevent overflow.
        """
        largest = np.abs(directions).max(axis=1, keepdims=True)
        scaled = np.divide(directions, largest, out=np.zeros_like(directions), where=largest > 0).astype(origins.dtype)
        return self.X.along(origins, scaled, labels)

    def sums(self, labels: NDArray, p: NDArray, C: int) -> NDArray[np.float64]:
        """Return Σ p_n x_n over the rows x_n of each cluster (C, D). p (n,): weights, or weights times projections"""
        ids = np.ascontiguousarray(labels[:, np.newaxis])
        return self.X.accumulate(ids, np.ascontiguousarray(p[:, np.newaxis]), None, n_components=C)[1]

    def sure_round(self, centers: Floats, state: _State) -> Floats | None:
        """Return centers (C, D) after all jumps that certainly lower the error J together; None if there are none.

        A jump moves a center to another cluster. No two of the jumps involve the same cluster.
        centers (C, D): centers before the jumps    state: assignment of the points to them
        """
        cut, new = self.prospects(centers, state), centers.copy()
        free, any_ = np.ones(len(centers), dtype=bool), False
        dear = np.argsort(-cut.gains, kind="stable")
        for one in np.argsort(cut.prices, kind="stable"):
            taking = np.append(cut.near[one, :2], cut.partners[one])
            if not (free[one] and free[taking].all()):
                continue
            others = [s for s in dear if free[s] and s != one and s not in taking]
            if not others or not cut.gains[others[0]] > cut.prices[one]:
                break
            to, other = others[0], cut.partners[one]
            free[taking] = free[one] = free[to] = False
            both = state.counts[one] + state.counts[other]
            if cut.joined[one] and both > 0:
                new[other] = (state.sums[one] + state.sums[other]) / both
            new[one], new[to] = cut.halves[to]
            any_ = True
        return new if any_ else None

    def tried(
        self, centers: Floats, state: _State, cut: _JumpProspects, jump: tuple[int, int], n_iterations: int
    ) -> Floats | None:
        """Return centers (C, D) after a jump and Lloyd's steps around it; None if the error J does not fall.

        Lloyd's steps move only the centers near the two centers of the jump, and use only the points of these centers.
        state: assignment of all points    cut: predicted changes of J by jumps
        jump: ids of the center that is moved, and of the cluster that it divides
        """
        around = list(dict.fromkeys([*jump, *cut.near[jump[0], :_AROUND], *cut.near[jump[1], :_AROUND]]))
        rows = np.flatnonzero(np.isin(state.labels, around))
        before = float(self.w[rows] @ state.squares[rows, 0])
        local, last = centers[around].copy(), np.inf
        local[:2] = cut.halves[jump[1]]
        for i in range(n_iterations):
            found = self.assigned(local, rows)
            if found.error < before * (1 - 64 * float(np.finfo(centers.dtype).eps)):
                new = centers.copy()
                new[around] = local
                return new
            if i and found.error - before > _PATIENCE * (last - found.error):
                return None
            local, last = found.recentred(local), found.error
        return None


def _above_thresholds(p: NDArray, w: NDArray, labels: NDArray, C: int) -> NDArray[np.bool_]:
    """Return a mask (n,) of the points whose projection p exceeds the best threshold of their cluster.

    A threshold cuts a cluster into two parts. Equidistant thresholds are tried. The best one gives the least sum of
    squares of p about the means of the two parts.
    p, w, labels (n,): projection, weight and cluster of each point
    """
    above = np.zeros(len(p), dtype=bool)
    for c in range(C):
        rows = np.flatnonzero(labels == c)
        if not len(rows) or not np.ptp(p[rows]) > 0:
            continue
        q, v = p[rows], w[rows]
        bins = np.minimum((q - q.min()) * (_BINS / np.ptp(q)), _BINS - 1).astype(int)
        count, total = (np.cumsum(np.bincount(bins, x, _BINS))[:-1] for x in (v, v * q))
        rest = v.sum() - count
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.square(total / count - ((v * q).sum() - total) / rest) / (1 / count + 1 / rest)
        above[rows] = bins > np.where((count > 0) & (rest > 0), apart, 0).argmax()
    return above


def _promising(cut: _JumpProspects, failed: dict[tuple[int, int], bytes]) -> tuple[int, int] | None:
    """Return the jump to try next: (id of the center to move, id of the cluster to divide by it), or None.

    It is the jump with the greatest predicted decrease of the error J: the decrease by the division of a cluster, less
    the increase by the removal of the center from its place. A jump that has failed is left out as long as its two
    clusters would be cut into the same parts as when it was tried. None means that no jump is left.
    cut: predicted changes of J by jumps
    failed: for each jump that has failed, the centers of the parts of its two clusters at that time, as bytes
    """
    ratio = cut.gains >= _LEAST_RATIO * cut.prices[:, np.newaxis]
    worth = np.where(ratio & (cut.gains > 0), cut.gains - cut.prices[:, np.newaxis], -np.inf)
    np.fill_diagonal(worth, -np.inf)
    for place in np.argsort(-worth, axis=None, kind="stable"):
        jump = (int(place) // len(cut.gains), int(place) % len(cut.gains))
        if worth[jump] == -np.inf:
            return None
        if failed.get(jump) != cut.halves[list(jump)].tobytes():
            return jump
    return None
