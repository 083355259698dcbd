"""The compiled kernels, with the checks that make them safe to call; only `native*.py` import `_core`.

Each function has a slow twin of the same name and signature in `reference.py`; partial searches and general Gaussians
have files of their own beside both. All of them take float32 or float64 arrays, which may be read-only, memory-mapped
or not contiguous, release the GIL, may be called from several Python threads at once, and give the same result bit for
bit for any number of threads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import _core
from cprime._threads import limited, resolve_threads
from cprime.kernels import arguments as check
from cprime.kernels.arguments import Floats
from cprime.kernels.sparse import Sparse


class Expectation(NamedTuple):
    """Sufficient statistics of an exact E-step; see `expect_all`."""

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    squares: float
    log_sum: float
    entropy: float
    quantization_error: float


def instruction_set() -> str:
    """The instruction set that the kernels run on: "baseline", "avx2", "avx512f", "avx512" (with VNNI) or "amx"."""
    return _core.instruction_set()


@contextmanager
def computing(n_threads: int | None) -> Iterator[None]:
    """While it lasts, calls of this context without a number of their own use so many threads; None is as before.

    Its thread rounds to nearest and keeps subnormal numbers, whatever it did before and does again afterwards.
    """
    with limited(n_threads):
        before = _core.exchange_arithmetic(None)
        try:
            yield
        finally:
            _core.exchange_arithmetic(before)


def median_origin(centers: Floats) -> Floats:
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
    X = check.rows(X, "X")
    centers = check.centers(centers, X)
    n_kept = check.count(n_kept, "n_kept")
    if n_kept > len(centers):
        raise ValueError(f"n_kept must be between 1 and the number of centers, {len(centers)}, got {n_kept}")
    shape = (len(X), n_kept)
    if hint is not None:
        hint = check.kept(hint, "hint", shape)
    kept = np.empty(shape, dtype=np.int32)
    distances = np.empty(shape, dtype=X.dtype)
    shift = None if isinstance(X, Sparse) else median_origin(centers)  # of products of dense rows
    _core.nearest(check.core(X), centers, shift, hint, kept, distances, resolve_threads(n_threads))
    return kept, distances


def extent(X: Floats, origin: Floats | None = None, *, n_threads: int | None = None) -> tuple[float, float]:
    """The greatest |x_nk|, infinite or NaN where one of the numbers is, and the greatest |x_nk − origin_k| [data unit].

    X (n, D), origin (D,): the first row if it is None    0, 0 if X has no entries
    """
    X = check.matrix(X, "X")
    if not X.size:
        return 0.0, 0.0
    origin = X[0] if origin is None else origin
    origin = check.contiguous(check.matrix(origin[None], "origin", X)[0])
    return _core.extent(X, origin, resolve_threads(n_threads))


def squares(X: Floats) -> NDArray[np.float64]:
    """‖x_n‖² of every row (n,)."""
    return np.einsum("ij,ij->i", X, X, dtype=np.float64)


def projected(X: Floats, direction: NDArray[np.float64]) -> Floats:
    """x_n·v of every row (n,) along one direction (D,)."""
    return np.einsum("nd,d->n", X, direction)


def min_distances(
    X: Floats,
    candidates: Floats,
    current: Floats | None = None,
    *,
    out: Floats | None = None,
    n_threads: int | None = None,
) -> Floats:
    """Squared distance of every row to every candidate, or `current` where that is less: (L, n) of X's dtype.

    They are written to `out`, where that is given: of this shape and dtype, with rows one behind the other.
    """
    X = check.rows(X, "X")
    candidates = check.matrix(candidates, "candidates", X)
    if current is not None:
        current = check.contiguous(current, X.dtype)
        if current.shape != (len(X),):
            raise ValueError(f"current must have shape ({len(X)},), got {current.shape}")
    shape = len(candidates), len(X)
    if out is None:
        out = np.empty(shape, dtype=X.dtype)
    elif out.shape != shape or out.dtype != X.dtype or not out.flags.c_contiguous:
        raise ValueError(f"out must be contiguous {X.dtype} of shape {shape}, got {out.dtype} of shape {out.shape}")
    _core.distances(check.core(X), candidates, current, out, resolve_threads(n_threads))
    return out


def potentials(
    squares: Floats,
    closest: Floats,
    sample_weight: Floats | None = None,
    *,
    candidates: NDArray[np.int64] | None = None,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """Σ_n w_n min(squares_ln, closest_n) of each candidate: what J would be if it were chosen too.

    squares (L, n), as of `min_distances`    closest (n,)    candidates (m,) int64: rows of squares, None for all
    """
    squares = check.contiguous(squares)
    if squares.ndim != 2 or squares.dtype not in (np.float32, np.float64):
        raise TypeError(f"squares must be a matrix of float32 or float64, got {squares.dtype} of {squares.ndim} axes")
    L, n = squares.shape
    closest = check.contiguous(closest, squares.dtype)
    if closest.shape != (n,):
        raise ValueError(f"closest must have shape ({n},), got {closest.shape}")
    if candidates is not None:
        candidates = check.positions(candidates, "candidates")
        if candidates.size and (candidates.min() < 0 or candidates.max() >= L):
            raise ValueError(f"candidates must be rows of squares, 0 to {L - 1}, got {candidates}")
    weights = check.weights(sample_weight, n)
    out = np.empty(L if candidates is None else len(candidates))
    _core.potentials(squares, candidates, closest, weights, out, resolve_threads(n_threads))
    return out


class Posterior(NamedTuple):
    """What `posterior` gives for every row."""

    responsibilities: NDArray[np.float64]
    log_sum: NDArray[np.float64]
    mean: NDArray[np.float64]


def posterior(values: Floats, scale: float = 1.0, *, n_threads: int | None = None) -> Posterior:
    """Row-wise softmax of scale · values (n, H), their log-sum-exp (n,), and the mean of the values under it (n,).

    values are logarithms of joint probabilities [nats], or squared distances with scale = −1/2σ².
    """
    values = check.contiguous(check.matrix(values, "values"))
    if values.shape[1] < 1:
        raise ValueError("values must have at least one column, got 0")
    out = Posterior(np.empty(values.shape), np.empty(len(values)), np.empty(len(values)))
    _core.posterior(values, scale, *out, resolve_threads(n_threads))
    return out


def accumulate(
    X: Floats,
    kept: NDArray[np.int32],
    responsibilities: NDArray[np.float64] | None = None,
    sample_weight: Floats | None = None,
    *,
    n_components: int,
    rows: NDArray[np.int64] | None = None,
    onto: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sufficient statistics of the kept components: N_c = Σ_n w_n q_nc (C,) and S_c = Σ_n w_n q_nc x_n (C, D), float64.

    kept (n, H) int32    responsibilities (n, H), of any sign, or None for ones, which needs H = 1
    rows (n,): the rows of X and of sample_weight that are meant; None is all of them.
    onto (C, D) float64: what S_c is added to, in place.
    """
    X = check.rows(X, "X")
    if rows is not None:
        rows = check.positions(rows, "rows")
    kept = check.kept(kept, "kept", (len(X) if rows is None else len(rows), check.width(kept, "kept")))
    if responsibilities is None:
        if kept.shape[1] != 1:
            raise ValueError(f"responsibilities are needed where more than one component is kept, got {kept.shape[1]}")
    else:
        responsibilities = check.contiguous(responsibilities, np.float64)
        if responsibilities.shape != kept.shape:
            raise ValueError(f"responsibilities must have shape {kept.shape}, got {responsibilities.shape}")
    n_components = check.count(n_components, "n_components")
    counts = np.empty(n_components)
    sums = np.empty((n_components, X.shape[1])) if onto is None else check.sums(onto, "onto", n_components, X)
    weights = check.weights(sample_weight, len(X))
    threads = resolve_threads(n_threads)
    _core.accumulate(check.core(X), kept, responsibilities, weights, rows, counts, sums, onto is not None, threads)
    return counts, sums


