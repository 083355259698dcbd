"""The start of scikit-learn's k-means by its own draws, to the bit: greedy k-means++ (Arthur & Vassilvitskii 2007).

A start of few rows is many calls of few numbers, most of whose time are checks and choices among kinds of arrays. Of
arrays of float64, which all versions of scikit-learn treat alike, the same products and draws are made here at once.
"""

from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from cprime._random import seeded

# Versions of scikit-learn, up to which its draws are known to be these.
_KNOWN = (1, 9)
_AS_HERE = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) <= _KNOWN


class Draws:
    """Mixin before a k-means of scikit-learn's: what it starts from."""

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
        """As scikit-learn's, the same centers from the same generator."""
        named = isinstance(init, str) and init == "k-means++"
        doubles = type(X) is np.ndarray and X.dtype == sample_weight.dtype == np.float64
        if not (named and _AS_HERE and doubles and sample_weight.min() >= 0 and sample_weight.any()):
            more = {"init_size": init_size, "n_centroids": n_centroids}
            return super()._init_centroids(X, x_squared_norms, init, random_state, sample_weight, **more)  # type: ignore[misc]
        if init_size is not None and init_size < len(X):
            some = random_state.randint(0, len(X), init_size)
            X, x_squared_norms, sample_weight = X[some], x_squared_norms[some], sample_weight[some]
        C = self.n_clusters if n_centroids is None else n_centroids
        return X[greedy_draws(X, C, x_squared_norms, sample_weight, random_state)]

    def _drawing(self) -> AbstractContextManager[np.random.RandomState]:
        """The generator that `random_state` means, while it is drawn from; a function may keep it."""
        return (
            drawing(self.random_state)
            if isinstance(self.init, str)
            else nullcontext(check_random_state(self.random_state))
        )


def drawing(random_state: Any) -> AbstractContextManager[np.random.RandomState]:
    """The generator that is meant, for who gives it to nobody."""
    if isinstance(random_state, Integral):
        return seeded(int(random_state))
    return nullcontext(check_random_state(random_state))


def greedy_draws(
    X: NDArray[np.float64],
    n_clusters: int,
    squares: NDArray[np.float64],
    weights: NDArray[np.float64],
    random_state: np.random.RandomState,
) -> NDArray[np.intp]:
    """Rows (C,) that scikit-learn's greedy k-means++ chooses, each the best of 2 + ⌊ln C⌋ draws by w_n d²_n.

    X (n, D)    squares (n,): ‖x_n‖²    weights (n,)
    """
    n, columns, n_trials = len(X), X.T, 2 + int(np.log(n_clusters))
    chosen = np.empty(n_clusters, dtype=np.intp)

    def distances(rows: NDArray[np.intp]) -> NDArray[np.float64]:
        places = X[rows]
        found = places @ columns
        found *= -2
        found += np.einsum("ij,ij->i", places, places)[:, np.newaxis]
        found += squares
        return np.maximum(found, 0, out=found)

    shares = (weights / weights.sum()).cumsum()  # what RandomState.choice makes of probabilities
    shares /= shares[-1]
    chosen[0] = shares.searchsorted(random_state.random_sample(), side="right")
    nearest = distances(chosen[:1])
    potential = nearest @ weights
    for c in range(1, n_clusters):
        bars = random_state.random_sample(n_trials) * potential
        tried = (weights * nearest).cumsum().searchsorted(bars)
        np.minimum(tried, n - 1, out=tried)
        left = distances(tried)
        np.minimum(nearest, left, out=left)
        potentials = left @ weights[:, np.newaxis]
        best = potentials.argmin()
        chosen[c], nearest, potential = tried[best], left[best], potentials[best]
    return chosen
