"""The only EM loop: E-steps and M-steps on the truncated free energy [L Alg. 1-3], whatever the four choices are.

    F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} p(c, x_n | Θ)                                                   (7)

Owns the order of things: E-step, record, stop or M-step. Knows nothing of estimators and their arguments.
"""

import logging
import math
from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from cprime import kernels
from cprime.em.expectation import expect
from cprime.em.state import HISTORY, Fit, Settings
from cprime.execution import InMemory
from cprime.model import Model, TiedSpherical
from cprime.model.base import winner_error
from cprime.search import Factors
from cprime.search.cells import Cells
from cprime.statistics import Statistics

logger = logging.getLogger("cprime")

# An exchange goes on while an iteration of it lowers J by more than this many times `tol`.
_EXCHANGE_TOL = 8


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


def begin(data: InMemory, model: Model, settings: Settings, labels: NDArray[np.int32] | None = None) -> Model:
    """The parameters of the hard assignment to the nearest starting centres: one M-step from there.

    model: the starting centres; its other parameters do not count    labels (N,): a centre near each point, if known
    """
    data.begin()
    (chunk,) = data.chunks
    if labels is None and settings.search.exact:
        labels = kernels.nearest(chunk.X, model.centers, n_threads=settings.n_threads)[0][:, 0]
    elif labels is None:
        labels = Cells(model.centers, settings.n_threads).find(chunk.X)[0]
    J = winner_error(chunk, model.centers, labels, settings.n_threads)
    counts, sums, squares = model.sums(chunk, labels[:, np.newaxis], None, J, settings.n_threads)
    statistics = Statistics(counts, sums, chunk.weight, squares, 0.0, 0.0, J, 0, 0)
    return model.maximise(statistics, data.scatter(model.scatter_shape))


def run(data: InMemory, model: Model, settings: Settings, labels: NDArray[np.int32] | None = None) -> Fit:
    """From the starting parameters to convergence or `max_iter`; ends on an E-step that saw the returned parameters.

    model: a variance that is not a number is to be found from the hard assignment to the starting centres
    labels (N,): a component near each point, if some are known already
    """
    data.begin(None if settings.search.exact else labels)
    start_search(data, model, settings)
    if isinstance(model, TiedSpherical) and math.isnan(model.variance):
        model = with_hard_variance(data, model, settings)
    fit = Fit(model, scatter=None if settings.k_means else data.scatter(model.scatter_shape))
    for _ in range(settings.n_warmup):
        start = perf_counter()
        refresh(fit, settings)
        e_step(data, fit, settings)
        record(fit, settings, "warmup", fit.lower_bound, fit.quantization_error, start)
    fit.exchanging, fit.statistics = settings.exchange, None
    last, stepped, settled = np.inf, False, False
    for _ in range(settings.max_iter):
        start = perf_counter()
        refresh(fit, settings)
        relocated = fit.n_relocated
        before, winners = fit.model, data.winners() if fit.exchanging else None
        e_step(data, fit, settings)
        bound, J = fit.lower_bound, fit.quantization_error
        assert fit.statistics is not None
        unmoved = (settings.k_means or settings.assignment == "hard") and stepped and fit.statistics.n_moved == 0
        settled = settings.k_means and unmoved and bool(fit.statistics.counts.all())  # an M-step changes nothing
        if not settled:
            squares, stepped = m_step(data, fit, settings), True
            if winners is not None and squares > last:
                logger.info("iteration %d: the exchange would not lower J; plain steps from here", fit.n_iter + 1)
                data.rewind(winners)
                fit.model, fit.exchanging = before, False
                continue
            if fit.exchanging:  # an exchange is judged with both centres having followed the point
                bound, J = hard_free_energy(k_means_model(fit), squares, fit.statistics.weight), squares
        record(fit, settings, "em", bound, J, start)
        value = J if settings.k_means else bound
        change = abs(last - value) / (J if settings.k_means and J > 0 else 1.0)
        last = value
        if fit.n_relocated > relocated:
            continue  # a cluster has begun anew
        if fit.exchanging:
            fit.exchanging = not unmoved and change > _EXCHANGE_TOL * settings.tol
        elif settings.assignment != "posterior":  # draws go on for as long as they are asked for
            fit.converged = unmoved or (change <= settings.tol if settings.k_means else change < settings.tol)
        if fit.converged:
            break
    fit.exchanging = False
    if not (fit.converged and settled) or settings.epsilon:
        refresh(fit, settings)
        e_step(data, fit, replace(settings, epsilon=0.0))
    return fit


def start_search(data: InMemory, model: Model, settings: Settings) -> None:
    """Gives the search its lists and the points what they keep first, where the E-step is not over all components."""
    if settings.n_active == len(model.centers) > 1:
        return
    for chunk in data.chunks:
        chunk.points = model.embed(chunk.X, chunk.points, settings.n_threads)
    settings.search.start(data.chunks, model.components(settings.n_threads), settings.n_active)
    if settings.regroup:
        data.regroup(len(model.centers))


def refresh(fit: Fit, settings: Settings) -> None:
    """Brings the search's lists up to date."""
    settings.search.refresh(fit.model.components(settings.n_threads))


def e_step(data: InMemory, fit: Fit, settings: Settings) -> None:
    """E-step of all data. In k-means σ² follows at once from J (14), which makes F what (15) says."""
    factors = None
    if fit.exchanging and fit.statistics is not None:
        weight = fit.statistics.weight / data.n_points
        factors = exchange_factors(fit.statistics.counts, weight, fit.model.centers.dtype)
    statistics = data.map(lambda chunk: expect(chunk, fit.model, settings, factors))
    if settings.k_means:
        fit.model = k_means_model(fit).with_variance(statistics.quantization_error / statistics.weight)
        statistics.log_sum = fit.model.scale * statistics.quantization_error
    fit.statistics = statistics


def k_means_model(fit: Fit) -> TiedSpherical:
    """The model of k-means."""
    assert isinstance(fit.model, TiedSpherical)
    return fit.model


def hard_free_energy(model: TiedSpherical, J: float, weight: float) -> float:
    """F (15) of a partition of error J, for σ² of (14) [nats per unit of weight]."""
    model = model.with_variance(J / weight)
    return model.log_scale + model.scale * J / weight


def with_hard_variance(data: InMemory, model: TiedSpherical, settings: Settings) -> TiedSpherical:
    """The same centres, of equal weights, with σ² of the points assigned to the nearest that the search finds (14)."""
    J = 0.0
    components = model.components(settings.n_threads)  # squared distances, whatever the variance
    for chunk in data.chunks:
        n_kept = settings.n_active if settings.n_active < model.n_components else 1
        kept, distances, _ = settings.search.find(chunk, components, n_kept)
        J += chunk.weighted_sum(distances[:, 0])
        chunk.kept = kept if n_kept == settings.n_active else None
    return model.with_variance(J / sum(chunk.weight for chunk in data.chunks))


def m_step(data: InMemory, fit: Fit, settings: Settings) -> float:
    """M-step; in k-means after the repair of clusters left empty, and it returns the squares about the new centres."""
    assert fit.statistics is not None
    if not settings.k_means:
        fit.model = fit.model.maximise(fit.statistics, fit.scatter)
        return math.nan
    model, moved = relocate_empty(data, k_means_model(fit), fit.statistics)
    if moved:
        fit.n_relocated += moved
        logger.info("iteration %d: %d empty cluster(s) moved to the farthest points", fit.n_iter + 1, moved)
    model, squares = model.recentred(fit.statistics)
    fit.model = model.with_variance(squares / fit.statistics.weight)
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
