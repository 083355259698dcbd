"""Stages of k-means: exchange steps (Hartigan & Wong) with momentum and jumps of centers, then Lloyd's steps.

A stage is a phase of a fit that proposes passes over the data and evaluates them. If few points are reassigned, the
sums Σ w x of clusters are updated only for these points. The center of an empty cluster is moved to a point, or stays.
Each pass also computes σ² from the error J by eq. (14) of Lücke & Forster 2019, so F is that of eq. (15).
"""

import logging
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key
from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.em.certificate import Loss
from cprime.em.expectation import ReassignmentSums, Totals
from cprime.em.hard import HardEStep, Lazy, SumByComponent, relocate_empty
from cprime.em.jumps import is_cheap_to_list, jump
from cprime.em.stages import Accept, AllPasses, End, Final, FirstStage, Undo
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Floats, weighted_sum
from cprime.kernels.many import LloydRun
from cprime.model import Model, TiedSpherical
from cprime.neighbors.components import Centers
from cprime.search import Full, Look, Search

logger = logging.getLogger("cprime")

# Exchange steps end if one of them lowers J by at most this number · tol · J, with the tolerance `tol` of the fit.
_EXCHANGE_TOL = 8
# Jumps of centers end if they lower J by at most this number · tol · J, with the tolerance `tol` of the fit. The number
# is three times that of exchange steps, because jumps take three passes.
_JUMP_TOL = 24
# Number of exchange steps before the first jumps of centers.
_FIRST_JUMPS = 3
# Momentum of exchange steps: a center is extrapolated by W/(W + this number) times its last change, where W is the
# weight of its cluster divided by the mean weight of a point. The share is less for clusters of few points, because
# these can lose all of them, and because the factors of exchange steps already favor reassignments from and to them.
_LIGHT = 32
# If at most this share of points is reassigned, the next pass updates the sums of clusters only for reassigned points,
# which then takes less time than to sum all points.
_FEW = 0.25
# All Lloyd steps are made by one kernel call, which saves overhead, if a step computes at most this many differences
# between a coordinate of a point and of a center.
_SMALL = 2**25
# All Lloyd steps are made by one kernel call only if `max_iter` is at most this, because the call allocates memory for
# the history of `max_iter` steps first.
_FEW_STEPS = 10_000
# Sums over the points of clusters are updated by differences. They are recomputed if the weight of a cluster has fallen
# by more than this factor, because rounding errors of the former large sums remain.
_HEAVY = 64.0


@storable("em.Settings")
@dataclass(frozen=True)
class Settings:
    """Options of a k-means run.

    tol: tolerance of the relative change of J    epsilon: ε of lazy-k-means (Lücke & Forster 2019,
    eq. 21): a point is reassigned only to a center that is nearer by the factor 1 + ε
    incremental: whether the sums Σ w x of clusters may be updated for reassigned points only
    is_last_lazy: whether the last pass also uses `epsilon`; if not, it assigns points to their nearest centers
    relocates: whether the center of an empty cluster is moved to a point; if not, it stays
    labels (N,): known cluster of each point, −1 if it is unknown; or None. Points with a label are not relocated
    least_shift [data unit²]: if given, it replaces `tol`: Lloyd's steps end once Σ_c ‖μ_c^new − μ_c‖² is at most this
    """

    max_iter: int
    tol: float
    epsilon: float = 0.0
    incremental: bool = False
    least_shift: float | None = None
    is_last_lazy: bool = False
    relocates: bool = True
    labels: NDArray[np.int32] | None = field(default=None, compare=False)


@storable("em.Progress")
@dataclass(frozen=True)
class Progress:
    """State of a k-means run after a pass.

    last: error J of the pass    n_steps: number of passes so far    stepped: whether an M-step was made in any of them
    counts (C,): Σ w_n per center    n_weighted: number of points of positive weight
    sums (C, D): Σ w_n x_n per center; None if they must be recomputed
    peak (C,): largest count of each center since `sums` were last recomputed from all points
    few: whether so few points were reassigned that the next pass may update `sums` for reassigned points only
    """

    last: float = math.inf
    n_steps: int = 0
    stepped: bool = False
    counts: NDArray[np.float64] | None = None
    n_weighted: int = 0
    sums: NDArray[np.float64] | None = None
    peak: NDArray[np.float64] | None = None
    few: bool = False


