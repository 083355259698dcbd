"""Fits of several covariance types with the same number of components, which share their starting partitions."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cprime._utils.random import Key
from cprime._utils.values import replace
from cprime.em import StartingPartitions
from cprime.estimators.budget import opened_within
from cprime.estimators.fitted import centers_of, model_of, size_of
from cprime.estimators.fitted_mixture import best_of
from cprime.estimators.problems import options_of
from cprime.execution import Data
from cprime.kernels import computing
from cprime.seeding.extension import extended, rows_in_memory
from cprime.selection.results import Mixture

_NEARLY_ALL = 0.97  # least share of the points that two partitions have in common if they are nearly equal


def fits_of_families(
    run: Any,
    templates: Sequence[Mixture],
    data: Any,
    C: int,
    before: Sequence[Mixture],
    n_init: int,
    rng: np.random.RandomState,
) -> list[Mixture]:
    """Return the best fit of C components of each template; the templates differ in their covariance type.

    All fits start from the same `n_init` partitions, and from the fit of the template in `before`, which has fewer
    components, with added centers. Then they start from the partitions by the best fits of all other templates.
    run: function that returns a fitted copy of a template, with `changes` of its arguments
    before: best fits of a smaller number of components, or an empty sequence
    """
    partitions = _Partitions(templates[0], data, C, rng)
    shared = [partitions.new(i) for i in range(n_init)] if C > 1 else [partitions.new(0)]
    added = [[partitions.extended(fit, rng)] for fit in before] or [[]] * len(templates)
    tried = [_distinct([*shared, *own], C) for own in added]
    fits = [
        run(each, changes={"init_params": StartingPartitions(own)}) for each, own in zip(templates, tried, strict=True)
    ]
    found = [np.asarray(fit.labels_) for fit in fits]
    for i, template in enumerate(templates):
        others = _distinct([found[i], *found[:i], *found[i + 1 :]], C)[1:]
        if others:
            fit = run(template, changes={"init_params": StartingPartitions(others)})
            fits[i] = max(fits[i], fit, key=quality)
    return fits


def quality(fit: Mixture) -> tuple[bool, float]:
    """Return a key that is greater for a better fit: whether no component has collapsed, and the free energy F."""
    return not model_of(fit).n_collapsed, fit.lower_bound_


class _Partitions:
    """Partitions of the points of data into C components, from which fits can start."""

    def __init__(self, template: Mixture, data: Any, C: int, rng: np.random.RandomState) -> None:
        self.template: Any = clone(template).set_params(**size_of(template, C))
        self.C = C
        self.key = Key(int(rng.randint(2**31)))
        with computing(template.n_threads):
            self.data: Data = opened_within(self.template, data.X, data.weights)
            self.options = options_of(self.template)

    def new(self, number: int) -> NDArray[np.int32]:
        """Return the partition of the initialization with this number, 0, 1, ….  (N,)"""
        return self._made(self.options, replace(self.key, run=number))

    def extended(self, fit: Mixture, rng: np.random.RandomState) -> NDArray[np.int32]:
        """Return the partition by the nearest of the means of a fit and of added centers: (N,)."""
        with computing(self.template.n_threads):
            X, weights, _ = rows_in_memory(self.data, rng)
            centers = centers_of(fit)
            more = extended(X, centers, self.C - len(centers), weights, rng, self.template.n_threads)
        return self._made(replace(self.options, means_init=more), self.key)

    def _made(self, options: Any, key: Key) -> NDArray[np.int32]:
        with computing(self.template.n_threads):
            self.data.begin(keep=False)
            model = options.problem(self.data).plain_start(self.data, key)
            placed = self.data.placed
            return np.asarray(self.data.labels() if placed else self.data.map(partial(best_of, model), None, np.int32))


def _distinct(partitions: Sequence[NDArray[np.int32]], C: int) -> tuple[NDArray[np.int32], ...]:
    """Return the partitions (N,) into C parts without empty ones, except those that are nearly equal to an earlier one.

    Two partitions are nearly equal if all but 3 % of the points of each part are in the same part of the other one.
    """
    found: list[NDArray[np.int32]] = []
    for labels in partitions:
        if len(np.unique(labels)) == C and not any(_shared(labels, each, C) > _NEARLY_ALL for each in found):
            found.append(labels)
    return tuple(found)


def _shared(first: NDArray[np.int32], second: NDArray[np.int32], C: int) -> float:
    """Return the share of the points (N,) that are in the part of `second` most common in their part of `first`."""
    counts = np.bincount(first.astype(np.int64) * C + second, minlength=C * C).reshape(C, C)
    return float(counts.max(axis=1).sum() / len(first))
