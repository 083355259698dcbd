"""Results of fits as immutable objects, from which estimators take their fitted attributes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime.estimators.covariances import family_of
from cprime.kernels import Floats, computing
from cprime.model import Model
from cprime.neighbors import OnlineCenterIndex

_OF_THE_DATA = (
    *("n_features_in_", "feature_names_in_", "list_column_", "preparation_", "n_categories_", "categories_"),
)
# Attributes of an estimator with search structures. Copies and pickles omit them; methods that need one build it again.
CACHES = ("_online_cells", "_approximate_search")


class Solution(Protocol):
    """Parameters of a k-means or a mixture, from a fit or derived from a fit (for example by `combine`)."""

    def attributes(self) -> dict[str, Any]:
        """Return a dictionary of the fitted attributes, such as `labels_`, of an estimator with these parameters."""
        ...


def without_solution(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict of an estimator's attributes without the results of a fit.

    It contains the constructor arguments, and attributes that describe the columns of the data, such as their names.
    """
    return {
        name: value
        for name, value in attributes.items()
        if name in _OF_THE_DATA or (name[-1] != "_" and name not in CACHES)
    }


@dataclass(frozen=True, eq=False)
class FitRecord:
    """Facts about a fit. Parameters that the user has set, or that were derived from other models, have no such record.

    history (n_iter,): one row per iteration, of type `em.HISTORY`    converged: whether the iterations converged
    measured: dictionary of the fitted attributes that the last pass of a fit computes, with the keys "labels",
    "neighbors", "certificate" (measured quality of the search) and "final_assignment", and with bounds of sizes
    "n_displaced" (number of points not with their nearest center) and "size_cost" (relative excess of J over that of
    the nearest centers); empty while the fit still runs
    """

    history: NDArray
    converged: bool
    measured: Mapping[str, Any] = field(default_factory=dict)

    def attributes(self) -> dict[str, Any]:
        """Return a dictionary of the fitted attributes that describe the fit, such as `n_iter_`."""
        return {
            "history_": self.history,
            "lower_bounds_": self.history["lower_bound"].tolist(),
            "n_iter_": len(self.history),
            "converged_": self.converged,
            **{f"{name}_": value for name, value in self.measured.items()},
        }


def history_of(estimator: Any) -> NDArray:
    """Return the convergence history of an estimator, of type `em.HISTORY`; it is empty if there was no fit.

    For example, an estimator made by `combine` has parameters, but no history.
    """
    history: NDArray = getattr(estimator, "history_", np.empty(0, dtype=em.HISTORY))
    return history


def record_of_batch(history: NDArray, row: tuple[Any, ...], labels: Any, final_assignment: str) -> FitRecord:
    """Return the record of a fit after one more batch.

    history: rows of the batches before    row: the row of this batch, for its history
    labels (n,): labels of the batch    final_assignment: how they were computed, "exact" or "found"
    """
    measured = {"labels": labels, "neighbors": None, "certificate": None, "final_assignment": final_assignment}
    return FitRecord(np.concatenate([history, np.array([row], dtype=em.HISTORY)]), False, measured)


@dataclass(frozen=True, eq=False)
class KMeansSolution:
    """Result of a k-means: its centers, and the values that were computed from them and the data.

    centers (C, D)    variance: σ² [data unit²]    counts (C,): total weight of the points of each cluster
    inertia: J [data unit²]    lower_bound: F [nats per point]
    record: facts about the fit, or None
    n_relocated: number of times that the center of an empty cluster was moved
    cells: groups of nearby centers that speed up the search in `partial_fit`, or None
    recent: rows that `partial_fit` stores for its next fit or jumps, see `em.RecentRows`, or None
    metric: "euclidean" or "cosine"
    """

    centers: Floats
    variance: float
    counts: NDArray
    inertia: float
    lower_bound: float
    record: FitRecord | None = None
    n_relocated: int = 0
    cells: OnlineCenterIndex | None = None
    recent: dict[str, Any] | None = None
    metric: str = "euclidean"

    def attributes(self) -> dict[str, Any]:
        """Return a dictionary of the fitted attributes of a `KMeans` with this result."""
        found: dict[str, Any] = {
            "cluster_centers_": self.centers,
            "variance_": self.variance,
            "counts_": self.counts,
            "inertia_": self.inertia,
            "lower_bound_": self.lower_bound,
            "n_active_": 1,
            "metric_": self.metric,
        }
        if self.record is not None:
            found |= {**self.record.attributes(), "n_relocated_": self.n_relocated}
        if self.cells is not None:
            found |= {"structure_": self.cells.as_dict(), "_online_cells": self.cells}
        if self.recent is not None:
            found["recent_"] = self.recent
        return found


