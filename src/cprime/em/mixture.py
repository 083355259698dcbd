"""Stages of a mixture fit: EM steps, plain or with momentum, until F has converged."""

import logging
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from cprime._utils.random import Key
from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.em.certificate import Loss
from cprime.em.expectation import (
    ASSIGNMENTS,
    AssignmentRule,
    DrawFromAll,
    EStep,
    ExactEStep,
    SampledAssignment,
    Totals,
)
from cprime.em.stages import Accept, DeferredModel, End, Final, FirstStage, Undo
from cprime.execution import Data
from cprime.execution.base import Job
from cprime.execution.statistics import Tally
from cprime.model import Model
from cprime.neighbors.components import Components
from cprime.search import Look

logger = logging.getLogger("cprime")

# Two ratios of increases of F that the stopping rule of `Momentum` assumes. First number: increase by a plain EM step
# after an extrapolated one, divided by that by a plain step after plain ones; this is a lower bound. Second number:
# increase by an extrapolated step, divided by that by the plain step after it, as long as this ratio was not measured.
_AFTER_EXTRAPOLATED, _PACE = 2.5, 1.5


@storable("em.MixtureSettings", former={("assignment", "posterior"): "sampled"})
@dataclass(frozen=True)
class MixtureSettings:
    """Options of a mixture fit.

    tol: tolerance of the absolute change of F [nats per point]    n_kept: C′, the size of active sets
    assignment: key of `ASSIGNMENTS`: responsibilities are the truncated posterior ("soft"), 1 for the best component
    ("hard"), or 1 for a component drawn from the posterior ("sampled")
    settles: whether repeated M-steps with the same hard assignment return the same parameters, so that a fit without
    reassigned points has converged
    labelled: whether the components of some points are given to the search, so E-steps use the search even if C′ = C
    """

    max_iter: int
    tol: float
    n_kept: int
    assignment: str = "soft"
    settles: bool = True
    labelled: bool = False

    @property
    def rule(self) -> AssignmentRule:
        """Rule by which responsibilities follow from costs."""
        return ASSIGNMENTS[self.assignment]


@storable("em.EM")
@dataclass(frozen=True)
class EM(FirstStage):
    """Stage of plain EM steps, which end if the free energy F has converged.

    prior: sums over all data, computed before the fit, that each M-step uses; None if the model needs no such sums
    last: F of the previous iteration [nats per point]    n_steps: number of EM steps so far
    """

    settings: MixtureSettings
    prior: Any = None
    last: float = math.inf
    n_steps: int = 0

    phase: ClassVar[str | None] = "em"

    def with_prior(self, model: Model, data: Data) -> Self:
        """Return a copy of this stage with `prior`, the sums over all data that each M-step uses.

        A pass computes these sums. If the model needs no such sums, there is no pass, and `prior` is None.
        """
        return replace(self, prior=None if model.prior is None else data.each(model.prior))

    def propose(self, model: Model, components: Components, look: Look, key: Key) -> Job[Totals]:
        if self.settings.n_kept == model.n_components > 1 and not self.settings.labelled:
            if self.settings.rule.is_drawn:
                return DrawFromAll(model, SampledAssignment(key))
            if model.exact and self.settings.rule.is_posterior:
                return ExactEStep(model)
        return EStep(model, look, self.settings.n_kept, self.settings.rule.make(key))

    final = propose

    def measured(self, model: Model, totals: Totals) -> Accept:
        return Accept(model, None, free_energy(model, totals.tally), totals.tally.error, totals.moments.counts)

    def judge(self, model: Model, totals: Totals, data: Data) -> Accept:
        found = self.measured(model, totals)
        change = abs(found.bound - self.last)
        after = replace(self, last=found.bound, n_steps=self.n_steps + 1)
        end = self._end(totals, change < self.settings.tol)
        return replace(
            found,
            model=model.maximise(totals.moments, self.prior),
            stage=after if end is None else Final(after, end),
            change=change,
            end=end,
        )

    def loss(self, model: Model) -> Loss:
        return Loss(model, model.scale, only_best=self.settings.rule.is_single)

    def _end(self, totals: Totals, small: bool) -> End | None:
        """Return the reason why the fit ends after this EM step, or None if it goes on.

        Fits whose assignments are drawn from the posterior always run to `max_iter`.
        totals: sums of the E-step    small: whether F has changed by less than the tolerance
        """
        rule, tally = self.settings.rule, totals.tally
        settles = rule.is_single and self.settings.settles and self.n_steps > 0
        unmoved = settles and tally.n_moved == 0 and totals.stats.explored
        if not rule.is_drawn and (unmoved or small):
            return End.CONVERGED
        return End.MAX_ITER if self.n_steps + 1 >= self.settings.max_iter else None


