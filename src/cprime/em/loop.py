"""The only EM loop: E-steps and M-steps on the truncated free energy [L Alg. 1-3], whatever the four choices are.

    F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} p(c, x_n | Θ)                                                   (7)

Owns the order of things: lists, pass, judgement, record. What k-means and mixtures do is the stage's, which components
a point looks at the search's, where the points lie the data's.
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
from cprime.block import Kept
from cprime.em.expectation import HardMoments, NearestStart, Visit
from cprime.em.stages import Accept, End, Final, Later, Stage, Undo, Warmup
from cprime.execution import Data, rows_of
from cprime.kernels import Rows
from cprime.model import Model
from cprime.neighbors import Cells
from cprime.search import Full, Sample, Search
from cprime.search.graph import FEW

logger = logging.getLogger("cprime")

CHEAPER = 4  # by how much an evaluation among all components is faster than one along lists, at least

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
    """Where a run stands.

    key: the seed, which of the starts this is, and how many passes there have been    model: the parameters
    stage: of the next pass, or of the last one    search: what it knows    rows: of the history, all passes that count
    bound, error: F per unit of weight [nats] and J [data unit²] of the last pass    counts (C,): its Σ w_n q_nc
    n_relocated: empty clusters that were given a point    end: why it has ended or is about to
    over: whether the last pass has seen these parameters
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
        """The parameters to return if it ends here."""
        return self.stage.standing(self.model)


# Given the row of every iteration by names, and where the run stands; True asks for the end.
Callback = Callable[[dict[str, Any], Run], bool]


@dataclass(frozen=True)
class Plan:
    """How a fit runs; none of it changes while it does.

    n_kept: C′, the components that a point keeps    search: which components a point looks at
    stage: the first one, of the model and the data    regroup: whether the points may be copied into the order of their
    components, for speed    finds_variance: whether the first σ² is that of points with the nearest start (14)
    jumps: whether components jump, on the way, from where two share a cluster to where one has several
    improved: whether they do so before, where it starts
    callback: told of every iteration; it may ask for the end
    title: what the log calls it, before the number of the iteration
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


def run(data: Data, start: Callable[[], Model], plan: Plan, key: Key, save: Callable[[Run], None] | None = None) -> Run:
    """From the starting parameters to convergence or `max_iter`; ends on a pass that saw the returned parameters.

    start: makes the starting parameters, which may be large, and which nobody has any longer after the first step
    save: called with where the run stands after every pass that counts
    """
    return proceed(data, begin(data, start(), plan, key), plan, save)


def proceed(data: Data, run: Run, plan: Plan, save: Callable[[Run], None] | None = None) -> Run:
    """From where a run stands to its end."""
    while not run.over:
        run = iterate(data, run, plan)
        if isinstance(run.model, Later):
            run = replace(run, model=run.model.make())
        if save is not None:
            save(run)
    return run


def begin(data: Data, model: Model, plan: Plan, key: Key) -> Run:
    """First lists and kept sets, and the first σ² where it follows from these."""
    search, n_kept = plan.search, plan.n_kept
    data.begin(keep=search.keeps_winners and data.placed)
    all_kept = n_kept == model.n_components > 1 and model.exact
    known, look = None, None
    if not all_kept:
        known, look = search.begin(model.components(), n_kept, data.placed, key)
    if look is not None:
        data.each(Visit(model, look, n_kept))
        data.commit()
    if plan.regroup:
        data.regroup(model.n_components)
    if plan.finds_variance:
        components = model.components()
        look = search.look(known, components, key)
        found = data.each(Visit(model, look, 1 if all_kept else n_kept))
        data.commit()
        if all_kept:
            data.begin(keep=False)
        else:
            known, _ = search.learn(known, look, components, found.stats, sampler(data, model), key)
        model = model.with_variance(found.cost / found.weight)  # type: ignore[attr-defined]
    stage = plan.stage(model, data)
    return Run(key, model, Warmup(search.warmup, stage) if search.warmup else stage, known)


def iterate(data: Data, run: Run, plan: Plan) -> Run:
    """One pass: an iteration, an E-step before the first M-step, or the last one, which sees what is returned."""
    start, key = perf_counter(), Key(run.key.seed, run.key.run, run.key.iteration + 1)
    stage, components = run.stage, run.stage.components(run.model)
    known = plan.search.refresh(run.search, components)
    look = plan.search.look(known, components, key)
    job = stage.propose(run.model, look, key)
    totals = data.each(job)
    step, tally, stats = stage.judge(run.model, totals, data), totals.tally, totals.stats
    del totals  # moments are as large as parameters
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
    """Where it stands after a pass that counts."""
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


def assigned(data: Data, run: Run, plan: Plan) -> tuple[Run, bool]:
    """The run after its final assignment, and whether all points keep the best of all components now.

    "auto" is exact where this takes no more time than the fit has taken, by the count of evaluations: those of all
    components at once cost a quarter of those along lists, or less.
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
    """Gives a few points as the components are compared with them, and what they keep."""
    return partial(_sample, data, model)


def _sample(data: Data, model: Model, numbers: NDArray[np.int64]) -> tuple[Rows, Kept]:
    taken = data.take(rows_of(data, numbers))
    assert taken.kept is not None
    return model.embed(taken.X), taken.kept


def report(run: Run, plan: Plan, change: float) -> bool:
    """The last row of the history, to the log and to the callback; says whether that asks for the end."""
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
    """F and, where it is known, J as the log has them."""
    return f"F {bound:.6f}" if math.isnan(error) else f"F {bound:.6f}, J {error:.6g}"


def hard_start(data: Data, model: Model, exact: bool) -> Model:
    """The parameters of the hard assignment to the nearest starting centres: one M-step from there.

    model: the starting centres; its other parameters do not count    exact: whether all are looked at for points that
    have none yet, or of many what cells offer
    """
    if not data.placed:
        every = exact or model.n_components <= FEW
        data.each(NearestStart(model.centers, None if every else Cells(model.centers)))
        data.commit()
    prior = None if model.prior is None else data.each(model.prior)
    return model.maximise(data.each(HardMoments(model)), prior)


def history(rows: Sequence[tuple]) -> NDArray:
    """The rows as a structured array, one row an iteration."""
    return np.array(list(rows), dtype=HISTORY)
