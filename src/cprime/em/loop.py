"""The EM loop, for all models and searches: E-steps and M-steps that increase the truncated free energy

    F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} p(c, x_n | Θ),                                                  (7)

with weights w_n, their sum W, parameters Θ, and active sets K(n) (the C′ best components of point n). These are
Algorithms 1 to 3 of Lücke & Forster, *k-means as a variational EM approximation of Gaussian mixture models*.

An iteration updates neighbor lists, makes a pass over the data, evaluates its result and records it. A `Stage` (a phase
of a fit) contains the code specific to k-means or mixtures, a `Search` selects the candidate components of a point, and
`Data` stores the points.
"""

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.messages import iteration_level
from cprime._utils.random import Key
from cprime._utils.storable import storable
from cprime._utils.values import replace
from cprime.em.certificate import certify, known_loss, sum_objectives
from cprime.em.expectation import CostPass, GivenMoments, HardMoments, NearestStart
from cprime.em.stages import Accept, DeferredModel, End, Final, FirstStage, Undo, Warmup
from cprime.execution import Data, rows_of
from cprime.execution.block import ActiveSet
from cprime.kernels import Rows
from cprime.model import Model
from cprime.neighbors import Cells
from cprime.search import Full, Search
from cprime.search.graph import FEW

logger = logging.getLogger("cprime")

CHEAPER = 4  # a distance along neighbor lists takes at least this many times as long as one in an exact search

HISTORY = np.dtype(
    [
        ("phase", "U6"),
        ("lower_bound", np.float64),
        ("quantization_error", np.float64),
        ("n_distances", np.int64),
        ("n_between", np.int64),
        ("n_moved", np.int64),
        ("seconds", np.float64),
    ]
)


@storable("em.Run")
@dataclass(frozen=True)
class Run:
    """State of a run of EM or k-means after a pass over the data.

    key: counter-based random key: the seed, the index of this run among restarts, and the number of passes
    model: the parameters    stage: object that defines the next pass (the last pass if the run is over)
    search: state of the search, such as neighbor lists    rows: convergence history, one row per accepted pass
    bound, error, counts (C,): F per unit of weight [nats], J [data unit²] and Σ_n w_n q_nc of the last pass
    n_relocated: number of empty clusters whose center was moved to a point
    end: reason why the run ends (a value of `End`), or None    over: whether the run is over, so that `bound`, `error`
    and `counts` are those of the parameters `model`
    """

    key: Key
    model: Any
    stage: Any
    search: Any
    rows: tuple[tuple, ...] = ()
    bound: float = -np.inf
    error: float = np.inf
    counts: NDArray[np.float64] | None = None
    n_relocated: int = 0
    end: str | None = None
    over: bool = False

    @property
    def history(self) -> NDArray:
        """Return the convergence history as a structured array, one element per accepted pass.

        Its fields are phase, lower_bound (F), quantization_error (J), n_distances, n_between (pairs of components that
        were compared for neighbor lists), n_moved (reassigned points) and seconds.
        """
        return np.array(list(self.rows), dtype=HISTORY)

    @property
    def standing(self) -> Any:
        """Return the parameters that the fit would return if the run ended after this pass."""
        return self.stage.standing(self.model)


# Callback: a function that is called after every iteration, with a dict (the iteration's row of the history) and the
# state of the run. If it returns True, the run ends.
Callback = Callable[[dict[str, Any], Run], bool]


@dataclass(frozen=True)
class FitPlan:
    """Options of a run of EM or k-means, which do not change during the run.

    n_kept: C′, the size of active sets    search: selects the candidate components of each point
    stage: first stage of the run, which defines the passes
    regroup: whether rows may be copied and sorted by component, for speed
    finds_variance: whether the first σ² is computed from distances to the nearest starting centers, by eq. (14) of
    Lücke & Forster 2019
    jumps: whether components jump during the run: if two share one cluster of points, one of them is moved to the
    place of a component that covers several clusters
    improved: whether the initialization makes such jumps before the run
    callback: function called after every iteration; it may end the run
    title: text before the number of the iteration in the log
    is_last_lazy: whether the last pass of a run is one of lazy-k-means, so that points may keep a more distant center
    """

    n_kept: int
    search: Search
    stage: FirstStage
    regroup: bool = False
    finds_variance: bool = False
    jumps: bool = False
    improved: bool = False
    callback: Callback | None = None
    title: str = ""
    is_last_lazy: bool = False


def run(
    data: Data, start: Callable[[], Model], plan: FitPlan, key: Key, save: Callable[[Run], None] | None = None
) -> Run:
    """Run EM from starting parameters to convergence or `max_iter`, and return the final state.

    The last pass is evaluated at the returned parameters.

    start: function that returns the starting parameters, so that their memory can be freed after the first step
    plan: options of the run    key: counter-based random key of all draws
    save: function that is called with the state of the run after every pass
    """
    # No variable holds the first state, so the memory of the starting parameters is freed during the run.
    return proceed(data, begin(data, start(), plan, key), plan, save)


