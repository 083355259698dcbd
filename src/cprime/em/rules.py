"""What differs between a k-means and a mixture: what an E-step is asked for, what follows from it, and when it ends.

A rule is a value; what it knows in a run is another, which the loop carries. `judge` is given what a pass has found and
says whether it counts and which parameters follow.
"""

import logging
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key
from cprime.block import Kept
from cprime.em.assignment import Assignment, Drawn, Hard, Soft, Winners
from cprime.em.expectation import EStep, ExactEStep, Totals
from cprime.em.jumps import Jumped
from cprime.em.repair import Accumulated, relocate_empty
from cprime.em.state import free_energy, hard_free_energy
from cprime.execution import Data
from cprime.model import Model, Scatter, TiedSpherical
from cprime.model.base import ScatterOf
from cprime.search import Factors, Look
from cprime.statistics import Statistics

logger = logging.getLogger("cprime")

_EXCHANGE_TOL = 8  # an exchange goes on while an iteration of it lowers J by more than this many times `tol`
_JUMP_TOL = 100  # there are more jumps while those before have lowered J by more than this many times `tol`
_FIRST_JUMPS = 3  # exchanges before the first jumps
_FEW = 0.25  # share of the points that may have moved for sums to be those of before, corrected for them
_AFTER_BEYOND, _PACE = 2.5, 1.5  # by how much a step of EM gains more after one beyond; one beyond than one of EM
_HEAVY = 64.0  # by how much a component may have lost weight for its sums to be corrected still


class Step(NamedTuple):
    """What follows from a pass.

    model, state: from here on    accept: whether the pass counts    converged, done: whether the run is at its end
    bound, J: of the record    statistics: of the pass
    ripe: whether clusters may jump now    change: what is compared with the tolerance
    """

    model: Model
    state: Any
    accept: bool
    converged: bool
    done: bool
    bound: float
    J: float
    statistics: Statistics
    ripe: bool = False
    change: float = math.inf


M_contra = TypeVar("M_contra", contravariant=True)
S = TypeVar("S")


class Rule(Protocol[M_contra, S]):
    """A k-means, or a mixture; generic in the parameters and in what it knows in a run."""

    @property
    def max_iter(self) -> int:
        """Most passes with an M-step."""
        ...

    @property
    def finds_variance(self) -> bool:
        """Whether the first σ² is that of points with the nearest start (14)."""
        ...

    def begin(self, model: M_contra, data: Data) -> S:
        """What it knows before the first pass."""
        ...

    def factors(self, model: M_contra, state: S) -> Factors | None:
        """What the next pass multiplies distances by."""
        ...

    def propose(self, model: M_contra, state: S, look: Look, key: Key, last: bool) -> EStep | ExactEStep:
        """The next pass; the last one sees the parameters that are returned."""
        ...

    def judge(self, model: M_contra, state: S, totals: Totals, data: Data) -> Step:
        """What follows from a pass."""
        ...

    def warm(self, model: M_contra, state: S, totals: Totals) -> Step:
        """What follows from a pass before the first M-step, or from the last one: no M-step."""
        ...

    def jumped(self, step: Step, jumped: Jumped) -> Step:
        """What follows from jumps after a step that was ripe for them."""
        ...

    def needs_last(self, step: Step) -> bool:
        """Whether what is kept is not yet of the parameters that are returned."""
        ...

    def settled(self, model: Any, state: S) -> Any:
        """The parameters to return if the run ends where it stands."""
        ...

    def judged(self, kept: Kept) -> Kept:
        """What counts in F of what points keep."""
        ...

    def scale(self, model: M_contra) -> float | None:
        """What makes a cost a log-probability; None where only J counts."""
        ...


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
        change = gain / (_AFTER_BEYOND * state.pace if state.beyond else _AFTER_BEYOND if state.little else 1)
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


def assignment_of(name: str, key: Key) -> Assignment:
    """By its name."""
    choices: dict[str, Assignment] = {"soft": Soft(), "hard": Hard(), "posterior": Drawn(key)}
    return choices[name]
