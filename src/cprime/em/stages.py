"""Stages of a run of EM or k-means: phases of a fit, objects that propose the next pass and evaluate its result.

A pass over the data is an E-step, usually followed by an M-step.
k-means has the stages `Exchange` and then `Lloyd`; a mixture has `EM` or `Momentum`. A `Warmup` stage (E-steps only)
may come before them. A `Final` pass, which uses the returned parameters, may come after them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol

from cprime._utils.random import Key
from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.em.certificate import Loss
from cprime.em.expectation import Totals
from cprime.execution import Data
from cprime.execution.base import Job
from cprime.neighbors.components import Components
from cprime.search import Look, Search

_SETTLED = 0.01  # a `Warmup` whose `settles` is true ends once an E-step lowers the error by less than this share


class End(StrEnum):
    """Reason why a run has ended."""

    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STOPPED = "stopped"


class Accept(NamedTuple):
    """Result of a pass over the data (E-step and M-step) that is accepted, not undone.

    model: parameters for the next pass, or a `DeferredModel` that computes them
    stage: object that defines the next pass; None if this pass was the last one of the fit
    bound, error: free energy F per unit of weight [nats] and sum of squared distances J [data unit²], for the
    convergence history    counts (C,): Σ_n w_n q_nc, with weights w and responsibilities q
    change: change of F or J that is compared with the tolerance    end: reason why the run ends, None if it goes on
    n_relocated: number of empty clusters whose center was moved to a point
    then: function that may change the result before the next pass, for example by jumps of centers; None if there is
    none. Its arguments are the data, this result, the search of candidates, the search's state (such as neighbor lists)
    and a random key. It returns the new result and the new state of the search
    """

    model: Any
    stage: Any
    bound: float
    error: float
    counts: Any
    change: float = math.inf
    end: End | None = None
    n_relocated: int = 0
    then: "Callable[[Data, Accept, Search, Any, Key], tuple[Accept, Any]] | None" = None


@dataclass(frozen=True)
class DeferredModel:
    """New parameters that are not computed yet.

    make: function that computes them. It is called after the memory of the old parameters has been freed.
    """

    make: Callable[[], Any]


class Undo(NamedTuple):
    """Result of a rejected pass: the parameters and the stage with which the run continues."""

    model: Any
    stage: Any


class AllPasses(NamedTuple):
    """Result of all passes of a stage: the result of the last one, and the history of the passes.

    last: result of the last pass
    bounds, errors: F per unit of weight [nats] and J [data unit²] of each pass    n_moved: reassigned points of each
    """

    last: Accept
    bounds: list[float]
    errors: list[float]
    n_moved: list[int]


class Stage(Protocol):
    """Phase of a run of EM or k-means: an object that proposes passes over the data and evaluates their results."""

    phase: ClassVar[str | None]  # name of the stage in the history; None for a pass that is not recorded

    def components(self, model: Any) -> Components:
        """Return the `Components` (centers or densities) with which the next pass compares points."""
        return model.components()

    def propose(self, model: Any, components: Any, look: Look, key: Key) -> Job[Totals]:
        """Return the job of the next pass, a function that is called with each block of rows.

        components: result of the method `components`    look: search that finds the active set of each point among them
        key: counter-based random key
        """
        ...

    def judge(self, model: Any, totals: Totals, data: Data) -> Accept | Undo:
        """Evaluate a pass by its sums `totals`: do the M-step and choose the next stage, or reject the pass.

        Returns `Accept`, or `Undo` if the pass must not count, for example because F has fallen.
        model: parameters of the pass
        data: all points; the center of an empty cluster of k-means moves to the one farthest from its own center
        """
        ...

    def all_passes(self, model: Any, search: Search, data: Data) -> AllPasses | None:
        """Make all passes of this stage by one call of a compiled kernel, and return their results.

        This saves the overhead of small passes. Returns None, and changes nothing, if it is not possible.
        """
        return None

    def final(self, model: Any, components: Any, look: Look, key: Key) -> Job[Totals]:
        """Return the job (function called with blocks of rows) of the last pass, with the final parameters `model`."""
        ...

    def measured(self, model: Any, totals: Totals) -> Accept:
        """Return the result of a pass without an M-step, with F, J and counts Σ_n w_n q_nc from its sums `totals`."""
        ...

    def standing(self, model: Any) -> Any:
        """Return the parameters that the fit would return if the run ended now; `model` has the present parameters."""
        return model

    def loss(self, model: Any) -> Loss:
        """Return what a point loses if the search misses components: in J for k-means, in F for mixtures."""
        ...


class FirstStage(Stage, Protocol):
    """Stage that can be the first of a run; it may need sums over all data, which `with_prior` computes."""

    def with_prior(self, model: Any, data: Data) -> Stage:
        """Return this stage with the sums over all data that its M-steps use; a pass computes them if there are any."""
        return self


@storable("em.Final")
@dataclass(frozen=True)
class Final(Stage):
    """Stage of the last pass, which assigns points by the final parameters.

    of: the stage before    end: reason why the run ends
    """

    of: Any
    end: End

    phase: ClassVar[str | None] = None

    def propose(self, model: Any, components: Any, look: Look, key: Key) -> Job[Totals]:
        return self.of.final(model, components, look, key)

    final = propose

    def measured(self, model: Any, totals: Totals) -> Accept:
        return self.of.measured(model, totals)

    def judge(self, model: Any, totals: Totals, data: Data) -> Accept:
        return self.measured(model, totals)._replace(end=self.end)

    def loss(self, model: Any) -> Loss:
        loss: Loss = self.of.loss(model)
        return loss


@storable("em.Warmup")
@dataclass(frozen=True)
class Warmup(Stage):
    """Stage of n E-steps before the first M-step, which improve the active sets.

    before: the stage that follows, with M-steps
    settles: whether the warm-up ends as soon as an E-step lowers the error by less than 1 %
    error: exp(−2F/D) [data unit²] of the last E-step, the measure of this error; for k-means it is proportional to J
    """

    n: int
    before: Any
    settles: bool = False
    error: float = math.inf

    phase: ClassVar[str | None] = "warmup"

    def propose(self, model: Any, components: Any, look: Look, key: Key) -> Job[Totals]:
        return self.before.propose(model, components, look, key)

    def final(self, model: Any, components: Any, look: Look, key: Key) -> Job[Totals]:
        return self.before.final(model, components, look, key)

    def measured(self, model: Any, totals: Totals) -> Accept:
        return self.before.measured(model, totals)

    def judge(self, model: Any, totals: Totals, data: Data) -> Accept:
        step = self.before.measured(model, totals)
        error = math.exp(-2 * step.bound / data.n_features) if self.settles else math.inf
        over = self.n == 1 or (self.settles and error > (1 - _SETTLED) * self.error)
        return replace(step, stage=self.before if over else replace(self, n=self.n - 1, error=error))

    def loss(self, model: Any) -> Loss:
        loss: Loss = self.before.loss(model)
        return loss
