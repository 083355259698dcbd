"""NumPy twins of the kernels of partial searches, and what all twins share; see `reference.py`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import arguments as check
from cprime.kernels.native_local import Evidence, Found, Walked

SEGMENT = 2048  # points of one component that `reassign` limits together


def reassign(
    X: NDArray,
    centers: NDArray,
    lists: NDArray,
    labels: NDArray,
    inside: NDArray | None = None,
    outside: NDArray | None = None,
    share: float = 0.25,
    active: NDArray[np.bool_] | None = None,
    known: NDArray | None = None,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Do a partial E-step with C′ = 1 (F Alg. 1, 2): each point compares its component with that one's neighbours.

    A point of component c goes to the b of c's list with the least outside_b ‖x − μ_b‖², the earliest of several, if
    that is less than inside_c ‖x − μ_c‖². Some go although ‖x − μ_b‖ ≥ ‖x − μ_c‖, for the factors' sake: of each 2048
    points of c, in the order of X, these are at most max(1, ⌊share · size⌋), those of greatest difference, the earliest
    of several; the others stay. The factors tell what one point's move does to J, not what many at once do.

    X (n, D), centers (C, D) of one dtype T; lists (C, G) int32 without the component itself, of which what is behind
    the first −1 is not read; labels (n,) int32; inside, outside (C,) ≥ 0 or None for ones; 0 ≤ share ≤ 1
    active (C,) bool: only points of these components are visited; the others stay, at their `known` distances (n,)
    returns labels (n,) int32 and distances (n,) T, squared, to where a point has gone
    """
    C = len(centers)
    check.matrix(X, "X")
    check.centers(centers, X)
    check_ids("lists", lists, min(len(lists), C), -1, C)
    if labels.shape != (len(X),):
        raise ValueError(f"labels has shape {labels.shape}, expected ({len(X)},).")
    check_ids("labels", labels[:, None], len(X), 0, len(lists))
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} should be between 0 and 1.")
    stay = np.ones(C) if inside is None else check.factor(inside, "inside", X, C).astype(np.float64)
    go = np.ones(C) if outside is None else check.factor(outside, "outside", X, C).astype(np.float64)
    winner, distance = labels.copy(), np.empty(len(X), dtype=X.dtype)
    if active is not None:
        if active.shape != (C,):
            raise ValueError(f"active has shape {active.shape}, expected ({C},).")
        if known is None or known.shape != (len(X),):
            raise ValueError(f"known is needed where active is given, of shape ({len(X)},).")
        distance = known.astype(X.dtype)
    for c in range(len(lists)) if active is None else np.flatnonzero(active):
        members = np.flatnonzero(labels == c)
        end = np.append(np.flatnonzero(lists[c] == -1), lists.shape[1])[0]
        offered = np.append(c, lists[c, :end])
        for first in range(0, len(members), SEGMENT):
            points = members[first : first + SEGMENT]
            squared = squared_distances(X[points], centers[offered])
            score = squared * np.append(stay[c], go[offered[1:]])
            best = score.argmin(axis=1)
            row = np.arange(len(points))
            gain = score[:, 0] - score[row, best]
            farther = np.flatnonzero((gain > 0) & (squared[row, best] >= squared[:, 0]))
            order = farther[np.argsort(-gain[farther], kind="stable")]
            best[order[max(1, int(share * len(points))) :]] = 0
            winner[points] = offered[best]
            distance[points] = squared[row, best]
    return winner, distance


