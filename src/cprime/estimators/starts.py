"""The loop over the starts of a fit. A start has three steps: initialization, EM loop, final assignment of the points.

The loop also calls callbacks and writes checkpoints.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cprime import em
from cprime._utils.random import Key, Purpose
from cprime._utils.values import replace
from cprime.estimators.quality import certificate_text
from cprime.estimators.watching import Watch
from cprime.execution import Data
from cprime.model import Model
from cprime.persistence.checkpoints import Checkpoint, Runs
from cprime.search.certificate import certify

logger = logging.getLogger("cprime")


@dataclass(frozen=True, eq=False)
class BestStart:
    """Result of the best start of a fit.

    run: final state of the EM loop
    measured: labels, neighbor lists, certificate (measured quality of the search) and kind of the final assignment, by
    the names of fitted attributes without the underscore at the end
    """

    run: em.Run
    measured: dict[str, Any]


def best_start(
    data: Data,
    plan: em.FitPlan,
    first_model: Callable[[Key], Model],
    key: Key,
    n_starts: int,
    watch: Watch,
    n_certified: int,
    checkpoint: Checkpoint | None = None,
    runs: Runs | None = None,
) -> BestStart:
    """Run the EM loop from several starts, and return the result of greatest free energy F (least J for k-means).

    plan: options of each start
    first_model: function of a counter-based random key that returns the initial parameters
    watch: object that calls the callbacks
    n_certified: number of points whose active sets are compared with an exact search, to measure the quality of a
    partial search; 0 omits this
    checkpoint: folder to which states of the fit are written, or None
    runs: state of an interrupted fit, which is continued; None begins a new fit
    """
    runs = Runs() if runs is None else runs
    if watch.listened:
        plan = replace(plan, callback=lambda row, fit: watch(row, fit, fit.end is not None))
    with _flush_on_error(checkpoint):
        for number in range(runs.run, n_starts):
            save = _saver(checkpoint, number, runs)
            with watch.start(number + 1):
                if runs.fit is not None:
                    fit = em.proceed(data, runs.fit, plan, save)
                else:
                    key = key._replace(run=number)
                    fit = em.run(data, partial(first_model, key), plan, key, save)
                fit, measured = _measured(data, fit, plan, n_certified, checkpoint is None)
            if n_starts == 1 or _is_better(fit, runs.best):
                runs = Runs(number + 1, None, fit, measured)
            else:
                runs = replace(runs, run=number + 1, fit=None)
            if watch.asked or fit.end == em.End.STOPPED:
                break
        assert runs.best is not None
        assert runs.found is not None
        best = BestStart(runs.best, runs.found)
        _log_end(best)
    return best


def _saver(checkpoint: Checkpoint | None, number: int, runs: Runs) -> Callable[[em.Run], None] | None:
    """Return the callback of the EM loop that saves the state of the fit after each pass, or None without a checkpoint.

    number: index of the present start    runs: results of the starts before
    """
    if checkpoint is None:
        return None
    return lambda run: checkpoint.save(replace(runs, run=number, fit=run))


@contextmanager
def _flush_on_error(checkpoint: Checkpoint | None) -> Iterator[None]:
    """If an error occurs in the `with` block, wait until the checkpoint has written its data, and raise the error."""
    try:
        yield
    except BaseException:
        if checkpoint is not None:
            checkpoint.wait()
        raise


def _is_better(fit: em.Run, best: em.Run | None) -> bool:
    """Return whether the run `fit` of the EM loop is better than `best`, the best one so far (None: there is none).

    The run of greater F is better. Exception: a run in which components have collapsed onto a few points is never
    better than a run without such components, because its likelihood grows without bound.
    """
    n_collapsed = fit.model.n_collapsed
    if n_collapsed:
        logger.info("start %d: %d component(s) collapsed onto a few points", fit.key.run + 1, n_collapsed)
    if best is None:
        return True
    if bool(n_collapsed) != bool(best.model.n_collapsed):
        return not n_collapsed
    return bool(fit.bound > best.bound)


def _measured(data: Data, fit: em.Run, plan: em.FitPlan, n_certified: int, lazy: bool) -> tuple[em.Run, dict[str, Any]]:
    """Measure the quality of the active sets and make the final assignment of the points.

    Returns the new state of the run, and the dictionary `BestStart.measured`.
    n_certified: number of points for which the quality is measured
    lazy: whether labels of Dask data may be a lazy array
    """
    if not data.placed:
        data.each(em.Label(fit.model))
    found = {
        "neighbors": plan.search.neighbors(fit.search),
        "certificate": _certified(data, fit, plan, n_certified),
    }
    fit, exact = em.assigned(data, fit, plan)
    labels: Any = data.labels()
    return fit, {
        **found,
        "labels": labels if lazy else np.asarray(labels),
        "final_assignment": "exact" if exact else "found",
    }


def _certified(data: Data, fit: em.Run, plan: em.FitPlan, n_certified: int) -> dict[str, Any] | None:
    """Compare active sets with an exact search for n_certified random points, and return the certificate.

    The certificate is a dictionary with the measured quality of a partial search. It is None if the search is exact, or
    if n_certified is 0.
    """
    if plan.search.exact or not n_certified:
        return None
    m = min(n_certified, data.n_weighted)
    numbers = fit.key.generator(Purpose.CERTIFICATE).choice(data.n_weighted, m, replace=False)
    points, kept = em.sampler(data, fit.model)(np.sort(numbers))
    kept, scale = fit.stage.certified(fit.model, kept)
    return certify(points, kept, fit.model.components(), scale)


def _log_end(best: BestStart) -> None:
    """Log the last line of a fit: why it ended, the number of iterations, the final F or J, and the search quality."""
    run, certificate = best.run, best.measured["certificate"]
    ended = "ended at max_iter" if run.end == em.End.MAX_ITER else run.end
    text = f"; {certificate_text(certificate)}" if certificate else ""
    logger.info("%s after %d iterations: %s%s", ended, len(run.rows), em.reached(run.bound, run.error), text)
