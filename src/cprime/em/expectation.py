"""The E-step of one chunk: K(n) by the search, q_nc by the assignment, and the sums of the M-step."""

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.em.state import Settings
from cprime.kernels.native import Floats
from cprime.model import Model
from cprime.model.base import winner_error
from cprime.search import Centers, Chunk, Components, Factors, FullSearch
from cprime.statistics import Statistics

_BLOCK = 2**20  # responsibilities at a time, where a component is drawn from all


def expect(chunk: Chunk, model: Model, settings: Settings, factors: Factors | None = None) -> Statistics:
    """E-step of one chunk: K(n) by the search, q_nc by (5), the sums of the M-step. Updates the chunk's state."""
    C, threads = len(model.centers), settings.n_threads
    chunk.points = model.embed(chunk.X, chunk.points, threads)
    if settings.n_active == C > 1:
        if settings.assignment == "posterior":
            return _draw_from_all(chunk, model, settings)
        return model.expect_all(chunk, threads)

    previous, components = chunk.kept, model.components(threads)
    kept, costs, n_distances = settings.search.find(chunk, components, settings.n_active, factors)
    if settings.epsilon and previous is not None:
        kept, costs = _linger(chunk.X, model.centers, kept, costs, previous, settings.epsilon)
    moved = np.ones(len(kept), dtype=bool) if previous is None else _differ(kept, previous)
    chunk.kept, chunk.distances = kept, costs

    least = chunk.weighted_sum(costs[:, 0])
    distances_alone = isinstance(components, Centers) and chunk.points is chunk.X
    J = least if distances_alone else winner_error(chunk, model.centers, kept[:, 0].copy(), threads)
    squares: NDArray | float
    if settings.k_means:
        log_sum, entropy, squares = model.scale * J, 0.0, J
        counts, sums = _k_means_sums(chunk, previous, moved, C, settings)
    elif settings.assignment == "hard" or settings.n_active == 1:
        log_sum, entropy = model.scale * least, 0.0
        counts, sums, squares = model.sums(chunk, kept[:, :1], None, least, threads)
    else:
        posterior = kernels.posterior(costs, model.scale, n_threads=threads)
        log_sum, mean = chunk.weighted_sum(posterior.log_sum), chunk.weighted_sum(posterior.mean)
        entropy = log_sum - model.scale * mean
        if settings.assignment == "posterior":
            place = _drawn(posterior.responsibilities, settings)
            label = np.take_along_axis(kept, place, axis=1)
            mean = chunk.weighted_sum(np.take_along_axis(costs, place, axis=1)[:, 0])
            counts, sums, squares = model.sums(chunk, label, None, mean, threads)
        else:
            counts, sums, squares = model.sums(chunk, kept, posterior.responsibilities, mean, threads)
    return Statistics(
        counts=counts,
        sums=sums,
        weight=chunk.weight,
        squares=squares,
        log_sum=log_sum,
        entropy=entropy,
        quantization_error=J,
        n_distances=n_distances,
        n_moved=int(np.count_nonzero(moved)),
    )


def _differ(kept: NDArray, previous: NDArray) -> NDArray[np.bool_]:
    """Which rows differ anywhere: (n,)."""
    if kept.shape != previous.shape:
        return np.ones(len(kept), dtype=bool)
    return (kept != previous).any(axis=1) if kept.shape[1] > 1 else (kept != previous)[:, 0]


def _drawn(responsibilities: NDArray[np.float64], settings: Settings) -> NDArray[np.intp]:
    """One column of every row, at random by its entries, which sum to 1: (n, 1)."""
    assert settings.random_state is not None
    bar = settings.random_state.random_sample(len(responsibilities))[:, np.newaxis]
    below = (np.cumsum(responsibilities, axis=1) <= bar).sum(axis=1, keepdims=True)
    return np.minimum(below, responsibilities.shape[1] - 1)


def _draw_from_all(chunk: Chunk, model: Model, settings: Settings) -> Statistics:
    """The E-step of stochastic EM over all components, in blocks of rows."""
    n, C, threads = len(chunk.X), len(model.centers), settings.n_threads
    winners, labels, entropies = np.empty(n, dtype=np.int32), np.empty((n, 1), dtype=np.int32), np.empty(n)
    step = max(1, _BLOCK // C)
    for begin in range(0, n, step):
        block = slice(begin, begin + step)
        r = model.responsibilities(chunk.X[block], threads)
        winners[block], labels[block] = r.argmax(axis=1), _drawn(r, settings)
        entropies[block] = -(r * np.log(r, out=np.zeros_like(r), where=r > 0)).sum(axis=1)
    cost = chunk.weighted_sum(_costs_of(chunk, model.components(threads), labels))
    counts, sums, squares = model.sums(chunk, labels, None, cost, threads)
    return Statistics(
        counts=counts,
        sums=sums,
        weight=chunk.weight,
        squares=squares,
        log_sum=chunk.weighted_sum(model.log_likelihood(chunk.X, threads) - model.log_scale),
        entropy=chunk.weighted_sum(entropies),
        quantization_error=winner_error(chunk, model.centers, winners, threads),
        n_distances=n * C,
        n_moved=n,
    )


def _costs_of(chunk: Chunk, components: Components, labels: NDArray[np.int32]) -> Floats:
    """The cost of one given component for every point (n,)."""
    no_lists = np.empty((len(components.centers), 0), dtype=np.int32)
    return components.among(chunk.points, no_lists, labels, 1).distances[:, 0]


def _k_means_sums(
    chunk: Chunk, previous: NDArray | None, moved: NDArray, C: int, settings: Settings
) -> tuple[NDArray, NDArray]:
    """Counts and sums by winner. Of few moves the sums are those of before, corrected for them, but in the full search.

    What that adds to their rounding is of the order of the double's last digit.
    """
    assert chunk.kept is not None
    winners = chunk.kept[:, 0]
    movers = np.flatnonzero(moved)
    anew = isinstance(settings.search, FullSearch)
    if anew or previous is None or chunk.sums is None or 4 * len(movers) > len(winners):
        counts, chunk.sums = kernels.accumulate(
            chunk.X, chunk.kept, None, chunk.sample_weight, n_components=C, n_threads=settings.n_threads
        )
        return counts, chunk.sums
    counts = np.bincount(winners, chunk.sample_weight, C).astype(np.float64, copy=False)
    if len(movers):
        there = np.column_stack([previous[movers, 0], winners[movers]])
        sign = np.broadcast_to([-1.0, 1.0], there.shape)
        kernels.accumulate(
            chunk.X,
            there,
            sign,
            chunk.sample_weight,
            n_components=C,
            rows=movers,
            onto=chunk.sums,
            n_threads=settings.n_threads,
        )
        chunk.sums[counts == 0] = 0.0
    return counts, chunk.sums


def _linger(
    X: Floats, centers: Floats, kept: NDArray, distances: Floats, previous: NDArray, epsilon: float
) -> tuple[NDArray, Floats]:
    """lazy-k-means (21): a point leaves its component only if (1 + ε) ‖x − μ_new‖ < ‖x − μ_old‖."""
    movers = np.flatnonzero(kept[:, 0] != previous[:, 0])
    old = previous[movers, 0]
    there = np.square(X[movers] - centers[old]).sum(axis=1)
    stay = (1 + epsilon) ** 2 * distances[movers, 0] >= there
    kept[movers[stay], 0] = old[stay]
    distances[movers[stay], 0] = there[stay]
    return kept, distances