def nearest_among(
    X: NDArray,
    centers: NDArray,
    lists: NDArray,
    previous: NDArray,
    n_kept: int,
    extra: NDArray | None = None,
    *,
    costs: tuple[NDArray, NDArray] | None = None,
    evidence: bool = False,
    sample_weight: NDArray | None = None,
    n_threads: int | None = None,
) -> Found:
    """Do a partial E-step: the n_kept nearest in G(n) = K(n) ∪ ⋃_{c ∈ K(n)} G_c ∪ extra(n) (F Alg. 1, 2).

    X (n, D), centers (C, D) of one dtype T; lists (C, G), previous (n, H′): K(n), extra (n, E), all int32 with −1 for
    no component and repetitions allowed
    returns kept (n, n_kept) int32, ordered by (distance, id), −1 where G(n) is smaller; distances (n, n_kept) T,
    squared, infinite there; counts (n,) int32: |G(n)|; and with `evidence` Σ w_n d and Σ w_n by the winner of a point
    and by what it looks at (F eq. 8), the distances d by way of T, points of weight 0 and without a winner aside
    costs: factors (C, D) or (C, D, D) and offsets (C,) of Gaussians whose costs stand for both kinds of distances; then
    squares (n,) T are the squared distances to the first of what is kept, of any row that keeps something
    """
    n, C = len(X), len(centers)
    check.matrix(X, "X")
    check.centers(centers, X)
    check.count(n_kept, "n_kept")
    extra = np.empty((n, 0), dtype=np.int32) if extra is None else extra
    check_ids("lists", lists, C, -1, C)
    check_ids("previous", previous, n, -1, C)
    check_ids("extra", extra, n, -1, C)
    kept, distances = np.full((n, n_kept), -1, np.int32), np.full((n, n_kept), np.inf, X.dtype)
    weight = np.ones(n) if sample_weight is None else check.vector(sample_weight, "sample_weight", n)
    sums, weights = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
    counts = np.empty(n, dtype=np.int32)
    for i, x in enumerate(X):
        own = previous[i][previous[i] >= 0]
        offered = np.concatenate([own, lists[own].ravel(), extra[i]])
        offered = np.array(list(dict.fromkeys(offered[offered >= 0].tolist())), dtype=np.int32)
        if costs is None:
            squared = squared_distances(x[None], centers[offered])[0].astype(X.dtype)
        else:
            squared = gaussian_costs(x[None], centers[offered], *(a[offered] for a in costs))[0].astype(X.dtype)
        order = np.lexsort((offered, squared))[:n_kept]
        counts[i] = len(offered)
        kept[i, : len(order)], distances[i, : len(order)] = offered[order], squared[order]
        for c, value in zip(offered.tolist(), squared.tolist(), strict=True):
            if weight[i] > 0:
                pair = int(kept[i, 0]), c
                sums[pair] = sums.get(pair, 0.0) + weight[i] * (np.sqrt(value) if costs is None else value)
                weights[pair] = weights.get(pair, 0.0) + weight[i]
    squares = None
    if costs is not None:
        nearest = np.maximum(kept[:, 0], 0)
        squares = np.square(X.astype(np.float64) - centers[nearest]).sum(axis=1).astype(X.dtype)
    if not evidence:
        return Found(kept, distances, counts, squares, None)
    pairs = np.array(sorted(sums), dtype=np.int32).reshape(-1, 2)
    indptr = np.searchsorted(pairs[:, 0], np.arange(C + 1)).astype(np.int64)
    by_pair = [np.array([of[c, other] for c, other in pairs.tolist()]) for of in (sums, weights)]
    return Found(kept, distances, counts, squares, Evidence(indptr, pairs[:, 1].copy(), *by_pair))


def grouped_order(labels: NDArray, n_components: int, *, n_threads: int | None = None) -> NDArray:
    """Give the positions of component 0, then of 1, and so on, each component's in rising order.

    labels (n,) int32 from 0 to n_components - 1     returns (n,) int64
    """
    check.count(n_components, "n_components")
    check_ids("labels", labels[:, None], len(labels), 0, n_components)
    return np.argsort(labels, kind="stable")


