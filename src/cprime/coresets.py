"""Coresets: small weighted samples that represent a data set.

Sources: Bachem, Lucic & Krause, "Scalable k-means clustering via lightweight coresets" (KDD 2018), and "Practical
coreset constructions for machine learning" (2017). For any centers, the cost of the sample is an unbiased estimate of
the cost of all points. A coreset reduces the number of points, truncation the number of components per point; they can
be combined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cprime._utils.arguments import check_integer
from cprime._utils.number_types import check_largest, is_narrow
from cprime._utils.random import check_random_state
from cprime.kernels import as_rows
from cprime.seeding.kmeans_plusplus import choose_by_kmeans_plusplus
from cprime.seeding.sampling import draw
from cprime.sources.checked import check_weights, checked
from cprime.sources.foreign import plain

__all__ = ["Coreset", "lightweight", "sensitivity"]


def __dir__() -> list[str]:
    return __all__


BLOCK = 2**17  # maximum number of values of X that are processed at a time


class Coreset(NamedTuple):
    """Coreset: a sample of m weighted points that represents all of the data.

    Attributes
    ----------
    points : ndarray of shape (m, n_features)
        Rows of X, in its order and in float32 or float64; a row may occur more than once.
    weights : ndarray of shape (m,), float64
        Weight that each point represents, for use as `sample_weight`. The expected sum is that of the data's weights.
    indices : ndarray of shape (m,), int64
        Row indices of the points: ``points == X[indices]``.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.coresets import lightweight
    >>> X = np.arange(100.0).reshape(-1, 1)
    >>> coreset = lightweight(X, 10, random_state=0)
    >>> coreset.points.shape, bool((coreset.points == X[coreset.indices]).all())
    ((10, 1), True)
    """

    points: NDArray
    weights: NDArray[np.float64]
    indices: NDArray[np.int64]


def lightweight(
    X: ArrayLike,
    m: int,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> Coreset:
    """Draw a lightweight coreset: m points, half of them uniformly and half by their squared distance to the mean.

    Points are drawn, with replacement, with probability q_n = w_n / 2W + w_n d_n² / (2 Σ_i w_i d_i²), where W = Σ_i w_i
    and d_n is the distance of point n to the weighted mean. A drawn point has the weight w_n / (m q_n). With equal
    weights this is algorithm 1 of [1]_. For C centers in D dimensions and m of order (D C log C − log δ) / ε², the cost
    J of the coreset differs from that of all data by at most ε/2 (J + J₁), for any centers, with probability 1 − δ. J₁
    is the cost if the mean is the only center (theorem 2).

    X is read twice, in blocks, and not copied; besides the result, this takes about 40 bytes per point.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite data. Arrays of float32 and float64, also read-only ones and memory maps, are not converted; nor are
        arrays of uint8, int8, bool and float16, but the points of the coreset are then float64. Anything else is
        converted to float64.
    m : int
        Number of draws.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; None is 1 for each. A point of weight 0 is never drawn.
    random_state : int, RandomState, Generator or None, default=None
        An int makes the draws reproducible.

    Returns
    -------
    coreset : Coreset
        `points` (m, n_features), `weights` (m,) and `indices` (m,).

    Raises
    ------
    ValueError
        If X is empty, not two-dimensional or not finite, squared distances of its rows overflow, m is below 1, a weight
        is negative, or all weights are zero.
    TypeError
        If m is not an integer.

    References
    ----------
    .. [1] O. Bachem, M. Lucic and A. Krause, "Scalable k-means clustering via lightweight coresets", KDD 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import KMeans
    >>> from cprime.coresets import lightweight
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100_000, 2)) + 20 * rng.integers(3, size=(100_000, 1))
    >>> points, weights, indices = lightweight(X, 1000, random_state=0)
    >>> km = KMeans(3, random_state=0).fit(points, sample_weight=weights)
    >>> best = KMeans(3, random_state=0).fit(X)
    >>> bool(km.score(X) > 1.01 * best.score(X))  # −J of all data, within 1 %
    True
    """
    data, w, rng = _checked(X, m, sample_weight, random_state)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = _squares_about_mean(_in_range(data), w)
        total, spread = w.sum(), w @ squares
    if not np.isfinite([total, spread]).all():
        raise ValueError("X must have finite squared distances to its mean, and sample_weight a finite sum.")
    ratio = np.full(len(data), 1 / total)  # draw probability / weight of each point; constant if all points are equal
    if spread > 0:
        ratio += squares / spread
        ratio /= 2
    return _drawn(data, w, ratio, m, rng)


def sensitivity(
    X: ArrayLike,
    m: int,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | np.random.Generator | None = None,
) -> Coreset:
    """Draw a coreset for k-means of C clusters: m points, by a bound on their share of the cost of any C centers.

    The bound comes from C centers drawn by k-means++ (algorithm 2 of [1]_). Let d_n be the distance of point n to the
    nearest of them, b the set of points with the same nearest center as n, W_b the weight of b, W that of all points,
    α = 16 (log C + 2), and c = Σ_n w_n d_n²/W. Point n is drawn with probability proportional to
    w_n (α d_n²/c + 2 α Σ_{i∈b} w_i d_i²/(W_b c) + 4 W/W_b), and has a weight for which the expected cost of the coreset
    is that of all points. Small clusters are represented better than by `lightweight`; but this function needs C
    distances per point instead of one, and the number of clusters beforehand.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite data, in memory.
    m : int
        Number of draws.
    n_clusters : int
        C, the number of clusters for which the coreset is made, at most the number of points.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative weights; None is 1 for each. A point of weight 0 is never drawn.
    random_state : int, RandomState, Generator or None, default=None
        An int makes the draws reproducible.

    Returns
    -------
    coreset : Coreset
        `points` (m, n_features), `weights` (m,) and `indices` (m,).

    Raises
    ------
    ValueError
        If X is empty, not two-dimensional or not finite, squared distances of its rows overflow, m or n_clusters is out
        of its range, a weight is negative, or all weights are zero.
    TypeError
        If m or n_clusters is not an integer.

    References
    ----------
    .. [1] O. Bachem, M. Lucic and A. Krause, "Practical coreset constructions for machine learning", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime.coresets import sensitivity
    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(10_000, 2)), [[90.0, 90.0]] * 3])
    >>> coreset = sensitivity(X, 100, 2, random_state=0)
    >>> bool((coreset.points > 80).any())  # the cluster of three points is represented
    True
    """
    data, w, rng = _checked(X, m, sample_weight, random_state)
    check_integer(n_clusters, "n_clusters", 1)
    if n_clusters > len(data):
        raise ValueError(f"n_clusters={n_clusters} must be at most n_samples={len(data)}.")
    rows = as_rows(_in_range(data))
    check_largest(rows.extent()[0], rows.dtype, data.shape[1], "X")
    chosen = choose_by_kmeans_plusplus(rows, n_clusters, w, rng, n_local_trials=1)
    cells, squares = (found[:, 0] for found in rows.nearest(rows[chosen].dense()))
    squares = squares.astype(np.float64)
    masses = np.bincount(cells, w, n_clusters)
    total, error = w.sum(), np.bincount(cells, w * squares, n_clusters)
    if not np.isfinite([total, error.sum()]).all():
        raise ValueError("X must have finite squared distances, and sample_weight a finite sum.")
    masses[masses == 0] = np.inf  # Clusters of weight 0 are not drawn; avoids a division by 0.
    ratio = (4 * total / masses)[cells]
    if error.sum() > 0:
        alpha, mean = 16 * (np.log(n_clusters) + 2), error.sum() / total
        ratio += alpha * squares / mean + (2 * alpha * error / (masses * mean))[cells]
    return _drawn(data, w, ratio / (w @ ratio), m, rng)


def _checked(
    X: ArrayLike, m: int, sample_weight: ArrayLike | None, random_state: Any
) -> tuple[NDArray, NDArray[np.float64], np.random.RandomState]:
    """Check the arguments of a coreset; return X as an array (n, D), the weights (n,) and the random generator."""
    with np.errstate(invalid="ignore"):  # The check sums X, and ∞ − ∞ in such a sum would issue a warning.
        given = plain(X)
        dtype = given.dtype if isinstance(given, np.ndarray) and is_narrow(given.dtype) else [np.float64, np.float32]
        data = checked(given, dtype=dtype)
    check_integer(m, "m", 1)
    rng = check_random_state(random_state)
    w = check_weights(sample_weight, data)
    return data, np.ones(len(data)) if w is None else w, rng


def _drawn(data: NDArray, w: NDArray[np.float64], ratio: NDArray, m: int, rng: np.random.RandomState) -> Coreset:
    """Draw m rows of the data with probabilities w · ratio; return a coreset with the weights 1 / (m · ratio).

    w (n,): weights of the rows    ratio (n,): draw probability divided by weight; the probabilities sum to 1
    """
    indices = np.sort(draw(np.cumsum(w * ratio), rng.uniform(size=m)))
    points = np.ascontiguousarray(data[indices], dtype=np.float64 if is_narrow(data.dtype) else None)
    return Coreset(points, 1 / (m * ratio[indices]), indices)


def _in_range(data: NDArray) -> NDArray:
    """Return the data, multiplied by a power of two in a copy if they are so small that squares might underflow.

    The draws do not depend on this factor, because they depend on ratios of squared distances only.
    """
    largest = max(float(data.max()), -float(data.min()))
    if largest == 0 or largest >= 2.0**-30:
        return data
    wide = data.astype(as_rows(data).dtype, copy=False)
    return np.asarray(np.ldexp(wide, -np.frexp(largest)[1]))


def _blocks(X: NDArray) -> Iterator[slice]:
    step = max(1, BLOCK // X.shape[1])
    return (slice(begin, begin + step) for begin in range(0, len(X), step))


def _squares_about_mean(X: NDArray, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distance of each row to the weighted mean, (n,), computed in float64."""
    origin = X[np.argmax(w)].astype(np.float64)  # sums of rows minus one of the rows lose little precision
    shift = sum(w[rows] @ (X[rows] - origin) for rows in _blocks(X)) / w.sum()
    squares = np.empty(len(X))
    for rows in _blocks(X):
        difference = X[rows] - origin
        difference -= shift
        squares[rows] = np.einsum("nd,nd->n", difference, difference)
    return squares