def along(
    X: Floats,
    centers: Floats,
    directions: Floats,
    labels: NDArray[np.int32],
    *,
    n_threads: int | None = None,
) -> NDArray[np.float64]:
    """How far each point lies along a direction of its component: (x_n − m_c)·v_c for c = labels[n], (n,).

    X (n, D), centers (C, D), directions (C, D), labels (n,) int32
    """
    X = check.rows(X, "X")
    centers, directions = check.centers(centers, X), check.matrix(directions, "directions", X)
    if len(directions) != len(centers):
        raise ValueError(f"directions must have shape {centers.shape}, got {directions.shape}")
    labels = check.kept(labels, "labels", (len(X),))
    out = np.empty(len(X))
    try:
        _core.along(check.core(X), centers, directions, labels, out, resolve_threads(n_threads))
    except ValueError:
        check.refuse_components(len(centers), 0, labels=labels)
        raise
    return out


def means(
    counts: NDArray[np.float64],
    sums: NDArray[np.float64],
    centers: Floats,
    origin: NDArray[np.float64] | None = None,
    *,
    n_threads: int | None = None,
) -> tuple[Floats, NDArray[np.float64]]:
    """S_c / N_c in the dtype of the centres (C, D), and its squared distance to the old centre, or to `origin`, (C,).

    counts (C,), sums (C, D), centers (C, D), origin (D,)    A component without points stays where it is.
    """
    centers = check.contiguous(check.matrix(centers, "centers"))
    sums = check.sums(sums, "sums", len(centers), centers)
    counts = check.vector(counts, "counts", len(centers))
    origin = None if origin is None else check.vector(origin, "origin", centers.shape[1])
    out, squares = np.empty_like(centers), np.empty(len(centers))
    _core.means(counts, sums, centers, origin, out, squares, resolve_threads(n_threads))
    return out, squares


