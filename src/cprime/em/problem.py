"""`Problem`: the options of the runs of a fit, and how each of its starts begins."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from cprime._utils.random import Key
from cprime.em.diverse_starts import best_of_short_runs, is_chosen
from cprime.em.loop import FitPlan, Run
from cprime.execution import Data
from cprime.model import Model
from cprime.seeding.jumps import improved_by_jumps

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
    """

    plan: FitPlan
    init: Any
    centers: Callable[[Data, Key], NDArray]
    first_model: FirstModel
    n_starts: int = 1
    has_short_runs: bool = False
    finish: "Finish | None" = None

    def start(self, data: Data, key: Key) -> Model:
        """Return the starting parameters of a start, as a model.

        If the plan requests it, starting centers are improved by jumps: two clusters are merged, and another is split.
        key: counter-based random key of the start; its field `run` is the number of the start
        """
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