class _Step(NamedTuple):
    """Result of an E-step of k-means and of the M-step after it.

    new: the parameters after both steps    unmoved: whether no point was reassigned, with centers that are means
    settled: whether no point was reassigned and the M-step changes nothing    counts (C,): weights of the clusters
    squares: Σ w_n ‖x_n − μ‖², with each point's squared distance to its new center [data unit²]
    n_relocated: number of empty clusters that were moved to a point    progress: state of the run after the pass
    """

    new: TiedSpherical
    unmoved: bool
    settled: bool
    counts: NDArray[np.float64]
    squares: float
    n_relocated: int
    progress: Progress


@dataclass(frozen=True)
class _KMeans(FirstStage):
    """Base class of the stages of a k-means run: `Exchange` (with jumps of centers) and `Lloyd`."""

    settings: Settings
    progress: Progress = Progress()

    phase: ClassVar[str | None] = "em"

    def propose(self, model: TiedSpherical, components: Centers, look: Look, key: Key) -> HardEStep:
        follow = self.settings.incremental and self.progress.few and self.progress.sums is not None
        if self.settings.epsilon:
            look = Lazy(look, self.settings.epsilon)
        return HardEStep(model, look, None if components.inside is None else components, follow)

    def final(self, model: TiedSpherical, components: Centers, look: Look, key: Key) -> HardEStep:
        """Return the job (function of a block) of the last pass, which assigns points by the final parameters."""
        proposed = self.propose(model, components, look, key)
        return replace(proposed, look=proposed.look if self.settings.is_last_lazy else look, components=None)

    def measured(self, model: TiedSpherical, totals: Totals) -> Accept:
        error, weight = totals.tally.error, totals.tally.weight
        model = model.with_variance(error / weight)
        return Accept(model, None, hard_free_energy(model, error, weight), error, totals.moments.counts)

    def loss(self, model: Model) -> Loss:
        return Loss(model)

    def _step(self, model: TiedSpherical, totals: Totals, data: Data) -> _Step:
        """Make the M-step after a pass, and return the result of both as `_Step`.

        totals: sums of the pass. If they are only changes by reassigned points, the sums Σ w x of the clusters are
        first computed from these and the previous sums.
        """
        before, wins, weight, J = self.progress, totals.moments, totals.tally.weight, totals.tally.error
        counts, sums = wins.counts, wins.sums
        peak = counts  # largest weight of each cluster since its sum was last computed from all its points
        if isinstance(sums, ReassignmentSums):
            assert before.sums is not None
            assert before.peak is not None
            peak = np.maximum(before.peak, counts)
            if ((peak > _HEAVY * counts) & (counts > 0)).any():  # subtracting large sums leaves rounding errors
                sums, peak = data.each(SumByComponent(len(counts)))[:, 1:].copy(), counts
            else:
                sums = before.sums.copy()
                sums[wins.sums.ids] += wins.sums.sums
                sums[counts == 0] = 0.0
        unmoved = before.stepped and totals.tally.n_moved == 0 and self.standing(model) is model
        relocates = self.settings.relocates and not counts.all()
        settled = unmoved and not relocates
        squares, n_relocated = J, 0
        if settled:
            new = model.with_variance(J / weight)
        elif relocates:
            new, counts, sums, error, n_relocated = relocate_empty(
                data, model, counts, sums, J, wins.members, self.settings.labels
            )
            new, squares = new.recentred(counts, sums, error)
        else:
            new, squares = model.recentred(counts, sums, J)
        progress = Progress(
            last=J,
            n_steps=before.n_steps + 1,
            stepped=before.stepped or not settled,
            counts=counts,
            n_weighted=totals.stats.n_weighted,
            sums=sums,
            peak=counts if peak is counts else np.maximum(peak, counts),
            few=totals.tally.n_moved <= _FEW * totals.stats.n_weighted,
        )
        return _Step(new, unmoved, settled, counts, squares, n_relocated, progress)


