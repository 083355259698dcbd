"""NumPy twins of the native kernels: slow, and simple enough to be seen to be right.

Owns the meaning of every kernel: `cprime.kernels.native` has the same signatures and is held to these
functions by one contract suite. Arithmetic is float64 whatever the dtype of the data, and nothing here is blocked
or threaded: `n_threads` has no effect.

Equation numbers are those of Lücke & Forster, "k-means as a variational EM approximation of Gaussian mixture
models" [L], Forster & Lücke, "Can clustering scale sublinearly with its clusters?" [F], and Bishop, "Pattern
Recognition and Machine Learning" [B].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import arguments as check
from cprime.kernels.native import Expectation, Found

__all__ = [
    "accumulate",
    "expect_all",
    "gather",
    "grouped_order",
    "log_sum_exp",
    "means",
    "min_distances",
    "nearest",
    "nearest_among",
    "posterior",
    "reassign",
    "spread_out",
]

SEGMENT = 2048  # points of one component that `reassign` limits together


def nearest(
    X: NDArray,
    centers: NDArray,
    n_kept: int = 1,
    *,
    hint: NDArray | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Find the n_kept nearest centers of each row: argmin_c ‖x_n − μ_c‖² (B 9.2; K(n) of L Cor. 1).

    X (n, D), centers (C, D) of one dtype T, float32 or float64
    hint (n, n_kept) int32 may speed the native kernel up; it never changes the result and is not used here
    returns kept (n, n_kept) int32, ordered by (distance, id), and distances (n, n_kept) T, squared
    """
    check.matrix(X, "X")
    check.centers(centers, X)
    if not 1 <= n_kept <= len(centers):
        raise ValueError(f"n_kept={n_kept} should be between 1 and the number of centers, {len(centers)}.")
    distances = _squared_distances(X, centers).astype(X.dtype)
    kept = np.argsort(distances, axis=1, kind="stable")[:, :n_kept]
    return kept.astype(np.int32), np.take_along_axis(distances, kept, axis=1)


def min_distances(
    X: NDArray, candidates: NDArray, current: NDArray | None = None, *, n_threads: int | None = None
) -> NDArray:
    """Give min(‖x_n − y_l‖², current_n) for each candidate y_l: the update of D² sampling.

    X (n, D), candidates (L, D), current (n,) of one dtype T     returns (L, n) T, squared
    """
    check.matrix(X, "X")
    check.matrix(candidates, "candidates", X)
    distances = _squared_distances(X, candidates).T.astype(X.dtype)
    if current is None:
        return np.ascontiguousarray(distances)
    _check_vector(X, "current", current)
    if current.dtype != X.dtype:
        raise TypeError(f"current has dtype {current.dtype}, expected the dtype of X, {X.dtype}.")
    return np.minimum(distances, current)


def posterior(log_joint: NDArray, *, n_threads: int | None = None) -> tuple[NDArray, NDArray]:
    """Normalise each row: q_nh = exp(a_nh) / Σ_h' exp(a_nh') (L 4, 5) and log Σ_h exp(a_nh) (L 7).

    log_joint (n, H) float32 or float64, nats; finite or −inf, at least one finite in each row
    returns responsibilities (n, H) float64 and log_sum (n,) float64
    """
    check.matrix(log_joint, "log_joint")
    if log_joint.shape[1] < 1:
        raise ValueError("log_joint must have at least one column, got 0")
    a = log_joint.astype(np.float64)
    highest = a.max(axis=1, keepdims=True)
    scaled = np.exp(a - highest)
    total = scaled.sum(axis=1, keepdims=True)
    return scaled / total, (highest + np.log(total))[:, 0]


