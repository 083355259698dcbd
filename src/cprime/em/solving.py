"""`Problem`, what a fit needs to know, and `solve`, the function that fits: it runs the EM loop from every start.

A start has three steps: initialization, EM loop, final assignment of the points. Between passes, callbacks are called
and the state is written to a checkpoint, from which an interrupted fit continues.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key
from cprime._utils.values import replace
from cprime.em.diverse_starts import best_of, best_of_short_runs, is_chosen
from cprime.em.expectation import Label
from cprime.em.loop import FitPlan, Run, assigned, proceed, run
from cprime.em.stages import End
from cprime.execution import Data
from cprime.model import Model
from cprime.seeding.jumps import improved_by_jumps

logger = logging.getLogger("cprime")


# Function that returns the starting parameters. Arguments: data, starting centers (C, D), and whether each point is
# compared with all of these.
FirstModel = Callable[[Data, NDArray, bool], Model]


@dataclass(frozen=True)
class Problem:
    """Problem that a fit solves: the options of its runs, and how each of its starts begins.

    plan: options of each run of the EM loop
    init: initialization of the centers: a name, an object, a function, or the centers
    centers: function that returns the starting centers (C, D) for the data and a random key
    first_model: function that returns the starting parameters
    n_starts: number of starts, of which the best one counts
    has_short_runs: whether later starts are each the best of several short runs
    finish: function that continues the best run after the loop, for example within bounds of sizes; or None
    candidates: functions that return starting parameters; if there are any, a start is the best of short runs from them
    """

    plan: FitPlan
    init: Any
    centers: Callable[[Data, Key], NDArray]
    first_model: FirstModel
    n_starts: int = 1
    has_short_runs: bool = False
    finish: "Finish | None" = None
    candidates: Sequence[Callable[[], Model]] = ()

    def start(self, data: Data, key: Key) -> Model:
        """Return the starting parameters of a start, as a model.

        If the plan requests it, starting centers are improved by jumps: two clusters are merged, and another is split.
        key: counter-based random key of the start; its field `run` is the number of the start
        """
        if self.candidates:
            return best_of(self.candidates, data, self.plan, [key] * len(self.candidates))
        single = partial(self._single, data)
        if self.has_short_runs and is_chosen(key.run):
            return best_of_short_runs(data, single, self.plan, key)
        return single(key)

    def plain_start(self, data: Data, key: Key) -> Model:
        """Return starting parameters from centers that do not jump; each point is compared with all of them."""
        return self.first_model(data, self.centers(data, key), True)

    def _single(self, data: Data, key: Key) -> Model:
        centers = self.centers(data, key)
        if self.plan.improved:
            centers = improved_by_jumps(data, centers, key)
        return self.first_model(data, centers, self.plan.search.exact)


# Function that continues the best run of a fit. Arguments: data, problem, key, final state of the run, and measured
# values as `solve` returns them. Returns the new state and the new measured values.
Finish = Callable[[Data, Problem, Key, Run, dict[str, Any]], tuple[Run, dict[str, Any]]]


@dataclass(frozen=True)
class Runs:
    """State of a fit with several initializations.

    run: index of the current initialization    fit: state of its EM loop; None before the first pass over the data
    best: final state of the best EM loop from earlier initializations, or None
    found: dictionary with labels, neighbor lists and certificate (estimated search quality) of `best`, or None
    """

    run: int = 0
    fit: Run | None = None
    best: Run | None = None
    found: dict[str, Any] | None = None


class Watch(Protocol):
    """Object that a fit calls after every iteration.

    listened: whether there is anything to call    asked: whether a call has requested the end of the fit
    """

    listened: bool
    asked: bool

    def start(self, number: int) -> AbstractContextManager[Any]:
        """Return a context manager within which a start takes place; number: its number, from 1."""

    def __call__(self, row: Any, state: Any, over: bool) -> bool:
        """Report an iteration, and return whether the fit is to end.

        row: the iteration's row of the history    state: the run    over: whether the run is over
        """


class Checkpoint(Protocol):
    """Folder to which states of a fit are written."""

    def save(self, runs: Runs) -> None:
        """Write the state of the fit if enough time has passed since the last one."""

    def wait(self) -> None:
        """Return when everything is written."""


def solve(
    data: Data,
    problem: Problem,
    key: Key,
    watch: Watch | None = None,
    checkpoint: Checkpoint | None = None,
    runs: Runs | None = None,
) -> tuple[Run, dict[str, Any]]:
    """Fit a model: run EM from all starts, and return the result of greatest free energy F (least J for k-means).

    Returns the final state of the EM loop, and a dictionary with the entries "labels", "neighbors" (lists),
    "certificate" (measured quality of the search), and "final_assignment", the way in which labels were computed.
    `finish` of the problem may add others.

    key: counter-based random key of all draws
    watch: object that is called after every iteration, or None
    checkpoint: folder to which states of the fit are written, or None
    runs: state of an interrupted fit, which is continued; None begins a new fit
    """
    done, plan = runs or Runs(), problem.plan
    if watch is not None and watch.listened:
        plan = replace(plan, callback=lambda row, fit: watch(row, fit, fit.end is not None))

    def save(run: Run) -> None:
        if checkpoint is not None:
            checkpoint.save(replace(done, run=number, fit=run))

    each_pass = None if checkpoint is None else save
    try:
        for number in range(done.run, problem.n_starts):
            with nullcontext() if watch is None else watch.start(number + 1):
                if done.fit is not None:
                    fit = proceed(data, done.fit, plan, each_pass)
                else:
                    key = replace(key, run=number)
                    fit = run(data, partial(problem.start, data, key), plan, key, each_pass)
                fit, measured = _measured(data, fit, plan, checkpoint is None)
            if problem.n_starts == 1 or _is_better(fit, done.best):
                done = Runs(number + 1, None, fit, measured)
            else:
                done = replace(done, run=number + 1, fit=None)
            if (watch is not None and watch.asked) or fit.end == End.STOPPED:
                break
    except BaseException:
        if checkpoint is not None:
            checkpoint.wait()
        raise
    assert done.best is not None
    assert done.found is not None
    if problem.finish is None:
        return done.best, done.found
    return problem.finish(data, problem, key, done.best, done.found)


def _is_better(fit: Run, best: Run | None) -> bool:
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


def _measured(data: Data, fit: Run, plan: FitPlan, lazy: bool) -> tuple[Run, dict[str, Any]]:
    """Make the final assignment of the points, and measure the quality of the active sets before it.

    Returns the new state of the run, and the dictionary that `solve` returns.
    lazy: whether labels of Dask data may be a lazy array
    """
    if not data.placed:
        data.each(Label(fit.model))
    neighbors = plan.search.neighbors(fit.search)
    fit, exact, certificate = assigned(data, fit, plan)
    labels: Any = data.labels()
    return fit, {
        "neighbors": neighbors,
        "certificate": certificate,
        "labels": labels if lazy else np.asarray(labels),
        "final_assignment": "exact" if exact else "found",
    }
