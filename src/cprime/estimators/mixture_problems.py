"""Problem of the fit of a mixture as a value: `MixtureOptions` makes it from data, without an estimator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._utils.random import Key
from cprime._utils.values import replace
from cprime.estimators.constraints import known_centers, labelled_search
from cprime.estimators.mixture_parameters import (
    DIVERSE,
    ONE_OF_EACH,
    GivenParameters,
    check_means_init,
    fixed_components,
    given_shares,
    k_means_start,
    means_of_shares,
)
from cprime.estimators.problems import Labels, Options, problem_of, starting_centers
from cprime.estimators.validation import are_many, resolve_init, resolve_momentum, resolve_n_active, resolve_search
from cprime.execution import Data
from cprime.model import FAMILIES, Model
from cprime.search.base import BaseSearch
from cprime.seeding import is_given

_KMEANS_ITERATIONS = 30  # Maximum number of iterations of the k-means that initializes a mixture.


@dataclass(frozen=True)
class MixtureOptions(Options):
    """Options of the fit of a mixture: arguments of `GaussianMixture` of these names, with its defaults, and others.

    family: class of the models    family_options: its options by name, such as n_factors
    means_argument: name of the argument `means_init` in error messages
    continued: function that returns the parameters of an earlier fit that this one continues, or None
    prior_of: function of the data and C that returns the prior of the parameters, an option of the family, or None
    bound_before: F at the end of that earlier fit, with which the first iteration is compared by `tol`; ∞ in a new fit
    """

    n_components: int
    family: Any = FAMILIES["full"]
    family_options: Mapping[str, Any] = field(default_factory=dict)
    weights: str = "free"
    n_active: int | str | None = "auto"
    search: str | BaseSearch = "auto"
    assignment: str = "soft"
    init_params: Any = "auto"
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-3
    momentum: bool | str = "auto"
    reg_covar: float = 1e-6
    weights_init: Any = None
    means_init: Any = None
    precisions_init: Any = None
    fixed: Any = None
    checkpoint: Any = None
    means_argument: str = "means_init"
    continued: Callable[[], Model] | None = None
    prior_of: Callable[[Data, int], Any] | None = None
    bound_before: float = np.inf

    def plan(self, data: Data, labels: Labels = None) -> em.FitPlan:
        """Return the options of each run of the EM loop: search, size C′ of active sets, tolerance, limits and others.

        labels: known components of the points (N,), −1 if unknown, or None
        """
        n_active = resolve_n_active(self.n_active, self.n_components, self.assignment)
        if labels is None:
            search = resolve_search(self, self.n_components, n_active, data.n_weighted)
        else:
            search = labelled_search(self, labels, data)
        finds_variance = (
            self.family.finds_variance
            and not data.has_missing
            and self.weights == "equal"
            and self.precisions_init is None
            and self.continued is None
            and given_shares(self, data) is None
        )
        momentum = resolve_momentum(self, n_active, search) and self.fixed is None
        settles = self.family.settles and not data.has_missing
        settings = em.MixtureSettings(self.max_iter, self.tol, n_active, self.assignment, settles, labels is not None)
        stage = (em.Momentum if momentum else em.EM)(settings, last=self.bound_before)
        return em.FitPlan(
            n_active,
            search,
            stage,
            search.regroups(data),
            finds_variance=finds_variance,
        )

    def problem(self, data: Data, labels: Labels = None, quick: bool = False) -> em.Problem:
        """Return the problem of a fit.

        labels: known components of the points (N,), −1 if unknown, or None
        quick: whether a faster initialization suffices, because the data are only a batch
        Raises ValueError or TypeError if an option is invalid, or does not go with others or with the data.
        """
        if self.prior_of is not None:
            prior = self.prior_of(data, self.n_components)
            return replace(self, prior_of=None, family_options={"hyper": prior}).problem(data, labels, quick)
        if isinstance(self.init_params, em.StartingPartitions):
            problems = [replace(self, init_params=each).problem(data) for each in self.init_params.labels]
            plan = replace(self.plan(data, labels), finds_variance=False)
            return replace(
                problems[0], plan=plan, candidates=[partial(_started, data, problem) for problem in problems]
            )
        plan = self.plan(data, labels)
        init, given = self._start(data)
        if labels is not None and isinstance(init, str) and init == DIVERSE:
            init = ONE_OF_EACH
        fixed = fixed_components(self, data)
        has_means = self.means_init is not None or given.shares is not None
        centers = None if fixed is None else fixed.centers
        known = known_centers(self, centers, data, None if has_means else labels)

        def first_model(data: Data, centers: NDArray, exact: bool) -> Model:
            if known is not None:
                centers = known.inserted(data, centers, is_given(init))
            model: Any = given.first_model(data, centers, exact)
            return model if fixed is None else model.with_fixed(fixed)

        problem = problem_of(self, plan, data, init, partial(self._centers, given.shares), first_model, quick)
        return replace(problem, has_short_runs=isinstance(init, str) and init == DIVERSE)

    def _start(self, data: Data) -> tuple[Any, GivenParameters]:
        """Return how a fit starts, as a pair.

        The first item is the initialization of the means (a name, an object, a function or an array). The second item,
        `GivenParameters`, contains the initial parameters that the user or an earlier fit gives.
        """
        C = self.n_components
        if self.continued is not None:
            model, shape = self.continued(), (C, data.n_features)
            if model.centers.shape != shape:
                raise ValueError(f"warm_start needs means_ of shape {shape}, got {model.centers.shape}.")
            if "hyper" in self.family_options:
                model = self.family.with_prior(model, self.family_options["hyper"])
            return model.centers, GivenParameters.like(model.with_missing() if data.has_missing else model)
        given = GivenParameters.of(self, data)
        init = self.init_params
        if self.means_init is not None:
            init = check_means_init(self.means_init, data, C, self.means_argument)
        if isinstance(init, str) and init == "auto":
            few = data.in_memory and not are_many(C, data.n_weighted)
            init = DIVERSE if few and self.family.has_diverse_starts and not data.has_missing else ONE_OF_EACH
        return init, given

    def _centers(self, shares: NDArray | None, init: Any, data: Data, key: Key) -> NDArray:
        if shares is not None and self.means_init is None:
            return means_of_shares(shares, data, self.n_components)
        name, starts = init if isinstance(init, str) else None, self.family.starts
        if name == DIVERSE:
            init = em.diverse_start(key.run)
        elif name == ONE_OF_EACH:
            init = resolve_init(starts[key.run % len(starts)], self.n_components, data, quick=True)
        elif name == "random_from_data":
            init = "random"
        if isinstance(init, str) and init == "kmeans":
            return k_means_start(data, self.n_components, key, _KMEANS_ITERATIONS)
        return starting_centers(self.n_components, "init_params", init, data, key)


def _started(data: Data, problem: em.Problem) -> Model:
    """Return the starting parameters of a problem with given labels, without active sets of an earlier run."""
    data.begin(keep=False)
    return problem.plain_start(data, Key(0))