@storable("em.Exchange")
@dataclass(frozen=True)
class Exchange(_KMeans):
    """Stage of k-means with exchange steps, with momentum, and jumps of centers between them.

    An exchange step assigns a point by squared distances that are multiplied by factors. The factors account for the
    shifts of the old and the new center that the reassignment of the point would cause (Hartigan & Wong 1979). Its
    centers are extrapolated beyond the means of the clusters (Nesterov 1983). J is always that of the means; a pass
    that would not lower it is undone.
    n_exchanges: number of exchange steps so far    gain: relative decrease of J by the last jumps
    means (C, D): means of the clusters after the last pass, if the next pass uses extrapolated centers; otherwise None
    """

    n_exchanges: int = 0
    gain: float = math.inf
    means: Floats | None = None

    def components(self, model: TiedSpherical) -> Centers:
        """Return the centers, and the factors of squared distances in an exchange step.

        The first pass has no factors, because they depend on the weights of the clusters.
        """
        progress = self.progress
        if progress.counts is None:
            return model.components()
        factors = model.exchange_factors(progress.counts, progress.sums, _mean_weight(progress))
        return model.components() if factors is None else Centers(model.components().centers, *factors)

    def judge(self, model: TiedSpherical, totals: Totals, data: Data) -> Accept | Undo:
        settings, weight = self.settings, totals.tally.weight
        step = self._step(model, totals, data)
        n_steps = step.progress.n_steps
        over = n_steps >= settings.max_iter
        J = step.squares
        if not step.settled and self.progress.last < J:
            old = self.standing(model).with_variance(totals.tally.error / weight)
            plain = self._plain(n_steps)
            return Undo(old, Final(plain, End.MAX_ITER) if over else plain)
        new = step.new if step.settled else step.new.with_variance(J / weight)
        # The error J of an exchange step, from which F is computed, is already that of the new centers.
        bound = hard_free_energy(model, J, weight)
        change = abs(self.progress.last - J) / (J if J > 0 else 1.0)
        progress = replace(step.progress, last=J)
        small = step.unmoved or change <= _EXCHANGE_TOL * settings.tol
        after = replace(self, progress=progress, n_exchanges=self.n_exchanges + 1, means=None)
        due = after.n_exchanges == _FIRST_JUMPS or (
            small and self.gain > _JUMP_TOL * settings.tol and not step.n_relocated
        )
        goes_on = bool(step.n_relocated) or not small
        stage: Any = after if goes_on else Lloyd(settings, progress)
        if over:
            stage = Final(stage, End.MAX_ITER)
        elif goes_on and not due and not step.n_relocated:
            shares = step.counts / (step.counts + _LIGHT * _mean_weight(progress))
            stage = replace(after, means=new.centers)
            new = new.beyond(model.centers if self.means is None else self.means, shares)
        then = None if over or not due else JumpStep(after, weight, goes_on)
        end = End.MAX_ITER if over else None
        return Accept(new, stage, bound, J, step.counts, change, end, step.n_relocated, then)

    def standing(self, model: TiedSpherical) -> TiedSpherical:
        return model if self.means is None else replace(model, centers=self.means)

    def _plain(self, n_steps: int) -> "Exchange | Lloyd":
        """Return the stage that follows a rejected pass: an exchange step from the means, or plain steps.

        n_steps: number of passes so far, including the rejected one
        """
        progress = replace(self.progress, n_steps=n_steps)
        if self.means is not None:
            logger.info("extrapolation (momentum) would not lower J: the step is undone, and momentum restarts")
            return replace(self, progress=progress, means=None)
        jumps_pay = self.gain > _JUMP_TOL * self.settings.tol
        logger.info(
            "the exchange step would not lower J and is undone; %s",
            "one plain step follows" if jumps_pay else "all later steps are plain",
        )
        return replace(self, progress=replace(progress, counts=None)) if jumps_pay else Lloyd(self.settings, progress)


@dataclass(frozen=True)
class JumpStep:
    """Function that makes jumps of centers after a pass, and chooses the next stage of the fit.

    A jump merges two clusters and splits a third.
    stage: the stage `Exchange`, which is the next one if exchange steps continue    weight: Σ w_n over all points
    goes_on: whether exchange steps continue even if the jumps do not lower J
    """

    stage: Exchange
    weight: float
    goes_on: bool

    def __call__(self, data: Data, step: Accept, search: Search, known: Any, key: Key) -> tuple[Accept, Any]:
        stage, lists = self.stage, search.neighbors(known)
        progress = stage.progress
        assert lists is not None
        assert progress.counts is not None
        assert isinstance(progress.sums, np.ndarray)
        jumped = jump(data, step.model, lists, progress.counts, progress.sums, key)
        J = max(progress.last - jumped.gain, 0.0)
        gain, model = jumped.gain / J if J > 0 else 0.0, step.model
        if len(jumped.one):
            progress = replace(progress, last=J, counts=jumped.counts, sums=None, few=False)
            model = jumped.model.with_variance(J / self.weight)
        # A neighbor of a moved center may be in none of the lists that `jumped` changes, so all lists are made anew.
        stale = len(jumped.one) > 0 and is_cheap_to_list(data, lists)
        share = 1.0 if stale else jumped.n_relabelled / data.n_weighted
        known = search.jumped(known, jumped.one, jumped.cut, share)
        if self.goes_on or gain > _EXCHANGE_TOL * stage.settings.tol:
            return replace(step, model=model, stage=replace(stage, progress=progress, gain=gain)), known
        return replace(step, model=model, stage=Lloyd(stage.settings, progress)), known


