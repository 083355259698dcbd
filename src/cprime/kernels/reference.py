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
from cprime.kernels.native import Expectation, Posterior
from cprime.kernels.reference_bounds import nearest_bounded
from cprime.kernels.reference_gaussians import (
    best,
    best_among,
    keep_best,
    moments,
    products,
    respond,
    responsibilities,
)
from cprime.kernels.reference_line import cut_line
from cprime.kernels.reference_local import (
    CenterCells,
    changed,
    check_ids,
    check_range,
    gather,
    grouped_order,
    keep_nearest,
    nearest_among,
    reassign,
    squared_distances,
    thin,
    walk,
)

__all__ = [
    "CenterCells",
    "accumulate",
    "along",
    "best",
    "best_among",
    "changed",
    "cut_line",
    "expect_all",
    "extent",
    "gather",
    "grouped_order",
    "keep_best",
    "keep_nearest",
    "log_sum_exp",
    "means",
    "min_distances",
    "moments",
    "nearest",
    "nearest_among",
    "nearest_bounded",
    "posterior",
    "potentials",
    "products",
    "projected",
    "reassign",
    "respond",
    "responsibilities",
    "spread_out",
    "squares",
    "thin",
    "walk",
]


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
    distances = squared_distances(X, centers).astype(X.dtype)
    kept = np.argsort(distances, axis=1, kind="stable")[:, :n_kept]
    return kept.astype(np.int32), np.take_along_axis(distances, kept, axis=1)


def squares(X: NDArray) -> NDArray:
    """Give ‖x_n‖² of each row: (n,) float64."""
    return np.square(X, dtype=np.float64).sum(axis=1)


def projected(X: NDArray, direction: NDArray) -> NDArray:
    """Give x_n·v of each row along one direction, v (D,) float64: (n,) float64."""
    return X.astype(np.float64) @ direction


def min_distances(
    X: NDArray,
    candidates: NDArray,
    current: NDArray | None = None,
    *,
    out: NDArray | None = None,
    n_threads: int | None = None,
) -> NDArray:
    """Give min(‖x_n − y_l‖², current_n) for each candidate y_l: the update of D² sampling.

    X (n, D), candidates (L, D), current (n,) of one dtype T     returns (L, n) T, squared: `out`, where it is given
    """
    check.matrix(X, "X")
    check.matrix(candidates, "candidates", X)
    distances = squared_distances(X, candidates).T.astype(X.dtype)
    if current is not None:
        _check_vector(X, "current", current)
        if current.dtype != X.dtype:
            raise TypeError(f"current has dtype {current.dtype}, expected the dtype of X, {X.dtype}.")
        distances = np.minimum(distances, current)
    if out is None:
        return np.ascontiguousarray(distances)
    if out.shape != distances.shape or out.dtype != X.dtype:
        raise ValueError(f"out has shape {out.shape} of {out.dtype}, expected {distances.shape} of {X.dtype}.")
    out[:] = distances
    return out


def potentials(
    squares: NDArray,
    closest: NDArray,
    sample_weight: NDArray | None = None,
    *,
    candidates: NDArray | None = None,
    n_threads: int | None = None,
) -> NDArray:
    """Give Σ_n w_n min(squares_ln, closest_n) of each candidate: J with it, by which greedy D² sampling chooses.

    squares (L, n), closest (n,) of one dtype, candidates (m,) rows of squares, None for all     returns (m,) float64
    """
    if squares.ndim != 2 or squares.dtype not in (np.float32, np.float64):
        raise TypeError(f"squares should be a matrix of floats, got {squares.dtype} of shape {squares.shape}.")
    if closest.shape != squares.shape[1:]:
        raise ValueError(f"closest has shape {closest.shape}, expected {squares.shape[1:]}.")
    weights = _weights(closest, sample_weight)
    if candidates is not None:
        if not ((candidates >= 0) & (candidates < len(squares))).all():
            raise ValueError(f"candidates has rows outside 0 to {len(squares) - 1}.")
        squares = squares[candidates]
    return np.minimum(squares, closest).astype(np.float64) @ weights


def posterior(values: NDArray, scale: float = 1.0, *, n_threads: int | None = None) -> Posterior:
    """Normalise each row: q_nh = exp(a_nh) / Σ_h' exp(a_nh') (L 4, 5), log Σ_h exp(a_nh) (L 7), Σ_h q_nh values_nh.

    a = scale · values, nats; values (n, H) float32 or float64; a finite or −inf, at least one finite in each row
    returns responsibilities (n, H), log_sum (n,) and mean (n,), all float64
    """
    check.matrix(values, "values")
    if values.shape[1] < 1:
        raise ValueError("values must have at least one column, got 0")
    a = scale * values.astype(np.float64)
    highest = a.max(axis=1, keepdims=True)
    scaled = np.exp(a - highest)
    total = scaled.sum(axis=1, keepdims=True)
    q = scaled / total
    return Posterior(q, (highest + np.log(total))[:, 0], (q * np.where(q > 0, values, 0)).sum(axis=1))


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
        check_range("rows", check.positions(rows, "rows"), 0, len(X))
        X, weights = X[rows], weights[rows]
    check_ids("kept", kept, len(X), 0, n_components)
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


def along(
    X: NDArray, centers: NDArray, directions: NDArray, labels: NDArray, *, n_threads: int | None = None
) -> NDArray:
    """Give (x_n − μ_c)·v_c for c = labels[n].

    X (n, D), centers and directions (C, D) of one dtype T; labels (n,) int32     returns (n,) float64
    """
    check.matrix(X, "X")
    check.centers(centers, X)
    check.matrix(directions, "directions", X)
    if len(directions) != len(centers):
        raise ValueError(f"directions has {len(directions)} rows, expected those of centers, {len(centers)}.")
    if labels.dtype != np.int32:
        raise TypeError(f"labels has dtype {labels.dtype}, expected int32.")
    if labels.shape != (len(X),):
        raise ValueError(f"labels has shape {labels.shape}, expected ({len(X)},).")
    check_range("labels", labels, 0, len(centers))
    differences = X.astype(np.float64) - centers.astype(np.float64)[labels]
    return np.einsum("nd,nd->n", differences, directions.astype(np.float64)[labels])


def extent(X: NDArray, origin: NDArray | None = None, *, n_threads: int | None = None) -> tuple[float, float]:
    """Give the greatest |x_nk|, which is NaN or infinite where one of them is, and the greatest |x_nk − origin_k|.

    X (n, D) T; origin (D,) T: the first row by default
    """
    check.matrix(X, "X")
    if not X.size:
        return 0.0, 0.0
    origin = X[0] if origin is None else origin
    check.matrix(origin[None], "origin", X)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.abs(X).max()), float(np.fmax.reduce(np.abs(X - origin), axis=None))


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
        squared = squared_distances(rows, rows).astype(rows.dtype)
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


def _exact_posterior(X: NDArray, centers: NDArray, variance: float) -> tuple[NDArray, NDArray, NDArray]:
    """Squared distances (n, C), responsibilities (n, C) and log-sums (n,) of the model with one variance.

    The nearest distance is taken out before the division, which keeps σ² → 0 finite.
    """
    check.matrix(X, "X")
    check.centers(centers, X)
    if not (np.isfinite(variance) and variance > 0):
        raise ValueError(f"variance={variance} should be positive and finite.")
    distances = squared_distances(X, centers)
    least = distances.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        r, log_total, _ = posterior((least - distances) / (2 * variance))
    return distances, r, log_total - least[:, 0] / (2 * variance)


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
