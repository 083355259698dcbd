"""Prediction of the time of a fit by small fits of the same estimator, on some of the rows or on random rows.

All small fits together take two seconds at most. A small fit has n of the N rows and c of the C components, with as
many rows per component as the whole fit if possible, and the same search, initialization and C′. The time of the whole
fit is extrapolated along a line through the times of the two largest small fits.
"""

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from cprime.em.loop import CHEAPER
from cprime.estimators.budget import changed
from cprime.estimators.memory import PlannedRows, ShapeSource
from cprime.estimators.problems import options_of
from cprime.estimators.validation import resolve_init, resolve_jumps, resolve_momentum
from cprime.kernels import computing
from cprime.neighbors import EXACT_LISTS
from cprime.seeding.methods import name_of

SECONDS = 2.0  # Time limit of all small fits together, from which the time of a whole fit is predicted.
_FIRST, _FACTOR = 2048, 4  # Number of rows of the first small fit; the next one has _FACTOR times as many rows.
_ROWS_PER_COMPONENT = 64  # Number of rows per component that is sufficient for a small fit.
_PIECES = 16  # Number of contiguous ranges of a file from which the rows of a small fit are read.
# Time per distance in the final assignment to the best of all components, relative to a search by neighbor lists.
_ALL_AT_ONCE = 0.25


class CostEstimate(NamedTuple):
    """Predicted cost of a fit that may have several starts.

    passes, iterations: number of passes over all rows, and number of iterations, of one start
    seconds: duration of all starts together
    final: duration of the final assignments, a part of `seconds`; they compare all points with all components
    """

    passes: int
    iterations: int
    seconds: float
    final: float


@dataclass(frozen=True)
class _Fit:
    """Measurements of one small fit with n rows and c components, from which the whole fit's time is extrapolated.

    inside: seconds in passes over the data    outside: all other seconds of the fit
    evaluations: number of components evaluated per row, summed over all iterations
    whole: whether the fit ended before the deadline; if not, it was stopped
    """

    n: int
    c: int
    passes: int
    iterations: int
    inside: float
    outside: float
    evaluations: float
    whole: bool


class _PassCounter:
    """Wrapper of a `Data` object that counts the passes that read rows, and measures the duration of all passes."""

    def __init__(self, data: Any) -> None:
        self._data, self.passes, self.seconds = data, 0, 0.0

    def each(self, job: Any) -> Any:
        begin = perf_counter()
        part = self._data.each(job)
        self.seconds += perf_counter() - begin
        self.passes += bool(job.reads)
        return part

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)


def foreseen(estimator: Any, rows: PlannedRows) -> CostEstimate:
    """Return the predicted cost of a fit of `estimator`, extrapolated from small fits of growing size.

    rows: description of the data of the fit
    """
    N = rows.data.n_points
    begin, n, fits = perf_counter(), min(N, _FIRST), []
    _small_fit(estimator, rows, min(N, _ROWS_PER_COMPONENT), begin + SECONDS)  # Warm-up: its time is not used.
    while True:
        start = perf_counter()
        fits.append(_small_fit(estimator, rows, n, begin + SECONDS))
        now = perf_counter()
        if n == N or now - begin + 1.5 * _FACTOR * (now - start) > SECONDS:
            break
        n = min(N, _FACTOR * n)
    return _extrapolated(estimator, rows, fits[-2:], _read_seconds(rows))


def _extrapolated(estimator: Any, rows: PlannedRows, fits: list[_Fit], reading: float) -> CostEstimate:
    """Return the predicted cost of the whole fit, extrapolated from one or two small fits, the larger one last.

    rows: description of the data of the whole fit    reading: seconds to read all its rows once
    """
    options, N = options_of(estimator), rows.data.n_points
    plan, C = options.plan(rows.data), options.n_components
    before, last = fits[0], fits[-1]
    counted = last if last.whole else before
    full = plan.search.exact and not plan.search.stores_bounds
    work, whole = [fit.n * (fit.c if full else 1) for fit in (before, last)], N * (C if full else 1)
    inside = _along(work[0], work[1], before.inside / before.passes, last.inside / last.passes, whole)
    if last.c < C:
        few = min(C, EXACT_LISTS)
        outside = N * _along(before.c, last.c, before.outside / before.n, last.outside / last.n, few)
    else:
        outside = _along(before.n, last.n, before.outside, last.outside, N)
    passes, iterations, evaluations = counted.passes, counted.iterations, counted.evaluations
    seconds = passes * max(inside, reading) + outside
    final, named = 0.0, plan.search.final_assignment
    if not plan.search.exact and (named == "exact" or (named == "auto" and CHEAPER * evaluations >= C)):
        rate = last.inside / (last.n * max(1.0, last.evaluations)) * _ALL_AT_ONCE
        final, passes = max(N * C * rate, reading), passes + 1
    return CostEstimate(passes, iterations, estimator.n_init * (seconds + final), estimator.n_init * final)


def _along(before: float, last: float, a: float, b: float, to: float) -> float:
    """Extrapolate the line through the points (before, a) and (last, b) to the position `to`; return the value there.

    The slope is limited to 0 … b/last, so the result is at least b, and grows at most in proportion to the position.
    """
    slope = (b - a) / (last - before) if last > before else b / last
    return b + min(max(slope, 0.0), b / last) * (to - last)


