"""Problems of fits as values: `kmeans_problem` makes that of a k-means from options and data, without an estimator."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._utils.random import Key, Purpose
from cprime._utils.values import replace
from cprime.estimators.constraints import KnownCenters, known_centers, labelled_search
from cprime.estimators.gaps import first_of_gaps, plan_of_gaps
from cprime.estimators.validation import check_real, resolve_exchange, resolve_init, resolve_search
from cprime.execution import Data
from cprime.kernels import as_rows
from cprime.model import TiedSpherical
from cprime.model.tied_spherical import variance_floor
from cprime.model.unit import UnitCenters, unit_rows
from cprime.search import Search
from cprime.seeding import is_given, place
from cprime.seeding.methods import name_of

Labels = NDArray[np.int32] | None  # known components of the points (N,), −1 if unknown; None if no point has a label


@dataclass(frozen=True)
class KMeansOptions:
    """Options of a k-means fit: the arguments of `KMeans` of these names, with its defaults.

    least_shift: sum of the squared shifts of all centers [data unit²] at which the fit has converged, or None
    """

    n_clusters: int
    init: Any = "auto"
    n_init: int = 1
    max_iter: int = 300
    tol: float = 1e-4
    search: str | Search = "auto"
    n_neighbors: int | str = "auto"
    metric: str = "euclidean"
    epsilon: float = 0.0
    exchange: bool | str = "auto"
    size_max: Any = None
    size_min: Any = None
    fixed_centers: Any = None
    certificate: int = 1000
    final_assignment: str = "auto"
    checkpoint: Any = None
    least_shift: float | None = None

    @classmethod
    def of(cls, k_means: Any) -> Self:
        """Return the options of an estimator."""
        names = [field.name for field in fields(cls) if field.name != "least_shift"]
        return cls(**{name: getattr(k_means, name) for name in names}, least_shift=k_means._least_shift)


def kmeans_problem(options: KMeansOptions, data: Data, labels: Labels = None) -> em.Problem:
    """Return the problem of a k-means fit.

    labels: known clusters of the points (N,), −1 if unknown, or None
    Raises ValueError or TypeError if an option is invalid, or does not go with others or with the data.
    """
    plan = kmeans_plan(options, data, labels)
    known = known_centers(options, options.n_clusters, data, labels)
    centers = partial(starting_centers, options.n_clusters, "init")
    first_model = partial(first_kmeans, options, known=known)
    return problem_of(options, options.n_clusters, plan, data, options.init, centers, first_model)


def problem_of(
    options: Any,
    n_clusters: int,
    plan: em.FitPlan,
    data: Data,
    init: Any,
    centers: Callable[[Any, Data, Key], NDArray],
    first_model: em.FirstModel,
) -> em.Problem:
    """Return the problem of a fit whose argument for the initialization of the centers is `init`.

    options: estimator or options with `n_init`, the number of starts unless the user gives the centers, and
    `certificate`    n_clusters: number of components C    plan, first_model: as in `em.Problem`
    centers: function that returns starting centers; its arguments are the initialization, the data and a random key
    """
    init = resolve_init(init, n_clusters, data, plan.jumps, plan.improved)
    plan = replace(plan, improved=plan.improved and name_of(init) != "jumps")
    n_starts = 1 if is_given(init) else options.n_init
    return em.Problem(plan, init, partial(centers, init), first_model, n_starts, options.certificate)


def starting_centers(n_clusters: int, argument: str, init: Any, data: Data, key: Key) -> NDArray:
    """Return starting centers (C, D). Some initializations also store in `data` a near center of each point.

    argument: name of the argument `init`, for error messages    init: a name, an object, a function, or the centers
    """
    if name_of(init) is None:  # `init` is a function, which may store its random state: it gets one of its own.
        return place(data, n_clusters, init, partial(key.random_state, Purpose.START), argument)
    with key.drawing(Purpose.START) as rng:
        return place(data, n_clusters, init, lambda: rng, argument)


def kmeans_plan(options: KMeansOptions, data: Data, labels: Labels = None) -> em.FitPlan:
    """Return the options of each run of a k-means fit: search, tolerance, limits and others.

    labels: known clusters of the points (N,), −1 if unknown, or None
    """
    if labels is not None:
        search = labelled_search(options, labels, data)
    elif data.gaps:
        return plan_of_gaps(options, data)
    else:
        search = resolve_search(options, options.n_clusters, 1, data.n_weighted, data.n_features, data.sparse)
    epsilon, final = check_real(options.epsilon, "epsilon", 0.0), options.final_assignment
    exchange = resolve_exchange(options, search, epsilon, data.sparse)
    lazy = epsilon > 0 and final == "found"
    settings = em.Settings(options.max_iter, options.tol, epsilon, search.incremental, options.least_shift, lazy)
    jumps, regroups = exchange and search.exchanges, search.regroups(data)
    stage, improved = (em.Exchange if jumps else em.Lloyd)(settings), exchange and not jumps
    return em.FitPlan(1, search, stage, regroups, jumps=jumps, improved=improved, final=final, is_last_lazy=lazy)


def first_kmeans(
    options: KMeansOptions, data: Data, centers: NDArray, exact: bool, known: KnownCenters | None = None
) -> TiedSpherical:
    """Return a model with the starting centers, in which known centers (constraints of the fit) replace others.

    Its variance σ² is computed in the first E-step.
    """
    if data.gaps:
        return first_of_gaps(data, centers, exact)
    if known is not None:
        centers = known.placed(data, centers, is_given(options.init))
    if options.metric == "cosine":
        centers = unit_rows(as_rows(centers), "init").dense()
    model = kmeans_model(options.metric, centers, 1.0)
    return model if known is None else replace(model, n_fixed=known.n_fixed)


def kmeans_model(metric: str, centers: NDArray, variance: float) -> TiedSpherical:
    """Return the model of a k-means with these centers (C, D) and this variance σ²; metric: that of `KMeans`."""
    kind = UnitCenters if metric == "cosine" else TiedSpherical
    return kind(centers, variance, variance_floor(centers))
