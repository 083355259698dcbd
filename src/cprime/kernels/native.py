"""The compiled kernels, with the checks that make them safe to call; the only module that imports `_core`.

Each function has a slow twin of the same name and signature in `reference.py`. All of them take float32 or float64
arrays, which may be read-only, memory-mapped or not contiguous, release the GIL, may be called from several
Python threads at once, and give the same result bit for bit for any number of threads.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._threads import resolve_threads

Floats = NDArray[np.floating]


class Expectation(NamedTuple):
    """Sufficient statistics of an exact E-step; see `expect_all`."""

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: float
    log_sum: float
    entropy: float
    quantization_error: float


def instruction_set() -> str:
    """The instruction set that the kernels run on: "baseline", "avx2", "avx512" or "amx"."""
    return _core.instruction_set()


def _matrix(array: Floats, name: str, like: Floats | None = None) -> Floats:
    """The array with contiguous rows, after checking that it is a float matrix (of the columns and dtype of `like`)."""
    if not isinstance(array, np.ndarray) or array.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"{name} must be a NumPy array of float32 or float64, got {getattr(array, 'dtype', type(array))}"
        )
    if array.ndim != 2:
        raise ValueError(f"{name} must be two-dimensional, got {array.ndim} dimension(s)")
    if like is not None:
        if array.dtype != like.dtype:
            raise TypeError(f"{name} must have the dtype of X, {like.dtype}, got {array.dtype}")
        if array.shape[1] != like.shape[1]:
            raise ValueError(f"{name} must have the {like.shape[1]} columns of X, got {array.shape[1]}")
    if not len(array):  # an array without rows may have strides of 0
        return np.empty((1, array.shape[1]), dtype=array.dtype)[:0]
    if (array.shape[1] > 1 and array.strides[1] != array.itemsize) or array.strides[0] % array.itemsize:
        array = np.ascontiguousarray(array)
    return array


def _centers(array: Floats, X: Floats) -> Floats:
    """The array as `_matrix`, after checking that there is at least one centre."""
    array = _matrix(array, "centers", X)
    if not len(array):
        raise ValueError("centers must have at least one row, got none")
    return array


def _weights(sample_weight: Floats | None, n: int) -> NDArray[np.float64] | None:
    if sample_weight is None:
        return None
    weights: NDArray[np.float64] = np.ascontiguousarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}")
    return weights


def _kept(kept: NDArray[np.int32], name: str, shape: tuple[int, ...]) -> NDArray[np.int32]:
    kept = np.ascontiguousarray(kept)
    if kept.dtype != np.int32:
        raise TypeError(f"{name} must be int32, got {kept.dtype}")
    if kept.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {kept.shape}")
    return kept


def _positions(rows: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    rows = np.ascontiguousarray(rows)
    if rows.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {rows.dtype}")
    if rows.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got {rows.ndim} dimensions")
    return rows.astype(np.int64, copy=False)


def _count(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


def _width(ids: NDArray[np.int32], name: str) -> int:
    if np.ndim(ids) != 2:
        raise ValueError(f"{name} must be two-dimensional, got {np.ndim(ids)} dimension(s)")
    return int(np.shape(ids)[1])


def _factor(factor: Floats | None, name: str, like: Floats, n: int) -> Floats | None:
    if factor is None:
        return None
    factor = np.ascontiguousarray(factor, dtype=like.dtype)
    if factor.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {factor.shape}")
    if not (np.isfinite(factor) & (factor >= 0)).all():
        raise ValueError(f"{name} must be >= 0 and finite")
    return factor


def _refuse_components(n_components: int, least: int, **ids: NDArray[np.int32]) -> None:
    """Names the argument in which the core has met a component outside [least, n_components)."""
    for name, array in ids.items():
        if array.size and (array.min() < least or array.max() >= n_components):
            raise ValueError(
                f"{name} must have components from {least} to {n_components - 1}, got {array.min()} to {array.max()}"
            )


def _shift(centers: Floats) -> Floats:
    """An origin that keeps products small, a function of the centres alone: their median, far ones having no say."""
    sample = centers[:: -(-len(centers) // 256)]
    return np.sort(sample, axis=0)[len(sample) // 2]


def nearest(
    X: Floats,
    centers: Floats,
    n_kept: int = 1,
    *,
    hint: NDArray[np.int32] | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], Floats]:
    """The `n_kept` nearest centres of every row, by (distance, id), and their squared distances.

    X (n, D), centers (C, D)  ->  kept (n, H) int32, distances (n, H) [data unit²] of X's dtype, from differences.
    hint (n, H): components believed near, distinct in each row; it changes the time, never the result.
    """
    X = _matrix(X, "X")
    centers = _centers(centers, X)
    if not 1 <= n_kept <= len(centers):
        raise ValueError(f"n_kept must be between 1 and the number of centers, {len(centers)}, got {n_kept}")
    shape = (len(X), int(n_kept))
    if hint is not None:
        hint = _kept(hint, "hint", shape)
    kept = np.empty(shape, dtype=np.int32)
    distances = np.empty(shape, dtype=X.dtype)
    _core.nearest(X, centers, _shift(centers), hint, kept, distances, resolve_threads(n_threads))
    return kept, distances


def min_distances(
    X: Floats, candidates: Floats, current: Floats | None = None, *, n_threads: int | None = None
) -> Floats:
    """Squared distance of every row to every candidate, or `current` where that is less: (L, n) of X's dtype."""
    X = _matrix(X, "X")
    candidates = _matrix(candidates, "candidates", X)
    if current is not None:
        current = np.ascontiguousarray(current, dtype=X.dtype)
        if current.shape != (len(X),):
            raise ValueError(f"current must have shape ({len(X)},), got {current.shape}")
    out = np.empty((len(candidates), len(X)), dtype=X.dtype)
    _core.distances(X, candidates, current, out, resolve_threads(n_threads))
    return out


