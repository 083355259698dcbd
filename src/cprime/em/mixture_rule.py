"""A mixture as a rule: EM steps, with momentum or plain, and an end where F rests."""

import logging
import math
from dataclasses import dataclass, replace
from typing import ClassVar

from cprime._random import Key
from cprime.block import Kept
from cprime.em.assignment import assignment_of
from cprime.em.expectation import EStep, ExactEStep, Totals
from cprime.em.jumps import Jumped
from cprime.em.rules import Step
from cprime.em.state import free_energy
from cprime.execution import Data
from cprime.model import Model, Scatter
from cprime.model.base import ScatterOf
from cprime.search import Look

logger = logging.getLogger("cprime")

_AFTER_BEYOND, _PACE = 2.5, 1.5  # by how much a step of EM gains more after one beyond; one beyond than one of EM


@dataclass(frozen=True)
class MixtureState:
    """F of the last iteration, and whether there has been an M-step; scatter of the data, as the model asks for it.

    before: an M-step's parameters that momentum builds on    beyond: whether the pass is of parameters beyond the last
    streak: M-steps in a row that momentum builds on
    little: what the pass before gained, if that was so little that this one is of EM    pace: by how much a pass beyond
    has last gained more than one of EM
    """

    scatter: Scatter | None
    last: float = math.inf
    n_steps: int = 0
    stepped: bool = False
    before: Model | None = None
    beyond: bool = False
    streak: int = 0
    little: float | None = None
    pace: float = _PACE


@dataclass(frozen=True)
class MixtureRule:
    """A mixture, which stops on F.

    With momentum (Nesterov 1983) an E-step sees parameters beyond those of the M-step, after s steps in a row by
    (Θ_k − Θ_k−1)(s − 1)/(s + 2). Where F would fall for it, the pass does not count: those of the M-step follow, and s
    begins again (O'Donoghue & Candès 2015). So F never falls in what counts. Where a step gains little, one of EM is
    made, which keeps the momentum; the fit ends where that gains less than 2.5 `tol`, since from parameters beyond it
    gains at least so much more than it does on EM's own way.

    tol: absolute change of F [nats a point]    n_kept: C′    assignment: "soft", "hard" or "posterior"
    finds_variance: whether the first σ² is that of the points with their nearest start (14)
    momentum: whether steps go on beyond    before: F of the iteration before the first [nats a point]
    """

    max_iter: int
    tol: float
    n_kept: int
    assignment: str = "soft"
    finds_variance: bool = False
    momentum: bool = False
    before: float = math.inf

    jumps: ClassVar[bool] = False

    def begin(self, model: Model, data: Data) -> MixtureState:
        shape = model.scatter_shape
        return MixtureState(None if shape is None else data.each(ScatterOf(shape)), self.before)

    def factors(self, model: Model, state: MixtureState) -> None:
        return None

    def propose(self, model: Model, state: MixtureState | None, look: Look, key: Key, last: bool) -> EStep | ExactEStep:
        assignment = assignment_of(self.assignment, key)
        if self.n_kept == len(model.centers) > 1:
            return ExactEStep(model, assignment)
        return EStep(model, look, self.n_kept, assignment)

    def warm(self, model: Model, state: MixtureState, totals: Totals) -> Step:
        statistics = totals.statistics
        bound, J = free_energy(model, statistics), statistics.quantization_error
        return Step(model, state, True, False, False, bound, J, statistics)

    def judge(self, model: Model, state: MixtureState, totals: Totals, data: Data) -> Step:
        statistics, n_steps = totals.statistics, state.n_steps + 1
        bound, J = free_energy(model, statistics), statistics.quantization_error
        if state.beyond and not bound >= state.last:
            assert state.before is not None
            logger.info("momentum would lower F; it begins again")
            back = replace(state, n_steps=n_steps, before=None, beyond=False, streak=0)
            return Step(state.before, back, False, False, n_steps >= self.max_iter, bound, J, statistics)
        unmoved = self.assignment == "hard" and state.stepped and totals.n_moved == 0 and totals.seen.around
        drawn = self.assignment == "posterior"  # draws go on for as long as they are asked for
        gain = abs(bound - state.last)
        checked = state.little is not None
        change = gain / (_AFTER_BEYOND * state.pace if state.beyond else _AFTER_BEYOND if checked else 1)
        small = change < self.tol
        converged = not drawn and (unmoved or (small and not state.beyond))
        done = converged or n_steps >= self.max_iter
        new = model.maximise(statistics, state.scatter)
        after = replace(state, last=bound, n_steps=n_steps, stepped=True, beyond=False, little=None)
        if not self.momentum or done:
            return Step(new, after, True, converged, done, bound, J, statistics, change=change)
        streak = state.streak + 1
        after = replace(after, streak=streak)
        if state.little is not None and gain > 0:
            after = replace(after, pace=max(state.little / gain, 1.0))
        if small and state.beyond:
            return Step(new, replace(after, little=gain), True, False, False, bound, J, statistics, change=change)
        after = replace(after, before=new)
        if state.before is not None:
            new, after = new.beyond(state.before, (streak - 1) / (streak + 2)), replace(after, beyond=True)
        return Step(new, after, True, converged, done, bound, J, statistics, change=change)

    def jumped(self, step: Step, jumped: Jumped) -> Step:
        raise NotImplementedError("no step of a mixture is ripe for jumps")

    def needs_last(self, step: Step) -> bool:
        return True

    def settled(self, model: Model, state: MixtureState) -> Model:
        if not state.beyond:
            return model
        assert state.before is not None
        return state.before

    def judged(self, kept: Kept) -> Kept:
        if self.assignment != "hard":
            return kept
        return Kept(kept.ids[:, :1], None if kept.costs is None else kept.costs[:, :1])

    def scale(self, model: Model) -> float:
        return model.scale
