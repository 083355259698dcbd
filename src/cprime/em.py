"""The only EM loop: E-steps and M-steps on the truncated free energy [L Alg. 1-3], whatever the four choices are.

    F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} p(c, x_n | Θ)                                                   (7)

Owns the order of things: E-step, record, stop or M-step. Knows nothing of estimators and their arguments.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.execution import Chunk, InMemory
from cprime.kernels.native import Floats
from cprime.model import Spread, TiedSpherical
from cprime.search import Factors, Search
from cprime.statistics import Statistics

logger = logging.getLogger("cprime")

HISTORY = np.dtype(
    [
        ("phase", "U6"),
        ("lower_bound", np.float64),
        ("quantization_error", np.float64),
        ("n_distances", np.int64),
        ("n_moved", np.int64),
        ("seconds", np.float64),
    ]
)


# An exchange goes on while an iteration of it lowers J by more than this many times `tol`.
_EXCHANGE_TOL = 8


@dataclass(frozen=True)
class Settings:
    """How a fit runs; none of it changes while it does.

    n_active: C′, the components that enter the statistics    search: which components a point looks at
    hard: k-means, i.e. σ² follows J by (14) within the E-step, and stopping is on J or on no move; otherwise the
    stopping rule is on the bound    tol: relative change of J (hard) or absolute change of F [nats a point]
    n_warmup: E-steps before the first M-step    epsilon: laziness of lazy-k-means (21)
    exchange: whether k-means begins with exchange steps, see `exchange_factors`
    regroup: whether the points may be copied into the order of their components, for speed
    callback: given every row of the history as a dictionary, and the parameters after that iteration
    """

    n_active: int
    search: Search
    hard: bool
    max_iter: int
    tol: float
    n_warmup: int = 0
    epsilon: float = 0.0
    exchange: bool = False
    regroup: bool = False
    n_threads: int | None = None
    callback: Callable[[dict, TiedSpherical], None] | None = None


@dataclass
class Fit:
    """Where a run stands. `statistics` are those of the last E-step, which saw `model` once the run has ended."""

    model: TiedSpherical
    statistics: Statistics | None = None
    history: list[tuple] = field(default_factory=list)
    converged: bool = False
    n_iter: int = 0
    n_relocated: int = 0
    exchanging: bool = False
    spread: Spread | None = None

    @property
    def lower_bound(self) -> float:
        """F of the model and the kept sets, per unit of weight [nats]."""
        assert self.statistics is not None
        return free_energy(self.model, self.statistics)

    @property
    def quantization_error(self) -> float:
        """J of the kept sets' winners [data unit²]."""
        assert self.statistics is not None
        return self.statistics.quantization_error


def free_energy(model: TiedSpherical, statistics: Statistics) -> float:
    """F (7) per unit of weight [nats]."""
    return model.log_scale + statistics.log_sum / statistics.weight


def expect(chunk: Chunk, model: TiedSpherical, settings: Settings, factors: Factors | None = None) -> Statistics:
    """E-step of one chunk: K(n) by the search, q_nc by (5), the sums of the M-step. Updates the chunk's state."""
    n, C = len(chunk.X), model.n_components
    if settings.n_active == C > 1:
        exact = kernels.expect_all(
            chunk.X, model.centers, model.variance, chunk.sample_weight, n_threads=settings.n_threads
        )
        return Statistics(**exact._asdict(), weight=chunk.weight, n_distances=n * C, n_moved=0)

    previous = chunk.kept
    kept, distances, n_distances = settings.search.find(chunk, model.centers, settings.n_active, factors)
    if settings.epsilon and previous is not None:
        kept, distances = _linger(chunk.X, model.centers, kept, distances, previous, settings.epsilon)
    moved = np.ones(n, dtype=bool) if previous is None else _differ(kept, previous)
    chunk.kept, chunk.distances = kept, distances

    J = chunk.weighted_sum(distances[:, 0])
    if settings.n_active == 1:
        squares, log_sum, entropy = J, -0.5 * J / model.variance, 0.0
        counts, sums = _hard_statistics(chunk, previous, moved, C, settings)
    else:
        posterior = kernels.posterior(distances, model.scale, n_threads=settings.n_threads)
        squares = chunk.weighted_sum(posterior.mean)
        log_sum = chunk.weighted_sum(posterior.log_sum)
        entropy = log_sum + 0.5 * squares / model.variance
        counts, sums = kernels.accumulate(
            chunk.X, kept, posterior.responsibilities, chunk.sample_weight, n_components=C, n_threads=settings.n_threads
        )
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
    return (kept != previous).any(axis=1) if kept.shape[1] > 1 else (kept != previous)[:, 0]


