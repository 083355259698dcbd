"""Fuzzy k-means: memberships u_nc ≥ 0 that sum to 1 over the active set K(n) of each point n.

    J_m = Σ_n w_n Σ_{c∈K(n)} u_nc^m d²_nc                             (Bezdek 1981)
    J_λ = Σ_n w_n Σ_{c∈K(n)} (u_nc d²_nc + λ u_nc log u_nc)           (Miyamoto & Mukaidono 1997)

Contains both membership rules and the loop that lowers J: it computes the best u for the centers, then the best centers
for u. K(n) are the C′ nearest of all C centers, which are the best C′ for both rules, so no half-step raises J.
J_λ = −λ Σ_n w_n log Σ_{c∈K(n)} exp(−d²_nc/λ) is, up to constants, the free energy (7) of the isotropic mixture with
σ² = λ/2. Independent of the estimators.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cprime.kernels import Floats, Rows, means, posterior
from cprime.model.tied_spherical import variance_floor

logger = logging.getLogger("cprime")

HISTORY = np.dtype([("objective", np.float64), ("n_distances", np.int64), ("seconds", np.float64)])
_BLOCK = 2**20  # most values in an array of one block of rows


class Memberships(NamedTuple):
    """Memberships computed from squared distances (n, H); all float64.

    memberships (n, H): u, rows sum to 1    masses (n, H): weight of a point in the mean of each component
    costs (n,): contribution of a point to the objective [data unit²]
    """

    memberships: NDArray[np.float64]
    masses: NDArray[np.float64]
    costs: NDArray[np.float64]


class Rule(Protocol):
    """Function that returns the optimal memberships for given squared distances."""

    def __call__(self, squared: NDArray[np.float64], n_threads: int | None = None) -> Memberships: ...


@dataclass(frozen=True)
class Power:
    """Rule u_nc ∝ d_nc^(−2/(m−1)), masses u^m; a point at one or several centers belongs to these in equal shares."""

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
    """Rule u_nc ∝ exp(−d²_nc/λ), masses u: responsibilities of the isotropic mixture with σ² = λ/2 [data unit²]."""

    constant: float

    def __call__(self, squared: NDArray[np.float64], n_threads: int | None = None) -> Memberships:
        u, log_sum, _ = posterior(squared, -1 / self.constant, n_threads=n_threads)
        return Memberships(u, u, -self.constant * log_sum)


def entropy_of_start(
    X: Rows, centers: Floats, sample_weight: NDArray[np.float64] | None, n_threads: int | None
) -> Entropy:
    """Return the rule with λ = 2σ², where σ² = J/(DW) (14) for the points and their nearest centers."""
    squared = X.nearest(centers, n_threads=n_threads)[1][:, 0].astype(np.float64)
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    variance = float((weights * squared).sum() / (X.shape[1] * weights.sum()))
    return Entropy(2 * max(variance, variance_floor(centers)))


def off_the_points(X: Rows, seeds: Floats, sample_weight: NDArray[np.float64] | None, n_threads: int | None) -> Floats:
    """Return the means of the points nearest to each seed, (C, D).

    A point at a center belongs to it completely, so centers that start at points would not move if m is large and all
    other masses are tiny.
    """
    kept = X.nearest(seeds, n_threads=n_threads)[0]
    counts, sums = X.accumulate(kept, None, sample_weight, n_components=len(seeds), n_threads=n_threads)
    return means(counts, sums, seeds, n_threads=n_threads)[0]


def blocks(
    X: Rows, centers: Floats, rule: Rule, n_active: int, n_threads: int | None
) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[np.float64], Memberships]]:
    """Yield rows, K(n) (b, H), squared distances (b, H) and memberships, block by block.

    K(n) is sorted nearest first or, if H = C, in the order of the components.
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
    """Sums of one E-step: Σ w·mass (C,), Σ w·mass·x (C, D), the objective, and Σ w·mass·d² [data unit²]."""

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
    """Compute the sums of the best memberships for the centers, without an N × C array."""
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
    """State of a run; `objective` belongs to the centers before the last step and, after the run, to `centers`."""

    centers: Floats
    rule: Rule
    objective: float
    history: tuple[tuple[float, int, float], ...] = ()
    converged: bool = False
    stopped: bool = False


Callback = Callable[[Mapping[str, Any], FuzzyRun, bool], bool]  # arguments: history row, state, whether it is final


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
    """Iterate from starting centers until J changes by at most `tol` times Σ w·mass·d², or `max_iter` times.

    X (N, D), centers (C, D) of one dtype    n_active: C′    sample_weight (N,) float64 or None
    callback: called after every iteration; True ends the run
    A component without mass keeps its center.
    """
    fit = FuzzyRun(centers, rule, np.inf)
    for iteration in range(1, max_iter + 1):
        start = perf_counter()
        found = expect(X, fit.centers, rule, n_active, sample_weight, n_threads)
        moved = means(found.counts, found.sums, fit.centers, n_threads=n_threads)[0]
        row = (found.objective, len(X) * len(centers), perf_counter() - start)
        difference = abs(fit.objective - found.objective)
        fit = FuzzyRun(moved, rule, found.objective, (*fit.history, row), converged=difference <= tol * found.squares)
        logger.info("iteration %d: objective %.6g, %.3f s", iteration, row[0], row[2], extra={"iteration": iteration})
        if callback is not None:
            named = dict(zip(HISTORY.names or (), row, strict=True))
            change = difference / found.squares if found.squares else difference
            told = {"iteration": iteration, **named, "change": change}
            fit = replace(fit, stopped=callback(told, fit, fit.converged or iteration == max_iter))
        if fit.converged or fit.stopped:
            break
    return replace(fit, objective=expect(X, fit.centers, rule, n_active, sample_weight, n_threads).objective)