@storable("em.Lloyd")
@dataclass(frozen=True)
class Lloyd(_KMeans):
    """Stage of plain Lloyd steps, which end if J has converged or no point is reassigned."""

    def judge(self, model: TiedSpherical, totals: Totals, data: Data) -> Accept:
        settings, weight, J = self.settings, totals.tally.weight, totals.tally.error
        step = self._step(model, totals, data)
        new = step.new if step.settled else step.new.with_variance(step.squares / weight)
        change = abs(self.progress.last - J) / (J if J > 0 else 1.0)
        still = change <= settings.tol
        if settings.least_shift is not None:
            shift = np.subtract(new.centers, model.centers, dtype=np.float64)
            still = weighted_sum(np.square(shift).ravel()) <= settings.least_shift
        converged = not step.n_relocated and (step.unmoved or still)
        end = End.CONVERGED if converged else End.MAX_ITER if step.progress.n_steps >= settings.max_iter else None
        after: Any = replace(self, progress=step.progress)
        if end is not None:
            after = None if converged and step.settled and not settings.epsilon else Final(after, end)
        bound = hard_free_energy(model, J, weight)
        return Accept(new, after, bound, J, step.counts, change, end, step.n_relocated)

    def all_passes(self, model: TiedSpherical, search: Search, data: Data) -> AllPasses | None:
        settings, n_products = self.settings, data.n_points * model.n_components * data.n_features
        one_block = data.in_memory and not data.placed and not data.has_missing and n_products <= _SMALL
        plain = type(search) is Full and not settings.epsilon and model.moves_to_means
        if not (one_block and plain and settings.max_iter <= _FEW_STEPS and self.progress.n_steps == 0):
            return None
        found, weight, n_weighted = data.each(LloydSteps(model, settings))
        if found is None:
            data.rollback()
            return None
        data.commit()
        errors = found.errors.tolist()
        J = errors[-1]
        new = replace(model, centers=found.centers).with_variance(J / weight)
        end = End.CONVERGED if found.converged else End.MAX_ITER
        progress = Progress(J, len(errors), True, found.counts, n_weighted)
        stage = None if found.settled else Final(replace(self, progress=progress), end)
        bounds = [hard_free_energy(model, error, weight) for error in errors]
        return AllPasses(
            Accept(new, stage, bounds[-1], J, found.counts, end=end), bounds, errors, found.n_moved.tolist()
        )


@dataclass(frozen=True)
class LloydSteps:
    """Job that makes all Lloyd steps of a run by one kernel, for data of a single block.

    Returns the result of the kernel `lloyd` (None if a cluster became empty), Σ w_n, and the number of rows of positive
    weight.
    """

    model: TiedSpherical
    settings: Settings

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    def __call__(
        self, block: Block, kept: ActiveSet | None
    ) -> tuple[ActiveSet | None, tuple[LloydRun | None, float, int]]:
        found = block.X.lloyd(
            self.model.centers,
            self.settings.max_iter,
            self.settings.tol,
            block.sample_weight,
            least_shift=self.settings.least_shift,
        )
        if found is not None:
            kept = ActiveSet(found.labels[:, np.newaxis], found.squares[:, np.newaxis])
        return kept, (found, block.weight, block.n_weighted)


def _mean_weight(progress: Progress) -> float:
    """Return the mean weight of a point of positive weight."""
    assert progress.counts is not None
    return float(progress.counts.sum()) / progress.n_weighted


def hard_free_energy(model: TiedSpherical, J: float, weight: float) -> float:
    """Return the free energy F of a hard assignment, eq. (15) of Lücke & Forster 2019 [nats per unit of weight].

    J: weighted sum of squared distances to the assigned centers, from which σ² is computed by eq. (14)
    weight: Σ w_n
    """
    variance = max(J / weight / model.n_features, model.variance_floor)
    return model.log_scale_of(variance) - 0.5 / variance * J / weight