def _hard_statistics(
    chunk: Chunk, previous: NDArray | None, moved: NDArray, C: int, settings: Settings
) -> tuple[NDArray, NDArray]:
    """Counts and sums by winner. In a partial search of few moves the sums are those of before, corrected for them."""
    assert chunk.kept is not None
    winners = chunk.kept[:, 0]
    movers = np.flatnonzero(moved)
    if settings.search.exact or previous is None or chunk.sums is None or 4 * len(movers) > len(winners):
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


def exchange_factors(counts: NDArray, weight: float, dtype: np.dtype) -> Factors:
    """What makes an E-step an exchange: how J changes when a point moves *and both centres follow it*.

    A point of weight w that leaves c lowers J by W_c/(W_c − w) ‖x − μ_c‖², and raises it by W_b/(W_b + w) ‖x − μ_b‖²
    where it arrives (Hartigan 1975; Hartigan & Wong 1979). In terms of F (15) that is the best K for parameters that
    are maximised along with it, so its optima are optima of k-means, but fewer of them. `weight` is the mean weight of
    a point.
    """
    inside = counts / np.maximum(counts - weight, 1e-3 * weight)
    outside = np.maximum(counts, 1e-3 * weight) / (counts + weight)
    return Factors(inside.astype(dtype), outside.astype(dtype))


def run(data: InMemory, model: TiedSpherical, settings: Settings, labels: NDArray[np.int32] | None = None) -> Fit:
    """From the starting parameters to convergence or `max_iter`; ends on an E-step that saw the returned parameters.

    model: a variance that is not a number is to be found from the hard assignment to the starting centres
    labels (N,): a component near each point, if some are known already
    """
    data.begin(None if settings.search.exact else labels)
    if not (settings.n_active == model.n_components > 1):
        settings.search.start(data.chunks, model.centers, settings.n_active)
        if settings.regroup:
            data.regroup(model.n_components)
    if math.isnan(model.variance):
        model = with_hard_variance(data, model, settings)
    fit = Fit(model, spread=None if settings.hard else data.spread())
    for _ in range(settings.n_warmup):
        start = perf_counter()
        settings.search.refresh(fit.model.centers)
        e_step(data, fit, settings)
        record(fit, settings, "warmup", fit.lower_bound, fit.quantization_error, start)
    fit.exchanging, fit.statistics = settings.exchange, None
    last, stepped, settled = np.inf, False, False
    for _ in range(settings.max_iter):
        start = perf_counter()
        settings.search.refresh(fit.model.centers)
        relocated = fit.n_relocated
        before, winners = fit.model, data.winners() if fit.exchanging else None
        e_step(data, fit, settings)
        bound, J = fit.lower_bound, fit.quantization_error
        assert fit.statistics is not None
        unmoved = settings.hard and stepped and fit.statistics.n_moved == 0
        settled = unmoved and bool(fit.statistics.counts.all())  # an M-step would give the same centres
        if not settled:
            squares, stepped = m_step(data, fit, settings), True
            if winners is not None and squares > last:
                logger.info("iteration %d: the exchange would not lower J; plain steps from here", fit.n_iter + 1)
                data.rewind(winners)
                fit.model, fit.exchanging = before, False
                continue
            if fit.exchanging:  # an exchange is judged with both centres having followed the point
                bound, J = hard_free_energy(fit.model, squares, fit.statistics.weight), squares
        record(fit, settings, "em", bound, J, start)
        value = J if settings.hard else bound
        change = abs(last - value) / (J if settings.hard and J > 0 else 1.0)
        last = value
        if fit.n_relocated > relocated:
            continue  # a cluster has begun anew
        if fit.exchanging:
            fit.exchanging = not unmoved and change > _EXCHANGE_TOL * settings.tol
        else:
            fit.converged = unmoved or (change <= settings.tol if settings.hard else change < settings.tol)
        if fit.converged:
            break
    fit.exchanging = False
    if not (fit.converged and settled) or settings.epsilon:
        settings.search.refresh(fit.model.centers)
        e_step(data, fit, replace(settings, epsilon=0.0))
    return fit