@storable("em.Momentum")
@dataclass(frozen=True)
class Momentum(EM):
    """Stage of EM steps from extrapolated parameters (Nesterov 1983).

    After s steps, an E-step uses the parameters Θ_k + (Θ_k − Θ_k−1)(s − 1)/(s + 2), where Θ_k are the parameters of the
    last M-step. If the free energy F would fall, the pass is rejected and repeated with Θ_k, and s restarts from 0
    (O'Donoghue & Candès 2015). So F never falls in accepted passes. If a step increases F only little, a plain EM step
    follows, and s is not reset. With C′ < C the fit ends if this plain step increases F by less than `tol`. With C′ = C
    it ends at less than 2.5 `tol`, because a plain step after an extrapolated one increases F at least 2.5 times as
    much as a plain step after plain ones; with C′ < C, increases are smaller and last longer, because active sets
    change slowly.

    before: parameters of the last M-step, from which momentum continues; None after a restart
    extrapolated: whether the next pass uses extrapolated parameters
    streak: s, the number of M-steps since momentum restarted
    little: increase of F in the previous pass, if it was so small that the next step is a plain one
    pace: increase of F in the last extrapolated step, divided by that of the plain step after it
    """

    before: Any = None
    extrapolated: bool = False
    streak: int = 0
    little: float | None = None
    pace: float = _PACE

    def judge(self, model: Model, totals: Totals, data: Data) -> Accept | Undo:  # type: ignore[override]
        found, n_steps = self.measured(model, totals), self.n_steps + 1
        if self.extrapolated and not found.bound >= self.last:
            logger.info("extrapolation (momentum) would lower F: the step is undone, and momentum restarts from 0")
            back = replace(self, n_steps=n_steps, before=None, extrapolated=False, streak=0)
            return Undo(self.before, Final(back, End.MAX_ITER) if n_steps >= self.settings.max_iter else back)
        gain, checked = abs(found.bound - self.last), self.little is not None
        plain = _AFTER_EXTRAPOLATED if self.settings.n_kept == model.n_components else 1.0
        change = gain / (plain * self.pace if self.extrapolated else plain if checked else 1)
        small = change < self.settings.tol
        end = self._end(totals, small and not self.extrapolated)
        new = model.maximise(totals.moments, self.prior)
        after = replace(self, last=found.bound, n_steps=n_steps, extrapolated=False, little=None)
        if end is not None:
            return replace(found, model=new, stage=Final(replace(after, before=None), end), change=change, end=end)
        after = replace(after, streak=self.streak + 1)
        if self.little is not None and gain > 0:
            after = replace(after, pace=max(self.little / gain, 1.0))
        if small and self.extrapolated:
            return replace(found, model=new, stage=replace(after, little=gain), change=change)
        after = replace(after, before=new, extrapolated=self.before is not None)
        if not after.extrapolated:
            return replace(found, model=new, stage=after, change=change)
        further = partial(new.extrapolated, self.before, (after.streak - 1) / (after.streak + 2))
        return replace(found, model=DeferredModel(further), stage=after, change=change)

    def standing(self, model: Model) -> Model:
        return self.before if self.extrapolated else model


def free_energy(model: Model, tally: Tally) -> float:
    """Return the free energy F per unit of weight, eq. (7) of Lücke & Forster 2019 [nats], plus that of a prior.

    tally: sums of an E-step. Its sum of log densities lacks the constant `log_scale` of the model, which is added here.
    """
    return model.log_scale + (tally.log_sum + model.log_prior) / tally.weight