def accumulate(
    X: NDArray,
    kept: NDArray,
    responsibilities: NDArray | None = None,
    sample_weight: NDArray | None = None,
    *,
    n_components: int,
    rows: NDArray | None = None,
    onto: NDArray | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Sum the statistics of the M-step (L 6): N_c = Σ_n w_n q_nc and S_c = Σ_n w_n q_nc x_n.

    X (N, D); kept (n, H) int32; sample_weight (N,) or None
    responsibilities (n, H) float64 of any sign, or None for ones, which needs H = 1
    rows (n,) integers: the rows of X and of sample_weight that are meant, or None for all of them
    onto (C, D) float64: what S_c is added to, in place
    returns counts (C,) and sums (C, D), both float64
    """
    check.matrix(X, "X")
    check.count(n_components, "n_components")
    weights = _weights(X, sample_weight)
    if rows is not None:
        _check_range("rows", check.positions(rows, "rows"), 0, len(X))
        X, weights = X[rows], weights[rows]
    _check_ids("kept", kept, len(X), 0, n_components)
    if responsibilities is None:
        if kept.shape[1] != 1:
            raise ValueError(f"responsibilities is None, which needs one kept component, got {kept.shape[1]}.")
        responsibilities = np.ones(kept.shape)
    if responsibilities.shape != kept.shape:
        raise ValueError(f"responsibilities has shape {responsibilities.shape}, expected {kept.shape}.")
    weighted = responsibilities * weights[:, None]
    counts = np.zeros(n_components)
    sums = np.zeros((n_components, X.shape[1])) if onto is None else check.sums(onto, "onto", n_components, X)
    for h in range(kept.shape[1]):
        np.add.at(counts, kept[:, h], weighted[:, h])
        np.add.at(sums, kept[:, h], weighted[:, h, None] * X.astype(np.float64))
    return counts, sums


def means(
    counts: NDArray, sums: NDArray, centers: NDArray, origin: NDArray | None = None, *, n_threads: int | None = None
) -> tuple[NDArray, NDArray]:
    """Give S_c / N_c (L 6), the old centre for a component without points, and its squared distance to the old one.

    counts (C,), sums (C, D) float64; centers (C, D) T; origin (D,): measures from there instead
    returns centers (C, D) T and squared distances (C,) float64, of what is not yet rounded to T
    """
    check.matrix(centers, "centers")
    check.sums(sums, "sums", len(centers), centers)
    check.vector(counts, "counts", len(centers))
    held = counts > 0
    new = np.where(held[:, None], sums / np.where(held, counts, 1)[:, None], centers)
    return new.astype(centers.dtype), np.square(new - (centers if origin is None else origin)).sum(axis=1)


def spread_out(
    candidates: NDArray,
    offsets: NDArray,
    weights: NDArray,
    n_chosen: NDArray,
    uniform: NDArray,
    *,
    n_threads: int | None = None,
) -> NDArray:
    """Choose rows far from each other within each group, by greedy D² sampling (Arthur & Vassilvitskii 2007).

    Group g: rows offsets[g] … offsets[g + 1] of candidates (m, D), of weights (m,), n_chosen[g] of which are wanted
    uniform (Σ n_chosen, trials): what each choice is drawn by; the best of its trials is taken
    returns positions within the groups, (Σ n_chosen,)
    """
    chosen: list[int] = []
    for g, n in enumerate(n_chosen):
        rows, mass = (a[offsets[g] : offsets[g + 1]] for a in (candidates, weights))
        squared = _squared_distances(rows, rows).astype(rows.dtype)
        closest, taken = np.full(len(rows), np.inf), []
        for i in range(n):
            cumulative = np.cumsum(mass * closest if i else mass)
            if not cumulative[-1] > 0:
                taken += [j for j in range(len(rows)) if j not in taken][: n - i]
                break
            drawn = np.searchsorted(cumulative, np.asarray(uniform[len(chosen) + i] * cumulative[-1]), "right")
            tried = np.minimum(drawn, len(rows) - 1)
            best = tried[np.minimum(closest, squared[tried]).dot(mass).argmin()]
            taken.append(best)
            closest = np.minimum(closest, squared[best])
        chosen += taken
    return np.array(chosen, dtype=np.int64)


def expect_all(
    X: NDArray,
    centers: NDArray,
    variance: float,
    sample_weight: NDArray | None = None,
    *,
    n_threads: int | None = None,
) -> Expectation:
    """Do one exact E-step over all components and sum its statistics (L Alg. 2).

    r_nc ∝ exp(−‖x_n − μ_c‖² / 2σ²)
    X (n, D), centers (C, D) of one dtype; variance σ² > 0 in data units²; sample_weight (n,) or None
    returns, all float64: counts (C,) Σ_n w_n r_nc; sums (C, D) Σ_n w_n r_nc x_n;
    squares Σ_nc w_n r_nc ‖x_n − μ_c‖²; log_sum Σ_n w_n log Σ_c exp(−‖x_n − μ_c‖² / 2σ²);
    entropy −Σ_nc w_n r_nc log r_nc (L 20); quantization_error Σ_n w_n min_c ‖x_n − μ_c‖² (B 9.1)
    """
    distances, r, log_sum = _exact_posterior(X, centers, variance)
    w = _weights(X, sample_weight)
    log_r = np.log(r, out=np.zeros_like(r), where=r > 0)
    return Expectation(
        counts=w @ r,
        sums=(w[:, None] * r).T @ X.astype(np.float64),
        squares=float(w @ (r * distances).sum(axis=1)),
        log_sum=float(w @ log_sum),
        entropy=float(w @ -(r * log_r).sum(axis=1)),
        quantization_error=float(w @ distances.min(axis=1)),
    )


def log_sum_exp(X: NDArray, centers: NDArray, variance: float, *, n_threads: int | None = None) -> NDArray:
    """Give log Σ_c exp(−‖x_n − μ_c‖² / 2σ²) over all components: the data-dependent part of L 3 and L 16.

    X (n, D), centers (C, D) of one dtype; variance σ² > 0 in data units²     returns (n,) float64, nats
    """
    return _exact_posterior(X, centers, variance)[2]


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
    _check_ids("lists", lists, C, -1, C)
    if labels.shape != (len(X),):
        raise ValueError(f"labels has shape {labels.shape}, expected ({len(X)},).")
    _check_ids("labels", labels[:, None], len(X), 0, C)
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
    for c in range(C) if active is None else np.flatnonzero(active):
        members = np.flatnonzero(labels == c)
        end = np.append(np.flatnonzero(lists[c] == -1), lists.shape[1])[0]
        offered = np.append(c, lists[c, :end])
        for first in range(0, len(members), SEGMENT):
            points = members[first : first + SEGMENT]
            squared = _squared_distances(X[points], centers[offered])
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
    evidence: bool = False,
    n_threads: int | None = None,
) -> Found:
    """Do a partial E-step: the n_kept nearest in G(n) = K(n) ∪ ⋃_{c ∈ K(n)} G_c ∪ extra(n) (F Alg. 1, 2).

    X (n, D), centers (C, D) of one dtype T; lists (C, G), previous (n, H′): K(n), extra (n, E), all int32 with −1 for
    no component and repetitions allowed
    returns kept (n, n_kept) int32, ordered by (distance, id), −1 where G(n) is smaller; distances (n, n_kept) T,
    squared, infinite there; counts (n,) int32: |G(n)|; and with `evidence` G(n) in the order K(n), the lists, extra:
    evaluated (n, H′ (G + 1) + E) int32, −1 behind the last, and evaluations, squared distances T, 0 there
    """
    n, C = len(X), len(centers)
    check.matrix(X, "X")
    check.centers(centers, X)
    check.count(n_kept, "n_kept")
    extra = np.empty((n, 0), dtype=np.int32) if extra is None else extra
    _check_ids("lists", lists, C, -1, C)
    _check_ids("previous", previous, n, -1, C)
    _check_ids("extra", extra, n, -1, C)
    capacity = previous.shape[1] * (lists.shape[1] + 1) + extra.shape[1]
    kept, distances = np.full((n, n_kept), -1, np.int32), np.full((n, n_kept), np.inf, X.dtype)
    evaluated, evaluations = np.full((n, capacity), -1, np.int32), np.zeros((n, capacity), X.dtype)
    counts = np.empty(n, dtype=np.int32)
    for i, x in enumerate(X):
        own = previous[i][previous[i] >= 0]
        offered = np.concatenate([own, lists[own].ravel(), extra[i]])
        offered = np.array(list(dict.fromkeys(offered[offered >= 0].tolist())), dtype=np.int32)
        squared = _squared_distances(x[None], centers[offered])[0].astype(X.dtype)
        order = np.lexsort((offered, squared))[:n_kept]
        counts[i] = len(offered)
        kept[i, : len(order)], distances[i, : len(order)] = offered[order], squared[order]
        evaluated[i, : len(offered)], evaluations[i, : len(offered)] = offered, squared
    return Found(kept, distances, counts, evaluated if evidence else None, evaluations if evidence else None)


def grouped_order(labels: NDArray, n_components: int, *, n_threads: int | None = None) -> NDArray:
    """Give the positions of component 0, then of 1, and so on, each component's in rising order.

    labels (n,) int32 from 0 to n_components - 1     returns (n,) int64
    """
    check.count(n_components, "n_components")
    _check_ids("labels", labels[:, None], len(labels), 0, n_components)
    return np.argsort(labels, kind="stable")


def gather(X: NDArray, order: NDArray, *, n_threads: int | None = None) -> NDArray:
    """Copy the rows of X in the given order.

    X (n, D); order (m,) integers from 0 to n - 1, repetitions allowed     returns (m, D), C-contiguous
    """
    check.matrix(X, "X")
    _check_range("order", check.positions(order, "order"), 0, len(X))
    return np.ascontiguousarray(X[order])


def _exact_posterior(X: NDArray, centers: NDArray, variance: float) -> tuple[NDArray, NDArray, NDArray]:
    """Squared distances (n, C), responsibilities (n, C) and log-sums (n,) of the model with one variance.

    The nearest distance is taken out before the division, which keeps σ² → 0 finite.
    """
    check.matrix(X, "X")
    check.centers(centers, X)
    if not (np.isfinite(variance) and variance > 0):
        raise ValueError(f"variance={variance} should be positive and finite.")
    distances = _squared_distances(X, centers)
    least = distances.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        r, log_total = posterior((least - distances) / (2 * variance))
    return distances, r, log_total - least[:, 0] / (2 * variance)


def _squared_distances(X: NDArray, centers: NDArray) -> NDArray:
    """‖x_n − μ_c‖² from differences, (n, C) float64."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    distances = np.empty((len(X), len(centers)))
    for c, center in enumerate(centers.astype(np.float64)):
        distances[:, c] = np.square(rows - center).sum(axis=1)
    return distances


def _weights(X: NDArray, sample_weight: NDArray | None) -> NDArray:
    """sample_weight as float64, ones (n,) for None."""
    if sample_weight is None:
        return np.ones(len(X))
    _check_vector(X, "sample_weight", sample_weight)
    return sample_weight.astype(np.float64)


def _check_vector(X: NDArray, name: str, value: NDArray) -> None:
    """Require one entry per row of X."""
    if value.shape != (len(X),):
        raise ValueError(f"{name} has shape {value.shape}, expected ({len(X)},).")


def _check_ids(name: str, ids: NDArray, n_rows: int, least: int, n_components: int) -> None:
    """Require n_rows rows of components in [least, n_components)."""
    if ids.dtype != np.int32:
        raise TypeError(f"{name} has dtype {ids.dtype}, expected int32.")
    if ids.ndim != 2 or len(ids) != n_rows:
        raise ValueError(f"{name} has shape {ids.shape}, expected ({n_rows}, any).")
    _check_range(name, ids, least, n_components)


def _check_range(name: str, ids: NDArray, least: int, end: int) -> None:
    """Require integers in [least, end)."""
    if ids.size and not (ids.min() >= least and ids.max() < end):
        raise ValueError(f"{name} has {ids.min()} to {ids.max()}, expected {least} to {end - 1}.")