def proceed(data: Data, run: Run, plan: FitPlan, save: Callable[[Run], None] | None = None) -> Run:
    """Continue a run of EM from the given state `run` to its end, and return the final state.

    plan: options of the run    save: function that is called with the state of the run after every pass
    If no function is called between passes, one kernel makes all passes of a stage where this is possible. The time of
    each pass in the history is then their mean.
    """
    step, start = None, perf_counter()
    if save is None and plan.callback is None and not logger.isEnabledFor(logging.INFO):
        step = run.stage.all_passes(run.model, plan.search, data)
    if step is not None:
        seconds = (perf_counter() - start) / len(step.errors)
        n_distances = data.n_points * run.model.n_components
        rows = tuple(
            (run.stage.phase, bound, error, n_distances, 0, n_moved, seconds)
            for bound, error, n_moved in zip(step.bounds, step.errors, step.n_moved, strict=True)
        )
        key = Key(run.key.seed, run.key.run, run.key.iteration + len(rows))
        run = _after(run, step.last, key, run.search, rows)
    while not run.over:
        run = iterate(data, run, plan)
        if isinstance(run.model, DeferredModel):
            run = replace(run, model=run.model.make())
        if save is not None:
            save(run)
    return run


def begin(data: Data, model: Model, plan: FitPlan, key: Key) -> Run:
    """Return the initial state of a run of EM, with neighbor lists and, if needed, the first σ².

    The initial active sets are stored in `data`.
    model: starting parameters    plan: options of the run    key: counter-based random key of all draws
    """
    search, n_kept = plan.search, plan.n_kept
    data.begin(keep=search.keeps_winners and data.placed)
    all_kept = n_kept == model.n_components > 1 and model.exact
    known, look = None, None
    if not all_kept:
        known, look = search.begin(model.components(), n_kept, data.placed, key)
    if look is not None:
        data.each(CostPass(model, look, n_kept))
        data.commit()
    if plan.regroup:
        data.regroup(model.n_components)
    if plan.finds_variance:
        components = model.components()
        look = search.look(known, components, key)
        found = data.each(CostPass(model, look, 1 if all_kept else n_kept))
        data.commit()
        if all_kept:
            data.begin(keep=False)
        else:
            known, _ = search.learn(known, look, components, found.stats, partial(sample_rows, data, model), key)
        model = model.with_variance(found.cost / found.weight)  # type: ignore[attr-defined]
    stage = plan.stage.with_prior(model, data)
    return Run(key, model, Warmup(search.warmup, stage, search.warmup_settles) if search.warmup else stage, known)


def iterate(data: Data, run: Run, plan: FitPlan) -> Run:
    """Make one pass over the data from the state `run`, and return the state after it.

    The last pass of a run does not change the parameters.    plan: options of the run
    """
    start, key = perf_counter(), Key(run.key.seed, run.key.run, run.key.iteration + 1)
    stage, components = run.stage, run.stage.components(run.model)
    known, n_between = plan.search.refresh(run.search, components)
    look = plan.search.look(known, components, key)
    job = stage.propose(run.model, components, look, key)
    totals = data.each(job)
    step, tally, stats = stage.judge(run.model, totals, data), totals.tally, totals.stats
    del totals  # free memory, because moments are as large as parameters
    if isinstance(step, Undo):
        if job.keeps:
            data.rollback()
        return replace(run, key=key, model=step.model, stage=step.stage, search=plan.search.undone(known))
    data.commit()
    if stage.phase is None:
        return _after(run, step, key, run.search, run.rows)
    known, extra = plan.search.learn(known, look, components, stats, partial(sample_rows, data, run.model), key)
    components.forget()
    if step.then is not None:
        step, known = step.then(data, step, plan.search, known, key)
    n_distances, seconds = tally.n_distances + extra, perf_counter() - start
    row = (stage.phase, step.bound, step.error, n_distances, n_between, tally.n_moved, seconds)
    run = _after(run, step, key, known, (*run.rows, row))
    if not report(run, plan, step.change) or run.end == End.CONVERGED:
        return run
    last = Final(run.stage.of if isinstance(run.stage, Final) else run.stage, End.STOPPED)
    return replace(run, model=run.standing, stage=last, end=End.STOPPED.value)


def _after(run: Run, step: Accept, key: Key, search: Any, rows: tuple[tuple, ...]) -> Run:
    """Return the state of the run after the accepted pass `step`.

    search: new state of the search    rows: convergence history with this pass
    """
    return Run(
        key,
        step.model,
        step.stage or run.stage,
        search,
        rows,
        step.bound,
        step.error,
        step.counts,
        run.n_relocated + step.n_relocated,
        run.end if step.end is None else End(step.end).value,
        step.stage is None,
    )


