"""The loop over the starts of a fit, and the folders that a fit writes.

A start has three steps: initialization, EM loop, final assignment of the points. The loop also calls callbacks and
writes checkpoints, from which an interrupted fit continues. Active sets may be stored in files.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cprime import __version__, em
from cprime._utils.random import Key
from cprime._utils.values import replace
from cprime.estimators.quality import certificate_text
from cprime.estimators.validation import check_spill
from cprime.estimators.watching import Watch
from cprime.execution import Data
from cprime.kernels import instruction_set
from cprime.model import Model
from cprime.persistence import checkpoint_files, checkpoints
from cprime.persistence.checkpoints import Checkpoint, Runs
from cprime.seeding import is_given

logger = logging.getLogger("cprime")

SPILLED = 2**30  # least size [bytes] of all active sets at which a fit with a checkpoint stores them in files

_NOT_COMPARED = ("callbacks", "checkpoint", "n_threads", "spill", "verbose")  # arguments that a resumed fit may change


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
) -> tuple[em.Run, dict[str, Any]]:
    """Run the EM loop from several starts, and return the result of greatest free energy F (least J for k-means).

    Returns the final state of the EM loop, and a dictionary with the entries "labels", "neighbors" (lists),
    "certificate" (measured quality of the search), and "final_assignment", the way in which labels were computed.

    plan: options of each start
    first_model: function of a counter-based random key that returns the initial parameters
    watch: object that calls the callbacks
    n_certified: number of points whose active sets are compared with an exact search, to measure the quality of a
    partial search; 0 omits this
    checkpoint: folder to which states of the fit are written, or None
    runs: state of an interrupted fit, which is continued; None begins a new fit
    """
    done = runs or Runs()
    if watch.listened:
        plan = replace(plan, callback=lambda row, fit: watch(row, fit, fit.end is not None))

    def save(run: em.Run) -> None:
        if checkpoint is not None:
            checkpoint.save(replace(done, run=number, fit=run))

    each_pass = None if checkpoint is None else save
    try:
        for number in range(done.run, n_starts):
            with watch.start(number + 1):
                if done.fit is not None:
                    fit = em.proceed(data, done.fit, plan, each_pass)
                else:
                    key = key._replace(run=number)
                    fit = em.run(data, partial(first_model, key), plan, key, each_pass)
                fit, measured = _measured(data, fit, plan, n_certified, checkpoint is None)
            if n_starts == 1 or _is_better(fit, done.best):
                done = Runs(number + 1, None, fit, measured)
            else:
                done = replace(done, run=number + 1, fit=None)
            if watch.asked or fit.end == em.End.STOPPED:
                break
    except BaseException:
        if checkpoint is not None:
            checkpoint.wait()
        raise
    run, found = done.best, done.found
    assert run is not None
    assert found is not None
    if logger.isEnabledFor(logging.INFO):
        ended = "ended at max_iter" if run.end == em.End.MAX_ITER else run.end
        text = certificate_text(found["certificate"])
        result = em.reached(run.bound, run.error)
        logger.info("%s after %d iterations: %s%s", ended, len(run.rows), result, f"; {text}" if text else "")
    return run, found


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
    """Make the final assignment of the points, and measure the quality of the active sets before it.

    Returns the new state of the run, and the dictionary that `best_start` returns.
    n_certified: number of points whose active sets are compared with an exact search; 0 omits this
    lazy: whether labels of Dask data may be a lazy array
    """
    if not data.placed:
        data.each(em.Label(fit.model))
    neighbors = plan.search.neighbors(fit.search)
    fit, exact, certificate = em.assigned(data, fit, plan, n_certified)
    labels: Any = data.labels()
    return fit, {
        "neighbors": neighbors,
        "certificate": certificate,
        "labels": labels if lazy else np.asarray(labels),
        "final_assignment": "exact" if exact else "found",
    }


def stored_param(value: Any) -> Any:
    """Return a constructor parameter in a form that a checkpoint can store.

    Initial centers become arrays, random generators become None, and functions and other objects become their names in
    angle brackets.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int | float | None) or hasattr(value, "with_params"):
        return value
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if is_given(value):
        return np.asarray(getattr(value, "cluster_centers_", getattr(value, "means_", value)))
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"


def spilling(spill: Any, checkpoint: Any, data: Data, n_kept: int) -> AbstractContextManager[None]:
    """Return a context manager within which a fit stores active sets in files; one without effect if memory is used.

    Files are used if the argument `spill` names a folder. They are also used if there is a checkpoint, the data have
    several chunks, and all active sets together take at least 1 GiB (SPILLED).    n_kept: C′, size of an active set
    """
    folder = None if spill is None else check_spill(spill)
    if folder is None and checkpoint is not None and data.is_local and len(data.sizes) > 1:
        n_bytes = data.n_points * n_kept * (np.dtype(np.int32).itemsize + data.dtype.itemsize)
        folder = Path(checkpoint) if n_bytes >= SPILLED else None
    return nullcontext() if folder is None else data.spilled(folder)


def opened_checkpoint(estimator: Any, data: Data, key: Key) -> tuple[Checkpoint, Runs | None]:
    """Return the checkpoint of a fit, and the state of an interrupted fit that its folder contains, or None.

    key: counter-based random key of the fit
    """
    description = {
        "seed": key.seed,
        "cprime_version": __version__,
        "instruction_set": instruction_set(),
        "estimator": type(estimator).__name__,
        **{
            f"parameter {name}": stored_param(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in _NOT_COMPARED
        },
        "warm": estimator._continued(),
        "features": tuple(estimator.feature_names_in_) if hasattr(estimator, "feature_names_in_") else None,
        **data.identity(),
        "chunks": tuple(data.sizes),
        "output": checkpoint_files.output_of(estimator.checkpoint),
    }
    checkpoint, runs = checkpoints.opened(estimator.checkpoint, description, data)
    if runs is None:
        checkpoint.begin(data.without_file())
    else:
        checkpoint.store(data.without_file())
    return checkpoint, runs
