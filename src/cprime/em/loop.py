"""The EM loop: E-steps and M-steps that increase the truncated free energy [L Alg. 1-3], for all models and searches.

    F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} p(c, x_n | Θ)                                                   (7)

An iteration updates neighbor lists, makes a pass over the data, evaluates it and records it. The stage defines what is
specific to k-means or mixtures, the search selects the candidates of a point, and `Data` stores the points.
"""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key
from cprime._storable import storable
from cprime._values import replace
from cprime.block import ActiveSet
from cprime.em.expectation import CostPass, HardMoments, NearestStart
from cprime.em.stages import Accept, DeferredModel, End, Final, Stage, Undo, Warmup
from cprime.execution import Data, rows_of
from cprime.kernels import Rows
from cprime.model import Model
from cprime.neighbors import Cells
from cprime.search import Full, Sample, Search
from cprime.search.graph import FEW

logger = logging.getLogger("cprime")

CHEAPER = 4  # a distance is at least this many times faster in an exact search than along neighbor lists

HISTORY = np.dtype(
    [
        ("phase", "U6"),
        ("lower_bound", np.float64),
        ("quantization_error", np.float64),
        ("n_distances", np.int64),
        ("n_moved", np.int64),
        ("seconds", np.float64),
    ]
)


@storable("em.Run")
@dataclass(frozen=True)
class Run:
    """State of a run after a pass.

    key: the seed, the number of this start, and the number of passes    model: the parameters
    stage: of the next pass, or of the last one    search: state of the search    rows: the history of accepted passes
    bound, error: F per unit of weight [nats] and J [data unit²] of the last pass    counts (C,): its Σ w_n q_nc
    n_relocated: number of empty clusters that were moved to a point    end: why the run has ended or is about to end
    over: whether the run is over, so that the last pass used these parameters
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
        return history(self.rows)

    @property
    def standing(self) -> Any:
        """Parameters to return if the run ends now."""
        return self.stage.standing(self.model)


# Called after every iteration with its row of the history as a dict and the state; True as the result ends the run.
Callback = Callable[[dict[str, Any], Run], bool]


@dataclass(frozen=True)
class FitPlan:
    """Options of a run, which do not change during the run.

    n_kept: C′, the size of active sets    search: selects the candidates of each point
    stage: function of the model and the data that returns the first stage    regroup: whether rows may be copied in the
    order of their components, for speed    finds_variance: whether the first σ² is computed from distances to the
    nearest starting centers (14)
    jumps: whether, during the run, components jump from clusters shared by two to places where one has several clusters
    improved: whether they do so before the run, in the initialization
    callback: called after every iteration; it may end the run
    title: text before the number of the iteration in the log
    final: "exact" for a last pass over all components after a partial search, "found" for none, "auto" for one if it
    is cheap
    """

    n_kept: int
    search: Search
    stage: Callable[[Any, Data], Stage]
    regroup: bool = False
    finds_variance: bool = False
    jumps: bool = False
    improved: bool = False
    callback: Callback | None = None
    title: str = ""
    final: str = "found"


def run(
    data: Data, start: Callable[[], Model], plan: FitPlan, key: Key, save: Callable[[Run], None] | None = None
) -> Run:
    """Run EM from the starting parameters to convergence or `max_iter`; the last pass uses the returned parameters.

    start: returns the starting parameters. They may be large, so their memory is freed after the first step.
    save: called with the state of the run after every pass
    """
    return proceed(data, begin(data, start(), plan, key), plan, save)


def proceed(data: Data, run: Run, plan: FitPlan, save: Callable[[Run], None] | None = None) -> Run:
    """Continue a run from its state to its end."""
    while not run.over:
        run = iterate(data, run, plan)
        if isinstance(run.model, DeferredModel):
            run = replace(run, model=run.model.make())
        if save is not None:
            save(run)
    return run


def begin(data: Data, model: Model, plan: FitPlan, key: Key) -> Run:
    """Compute first neighbor lists, active sets and, if needed, the first σ²; return the first state of a run."""
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
            known, _ = search.learn(known, look, components, found.stats, sampler(data, model), key)
        model = model.with_variance(found.cost / found.weight)  # type: ignore[attr-defined]
    stage = plan.stage(model, data)
    return Run(key, model, Warmup(search.warmup, stage) if search.warmup else stage, known)


def iterate(data: Data, run: Run, plan: FitPlan) -> Run:
    """Make one pass, and return the state after it. The last pass uses the parameters that are returned."""
    start, key = perf_counter(), Key(run.key.seed, run.key.run, run.key.iteration + 1)
    stage, components = run.stage, run.stage.components(run.model)
    known = plan.search.refresh(run.search, components)
    look = plan.search.look(known, components, key)
    job = stage.propose(run.model, look, key)
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
    known, extra = plan.search.learn(known, look, components, stats, sampler(data, run.model), key)
    if step.then is not None:
        step, known = step.then(data, step, plan.search, known, key)
    n_distances, seconds = tally.n_distances + extra, perf_counter() - start
    row = (stage.phase, step.bound, step.error, n_distances, tally.n_moved, seconds)
    run = _after(run, step, key, known, (*run.rows, row))
    if not report(run, plan, step.change) or run.end == End.CONVERGED:
        return run
    last = Final(run.stage.of if isinstance(run.stage, Final) else run.stage, End.STOPPED)
    return replace(run, model=run.standing, stage=last, end=End.STOPPED.value)


def _after(run: Run, step: Accept, key: Key, search: Any, rows: tuple[tuple, ...]) -> Run:
    """Return the state after an accepted pass."""
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


def assigned(data: Data, run: Run, plan: FitPlan) -> tuple[Run, bool]:
    """Return the run after its final assignment, and whether every point is assigned to the best of all components.

    With "auto", points are compared with all components if this takes no longer than the fit, estimated from distance
    counts: a distance of an exact search takes at most a quarter of the time of one along neighbor lists.
    """
    if plan.search.exact or not data.placed:
        return run, True
    n_distances = int(run.history["n_distances"].sum())
    cheap = data.n_points * run.model.n_components <= CHEAPER * n_distances
    if plan.final == "found" or (plan.final == "auto" and not cheap):
        return run, False
    start = perf_counter()
    look = Full().look(None, run.model.components(), run.key)
    totals = data.each(run.stage.final(run.model, look, run.key))
    data.commit()
    step = run.stage.measured(run.model, totals)
    logger.info(
        plan.title + "final assignment, by all components: %s, %d points reassigned, %.3f s",
        reached(step.bound, step.error),
        totals.tally.n_moved,
        perf_counter() - start,
    )
    return replace(run, model=step.model, bound=step.bound, error=step.error, counts=step.counts), True


def sampler(data: Data, model: Model) -> Sample:
    """Return a function that reads some rows by number, and returns them embedded, with their active sets."""
    return partial(_sample, data, model)


def _sample(data: Data, model: Model, numbers: NDArray[np.int64]) -> tuple[Rows, ActiveSet]:
    taken = data.take(rows_of(data, numbers))
    assert taken.kept is not None
    return model.embed(taken.X), taken.kept


def report(run: Run, plan: FitPlan, change: float) -> bool:
    """Pass the last row of the history to the log and to the callback; return whether the callback ends the run."""
    n_iter = len(run.rows)
    if plan.callback is None and not logger.isEnabledFor(logging.INFO):
        return False
    row = dict(zip(HISTORY.names or (), run.rows[-1], strict=True))
    logger.info(
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
    """Return F and, if it is known, J as a text for the log."""
    return f"F {bound:.6f}" if math.isnan(error) else f"F {bound:.6f}, J {error:.6g}"


def hard_start(data: Data, model: Model, exact: bool) -> Model:
    """Return the parameters after one M-step from the hard assignment of points to the nearest starting centers.

    model: contains the starting centers; its other parameters are not used    exact: whether points without assignment
    are compared with all centers; if not, and there are many centers, cells offer candidates
    """
    if not data.placed:
        every = exact or model.n_components <= FEW
        data.each(NearestStart(model.centers, None if every else Cells(model.centers)))
        data.commit()
    prior = None if model.prior is None else data.each(model.prior)
    return model.maximise(data.each(HardMoments(model)), prior)


def history(rows: Sequence[tuple]) -> NDArray:
    """Return the rows as a structured array of dtype `HISTORY`, one element per iteration."""
    return np.array(list(rows), dtype=HISTORY)
