"""Greedy k-means++ (Arthur & Vassilvitskii 2007) with the same random draws as scikit-learn, in less time.

For few rows, scikit-learn spends most of the time on argument checks and dispatch in many small calls. This file
computes the same products and draws without this overhead. It does so only for float64 arrays, because the versions of
scikit-learn differ in how they treat other data types.
"""

import math
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from cprime._utils.random import check_random_state, seeded

# Latest version of scikit-learn whose random draws are known to equal the draws of this file.
_KNOWN = (1, 9)
_AS_HERE = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) <= _KNOWN
# Up to this number n of equal probabilities, the rounding errors of their cumulative sums are below 1/2n. Then the row
# drawn by a uniform number u is ⌊n u⌋ or a neighbor of it, and no search in the sums is necessary.
_MOST_EVEN = 2**20


class Draws:
    """Mixin for a k-means class of scikit-learn: the same initial centers as scikit-learn's, computed in less time.

    It overrides scikit-learn's method `_init_centroids`. k-means++ of float64 arrays is computed by `Greedy`, which
    makes the same random draws; all other initializations run scikit-learn's method.
    """

    n_clusters: int
    init: Any
    random_state: Any

    def _init_centroids(
        self,
        X: Any,
        x_squared_norms: NDArray,
        init: Any,
        random_state: np.random.RandomState,
        sample_weight: NDArray,
        init_size: int | None = None,
        n_centroids: int | None = None,
    ) -> NDArray:
        """Return the initial centers (C, D) that scikit-learn's method of this name returns for these arguments.

        C is `n_centroids`, or `n_clusters` if that is None. If `init_size` is less than the number of rows, the centers
        are chosen from a random sample of this size.
        """
        if not draws_here(X, init, sample_weight):
            more = {"init_size": init_size, "n_centroids": n_centroids}
            return super()._init_centroids(X, x_squared_norms, init, random_state, sample_weight, **more)  # type: ignore[misc]
        if init_size is not None and init_size < len(X):
            sample = random_state.randint(0, len(X), init_size)
            X, x_squared_norms, sample_weight = X[sample], x_squared_norms[sample], sample_weight[sample]
        C = self.n_clusters if n_centroids is None else n_centroids
        return Greedy(X, x_squared_norms, sample_weight).centers(C, random_state)

    def _drawing(self) -> AbstractContextManager[np.random.RandomState]:
        """Return a context manager that yields the random generator for `self.random_state`.

        If `init` is a string and `random_state` an int, it is an existing generator that is seeded again, which saves
        time. If `init` is a function, it is a new generator, because the function may store it.
        """
        return (
            drawing(self.random_state)
            if isinstance(self.init, str)
            else nullcontext(check_random_state(self.random_state))
        )


def draws_here(X: Any, init: Any, weights: NDArray) -> bool:
    """Return whether `Greedy` (k-means++) can compute this initialization with the same draws as scikit-learn.

    It can if `init` is "k-means++", X is an array of float64, and scikit-learn is not newer than version 1.9.
    """
    named = isinstance(init, str) and init == "k-means++"
    doubles = type(X) is np.ndarray and X.dtype == weights.dtype == np.float64
    return named and _AS_HERE and doubles and bool(weights.min() >= 0) and bool(weights.any())


def drawing(random_state: Any) -> AbstractContextManager[np.random.RandomState]:
    """Return a context manager that yields a random generator for use in the `with` block only.

    Other code may seed and use the same generator afterwards.    random_state: as in scikit-learn; an int is the seed
    """
    if isinstance(random_state, Integral):
        return seeded(int(random_state))
    return nullcontext(check_random_state(random_state))


class Choice:
    """Draws of row indices with probabilities in proportion to weights (n,), like `RandomState.choice`.

    The cumulative probabilities are computed once, for many calls. A call maps uniform random numbers in [0, 1) to row
    indices.
    """

    def __init__(self, weights: NDArray):
        self._shares = np.cumsum(weights / weights.sum(), dtype=np.float64)
        self._shares /= self._shares[-1]
        self._even = len(weights) <= _MOST_EVEN and bool((weights == weights[0]).all())

    def __call__(self, uniform: Any) -> NDArray[np.intp]:
        shares = self._shares
        if not self._even:
            return shares.searchsorted(uniform, side="right")
        # Rounding errors may make an index wrong by 1, which the comparisons with cumulative probabilities correct.
        rows = (uniform * len(shares)).astype(np.intp)
        np.minimum(rows, len(shares) - 1, out=rows)
        rows += shares[rows] <= uniform
        rows -= (shares[rows - 1] > uniform) & (rows > 0)
        return rows


class Greedy:
    """scikit-learn's greedy k-means++ for given rows, prepared for any number of initializations.

    Each of the C centers but the first is the best of 2 + ⌊ln C⌋ rows, which are drawn with probabilities in proportion
    to w_n d_n². w_n is the weight of row n, d_n its distance to the nearest center so far. The best row is the one that
    makes Σ_n w_n d_n² least.
    X (n, D)    squares (n,): ‖x_n‖²    weights (n,)
    """

    def __init__(self, X: NDArray[np.float64], squares: NDArray[np.float64], weights: NDArray[np.float64]):
        self.X, self.squares, self.weights = X, squares, weights
        self._columns, self._column = X.T, weights[:, np.newaxis]
        self._shares = (weights / weights.sum()).cumsum()  # cumulative probabilities, with the rounding of NumPy
        self._shares /= self._shares[-1]

    def centers(self, n_clusters: int, random_state: np.random.RandomState) -> NDArray[np.float64]:
        """Return the centers (C, D) of one initialization, C = n_clusters of the rows."""
        weights, last, n_trials = self.weights, len(self.X) - 1, 2 + int(math.log(n_clusters))
        chosen = [int(self._shares.searchsorted(random_state.random_sample(), side="right"))]
        nearest = self._distances(chosen)
        potential = nearest @ weights
        for _ in range(1, n_clusters):
            bars = random_state.random_sample(n_trials) * potential
            tried = (weights * nearest).cumsum().searchsorted(bars)
            np.minimum(tried, last, out=tried)
            left = self._distances(tried)
            np.minimum(nearest, left, out=left)
            potentials = left @ self._column
            best = potentials.argmin()
            chosen.append(int(tried[best]))
            nearest, potential = left[best], potentials[best]
        return self.X[chosen]

    def _distances(self, rows: Any) -> NDArray[np.float64]:
        """Return squared distances (m, n) of the m rows with the given indices to all n rows."""
        places = self.X[rows]
        found: NDArray[np.float64] = places @ self._columns
        found *= -2
        found += np.einsum("ij,ij->i", places, places)[:, np.newaxis]
        found += self.squares
        return np.maximum(found, 0, out=found)
