"""Expectations under the sampling density Q: by quadrature in one dimension, from draws of a known Q, or from data.

Each class has callable instances. They take a function that maps n points to an array (n, m) of m quantities, and
return the mean of each quantity under Q.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad_vec
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln
from scipy.stats import norm

from cprime._utils.random import check_random_state
from cprime.estimators.validation import check_integer
from cprime.kernels import Dense
from cprime.theory.mixtures import Floats, MixtureDensity, log_mixture_density

_CONFIDENCE = 0.95
_TOLERANCE = 1e-11
_GRID = 8193
_TREE = 4  # largest dimension D for which a tree finds nearest neighbors faster than a search over all rows

# Type of a function that maps points X (n, D) and log densities log Q(x_n) (n,) to m quantities of each point, (n, m).
Columns = Callable[[Floats, Floats], Floats]


class Means(NamedTuple):
    """Expectations (m,) of m quantities under a density Q, and their 95 % intervals (2, m).

    The intervals have width 0 if the expectations were computed by quadrature.
    """

    values: Floats
    intervals: Floats


class Quadrature:
    """Expectation under a known density Q in one dimension, by adaptive Gauss–Kronrod quadrature.

    The domain is divided at breakpoints. All intervals between them are subdivided at the same relative positions.
    """

    def __init__(self, Q: MixtureDensity, model: MixtureDensity, labels: Callable[[Floats], NDArray[np.intp]]) -> None:
        """Find the breakpoints: those of Q and `model`, and the points at which a label changes.

        labels: function of rows (n, 1) that returns labels (n, m)
        """
        self.Q = Q
        places = Q.breakpoints()
        low, high = places.min(), places.max()
        others = model.breakpoints()
        places = np.concatenate([places, others[(others > low) & (others < high)]])
        grid = np.unique(np.concatenate([places, np.linspace(low, high, _GRID)]))
        edges = np.unique(np.concatenate([places, _changes(grid, labels)]))
        self.lower, self.widths = edges[:-1], np.diff(edges)

    def __call__(self, columns: Columns) -> Means:
        """Return the integrals (m,) over Q of the m quantities that `columns` computes for each point, as a `Means`."""

        def integrand(t: float) -> Floats:
            X = (self.lower + t * self.widths)[:, np.newaxis]
            log_q = log_mixture_density(self.Q, X)
            inside = log_q > -np.inf
            mass = np.exp(log_q[inside]) * self.widths[inside]
            return mass @ columns(X[inside], log_q[inside])

        values, _ = quad_vec(integrand, 0.0, 1.0, epsabs=_TOLERANCE, epsrel=_TOLERANCE, norm="max")
        return Means(values, np.stack([values, values]))


def _changes(grid: Floats, labels: Callable[[Floats], NDArray[np.intp]]) -> Floats:
    """Return all points (k,) between adjacent grid points at which a label changes, by bisection to float precision."""
    found = labels(grid[:, np.newaxis])
    at = np.flatnonzero((found[1:] != found[:-1]).any(axis=1))
    left, right, kept = grid[at], grid[at + 1], found[at]
    for _ in range(60 if len(at) else 0):
        middle = (left + right) / 2
        same = (labels(middle[:, np.newaxis]) == kept).all(axis=1)
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return right


@dataclass(frozen=True)
class Sample:
    """Expectation under a density Q, estimated by means over points; intervals by the central limit theorem.

    X (n, D): independent points with the density Q    log_q (n,): log Q(x_n), or an estimate of it [nats]
    """

    X: Floats
    log_q: Floats

    def __call__(self, columns: Columns) -> Means:
        """Return the means (m,) of the m quantities that `columns` computes for each point, as a `Means`."""
        found = columns(self.X, self.log_q)
        values = found.mean(axis=0)
        half = norm.ppf((1 + _CONFIDENCE) / 2) * found.std(axis=0, ddof=1) / np.sqrt(len(found))
        return Means(values, np.stack([values - half, values + half]))


def expectation(
    Q: MixtureDensity,
    model: MixtureDensity,
    labels: Callable[[Floats], NDArray[np.intp]],
    n_samples: int,
    random_state: Any,
) -> Quadrature | Sample:
    """Return the expectation under Q as a callable: `Quadrature` in one dimension, else a `Sample` drawn from Q.

    labels: function of rows (n, 1) that returns labels (n, m), whose changes are breakpoints of the quadrature
    n_samples: number of points that are drawn from Q
    """
    check_n_features(model, Q.n_features)
    check_integer(n_samples, "n_samples", 2)
    random_state = check_random_state(random_state)
    if Q.n_features == 1 and Q.breakpoints() is not None and model.breakpoints() is not None:
        return Quadrature(Q, model, labels)
    X = Q.sample(n_samples, random_state)
    return Sample(X, log_mixture_density(Q, X))


def check_n_features(model: MixtureDensity, n_features: int, data: str = "Q", name: str = "model") -> None:
    """Raise ValueError unless the model has `n_features` features, as many as the data or the sampling density.

    data, name: names of the arguments, for the message
    """
    if model.n_features != n_features:
        raise ValueError(f"{data} has {n_features} features, but {name} has {model.n_features}.")


def log_density_by_neighbors(X: Floats, n_neighbors: int, name: str = "Q") -> Floats:
    """Return the estimated log density ψ(k) − log(n − 1) − log V_D − D log ρ_k(x_n) at each row: (n,) [nats].

    ρ_k is the distance to the k-th neighbor, with k = `n_neighbors`, V_D the volume of the unit ball in D dimensions, n
    the number of rows, and ψ the digamma function. If a point has k or more equal points, as in rounded data, ρ_k is
    the distance to its nearest different points, and k the mean of two numbers of points: those closer than ρ_k, and
    those up to ρ_k. Minus the mean of the result is the estimate of the entropy by Kozachenko & Leonenko.

    Raise ValueError if all rows are equal, because such data have no density.    name: argument that errors name
    """
    n, D = X.shape
    if n <= n_neighbors:
        raise ValueError(f"{name} must have more than n_neighbors={n_neighbors} rows, got {n}.")
    tree = cKDTree(X) if D <= _TREE else None
    ranks, radius = np.full(n, float(n_neighbors)), np.zeros(n)
    left, most = np.arange(n), n_neighbors
    while len(left):
        if tree is not None:
            distances = tree.query(X[left], most + 1)[0][:, n_neighbors:]
        else:
            distances = np.sort(np.sqrt(Dense(X[left]).nearest(X, most + 1)[1]), axis=1)[:, n_neighbors:]
        if most == n - 1 and not distances.any():
            raise ValueError(f"{name} has {n} equal rows: such data have no density.")
        first = (distances > 0).argmax(axis=1)
        found = distances[np.arange(len(left)), first]
        known = (first == 0) & (found > 0) | (distances[:, -1] > found) & (found > 0) | (most == n - 1)
        radius[left[known]] = found[known]
        tied = known & (first > 0)
        at_most = (distances[tied] <= found[tied, np.newaxis]).sum(axis=1)
        ranks[left[tied]] = n_neighbors - 1 + (first[tied] + at_most) / 2
        left, most = left[~known], min(2 * most, n - 1)
    log_volume = D / 2 * np.log(np.pi) - gammaln(D / 2 + 1)
    return digamma(ranks) - np.log(n - 1) - log_volume - D * np.log(radius)
