"""NumPy twins of the native kernels: slow, and simple enough to be seen to be right.

Owns the meaning of every kernel: `cprime.kernels.native` has the same signatures and is held to these
functions by one contract suite. Knows nothing of models, searches or iterations. Arithmetic is float64
whatever the dtype of the data, and nothing here is blocked or threaded: `n_threads` is accepted and has no
effect.

Equation numbers are those of Lücke & Forster, "k-means as a variational EM approximation of Gaussian mixture
models" [L], Forster & Lücke, "Can clustering scale sublinearly with its clusters?" [F], and Bishop, "Pattern
Recognition and Machine Learning" [B].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cprime.kernels.native import Expectation, Found

__all__ = [
    "accumulate",
    "expect_all",
    "gather",
    "grouped_order",
    "log_sum_exp",
    "min_distances",
    "nearest",
    "nearest_among",
    "posterior",
    "reassign",
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
    _check_points(X, "centers", centers)
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
    _check_points(X, "candidates", candidates)
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
    _check_matrix("log_joint", log_joint)
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
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Sum the statistics of the M-step (L 6): N_c = Σ_n w_n q_nc and S_c = Σ_n w_n q_nc x_n.

    X (N, D); kept (n, H) int32; sample_weight (N,) or None
    responsibilities (n, H) float64 of any sign, or None for ones, which needs H = 1
    rows (n,) integers: the rows of X and of sample_weight that are meant, or None for all of them
    returns counts (C,) and sums (C, D), both float64
    """
    _check_matrix("X", X)
    _check_count("n_components", n_components)
    weights = _weights(X, sample_weight)
    if rows is not None:
        _check_positions("rows", rows, len(X))
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
    sums = np.zeros((n_components, X.shape[1]))
    for h in range(kept.shape[1]):
        np.add.at(counts, kept[:, h], weighted[:, h])
        np.add.at(sums, kept[:, h], weighted[:, h, None] * X.astype(np.float64))
    return counts, sums


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
    _check_points(X, "centers", centers)
    _check_ids("lists", lists, C, -1, C)
    if labels.shape != (len(X),):
        raise ValueError(f"labels has shape {labels.shape}, expected ({len(X)},).")
    _check_ids("labels", labels[:, None], len(X), 0, C)
    if not 0 <= share <= 1:
        raise ValueError(f"share={share} should be between 0 and 1.")
    stay = _factors("inside", inside, C)
    go = _factors("outside", outside, C)
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
    _check_points(X, "centers", centers)
    _check_count("n_kept", n_kept)
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
    _check_count("n_components", n_components)
    _check_ids("labels", labels[:, None], len(labels), 0, n_components)
    return np.argsort(labels, kind="stable")


def gather(X: NDArray, order: NDArray, *, n_threads: int | None = None) -> NDArray:
    """Copy the rows of X in the given order.

    X (n, D); order (m,) integers from 0 to n - 1, repetitions allowed     returns (m, D), C-contiguous
    """
    _check_matrix("X", X)
    _check_positions("order", order, len(X))
    return np.ascontiguousarray(X[order])


def _exact_posterior(X: NDArray, centers: NDArray, variance: float) -> tuple[NDArray, NDArray, NDArray]:
    """Squared distances (n, C), responsibilities (n, C) and log-sums (n,) of the model with one variance.

    The nearest distance is taken out before the division, which keeps σ² → 0 finite.
    """
    _check_points(X, "centers", centers)
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


def _check_matrix(name: str, value: NDArray) -> None:
    """Require a non-empty floating-point matrix."""
    if value.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} has dtype {value.dtype}, expected float32 or float64.")
    if value.ndim != 2 or value.shape[1] == 0:
        raise ValueError(f"{name} has shape {value.shape}, expected two dimensions and at least one column.")


def _check_points(X: NDArray, name: str, points: NDArray) -> None:
    """Require X and points to be matrices over the same features, of the same dtype."""
    _check_matrix("X", X)
    _check_matrix(name, points)
    if points.dtype != X.dtype:
        raise TypeError(f"{name} has dtype {points.dtype}, expected the dtype of X, {X.dtype}.")
    if points.shape[1] != X.shape[1] or len(points) == 0:
        raise ValueError(f"{name} has shape {points.shape}, expected at least one row of {X.shape[1]} features.")


def _check_vector(X: NDArray, name: str, value: NDArray) -> None:
    """Require one entry per row of X."""
    if value.shape != (len(X),):
        raise ValueError(f"{name} has shape {value.shape}, expected ({len(X)},).")


def _check_count(name: str, value: int) -> None:
    """Require a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name}={value!r} should be an integer.")
    if value < 1:
        raise ValueError(f"{name}={value} should be at least 1.")


def _check_ids(name: str, ids: NDArray, n_rows: int, least: int, n_components: int) -> None:
    """Require n_rows rows of components in [least, n_components)."""
    if ids.dtype != np.int32:
        raise TypeError(f"{name} has dtype {ids.dtype}, expected int32.")
    if ids.ndim != 2 or len(ids) != n_rows:
        raise ValueError(f"{name} has shape {ids.shape}, expected ({n_rows}, any).")
    if ids.size and not (ids.min() >= least and ids.max() < n_components):
        raise ValueError(f"{name} has ids {ids.min()} to {ids.max()}, expected {least} to {n_components - 1}.")


def _factors(name: str, factor: NDArray | None, n_components: int) -> NDArray:
    """The factors as float64, ones (C,) for None."""
    if factor is None:
        return np.ones(n_components)
    if factor.shape != (n_components,):
        raise ValueError(f"{name} has shape {factor.shape}, expected ({n_components},).")
    if not (np.isfinite(factor) & (factor >= 0)).all():
        raise ValueError(f"{name} has entries that are not >= 0 and finite.")
    return factor.astype(np.float64)


def _check_positions(name: str, rows: NDArray, n_rows: int) -> None:
    """Require integers in [0, n_rows)."""
    if rows.dtype.kind not in "iu":
        raise TypeError(f"{name} has dtype {rows.dtype}, expected integers.")
    if rows.ndim != 1:
        raise ValueError(f"{name} has shape {rows.shape}, expected one dimension.")
    if rows.size and not (rows.min() >= 0 and rows.max() < n_rows):
        raise ValueError(f"{name} has {rows.min()} to {rows.max()}, expected 0 to {n_rows - 1}.")
