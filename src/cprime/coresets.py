"""Coresets: small weighted samples that represent a data set.

Source: Bachem, Lucic & Krause, "Scalable k-means clustering via lightweight coresets" (KDD 2018). For any centers, the
cost of the sample is an unbiased estimate of the cost of all points. A coreset reduces the number of points, truncation
the number of components per point; they can be combined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from cprime._narrow import is_narrow
from cprime._random import check_random_state
from cprime.seeding.sampling import draw
from cprime.seeding.validation import check_count
from cprime.sources.checked import checked
from cprime.sources.foreign import plain, unmasked

__all__ = ["Coreset", "lightweight"]


def __dir__() -> list[str]:
    return __all__


BLOCK = 2**17  # values of X that are processed together


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
    with np.errstate(invalid="ignore"):  # sums over infinite numbers would warn
        given = plain(X)
        dtype = given.dtype if isinstance(given, np.ndarray) and is_narrow(given.dtype) else [np.float64, np.float32]
        data = checked(given, dtype=dtype)
    check_count("m", m)
    rng = check_random_state(random_state)
    w = np.ones(len(data))
    if sample_weight is not None:
        w = _check_sample_weight(
            unmasked(sample_weight, "sample_weight"), data, dtype=np.float64, ensure_non_negative=True
        )
        if not w.any():
            raise ValueError("sample_weight must have at least one positive entry, got zeros only.")
    with np.errstate(over="ignore", invalid="ignore"):
        squares = _squares_about_mean(data, w)
        total, spread = w.sum(), w @ squares
    if not np.isfinite([total, spread]).all():
        raise ValueError("X must have finite squared distances to its mean, and sample_weight a finite sum.")
    ratio = np.full(len(data), 1 / total)  # q_n / w_n; equal points are drawn by weight only
    if spread > 0:
        ratio += squares / spread
        ratio /= 2
    indices = np.sort(draw(np.cumsum(w * ratio), rng.uniform(size=m)))
    points = np.ascontiguousarray(data[indices], dtype=np.float64 if is_narrow(data.dtype) else None)
    return Coreset(points, 1 / (m * ratio[indices]), indices)


def _blocks(X: NDArray) -> Iterator[slice]:
    step = max(1, BLOCK // X.shape[1])
    return (slice(begin, begin + step) for begin in range(0, len(X), step))


def _squares_about_mean(X: NDArray, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distance of each row to the weighted mean, (n,), computed in float64."""
    origin = X[np.argmax(w)].astype(np.float64)  # a data row, so that differences are small and their sums precise
    shift = sum(w[rows] @ (X[rows] - origin) for rows in _blocks(X)) / w.sum()
    squares = np.empty(len(X))
    for rows in _blocks(X):
        difference = X[rows] - origin
        difference -= shift
        squares[rows] = np.einsum("nd,nd->n", difference, difference)
    return squares