@dataclass(frozen=True, eq=False)
class SoftKMeansSolution:
    """Result of a soft k-means: its centers, and the values that were computed from them and the data.

    centers (C, D)    variance: σ² [data unit²]    n_active: C′, the size of active sets
    inertia: J [data unit²]    lower_bound: F [nats per point]    record: facts about the fit
    """

    centers: Floats
    variance: float
    n_active: int
    inertia: float
    lower_bound: float
    record: FitRecord

    def attributes(self) -> dict[str, Any]:
        """Return a dictionary of the fitted attributes of a `SoftKMeans` with this result."""
        return {
            "cluster_centers_": self.centers,
            "variance_": self.variance,
            "stiffness_": 0.5 / self.variance,
            "n_active_": self.n_active,
            "inertia_": self.inertia,
            "lower_bound_": self.lower_bound,
            **self.record.attributes(),
        }


@dataclass(frozen=True, eq=False)
class MixtureSolution:
    """Result of a mixture: its parameters, and the values that were computed from them and the data.

    model: the parameters    covariance_type: name of the model family    n_active: C′, the size of active sets
    counts (C,): Σ_n w_n q_nc of each component c, or None    lower_bound: F [nats per point], or None
    record: facts about the fit, or None
    """

    model: Model
    covariance_type: str
    n_active: int
    counts: NDArray | None = None
    lower_bound: float | None = None
    record: FitRecord | None = None

    def attributes(self) -> dict[str, Any]:
        """Return a dictionary of the fitted attributes of a mixture with this result."""
        model, dtype = self.model, self.model.centers.dtype
        C = len(model.centers)
        found = {
            "covariance_type_": self.covariance_type,
            "equal_weights_": model.weights is None,
            "means_": model.centers,
            "weights_": np.full(C, 1 / C, dtype) if model.weights is None else model.weights.astype(dtype),
            **model.attributes(),
            "n_active_": self.n_active,
        }
        if self.counts is not None:
            found["counts_"] = self.counts
        if self.lower_bound is not None:
            found["lower_bound_"] = self.lower_bound
        return found if self.record is None else found | self.record.attributes()


def mixture_solution(mixture: Any, model: Model, n_active: int, **results: Any) -> MixtureSolution:
    """Return a `MixtureSolution` of an estimator with the parameters of `model`.

    n_active: C′, the size of active sets    results: further fields of the solution, by name
    """
    n_active = 1 if em.ASSIGNMENTS[mixture.assignment].is_single else n_active
    return MixtureSolution(model, family_of(mixture.covariance_type), n_active, **results)


def adopt(estimator: Any, solution: Solution) -> None:
    """Replace all fitted attributes of an estimator by those of a solution.

    This is a single assignment, so an interruption cannot leave some old and some new attributes.
    """
    estimator.__dict__ = without_solution(vars(estimator)) | solution.attributes()


class _DerivedAttribute:
    """Descriptor of a fitted attribute that is computed from other attributes if a user has set parameters by hand.

    A value that a fit has set takes precedence, because Python uses this descriptor only if the instance has no
    attribute of this name.    found: function that computes the value from the mixture
    needed: names of the attributes that must be set; without them, or if `found` returns None, there is no attribute
    """

    def __init__(self, found: Callable[[Any], Any], *needed: str):
        self.found = found
        self.needed = needed

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, mixture: Any, owner: type) -> Any:
        if mixture is not None and all(name in vars(mixture) for name in self.needed):
            with computing(mixture.n_threads):
                value = self.found(mixture)
            if value is not None:  # None if the model family lacks this parameter
                return value
        raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}", name=self.name, obj=mixture)


def implied(found: Callable[[Any], Any], *needed: str) -> Any:
    """Return a `_DerivedAttribute`: an attribute of mixtures that the function `found` computes from other attributes.

    These must be set by the user: `means_`, and the attributes with the names `needed`. The result has the type Any, so
    that it can be assigned to an attribute annotated with its own type.
    """
    return _DerivedAttribute(found, "means_", *needed)