def spread_out(
    candidates: Floats,
    offsets: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_chosen: NDArray[np.int64],
    uniform: NDArray[np.float64],
    *,
    n_threads: int | None = None,
) -> NDArray[np.int64]:
    """Rows far from each other within each group, by greedy D² sampling: (Σ n_chosen,), group after group.

    Group g has the rows offsets[g] … offsets[g + 1] of candidates (m, D), offsets (n_groups + 1,), and gets
    n_chosen[g] of them; weights (m,)    uniform (Σ n_chosen, trials) in [0, 1): each choice is the best of its trials,
    drawn with probability weight · distance² to what the group has already.
    """
    candidates = check.rows(candidates, "candidates")
    offsets, n_chosen = check.positions(offsets, "offsets"), check.positions(n_chosen, "n_chosen")
    weights = check.vector(weights, "weights", len(candidates))
    sizes = np.diff(offsets)
    if len(offsets) != len(n_chosen) + 1 or offsets[0] != 0 or offsets[-1] != len(candidates) or (sizes < 0).any():
        raise ValueError(f"offsets must rise from 0 to {len(candidates)} in {len(n_chosen)} steps, got {offsets}")
    if ((n_chosen < 0) | (n_chosen > sizes)).any():
        raise ValueError(f"n_chosen must be between 0 and the sizes of the groups, {sizes}, got {n_chosen}")
    uniform = check.contiguous(uniform, np.float64)
    if uniform.ndim != 2 or len(uniform) != n_chosen.sum() or uniform.shape[1] < 1:
        raise ValueError(f"uniform must have shape ({n_chosen.sum()}, at least 1), got {uniform.shape}")
    chosen = np.empty(len(uniform), dtype=np.int64)
    _core.spread_out(check.core(candidates), offsets, weights, n_chosen, uniform, chosen, resolve_threads(n_threads))
    return chosen


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
    X = check.matrix(X, "X")
    centers = check.centers(centers, X)
    weights, unit = check.scaled_weights(sample_weight, len(X))
    variance = check.variance(variance)
    counts = np.zeros(len(centers))
    sums = np.zeros(centers.shape)
    least, excess, log_sum = np.empty((3, len(X)))
    threads = resolve_threads(n_threads)
    _core.expect_all(X, centers, variance, weights, counts, sums, least, excess, log_sum, threads)
    J, over, log_sums = (unit * float((v if weights is None else weights * v).sum()) for v in (least, excess, log_sum))
    return Expectation(
        counts=unit * counts,
        sums=unit * sums,
        squares=J + over,
        log_sum=log_sums - J / (2 * variance),
        entropy=log_sums + over / (2 * variance),
        quantization_error=J,
    )


def log_sum_exp(X: Floats, centers: Floats, variance: float, *, n_threads: int | None = None) -> NDArray[np.float64]:
    """log Σ_c exp(−d²_nc/2σ²) over all C components, for every row: (n,) float64."""
    X = check.matrix(X, "X")
    centers = check.centers(centers, X)
    variance = check.variance(variance)
    least, log_sum = np.empty((2, len(X)))
    _core.log_sum_exp(X, centers, variance, least, log_sum, resolve_threads(n_threads))
    return log_sum - least / (2 * variance)
