"""Problem of a fit as a value: `KMeansOptions` makes that of a k-means from data, without an estimator."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._utils.random import Key, Purpose
from cprime._utils.values import replace
from cprime.estimators.constraints import KnownCenters, fixed_centers, known_centers, labelled_search, resolve_bounds
from cprime.estimators.missing import first_of_missing, plan_of_missing
from cprime.estimators.validation import check_real, resolve_init, resolve_jumps, resolve_search
from cprime.execution import Data
from cprime.kernels import as_rows
from cprime.model import TiedSpherical
from cprime.model.tied_spherical import variance_floor
from cprime.model.unit import UnitCenters, unit_rows
from cprime.search.base import BaseSearch
from cprime.seeding import is_given, place
from cprime.seeding.methods import name_of

Labels = NDArray[np.int32] | None  # known components of the points (N,), −1 if unknown; None if no point has a label


class Options:
    """Base class of the options of a fit, frozen dataclasses with a method that makes the problem for some data."""

    @classmethod
    def of(cls, estimator: Any, **others: Any) -> Self:
        """Return the options of an estimator: its arguments that are fields of this class.

        others: further fields, by name
        """
        names = [each.name for each in fields(cls) if hasattr(estimator, each.name)]  # type: ignore[arg-type]
        return cls(**{name: getattr(estimator, name) for name in names} | others)


def options_of(estimator: Any) -> Any:
    """Return the options of a fit of the estimator."""
    return estimator._options()


@dataclass(frozen=True)
class KMeansOptions(Options):
    """Options of a k-means fit: the arguments of `KMeans` of these names, with its defaults.

    least_shift: sum of the squared shifts of all centers [data unit²] at which the fit has converged, or None
    """

    n_clusters: int
    init: Any = "auto"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    search: str | BaseSearch = "auto"
    metric: str = "euclidean"
    epsilon: float = 0.0
    jumps: bool | str = "auto"
    size_max: Any = None
    size_min: Any = None
    fixed: Any = None
    checkpoint: Any = None
    least_shift: float | None = None

    @property
    def n_components(self) -> int:
        return self.n_clusters

    def plan(self, data: Data, labels: Labels = None) -> em.FitPlan:
        """Return the options of each run of the loop: search, tolerance, limits and others.

        labels: known clusters of the points (N,), −1 if unknown, or None
        """
        if labels is not None:
            search = labelled_search(self, labels, data)
        elif data.has_missing:
            return plan_of_missing(self, data)
        else:
            search = resolve_search(self, self.n_clusters, 1, data.n_weighted, data.n_features, data.sparse)
        epsilon = check_real(self.epsilon, "epsilon", 0.0)
        jumps = resolve_jumps(self, search, epsilon, data.sparse)
        lazy = epsilon > 0 and search.final_assignment == "found"
        settings = em.Settings(
            *(self.max_iter, self.tol, epsilon, search.incremental, self.least_shift, lazy),
            relocates=self.jumps != "never",
            labels=labels,
        )
        exchanges, regroups = jumps and search.exchanges, search.regroups(data)
        stage, improved = (em.Exchange if exchanges else em.Lloyd)(settings), jumps and not exchanges
        return em.FitPlan(1, search, stage, regroups, jumps=exchanges, improved=improved, is_last_lazy=lazy)

    def problem(self, data: Data, labels: Labels = None, quick: bool = False) -> em.Problem:
        """Return the problem of a fit.

        labels: known clusters of the points (N,), −1 if unknown, or None
        quick: whether a faster initialization suffices, because the data are only a batch
        Raises ValueError or TypeError if an option is invalid, or does not go with others or with the data.
        """
        plan = self.plan(data, labels)
        known = known_centers(self, fixed_centers(self, data), data, labels)
        centers = partial(starting_centers, self.n_clusters, "init")
        first_model = partial(_first_kmeans, self, known=known)
        problem = problem_of(self, plan, data, self.init, centers, first_model, quick)
        if self.size_max is None and self.size_min is None:
            return problem
        bounds = resolve_bounds(self, data)
        return replace(problem, finish=em.BoundedSizes(bounds, self.metric, self.max_iter, self.tol))


def problem_of(
    options: Any,
    plan: em.FitPlan,
    data: Data,
    init: Any,
    centers: Callable[[Any, Data, Key], NDArray],
    first_model: em.FirstModel,
    quick: bool = False,
) -> em.Problem:
    """Return the problem of a fit whose argument for the initialization of the centers is `init`.

    options: options with `n_components` and `n_init`, the number of starts unless the user gives the centers
    plan, first_model: as in `em.Problem`
    centers: function that returns starting centers; its arguments are the initialization, the data and a random key
    quick: whether a faster initialization suffices, because the data are only a batch
    """
    init = resolve_init(init, options.n_components, data, quick or plan.jumps, plan.improved)
    plan = replace(plan, improved=plan.improved and name_of(init) != "jumps")
    n_starts = 1 if is_given(init) else options.n_init
    return em.Problem(plan, init, partial(centers, init), first_model, n_starts)


def starting_centers(n_clusters: int, argument: str, init: Any, data: Data, key: Key) -> NDArray:
    """Return starting centers (C, D). Some initializations also store in `data` a near center of each point.

    argument: name of the argument `init`, for error messages    init: a name, an object, a function, or the centers
    """
    if name_of(init) is None:  # `init` is a function, which may keep its generator: it gets a new one.
        return place(data, n_clusters, init, partial(key.random_state, Purpose.START), argument)
    with key.drawing(Purpose.START) as rng:
        return place(data, n_clusters, init, lambda: rng, argument)


def _first_kmeans(
    options: KMeansOptions, data: Data, centers: NDArray, exact: bool, known: KnownCenters | None = None
) -> TiedSpherical:
    """Return a model with the starting centers, in which known centers (constraints of the fit) replace others.

    Its variance σ² is computed in the first E-step.
    """
    if data.has_missing:
        return first_of_missing(data, centers, exact)
    if known is not None:
        centers = known.inserted(data, centers, is_given(options.init))
    if options.metric == "cosine":
        centers = unit_rows(as_rows(centers), "init").dense()
    model = kmeans_model(options.metric, centers, 1.0)
    return model if known is None else replace(model, n_fixed=known.n_fixed)


def kmeans_model(metric: str, centers: NDArray, variance: float) -> TiedSpherical:
    """Return the model of a k-means with these centers (C, D) and this variance σ²; metric: that of `KMeans`."""
    kind = UnitCenters if metric == "cosine" else TiedSpherical
    return kind(centers, variance, variance_floor(centers))
