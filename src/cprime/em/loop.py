"""The only EM loop: E-steps and M-steps on the truncated free energy [L Alg. 1-3], whatever the four choices are.

    F(K, Θ) = 1/W Σ_n w_n log Σ_{c∈K(n)} p(c, x_n | Θ)                                                   (7)

Owns the order of things: lists, pass, judgement, record. What k-means and mixtures do is the rule's, which components a
point looks at the search's, where the points lie the data's.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key
from cprime.block import Kept
from cprime.em.expectation import HardSums, NearestStart, Visit
from cprime.em.jumps import jump
from cprime.em.rules import Rule
from cprime.em.state import HISTORY, Callback, Fit
from cprime.execution import Data
from cprime.kernels.native import Floats
from cprime.model import Model, TiedSpherical
from cprime.model.base import ScatterOf
from cprime.neighbors import Cells
from cprime.search import Full, Sample, Search

logger = logging.getLogger("cprime")

_CHEAPER = 4  # by how much an evaluation among all components is faster than one along lists, at least


@dataclass(frozen=True)
class Plan:
    """How a fit runs; none of it changes while it does.

    n_kept: C′, the components that a point keeps    search: which components a point looks at
    rule: k-means or mixture
    regroup: whether the points may be copied into the order of their components, for speed
    callback: told of every iteration; it may ask for the end
    title: what the log calls it, before the number of the iteration
    final: "exact" for a last pass over all components after a partial search, "found" for none, "auto" for one if it
    is cheap
    """

    n_kept: int
    search: Search
    rule: Rule[Any, Any]
    regroup: bool = False
    callback: Callback | None = None
    title: str = ""
    final: str = "found"


def run(data: Data, model: Model, plan: Plan, key: Key, save: Callable[[Fit], None] | None = None) -> Fit:
    """From the starting parameters to convergence or `max_iter`; ends on a pass that saw the returned parameters.

    save: called with where the run stands after every pass that counts
    """
    return proceed(data, begin(data, model, plan, key), plan, save)


def proceed(data: Data, fit: Fit, plan: Plan, save: Callable[[Fit], None] | None = None) -> Fit:
    """From where a run stands to its end."""
    while not fit.ended:
        fit = iterate(data, fit, plan)
        if save is not None:
            save(fit)
    return fit


def begin(data: Data, model: Model, plan: Plan, key: Key) -> Fit:
    """First lists and kept sets, and the first σ² where it follows from these."""
    search, n_kept = plan.search, plan.n_kept
    data.begin(keep=search.keeps_winners and data.placed)
    all_kept = n_kept == len(model.centers) > 1
    state, look = None, None
    if not all_kept:
        state, look = search.begin(model.components(), n_kept, data.placed, key)
    if look is not None:
        data.each(Visit(model, look, n_kept))
        data.commit()
    if plan.regroup:
        data.regroup(len(model.centers))
    if plan.rule.finds_variance:
        components = model.components()
        look = search.look(state, components, None, key)
        visited = data.each(Visit(model, look, 1 if all_kept else n_kept))
        data.commit()
        if all_kept:
            data.begin(keep=False)
        else:
            state, _ = search.learn(state, look, components, visited.seen, sampler(data, model), key)
        model = cast(TiedSpherical, model).with_variance(visited.cost / visited.weight)
    return Fit(key, model, plan.rule.begin(model, data), state)


def iterate(data: Data, fit: Fit, plan: Plan) -> Fit:
    """One pass: an iteration, an E-step before the first M-step, or the last one, which sees what is returned."""
    start, key = perf_counter(), fit.key._replace(iteration=fit.key.iteration + 1)
    rule, model, components = plan.rule, fit.model, fit.model.components()
    warming = fit.n_iter < plan.search.warmup
    search = plan.search.refresh(fit.search, components)
    factors = None if fit.last else rule.factors(model, fit.rule)
    look = plan.search.look(search, components, factors, key)
    job = rule.propose(model, fit.rule, look, key, fit.last)
    totals = data.each(job)
    step = rule.warm(model, fit.rule, totals) if warming or fit.last else rule.judge(model, fit.rule, totals, data)
    if not step.accept:
        if job.keeps:
            data.rollback()
        return replace(fit, key=key, model=step.model, search=search, rule=step.state, last=step.done)
    data.commit()
    if fit.last:
        return replace(fit, key=key, model=step.model, statistics=step.statistics, ended=True)
    search, extra = plan.search.learn(search, look, components, totals.seen, sampler(data, model), key)
    if step.ripe:
        lists = plan.search.neighbors(search)
        assert lists is not None
        jumped = jump(data, cast(TiedSpherical, step.model), lists, step.statistics, key)
        step = rule.jumped(step, jumped)
        search = plan.search.jumped(search, jumped.one, jumped.cut, jumped.n_relabelled / data.n_points)
    row = (
        "warmup" if warming else "em",
        step.bound,
        step.J,
        totals.n_distances + extra,
        totals.n_moved,
        perf_counter() - start,
    )
    fit = replace(
        fit,
        key=key,
        model=step.model,
        rule=step.state,
        search=search,
        rows=(*fit.rows, row),
        converged=step.converged,
        last=step.done and rule.needs_last(step),
        ended=step.done and not rule.needs_last(step),
        statistics=step.statistics,
    )
    if not report(fit, plan, step.change):
        return fit
    last = not fit.ended
    return replace(fit, model=rule.settled(fit.model, fit.rule), last=last, stopped=True)


def assigned(data: Data, fit: Fit, plan: Plan) -> tuple[Fit, bool]:
    """The fit after its final assignment, and whether all points keep the best of all components now.

    "auto" is exact where this takes no more time than the fit has taken, by the count of evaluations: those of all
    components at once cost a quarter of those along lists, or less.
    """
    if plan.search.exact or not data.placed:
        return fit, True
    n_distances = sum(row[HISTORY.names.index("n_distances")] for row in fit.rows)  # type: ignore[union-attr]
    cheap = data.n_points * len(fit.model.centers) <= _CHEAPER * n_distances
    if plan.final == "found" or (plan.final == "auto" and not cheap):
        return fit, False
    start = perf_counter()
    look = Full().look(None, fit.model.components(), None, fit.key)
    totals = data.each(plan.rule.propose(fit.model, fit.rule, look, fit.key, True))
    data.commit()
    step = plan.rule.warm(fit.model, fit.rule, totals)
    logger.info(
        plan.title + "final assignment by all components: J %.6g, %d moved, %.3f s",
        step.J,
        totals.n_moved,
        perf_counter() - start,
    )
    return replace(fit, model=step.model, statistics=step.statistics), True


def sampler(data: Data, model: Model) -> Sample:
    """A few rows as the components are compared with them, and what they keep."""
    return partial(_sample, data, model)


def _sample(data: Data, model: Model, rows: NDArray[np.int64]) -> tuple[Floats, Kept]:
    taken = data.take(rows)
    assert taken.kept is not None
    return model.embed(taken.X), taken.kept


def report(fit: Fit, plan: Plan, change: float) -> bool:
    """The last row of the history, to the log and to the callback; says whether that asks for the end."""
    row = dict(zip(HISTORY.names or (), fit.rows[-1], strict=True))
    logger.info(
        plan.title + "iteration %d: F %.6f, J %.6g, %d moved, %.3f s",
        fit.n_iter,
        row["lower_bound"],
        row["quantization_error"],
        row["n_moved"],
        row["seconds"],
        extra={"iteration": fit.n_iter},
    )
    if plan.callback is None:
        return False
    more = {"start": fit.key.run + 1, "change": change, "agreement": plan.search.agreement(fit.search)}
    return plan.callback({"iteration": fit.n_iter, **row, **more}, fit)


def hard_start(data: Data, model: Model, exact: bool) -> Model:
    """The parameters of the hard assignment to the nearest starting centres: one M-step from there.

    model: the starting centres; its other parameters do not count    exact: whether all are looked at for points that
    have none yet, or what cells offer
    """
    if not data.placed:
        data.each(NearestStart(model.centers, None if exact else Cells(model.centers)))
        data.commit()
    shape = model.scatter_shape
    scatter = None if shape is None else data.each(ScatterOf(shape))
    return model.maximise(data.each(HardSums(model)), scatter)