def assigned(data: Data, run: Run, plan: FitPlan) -> tuple[Run, bool, dict[str, Any] | None]:
    """Make the final assignment of points, to the best of all components if the options `plan` request this.

    Returns the state of the run, whether every point is assigned to the best of all components, and the certificate of
    the active sets that the partial search had found; None if the search is exact, if points keep more
    distant centers on purpose (lazy-k-means), or if the search has the option certificate=0.
    """
    if plan.search.exact or not data.placed or plan.is_last_lazy:
        return run, not plan.is_last_lazy, None
    exact, loss = _is_assigned_exactly(data, run, plan), run.stage.loss(run.model)
    n_certified = plan.search.certificate
    found = certify(data, loss, run.key, n_certified, sampled=not exact) if n_certified else None
    if not exact:
        return run, False, found
    if found is None:
        return _assigned_exactly(data, run, plan), True, None
    before = sum_objectives(data, loss)
    run = _assigned_exactly(data, run, plan)
    return run, True, found | known_loss(loss, before, sum_objectives(data, loss))


def _is_assigned_exactly(data: Data, run: Run, plan: FitPlan) -> bool:
    """Return whether points are finally compared with all components.

    If the option `final_assignment` of the search is "auto", this is done if it takes no longer than the fit. Both
    times are estimated from distance counts: a distance of an exact search takes at most a quarter of the time of a
    distance along neighbor lists.
    """
    n_distances = int(run.history["n_distances"].sum())
    is_cheap = data.n_points * run.model.n_components <= CHEAPER * n_distances
    final = plan.search.final_assignment
    return final == "exact" or (final == "auto" and is_cheap)


def _assigned_exactly(data: Data, run: Run, plan: FitPlan) -> Run:
    """Assign each point to the best of all components, and return the state of the run after this pass."""
    start = perf_counter()
    components = run.model.components()
    look = Full().look(None, components, run.key)
    totals = data.each(run.stage.final(run.model, components, look, run.key))
    data.commit()
    step = run.stage.measured(run.model, totals)
    if logger.isEnabledFor(logging.INFO):
        logger.info(
            plan.title + "final assignment, by all components: %s, %d points reassigned, %.3f s",
            reached(step.bound, step.error),
            totals.tally.n_moved,
            perf_counter() - start,
        )
    return replace(run, model=step.model, bound=step.bound, error=step.error, counts=step.counts)


def sample_rows(data: Data, model: Model, numbers: NDArray[np.int64]) -> tuple[Rows, ActiveSet]:
    """Return a few rows in the space of the model's components, with their active sets, to check these by exact search.

    numbers: ranks of the rows among those of positive weight
    """
    taken = data.take(rows_of(data, numbers))
    assert taken.kept is not None
    return model.embed(taken.X), taken.kept


def report(run: Run, plan: FitPlan, change: float) -> bool:
    """Pass the last row of the history to the log and to the callback; return whether the callback ends the run.

    change: value that was compared with the tolerance in this iteration
    """
    n_iter = len(run.rows)
    if plan.callback is None and not logger.isEnabledFor(logging.INFO):
        return False
    row = dict(zip(HISTORY.names or (), run.rows[-1], strict=True))
    logger.log(
        iteration_level(sum(seconds for *_, seconds in run.rows[:-1]), row["seconds"]),
        plan.title + "iteration %d: %s, %d points reassigned, %.3f s",
        n_iter,
        reached(row["lower_bound"], row["quantization_error"]),
        row["n_moved"],
        row["seconds"],
        extra={"iteration": n_iter},
    )
    if plan.callback is None:
        return False
    more = {"start": run.key.run + 1, "change": change, "agreement": plan.search.agreement(run.search)}
    return plan.callback({"iteration": n_iter, **row, **more}, run)


def reached(bound: float, error: float) -> str:
    """Return a text for the log with the free energy F and, if it is known, the error J."""
    return f"F {bound:.6f}" if math.isnan(error) else f"F {bound:.6f}, J {error:.6g}"


def hard_start(
    data: Data, model: Model, exact: bool, keeps_centers: bool = False, shares: NDArray | None = None
) -> Model:
    """Return the parameters after one M-step from the hard assignment of points to the nearest starting centers.

    model: contains the starting centers; its other parameters are not used
    exact: whether points without a label are compared with all centers. If not, and there are more than 2048 centers,
    they are compared only with the centers in near cells (groups of nearby centers).
    keeps_centers: whether the M-step keeps the starting centers and estimates all other parameters
    shares: labels (N,) or responsibilities (N, C) of all points, used in place of the nearest centers; None: none
    """
    if shares is None and not data.placed:
        every = exact or model.n_components <= FEW
        data.each(NearestStart(model.centers, None if every else Cells(model.centers)))
        data.commit()
    prior = None if model.prior is None else data.each(model.prior)
    moments = data.each(HardMoments(model) if shares is None else GivenMoments(model, shares))
    if not keeps_centers:
        return model.maximise(moments, prior)
    return replace(model.maximise(*model.hold_centers(moments, prior)), centers=model.centers)