def _read_seconds(rows: PlannedRows) -> float:
    """Return the seconds to read all rows once, extrapolated from a part of the first chunk.

    The result is 0 if the rows are in memory, on a cluster, or only described by a shape.
    """
    if rows.resident or not rows.here or isinstance(rows.source, ShapeSource):
        return 0.0
    n = min(rows.data.sizes[0], max(1, 2**24 // (rows.data.n_features * rows.data.dtype.itemsize)))
    begin = perf_counter()
    rows.source.read(0, n)
    return (perf_counter() - begin) / n * rows.data.n_points


def _small_fit(estimator: Any, rows: PlannedRows, n: int, deadline: float) -> _Fit:
    """Fit `estimator` to n of the rows, with fewer components, and return the measurements of this fit.

    deadline: time (of `perf_counter`) after which the fit ends with its current iteration
    """
    N, C = rows.data.n_points, options_of(estimator).n_components
    c = min(C, n, max(1, C * n // N, n // _ROWS_PER_COMPONENT))
    small = _scaled(estimator, rows, c)
    X = _some(rows, n, c)
    stopped = False

    def late(row: Any, view: Any) -> bool:
        nonlocal stopped
        stopped = perf_counter() > deadline
        return stopped

    with _silently(), computing(small.n_threads):
        data: Any = _PassCounter(small.set_params(callbacks=[late])._opened(X, None, reset=True))
        begin = perf_counter()
        small._fit_to(data, (X, None, None))
        seconds = perf_counter() - begin
    history = small.history_
    evaluations = float(history["n_distances"].sum()) / n
    passes, outside = max(1, data.passes), max(0.0, seconds - data.seconds)
    return _Fit(n, c, passes, len(history), data.seconds, outside, evaluations, not stopped)


def _scaled(estimator: Any, rows: PlannedRows, c: int) -> Any:
    """Return an unfitted copy of the estimator for a small fit with c components.

    Arguments with the value "auto" are replaced by the values that the fit of all rows would choose.
    """
    options = options_of(estimator)
    plan, C = options.plan(rows.data), options.n_components
    exact = plan.n_kept == C
    kept = c if exact else min(plan.n_kept, c)
    certificate = min(plan.search.certificate, 100)
    search = plan.search.with_params(certificate=certificate, final_assignment="found")
    given: dict[str, Any] = {
        "n_clusters": c,
        "n_components": c,
        "n_init": 1,
        "search": search if search.exact or kept < c else "full",
        "n_active": None if kept == c and exact else kept,
        "random_state": 0,
        "verbose": 0,
        "warm_start": False,
    }
    given |= dict.fromkeys(("max_memory", "checkpoint", "means_init", "weights_init", "precisions_init"))
    # Constraints are omitted. Bounds of sizes hold for all rows, and a fit of few rows would make additional starts.
    # Known centers or components may be more than the components of the small fit.
    given |= dict.fromkeys(("size_max", "size_min", "fixed"))
    if hasattr(estimator, "jumps"):
        given["jumps"] = resolve_jumps(estimator, plan.search, estimator.epsilon, rows.data.sparse) and c > 1
        init = resolve_init(estimator.init, C, rows.data, plan.jumps, plan.improved)
        given["init"] = init if name_of(init) is not None else "random"
    if hasattr(estimator, "momentum"):
        given["momentum"] = resolve_momentum(options, plan.n_kept, plan.search)
        given["init_params"] = estimator.init_params if name_of(estimator.init_params) is not None else "random"
    return changed(estimator, **{name: value for name, value in given.items() if hasattr(estimator, name)})


def _some(rows: PlannedRows, n: int, c: int) -> Any:
    """Return about n rows of the data, (n, D), for a small fit.

    If only the shape of the data is known, the rows are random, from c spherical Gaussians with random centers.
    """
    data, rng = rows.data, np.random.default_rng(0)
    if n == data.n_points and rows.resident and not isinstance(rows.source, ShapeSource):
        return data.take(np.arange(n)).X.given()
    if rows.here and isinstance(rows.source, ShapeSource):
        X = rng.standard_normal((n, data.n_features), dtype=data.dtype.type)
        centers = rng.standard_normal((c, data.n_features), dtype=data.dtype.type)
        X += 2 * centers[rng.integers(c, size=n)]
        return X
    if rows.resident:
        numbers = np.sort(rng.choice(data.n_points, n, replace=False))
    else:
        starts = np.linspace(0, data.n_points - n // _PIECES - 1, _PIECES).astype(np.int64)
        numbers = np.unique(starts[:, np.newaxis] + np.arange(-(-n // _PIECES)))
        numbers = numbers[numbers < data.n_points]
    return data.take(numbers).X.given()


@contextmanager
def _silently() -> Iterator[None]:
    """Suppress warnings, and log lines of this thread, in the `with` block.

    The small fits in the block are internal, so their messages would confuse the user.
    """
    logger, thread = logging.getLogger("cprime"), threading.get_ident()

    def elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != thread

    logger.addFilter(elsewhere)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.removeFilter(elsewhere)