def posterior(log_joint: Floats, *, n_threads: int | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Row-wise softmax and log-sum-exp: log_joint (n, H)  ->  responsibilities (n, H), log_sum (n,), both float64."""
    log_joint = np.ascontiguousarray(_matrix(log_joint, "log_joint"))
    if log_joint.shape[1] < 1:
        raise ValueError("log_joint must have at least one column, got 0")
    responsibilities = np.empty(log_joint.shape, dtype=np.float64)
    log_sum = np.empty(len(log_joint), dtype=np.float64)
    _core.posterior(log_joint, responsibilities, log_sum, resolve_threads(n_threads))
    return responsibilities, log_sum


def accumulate(
    X: Floats,
    kept: NDArray[np.int32],
    responsibilities: NDArray[np.float64] | None = None,
    sample_weight: Floats | None = None,
    *,
    n_components: int,
    rows: NDArray[np.int64] | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sufficient statistics of the kept components: N_c = Σ_n w_n q_nc (C,) and S_c = Σ_n w_n q_nc x_n (C, D), float64.

    kept (n, H) int32    responsibilities (n, H), of any sign, or None for ones, which needs H = 1
    rows (n,): the rows of X and of sample_weight that are meant; None is all of them.
    """
    X = _matrix(X, "X")
    if rows is not None:
        rows = _positions(rows, "rows")
    kept = _kept(kept, "kept", (len(X) if rows is None else len(rows), _width(kept, "kept")))
    if responsibilities is None:
        if kept.shape[1] != 1:
            raise ValueError(f"responsibilities are needed where more than one component is kept, got {kept.shape[1]}")
    else:
        responsibilities = np.ascontiguousarray(responsibilities, dtype=np.float64)
        if responsibilities.shape != kept.shape:
            raise ValueError(f"responsibilities must have shape {kept.shape}, got {responsibilities.shape}")
    n_components = _count(n_components, "n_components")
    counts = np.empty(n_components)
    sums = np.empty((n_components, X.shape[1]))
    weights = _weights(sample_weight, len(X))
    _core.accumulate(X, kept, responsibilities, weights, rows, counts, sums, resolve_threads(n_threads))
    return counts, sums


def _variance(variance: float) -> float:
    if not 0 < variance < math.inf:
        raise ValueError(f"variance must be > 0 and finite, got {variance!r}")
    return float(variance)


def expect_all(
    X: Floats,
    centers: Floats,
    variance: float,
    sample_weight: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> Expectation:
    """One exact E-step over all C components, in blocks that do not grow with N.

    r_nc ∝ exp(−d²_nc/2σ²); squares = Σ_n w_n Σ_c r_nc d²_nc; log_sum = Σ_n w_n log Σ_c exp(−d²_nc/2σ²);
    entropy = −Σ_n w_n Σ_c r_nc log r_nc; quantization_error = Σ_n w_n min_c d²_nc.
    """
    X = _matrix(X, "X")
    centers = _centers(centers, X)
    weights = _weights(sample_weight, len(X))
    variance = _variance(variance)
    counts = np.zeros(len(centers))
    sums = np.zeros(centers.shape)
    least, excess, log_sum = np.empty((3, len(X)))
    threads = resolve_threads(n_threads)
    _core.expect_all(X, centers, variance, weights, counts, sums, least, excess, log_sum, threads)
    J, over, log_sums = (float((v if weights is None else weights * v).sum()) for v in (least, excess, log_sum))
    return Expectation(
        counts=counts,
        sums=sums,
        squares=J + over,
        log_sum=log_sums - J / (2 * variance),
        entropy=log_sums + over / (2 * variance),
        quantization_error=J,
    )


def log_sum_exp(X: Floats, centers: Floats, variance: float, *, n_threads: int | None = None) -> NDArray[np.float64]:
    """log Σ_c exp(−d²_nc/2σ²) over all C components, for every row: (n,) float64."""
    X = _matrix(X, "X")
    centers = _centers(centers, X)
    variance = _variance(variance)
    least, log_sum = np.empty((2, len(X)))
    _core.log_sum_exp(X, centers, variance, least, log_sum, resolve_threads(n_threads))
    return log_sum - least / (2 * variance)


def reassign(
    X: Floats,
    centers: Floats,
    lists: NDArray[np.int32],
    labels: NDArray[np.int32],
    inside: Floats | None = None,
    outside: Floats | None = None,
    share: float = 0.25,
    active: NDArray[np.bool_] | None = None,
    known: Floats | None = None,
    *,
    n_threads: int | None = None,
) -> tuple[NDArray[np.int32], Floats]:
    """One cluster-major partial E-step with C′ = 1: every point compares its component with that one's neighbours.

    A point of component c moves to the neighbour b of least outside_b ‖x − μ_b‖² if that is less than
    inside_c ‖x − μ_c‖²; without factors that is Algorithms 1 and 2 of [F] for C′ = 1.

    X (n, D), centers (C, D), lists (C, G) int32: neighbours without the component itself, −1 behind the last,
    labels (n,) int32, inside and outside (C,) >= 0 or None for ones  ->  labels (n,) int32, squared distances (n,).
    active (C,) bool: only points of these components are visited; the others stay, at their `known` distances (n,).
    """
    X = _matrix(X, "X")
    centers = _centers(centers, X)
    lists = _kept(lists, "lists", (len(centers), _width(lists, "lists")))
    labels = _kept(labels, "labels", (len(X),))
    inside = _factor(inside, "inside", X, len(centers))
    outside = _factor(outside, "outside", X, len(centers))
    if not 0 <= share <= 1:
        raise ValueError(f"share must be between 0 and 1, got {share!r}")
    threads = resolve_threads(n_threads)
    if active is None:
        mask, out, distances = None, np.empty_like(labels), np.empty(len(X), dtype=X.dtype)
    else:
        if known is None or known.shape != (len(X),):
            came = None if known is None else known.shape
            raise ValueError(f"known must have shape ({len(X)},) where active is given, got {came}")
        if np.shape(active) != (len(centers),):
            raise ValueError(f"active must have shape ({len(centers)},), got {np.shape(active)}")
        mask = np.ascontiguousarray(active, dtype=bool).view(np.uint8)
        out, distances = labels.copy(), np.array(known, dtype=X.dtype)
    try:
        _core.reassign(X, centers, lists, inside, outside, share, mask, labels, out, distances, threads)
    except ValueError:
        _refuse_components(len(centers), -1, lists=lists)
        _refuse_components(len(centers), 0, labels=labels)
        raise
    return out, distances


class Found(NamedTuple):
    """What a point-major partial search has found; see `nearest_among`."""

    kept: NDArray[np.int32]
    distances: Floats
    counts: NDArray[np.int32]
    evaluated: NDArray[np.int32] | None
    evaluations: Floats | None


def nearest_among(
    X: Floats,
    centers: Floats,
    lists: NDArray[np.int32],
    previous: NDArray[np.int32],
    n_kept: int,
    extra: NDArray[np.int32] | None = None,
    *,
    evidence: bool = False,
    n_threads: int | None = None,
) -> Found:
    """One point-major partial E-step: the `n_kept` nearest in G(n) = K(n) ∪ ⋃_{c ∈ K(n)} G_c ∪ extra(n).

    X (n, D), centers (C, D), lists (C, G) int32, previous (n, H′) int32: K(n), extra (n, E) int32; −1 is no component
    ->  kept (n, H) int32 by (distance, id), −1 where G(n) is smaller, squared distances (n, H), infinite there,
    counts (n,): |G(n)|, each of its components evaluated once; with `evidence` all that was evaluated, (n, M) int32
    with −1 behind the last, and its squared distances.
    """
    X = _matrix(X, "X")
    n = len(X)
    centers = _centers(centers, X)
    n_kept = _count(n_kept, "n_kept")
    lists = _kept(lists, "lists", (len(centers), _width(lists, "lists")))
    previous = _kept(previous, "previous", (n, _width(previous, "previous")))
    extra = np.empty((n, 0), dtype=np.int32) if extra is None else _kept(extra, "extra", (n, _width(extra, "extra")))
    kept, distances = np.empty((n, n_kept), dtype=np.int32), np.empty((n, n_kept), dtype=X.dtype)
    counts = np.empty(n, dtype=np.int32)
    evaluated, evaluations = None, None
    if evidence:
        shape = (n, previous.shape[1] * (lists.shape[1] + 1) + extra.shape[1])
        evaluated, evaluations = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=X.dtype)
    threads = resolve_threads(n_threads)
    try:
        _core.nearest_among(
            X, centers, lists, previous, extra, kept, distances, counts, evaluated, evaluations, threads
        )
    except ValueError:
        _refuse_components(len(centers), -1, lists=lists, previous=previous, extra=extra)
        raise
    return Found(kept, distances, counts, evaluated, evaluations)


def grouped_order(labels: NDArray[np.int32], n_components: int, *, n_threads: int | None = None) -> NDArray[np.int64]:
    """The order that puts points of one component together, stable: a counting sort; labels (n,) int32 -> (n,)."""
    labels = _kept(labels, "labels", (np.size(labels),))
    n_components = _count(n_components, "n_components")
    order = np.empty(len(labels), dtype=np.int64)
    try:
        _core.grouped_order(labels, n_components, order, resolve_threads(n_threads))
    except ValueError:
        _refuse_components(n_components, 0, labels=labels)
        raise
    return order


def gather(X: Floats, order: NDArray[np.int64], *, n_threads: int | None = None) -> Floats:
    """X[order] for rows, by several threads: a C-contiguous copy (len(order), D)."""
    X = _matrix(X, "X")
    order = _positions(order, "order")
    out = np.empty((len(order), X.shape[1]), dtype=X.dtype)
    _core.gather(X, order, out, resolve_threads(n_threads))
    return out
