"""Fuzzy k-means: memberships u_nc ≥ 0 that sum to 1 over the active set K(n) of each point n.

    J_m = Σ_n w_n Σ_{c∈K(n)} u_nc^m d²_nc                             (Bezdek 1981)
    J_λ = Σ_n w_n Σ_{c∈K(n)} (u_nc d²_nc + λ u_nc log u_nc)           (Miyamoto & Mukaidono 1997)
    J_λ = Σ_n w_n Σ_{c∈K(n)} (u_nc d²_nc − λ/2 u_nc (1 − u_nc))       (Miyamoto & Umayahara 1998)

d_nc is the distance of point n to center c, w_n the weight of the point, m the fuzzifier, and λ the strength of
regularization. For each of the objectives, the module contains a rule that computes the best memberships u for given
centers. A loop alternates between this rule and the best centers for u. K(n) are the C′ nearest of all C centers, which
are the best C′ for every rule, so neither of the two steps raises the objective.

The last objective is that of Miyamoto & Umayahara, Σ_n w_n Σ_c (u_nc d²_nc + λ/2 u²_nc), less the constant λ/2 Σ_n w_n.
For the best u of the second objective, J_λ = −λ Σ_n w_n log Σ_{c∈K(n)} exp(−d²_nc/λ). Up to constants, this is minus
the free energy, eq. (7) of Lücke & Forster, of the isotropic mixture with σ² = λ/2. The module does not depend on the
estimators.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cprime._utils.messages import iteration_level
from cprime.kernels import Floats, Rows, means, posterior, without_negligible
from cprime.model.tied_spherical import variance_floor

logger = logging.getLogger("cprime")

HISTORY = np.dtype([("objective", np.float64), ("n_distances", np.int64), ("seconds", np.float64)])
_BLOCK = 2**20  # maximum number of values in an array for one block of rows, to limit memory


class Memberships(NamedTuple):
    """Memberships of n points in H clusters each, computed from squared distances (n, H); all arrays are float64.

    memberships (n, H): u, rows sum to 1
    masses (n, H): weight of a point in the mean of each cluster: u^m for the power regularizer with fuzzifier m, u for
    the entropy and the quadratic regularizer
    costs (n,): contribution of each point to the objective [data unit²]
    """

    memberships: NDArray[np.float64]
    masses: NDArray[np.float64]
    costs: NDArray[np.float64]


class Rule(Protocol):
    """Function that returns the optimal memberships in H clusters for given squared distances (n, H)."""

    def __call__(self, squared: NDArray[np.float64], n_threads: int | None = None) -> Memberships: ...


@dataclass(frozen=True)
class Power:
    """Rule of Bezdek's fuzzy c-means: memberships u_nc ∝ d_nc^(−2/(m−1)), with distances d_nc and fuzzifier m.

    A point has the weight u^m in the mean of a cluster. A point at one or several centers belongs to these alone, in
    equal shares.
    """

    m: float

    def __call__(self, squared: NDArray[np.float64], n_threads: int | None = None) -> Memberships:
        least = squared.min(axis=1, keepdims=True)
        on_center = np.where(squared == 0, 0.0, np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.where(least == 0, on_center, np.log(squared) - np.log(least))
        u, log_sum, _ = posterior(logs, -1 / (self.m - 1), n_threads=n_threads)
        return Memberships(u, u**self.m, least[:, 0] * np.exp(-(self.m - 1) * log_sum))


@dataclass(frozen=True)
class Entropy:
    """Rule of entropy-regularized fuzzy k-means: memberships u_nc ∝ exp(−d²_nc/λ), with distances d_nc.

    Memberships are the responsibilities of the isotropic mixture with σ² = λ/2. A point has the weight u in the mean of
    a cluster.    constant: λ [data unit²]
    """

    constant: float

    def __call__(self, squared: NDArray[np.float64], n_threads: int | None = None) -> Memberships:
        u, log_sum, _ = posterior(squared, -1 / self.constant, n_threads=n_threads)
        return Memberships(u, u, -self.constant * log_sum)


@dataclass(frozen=True)
class Quadratic:
    """Rule of fuzzy k-means with quadratic regularization: memberships u_nc = max(0, (ρ_n − d²_nc)/λ).

    d_nc is the distance of point n to center c, and ρ_n is the number for which the memberships of point n sum to 1. A
    point has the weight u in the mean of a cluster. Memberships are exactly 0 in clusters whose squared distance
    exceeds the least one by λ or more.    constant: λ [data unit²]
    """

    constant: float

    def __call__(self, squared: NDArray[np.float64], n_threads: int | None = None) -> Memberships:
        with np.errstate(over="ignore"):
            scaled = (squared.min(axis=1, keepdims=True) - squared) / self.constant
        descending = np.sort(scaled, axis=1)[:, ::-1]
        sums, k = np.cumsum(descending, axis=1), np.arange(1, squared.shape[1] + 1)
        n_positive = (1 + k * descending > sums).sum(axis=1, keepdims=True)
        threshold = (np.take_along_axis(sums, n_positive - 1, axis=1) - 1) / n_positive
        u = np.maximum(scaled - threshold, 0.0)
        u /= u.sum(axis=1, keepdims=True)
        return Memberships(u, u, (u * squared - self.constant / 2 * u * (1 - u)).sum(axis=1))


REGULARIZED: dict[str, Callable[[float], Rule]] = {"entropy": Entropy, "quadratic": Quadratic}


def constant_of_start(
    X: Rows, centers: Floats, sample_weight: NDArray[np.float64] | None, n_threads: int | None
) -> float:
    """Return the regularization constant λ = 2σ² [data unit²] of fuzzy k-means, estimated from starting centers (C, D).

    σ² = J/(DW), eq. (14) of Lücke & Forster    J: weighted sum of squared distances to the nearest center
    W: total weight
    """
    squared = X.nearest(centers, n_threads=n_threads)[1][:, 0].astype(np.float64)
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    variance = float((weights * squared).sum() / (X.shape[1] * weights.sum()))
    return 2 * max(variance, variance_floor(centers))


def off_the_points(X: Rows, seeds: Floats, sample_weight: NDArray[np.float64] | None, n_threads: int | None) -> Floats:
    """Return starting centers (C, D) of fuzzy k-means: the means of the points nearest to each of the `seeds` (C, D).

    A point at a center belongs to it completely. So centers that start at points would hardly move if the fuzzifier m
    is large, because the weights u^m of all other points (of membership u) in the means are tiny.
    """
    kept = X.nearest(seeds, n_threads=n_threads)[0]
    counts, sums = X.accumulate(kept, None, sample_weight, n_components=len(seeds), n_threads=n_threads)
    return means(counts, sums, seeds, n_threads=n_threads)[0]


def blocks(
    X: Rows, centers: Floats, rule: Rule, n_active: int, n_threads: int | None
) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[np.float64], Memberships]]:
    """Yield (slice of the rows, ids, squared distances, memberships) for one block of b rows after another.

    The last three are (b, H), for the H = n_active nearest centers of each row, sorted by distance or, if H = C, by
    index.    rule: function that computes memberships from squared distances
    """
    C = len(centers)
    step = max(1, _BLOCK // max(n_active, X.shape[1]))
    for begin in range(0, len(X), step):
        rows = slice(begin, min(begin + step, len(X)))
        if n_active == C:
            squared = X[rows].distances(centers, n_threads=n_threads).T
            kept = np.broadcast_to(np.arange(C, dtype=np.int32), squared.shape)
        else:
            kept, squared = X[rows].nearest(centers, n_active, n_threads=n_threads)
        wide = np.ascontiguousarray(squared, dtype=np.float64)
        yield rows, kept, wide, rule(wide, n_threads)


class FuzzySums(NamedTuple):
    """Sums over all points in one E-step of fuzzy k-means; a point x has the weight v = w·u^m (or w·u) in each cluster.

    w: point weight    u: membership    m: fuzzifier    d: distance to the center
    counts (C,): Σ v    sums (C, D): Σ v x    squares: Σ v d² over points and clusters [data unit²]
    objective: value of the objective that the fit lowers [data unit²]
    """

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    objective: float
    squares: float


def expect(
    X: Rows,
    centers: Floats,
    rule: Rule,
    n_active: int,
    sample_weight: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
) -> FuzzySums:
    """Compute the best memberships for given centers, block by block, and return the sums that the next centers need.

    No N × C array is made.    rule: function that computes memberships from squared distances    n_active: number of
    nearest clusters to which a point belongs
    """
    C = len(centers)
    counts, sums, objective, squares = np.zeros(C), np.zeros(centers.shape), 0.0, 0.0
    for rows, kept, squared, found in blocks(X, centers, rule, n_active, n_threads):
        weights = np.ones(len(kept)) if sample_weight is None else sample_weight[rows]
        objective += float((weights * found.costs).sum())
        squares += float((weights[:, np.newaxis] * found.masses * squared).sum())
        counts += X[rows].accumulate(kept, found.masses, weights, n_components=C, onto=sums, n_threads=n_threads)[0]
    return FuzzySums(counts, sums, objective, squares)


@dataclass(frozen=True)
class FuzzyRun:
    """State of a run of fuzzy k-means.

    centers (C, D)    rule: function that computes memberships from squared distances
    objective: value at the centers before the last step; after the end of the run, value at `centers` [data unit²]
    history: (objective, number of distances, seconds) of each iteration    stopped: whether the callback ended the run
    """

    centers: Floats
    rule: Rule
    objective: float
    history: tuple[tuple[float, int, float], ...] = ()
    converged: bool = False
    stopped: bool = False


Callback = Callable[[Mapping[str, Any], FuzzyRun, bool], bool]  # arguments: history row, state, whether the run is over


def run(
    X: Rows,
    centers: Floats,
    rule: Rule,
    *,
    n_active: int,
    max_iter: int,
    tol: float,
    sample_weight: NDArray[np.float64] | None = None,
    n_threads: int | None = None,
    callback: Callback | None = None,
) -> FuzzyRun:
    """Run fuzzy k-means from starting centers, and return the last state.

    The run ends after `max_iter` iterations, or if the objective changes by at most `tol` times Σ w u^m d² (point
    weights w, memberships u, fuzzifier m, distances d). The center of a cluster without weight does not change.
    X (N, D), centers (C, D) of one dtype    rule: function that computes memberships from squared distances
    n_active: C′, the number of nearest clusters to which a point belongs    sample_weight (N,) float64 or None
    callback: called after every iteration; the run ends if it returns True
    """
    fit = FuzzyRun(centers, rule, np.inf)
    for iteration in range(1, max_iter + 1):
        start = perf_counter()
        found = expect(X, fit.centers, rule, n_active, sample_weight, n_threads)
        moved = without_negligible(means(found.counts, found.sums, fit.centers, n_threads=n_threads)[0])
        row = (found.objective, len(X) * len(centers), perf_counter() - start)
        difference = abs(fit.objective - found.objective)
        fit = FuzzyRun(moved, rule, found.objective, (*fit.history, row), converged=difference <= tol * found.squares)
        level = iteration_level(sum(seconds for *_, seconds in fit.history[:-1]), row[2])
        line = "iteration %d: objective %.6g, %.3f s"
        logger.log(level, line, iteration, row[0], row[2], extra={"iteration": iteration})
        if callback is not None:
            named = dict(zip(HISTORY.names or (), row, strict=True))
            change = difference / found.squares if found.squares else difference
            told = {"iteration": iteration, **named, "change": change}
            fit = replace(fit, stopped=callback(told, fit, fit.converged or iteration == max_iter))
        if fit.converged or fit.stopped:
            break
    return replace(fit, objective=expect(X, fit.centers, rule, n_active, sample_weight, n_threads).objective)
