"""NumPy twins of the native kernels: slow, and simple enough to be seen to be right.

Owns the meaning of every kernel: `cprime.kernels.native` has the same signatures and is held to these
functions by one contract suite. Knows nothing of models, searches or iterations. Arithmetic is float64
whatever the dtype of the data, and nothing here is blocked or threaded: `n_threads` is accepted and has no
effect.

Equation numbers are those of Lücke & Forster, "k-means as a variational EM approximation of Gaussian mixture
models" [L], and Bishop, "Pattern Recognition and Machine Learning" [B].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cprime.kernels.native import Expectation

__all__ = ["accumulate", "expect_all", "log_sum_exp", "min_distances", "nearest", "posterior"]


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
    n_threads: int | None = None,
) -> tuple[NDArray, NDArray]:
    """Sum the statistics of the M-step (L 6): N_c = Σ_n w_n q_nc and S_c = Σ_n w_n q_nc x_n.

    X (n, D); kept (n, H) int32, distinct in each row; sample_weight (n,) or None
    responsibilities (n, H) float64, or None for ones, which needs H = 1
    returns counts (C,) and sums (C, D), both float64
    """
    _check_matrix("X", X)
    if kept.dtype != np.int32:
        raise TypeError(f"kept has dtype {kept.dtype}, expected int32.")
    if kept.ndim != 2 or len(kept) != len(X):
        raise ValueError(f"kept has shape {kept.shape}, expected ({len(X)}, H).")
    if kept.size and not (kept.min() >= 0 and kept.max() < n_components):
        raise ValueError(f"kept has ids {kept.min()} to {kept.max()}, expected 0 to {n_components - 1}.")
    if responsibilities is None:
        if kept.shape[1] != 1:
            raise ValueError(f"responsibilities is None, which needs one kept component, got {kept.shape[1]}.")
        responsibilities = np.ones(kept.shape)
    if responsibilities.shape != kept.shape:
        raise ValueError(f"responsibilities has shape {responsibilities.shape}, expected {kept.shape}.")
    weighted = responsibilities * _weights(X, sample_weight)[:, None]
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
