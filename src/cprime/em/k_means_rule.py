"""k-means as a rule: exchanges and jumps, sums that follow what moves, repair, and when it ends."""

import logging
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key
from cprime.block import Kept
from cprime.em.assignment import Winners
from cprime.em.expectation import EStep, Totals
from cprime.em.jumps import Jumped
from cprime.em.repair import Accumulated, relocate_empty
from cprime.em.rules import Step
from cprime.em.state import free_energy, hard_free_energy
from cprime.execution import Data
from cprime.model import Model, TiedSpherical
from cprime.search import Factors, Look
from cprime.statistics import Statistics

logger = logging.getLogger("cprime")

_EXCHANGE_TOL = 8  # an exchange goes on while an iteration of it lowers J by more than this many times `tol`
_JUMP_TOL = 100  # there are more jumps while those before have lowered J by more than this many times `tol`
_FIRST_JUMPS = 3  # exchanges before the first jumps
_FEW = 0.25  # share of the points that may have moved for sums to be those of before, corrected for them
_HEAVY = 64.0  # by how much a component may have lost weight for its sums to be corrected still


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


@dataclass(frozen=True)
class KMeansState:
    """J of the last iteration, whether there has been an M-step, and whether the next pass is an exchange.

    counts (C,), n_heavy: of the last pass    sums (C, D): Σ w_n x_n by winner, None if they are to be made anew
    peak (C,): the most that each component has weighed since they were    few: whether few points moved last
    n_exchanges: passes that were exchanges    jumped: by which share of it the last jumps have lowered J
    """

    last: float = math.inf
    n_steps: int = 0
    stepped: bool = False
    exchanging: bool = False
    settled: bool = False
    n_relocated: int = 0
    counts: NDArray[np.float64] | None = None
    n_heavy: int = 0
    sums: NDArray[np.float64] | None = None
    peak: NDArray[np.float64] | None = None
    few: bool = False
    n_exchanges: int = 0
    jumped: float = math.inf


