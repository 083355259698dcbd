"""The only EM loop: E-steps and M-steps on the truncated free energy [L Alg. 1-3], whatever the four choices are.

    F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} p(c, x_n | Θ)                                                   (7)

Owns the order of things: E-step, record, stop or M-step. Knows nothing of estimators and their arguments.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.execution import Chunk, InMemory
from cprime.kernels.native import Floats
from cprime.model import TiedSpherical
from cprime.search import Search
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


@dataclass(frozen=True)
class Settings:
    """How a fit runs; none of it changes while it does.

    n_active: C′, the components that enter the statistics    search: which components a point looks at
    hard: k-means, i.e. σ² follows J by (14) within the E-step, and stopping is on J or on no move; otherwise the
    stopping rule is on the bound    tol: relative change of J (hard) or absolute change of F [nats a point]
    epsilon: laziness of lazy-k-means (21)    callback: given every row of the history as a
    dictionary, and the parameters after that iteration
    """

    n_active: int
    search: Search
    hard: bool
    max_iter: int
    tol: float
    epsilon: float = 0.0
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


def expect(chunk: Chunk, model: TiedSpherical, settings: Settings) -> Statistics:
    """E-step of one chunk: K(n) by the search, q_nc by (5), the sums of the M-step. Updates the chunk's state."""
    n, C = len(chunk.X), model.n_components
    if settings.n_active == C > 1:
        exact = kernels.expect_all(
            chunk.X, model.centers, model.variance, chunk.sample_weight, n_threads=settings.n_threads
        )
        return Statistics(**exact._asdict(), weight=chunk.weight, n_distances=n * C, n_moved=0)

    previous = chunk.kept
    kept, distances, n_distances = settings.search.find(
        chunk.X, model.centers, settings.n_active, previous, settings.n_threads
    )
    if settings.epsilon and previous is not None:
        kept, distances = _linger(chunk.X, model.centers, kept, distances, previous, settings.epsilon)
    n_moved = n if previous is None else int(np.count_nonzero((kept != previous).any(axis=1)))
    chunk.kept, chunk.distances = kept, distances

    J = chunk.weighted_sum(distances[:, 0])
    responsibilities, squares, log_sum, entropy = None, J, -0.5 * J / model.variance, 0.0
    if settings.n_active > 1:
        responsibilities, log_sums = kernels.posterior(model.exponent(distances), n_threads=settings.n_threads)
        squares = chunk.weighted_sum(np.einsum("nh,nh->n", responsibilities, distances, dtype=np.float64))
        log_sum = chunk.weighted_sum(log_sums)
        entropy = log_sum + 0.5 * squares / model.variance
    counts, sums = kernels.accumulate(
        chunk.X, kept, responsibilities, chunk.sample_weight, n_components=C, n_threads=settings.n_threads
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
        n_moved=n_moved,
    )


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


def relocate_empty(data: InMemory, statistics: Statistics) -> int:
    """Gives each empty component a point of its own, the farthest from their winners first; returns how many moved.

    The point leaves its winner's sums, so J cannot rise: a component it leaves is re-centred on fewer points.
    """
    empty = np.flatnonzero(statistics.counts == 0)
    if not len(empty):
        return 0
    rows, weights, winners = data.farthest(len(empty))
    n_relocated = 0
    for component, row, weight, winner in zip(empty, rows, weights, winners, strict=False):
        if statistics.counts[winner] <= weight:  # its last point: moving it would only empty another component
            continue
        statistics.sums[winner] -= weight * row.astype(np.float64)
        statistics.counts[winner] -= weight
        statistics.sums[component] = weight * row.astype(np.float64)
        statistics.counts[component] = weight
        n_relocated += 1
    return n_relocated


def run(data: InMemory, model: TiedSpherical, settings: Settings) -> Fit:
    """From the starting parameters to convergence or `max_iter`; ends on an E-step that saw the returned parameters."""
    fit = Fit(model)
    data.forget()
    last = np.inf
    for _ in range(settings.max_iter):
        start = perf_counter()
        e_step(data, fit, settings)
        assert fit.statistics is not None
        statistics = fit.statistics
        bound = fit.lower_bound
        unmoved = settings.hard and statistics.n_moved == 0  # an M-step would give the same centres
        if not unmoved:
            m_step(data, fit, settings)
        record(fit, statistics, bound, perf_counter() - start, settings)
        if settings.hard:
            J = statistics.quantization_error
            fit.converged = unmoved or abs(last - J) <= settings.tol * J
            last = J
        else:
            fit.converged = abs(last - bound) < settings.tol
            last = bound
        if unmoved and not settings.epsilon:
            return fit
        if fit.converged:
            break
    e_step(data, fit, replace(settings, epsilon=0.0))
    return fit


def e_step(data: InMemory, fit: Fit, settings: Settings) -> None:
    """E-step of all data. In k-means σ² follows at once from J (14), which makes F what (15) says."""
    statistics = data.map(lambda chunk: expect(chunk, fit.model, settings))
    if settings.hard:
        fit.model = fit.model.with_variance(statistics.quantization_error / statistics.weight)
        statistics.log_sum = -0.5 * statistics.quantization_error / fit.model.variance
    fit.statistics = statistics


def with_hard_variance(data: InMemory, model: TiedSpherical, settings: Settings) -> TiedSpherical:
    """The same centres with σ² of the points assigned to their nearest, (14)."""
    statistics = data.map(lambda chunk: expect(chunk, model, settings))
    return model.with_variance(statistics.quantization_error / statistics.weight)


def m_step(data: InMemory, fit: Fit, settings: Settings) -> None:
    """M-step, after the repair of clusters that k-means has left empty."""
    assert fit.statistics is not None
    if settings.hard:
        moved = relocate_empty(data, fit.statistics)
        if moved:
            fit.n_relocated += moved
            logger.info("iteration %d: %d empty cluster(s) moved to the farthest points", fit.n_iter + 1, moved)
    fit.model = fit.model.maximise(fit.statistics)


def record(fit: Fit, statistics: Statistics, bound: float, seconds: float, settings: Settings) -> None:
    """One row of the history, to the log and to the callback too."""
    fit.n_iter += 1
    J = statistics.quantization_error
    row = ("em", bound, J, statistics.n_distances, statistics.n_moved, seconds)
    fit.history.append(row)
    logger.info("iteration %d: F %.6f, J %.6g, %d moved, %.3f s", fit.n_iter, bound, J, statistics.n_moved, seconds)
    if settings.callback is not None:
        named = dict(zip(HISTORY.names or (), row, strict=True))
        settings.callback({"iteration": fit.n_iter, **named}, fit.model)


def history(rows: Sequence[tuple]) -> NDArray:
    """The rows as a structured array, one row an iteration."""
    return np.array(list(rows), dtype=HISTORY)