def changed(after: NDArray, before: NDArray, n_columns: int | None = None, *, n_threads: int | None = None) -> NDArray:
    """Tell which rows of two tables differ in their first columns; in all of them, and as many, for None.

    after (n, H), before (n, H') int32     returns (n,) bool
    """
    for name, table in (("after", after), ("before", before)):
        if table.ndim != 2 or table.dtype != np.int32:
            raise TypeError(f"{name} should be a matrix of int32, got {table.dtype} of {table.ndim} axes.")
    if len(before) != len(after) or (n_columns is None and before.shape != after.shape):
        raise ValueError(f"before has shape {before.shape}, expected {after.shape}.")
    if n_columns is not None and not 0 < n_columns <= min(after.shape[1], before.shape[1]):
        raise ValueError(f"n_columns={n_columns} should be from 1 to the columns of both.")
    return (after[:, :n_columns] != before[:, :n_columns]).any(axis=1)


def gather(X: NDArray, order: NDArray, *, n_threads: int | None = None) -> NDArray:
    """Copy the rows of X in the given order.

    X (n, D); order (m,) integers from 0 to n - 1, repetitions allowed     returns (m, D), C-contiguous
    """
    check.matrix(X, "X")
    check_range("order", check.positions(order, "order"), 0, len(X))
    return np.ascontiguousarray(X[order])


class CenterCells:
    """Centers (C, D) in the order of the cells that they lie in; cell i begins at begins_i, begins (g + 1,) int64."""

    def __init__(self, centers: NDArray, begins: NDArray, *, n_threads: int | None = None):
        check.matrix(centers, "centers")
        if len(begins) < 1 or begins[0] != 0 or begins[-1] != len(centers) or (np.diff(begins) < 0).any():
            raise ValueError("begins must rise from 0 to the number of centers")
        self.centers, self.begins = centers, begins

    def improve(
        self,
        X: NDArray,
        cells: NDArray,
        least: NDArray,
        kept: NDArray,
        squares: NDArray,
        *,
        n_threads: int | None = None,
    ) -> None:
        """Put the nearest centers of each row's cell in place of what is farther, by (distance, number)."""
        check.matrix(X, "X", self.centers)
        check_ids("cells", cells[:, None], len(X), -1, len(self.begins) - 1)
        check_ids("kept", kept, len(X), -1, len(self.centers))
        for n in np.flatnonzero((cells >= 0) & ~(least > np.sqrt(squares[:, -1]))):
            inside = np.setdiff1d(np.arange(self.begins[cells[n]], self.begins[cells[n] + 1]), kept[n])
            squared = squared_distances(X[n : n + 1], self.centers[inside])[0].astype(X.dtype)
            ids, all_squares = np.append(kept[n], inside), np.append(squares[n], squared)
            first = np.lexsort((ids, all_squares))[: kept.shape[1]]
            kept[n], squares[n] = ids[first], all_squares[first]


def walk(
    X: NDArray, centers: NDArray, lists: NDArray, starts: NDArray, width: int, *, n_threads: int | None = None
) -> Walked:
    """Walk along lists: what is nearest of all that is met on the way (Malkov & Yashunin 2020, without levels).

    X (n, D), centers (C, D) of one dtype T; lists (C, G), starts (n, S), int32 with −1 behind the last, at
    least one start for each row
    returns labels (n,) int32 and squared distances (n,) T of the nearest met, counts (n,) int32: how many were met
    """
    n, C = len(X), len(centers)
    check.matrix(X, "X")
    check.centers(centers, X)
    check.count(width, "width")
    check_ids("lists", lists, C, -1, C)
    check_ids("starts", starts, n, -1, C)
    check_range("starts", starts[:, :1], 0, C)
    labels, distances, counts = np.empty(n, np.int32), np.empty(n, X.dtype), np.empty(n, np.int32)
    for i, x in enumerate(X):
        met: dict[int, float] = {}
        asked: set[int] = set()
        look = starts[i]
        while True:
            new = np.array(list(dict.fromkeys(c for c in look.tolist() if c >= 0 and c not in met)), dtype=np.int32)
            squared = squared_distances(x[None], centers[new])[0].astype(X.dtype)
            met |= zip(new.tolist(), squared.tolist(), strict=True)
            nearest = sorted(met, key=lambda c: (met[c], c))[:width]
            open_ = [c for c in nearest if c not in asked and not met[c] > 1.5 * met[nearest[0]]]
            if not open_:
                break
            asked.add(open_[0])
            look = lists[open_[0]]
        labels[i], distances[i], counts[i] = nearest[0], met[nearest[0]], len(met)
    return Walked(labels, distances, counts)