def e_step(data: InMemory, fit: Fit, settings: Settings) -> None:
    """E-step of all data. In k-means σ² follows at once from J (14), which makes F what (15) says."""
    factors = None
    if fit.exchanging and fit.statistics is not None:
        weight = fit.statistics.weight / data.n_points
        factors = exchange_factors(fit.statistics.counts, weight, fit.model.centers.dtype)
    statistics = data.map(lambda chunk: expect(chunk, fit.model, settings, factors))
    if settings.hard:
        fit.model = fit.model.with_variance(statistics.quantization_error / statistics.weight)
        statistics.log_sum = -0.5 * statistics.quantization_error / fit.model.variance
    fit.statistics = statistics


def hard_free_energy(model: TiedSpherical, J: float, weight: float) -> float:
    """F (15) of a partition of error J, for σ² of (14) [nats per unit of weight]."""
    model = model.with_variance(J / weight)
    return model.log_scale - 0.5 * J / (weight * model.variance)


def with_hard_variance(data: InMemory, model: TiedSpherical, settings: Settings) -> TiedSpherical:
    """The same centres with σ² of the points assigned to the nearest that the search finds (14)."""
    J = 0.0
    for chunk in data.chunks:
        n_kept = settings.n_active if settings.n_active < model.n_components else 1
        kept, distances, _ = settings.search.find(chunk, model.centers, n_kept)
        J += chunk.weighted_sum(distances[:, 0])
        chunk.kept = kept if n_kept == settings.n_active else None
    return model.with_variance(J / sum(chunk.weight for chunk in data.chunks))


def m_step(data: InMemory, fit: Fit, settings: Settings) -> float:
    """M-step, after the repair of clusters that k-means has left empty; returns the squares about the new centres."""
    assert fit.statistics is not None
    if settings.hard:
        fit.model, moved = relocate_empty(data, fit.model, fit.statistics)
        if moved:
            fit.n_relocated += moved
            logger.info("iteration %d: %d empty cluster(s) moved to the farthest points", fit.n_iter + 1, moved)
    fit.model, squares = fit.model.maximise(fit.statistics, fit.spread)
    return squares


def relocate_empty(data: InMemory, model: TiedSpherical, statistics: Statistics) -> tuple[TiedSpherical, int]:
    """Puts each empty component on a point of its own, the farthest from their winners first; says how many moved.

    The point leaves its winner's sums and squares, so J falls. A component is never emptied for another's sake.
    """
    empty = np.flatnonzero(statistics.counts == 0)
    if not len(empty):
        return model, 0
    centers, n_relocated = model.centers.copy(), 0
    statistics.sums = statistics.sums.copy()  # a chunk may go on from them
    members = data.members(model.n_components)
    resolution = 4 * model.n_features * model.variance_floor  # a mean of equal points may be so far from them
    for component, place, row, weight, winner, distance in zip(
        empty, *data.farthest(len(empty), resolution), strict=False
    ):
        if members[winner] == 1:
            continue
        members[winner] -= 1
        moment = weight * row.astype(np.float64)
        statistics.sums[winner] -= moment
        statistics.counts[winner] -= weight
        statistics.sums[component] = moment
        statistics.counts[component] = weight
        statistics.squares -= weight * float(distance)
        centers[component] = row
        data.assign(place, component)
        n_relocated += 1
    return replace(model, centers=centers), n_relocated


def record(fit: Fit, settings: Settings, phase: str, bound: float, J: float, start: float) -> None:
    """One row of the history, to the log and to the callback too."""
    assert fit.statistics is not None
    fit.n_iter += 1
    row = (phase, bound, J, fit.statistics.n_distances, fit.statistics.n_moved, perf_counter() - start)
    fit.history.append(row)
    logger.info("iteration %d: F %.6f, J %.6g, %d moved, %.3f s", fit.n_iter, bound, J, row[4], row[5])
    if settings.callback is not None:
        named = dict(zip(HISTORY.names or (), row, strict=True))
        settings.callback({"iteration": fit.n_iter, **named}, fit.model)


def history(rows: Sequence[tuple]) -> NDArray:
    """The rows as a structured array, one row an iteration."""
    return np.array(list(rows), dtype=HISTORY)