@dataclass(frozen=True)
class KMeansRule:
    """k-means: σ² follows J by (14) within the E-step, and it stops on J or on no move.

    tol: relative change of J    epsilon: laziness of lazy-k-means (21)    exchange: whether it begins with exchanges
    incremental: whether sums may be those of before, corrected for what has moved
    least_shift: Σ_c ‖μ_c^new − μ_c‖² at which plain steps end, in place of `tol` [data unit²]
    """

    max_iter: int
    tol: float
    epsilon: float = 0.0
    exchange: bool = False
    incremental: bool = False
    least_shift: float | None = None

    finds_variance: ClassVar[bool] = False

    @property
    def jumps(self) -> bool:
        return self.exchange

    def begin(self, model: TiedSpherical, data: Data) -> KMeansState:
        return KMeansState(exchanging=self.exchange)

    def factors(self, model: TiedSpherical, state: KMeansState) -> Factors | None:
        if not state.exchanging or state.counts is None:
            return None
        return exchange_factors(state.counts, float(state.counts.sum()) / state.n_heavy, model.centers.dtype)

    def propose(self, model: TiedSpherical, state: KMeansState, look: Look, key: Key, last: bool) -> EStep:
        moves = self.incremental and state.few and state.sums is not None
        return EStep(model, look, 1, Winners(moves), 0.0 if last else self.epsilon)

    def warm(self, model: TiedSpherical, state: KMeansState, totals: Totals) -> Step:
        model, statistics = _with_own_variance(model, totals.statistics)
        bound, J = free_energy(model, statistics), statistics.quantization_error
        return Step(model, state, True, False, False, bound, J, statistics)

    def judge(self, model: TiedSpherical, state: KMeansState, totals: Totals, data: Data) -> Step:
        assert totals.members is not None
        model, statistics = _with_own_variance(model, totals.statistics)
        statistics, peak = self._with_sums(state, totals, statistics, data)
        bound, J = free_energy(model, statistics), statistics.quantization_error
        unmoved = state.stepped and totals.n_moved == 0
        settled = unmoved and totals.n_changed == 0 and bool(statistics.counts.all())  # an M-step changes nothing
        n_steps, new, relocated = state.n_steps + 1, model, 0
        if not settled:
            new, repaired, relocated = relocate_empty(data, model, statistics, totals.members)
            new, squares = new.recentred(repaired)
            if state.exchanging and squares > state.last:
                logger.info("the exchange would not lower J; plain steps from here")
                back = replace(state, exchanging=False, n_steps=n_steps)
                return Step(model, back, False, False, n_steps >= self.max_iter, bound, J, statistics)
            new = new.with_variance(squares / statistics.weight)
            if state.exchanging:  # an exchange is judged with both centres having followed the point
                bound, J = hard_free_energy(model, squares, statistics.weight), squares
            statistics = repaired
        change = abs(state.last - J) / (J if J > 0 else 1.0)
        exchanging, converged = state.exchanging, False
        n_exchanges = state.n_exchanges + exchanging
        small = unmoved or change <= _EXCHANGE_TOL * self.tol
        pays = state.jumped > _JUMP_TOL * self.tol
        due = n_exchanges == _FIRST_JUMPS or (small and pays and not relocated)
        ripe = exchanging and due and n_steps < self.max_iter
        if relocated:
            pass  # a cluster has begun anew
        elif exchanging:
            exchanging = not small
        else:
            converged = unmoved or self._still(change, model, new)
        after = KMeansState(
            last=J,
            n_steps=n_steps,
            stepped=state.stepped or not settled,
            exchanging=exchanging,
            settled=settled,
            n_relocated=state.n_relocated + relocated,
            counts=statistics.counts,
            n_heavy=totals.seen.n_heavy,
            sums=statistics.sums,
            peak=np.maximum(peak, statistics.counts),
            few=totals.n_moved <= _FEW * totals.seen.n_heavy,
            n_exchanges=n_exchanges,
            jumped=state.jumped,
        )
        done = converged or n_steps >= self.max_iter
        return Step(new, after, True, converged, done, bound, J, statistics, ripe, change)

    def _still(self, change: float, model: TiedSpherical, new: TiedSpherical) -> bool:
        """Whether a step has changed so little that it is the last."""
        if self.least_shift is None:
            return change <= self.tol
        shift = np.subtract(new.centers, model.centers, dtype=np.float64)
        return float(np.square(shift).sum()) <= self.least_shift

    def jumped(self, step: Step, jumped: Jumped) -> Step:
        J = max(step.state.last - jumped.gain, 0.0)
        share = jumped.gain / J if J > 0 else 0.0
        goes_on = step.state.exchanging or share > _EXCHANGE_TOL * self.tol
        state = replace(step.state, jumped=share, exchanging=goes_on)
        if not len(jumped.one):
            return step._replace(state=state)
        state = replace(state, last=J, counts=jumped.counts, sums=None, few=False, settled=False)
        return step._replace(model=jumped.model.with_variance(J / step.statistics.weight), state=state)

    def needs_last(self, step: Step) -> bool:
        return not (step.converged and step.state.settled) or self.epsilon > 0

    def settled(self, model: TiedSpherical, state: KMeansState) -> TiedSpherical:
        return model

    def judged(self, kept: Kept) -> Kept:
        return kept

    def scale(self, model: Model) -> None:
        return None

    def _with_sums(
        self, state: KMeansState, totals: Totals, statistics: Statistics, data: Data
    ) -> tuple[Statistics, NDArray[np.float64]]:
        """Statistics with all sums, and the peaks of their counts."""
        counts = statistics.counts
        if totals.movers is None:
            return statistics, counts
        assert state.sums is not None
        assert state.peak is not None
        peak = np.maximum(state.peak, counts)
        if ((peak > _HEAVY * counts) & (counts > 0)).any():  # what has left would leave its rounding behind
            return replace(statistics, sums=data.each(Accumulated(len(counts)))[:, 1:].copy()), counts
        sums = state.sums.copy()
        sums[totals.movers.ids] += totals.movers.sums
        sums[counts == 0] = 0.0
        return replace(statistics, sums=sums), peak


def _with_own_variance(model: TiedSpherical, statistics: Statistics) -> tuple[TiedSpherical, Statistics]:
    """σ² follows at once from J (14), which makes F what (15) says."""
    J = statistics.quantization_error
    model = model.with_variance(J / statistics.weight)
    return model, replace(statistics, log_sum=model.scale * J)