def thin(centers: NDArray, lists: NDArray, spread: float, *, n_threads: int | None = None) -> NDArray[np.int32]:
    """Keep of each list (C, G) what no neighbor before it that is kept is nearer to than the component, by `spread`."""
    check.matrix(centers, "centers")
    check_ids("lists", lists, len(centers), -1, len(centers))
    out = np.full_like(lists, -1)
    for c, listed in enumerate(lists):
        kept: list[int] = []
        own = squared_distances(centers[c][None], centers[listed])[0].astype(centers.dtype)
        for b, squared in zip(listed[listed >= 0].tolist(), own, strict=False):
            there = squared_distances(centers[b][None], centers[kept])[0].astype(centers.dtype)
            if not (centers.dtype.type(spread) * there < squared).any():
                kept.append(b)
        out[c, : len(kept)] = kept
    return out


def keep_nearest(
    X: NDArray,
    centers: NDArray,
    lists: NDArray,
    previous: NDArray,
    n_kept: int,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Do a partial E-step: the n_kept nearest in G(n) = K(n) ∪ G_c, c the nearest in K(n) (F Alg. 2, from one list).

    X (n, D), centers (C, D) of one dtype T; lists (C, G) int32 without the component itself, of which what is behind
    the first −1 is not read; previous (n, H′): K(n), nearest first
    returns kept (n, n_kept) int32 by (distance, id), −1 where G(n) is smaller, and distances (n, n_kept) T, squared
    """
    C = len(centers)
    check_ids("lists", lists, C, -1, C)
    check_ids("previous", previous, len(X), -1, C)
    check.count(previous.shape[1], "previous' width")
    check_range("previous", previous[:, 0], 0, C)
    offered = np.where(np.minimum.accumulate(lists >= 0, axis=1), lists, -1)[previous[:, 0]]
    found = nearest_among(X, centers, np.empty((C, 0), dtype=np.int32), previous, n_kept, offered)
    return found.kept, found.distances


def squared_distances(X: NDArray, centers: NDArray) -> NDArray:
    """‖x_n − μ_c‖² from differences, (n, C) float64."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    distances = np.empty((len(X), len(centers)))
    for c, center in enumerate(centers.astype(np.float64)):
        distances[:, c] = np.square(rows - center).sum(axis=1)
    return distances


def gaussian_costs(X: NDArray, means: NDArray, factors: NDArray, offsets: NDArray) -> NDArray:
    """offset_c + ‖A_c (x_n − μ_c)‖², A_c a diagonal (D,) or a matrix (D, D): (n, C) float64."""
    rows, costs = np.ascontiguousarray(X, dtype=np.float64), np.empty((len(X), len(means)))
    for c, A in enumerate(np.ascontiguousarray(factors, dtype=np.float64)):
        differences = rows - means[c].astype(np.float64)
        scaled = differences * A if A.ndim == 1 else differences @ A.T
        costs[:, c] = offsets[c].astype(np.float64) + np.square(scaled).sum(axis=1)
    return costs


def check_ids(name: str, ids: NDArray, n_rows: int, least: int, n_components: int) -> None:
    """Require n_rows rows of components in [least, n_components)."""
    if ids.dtype != np.int32:
        raise TypeError(f"{name} has dtype {ids.dtype}, expected int32.")
    if ids.ndim != 2 or len(ids) != n_rows:
        raise ValueError(f"{name} has shape {ids.shape}, expected ({n_rows}, any).")
    check_range(name, ids, least, n_components)


def check_range(name: str, ids: NDArray, least: int, end: int) -> None:
    """Require integers in [least, end)."""
    if ids.size and not (ids.min() >= least and ids.max() < end):
        raise ValueError(f"{name} has {ids.min()} to {ids.max()}, expected {least} to {end - 1}.")
