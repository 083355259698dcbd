"""Fits of several covariance types for every number of components of a range, which share their starting partitions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cprime._utils.random import Key
from cprime._utils.values import replace
from cprime.em import StartingPartitions, n_doubtful
from cprime.estimators.budget import opened_within
from cprime.estimators.fitted import centers_of, model_of, size_of
from cprime.estimators.fitted_mixture import best_of
from cprime.estimators.problems import options_of
from cprime.execution import Data
from cprime.execution.block import ActiveSet, Block
from cprime.kernels import Rows, computing
from cprime.model import Model
from cprime.seeding.extension import extended, rows_in_memory
from cprime.selection.bisection import cells, principal
from cprime.selection.results import Mixture

_NEARLY_ALL = 0.97  # least share of a part that two nearly equal partitions have in common
_MOST = 12  # greatest number of splits of a fit, and of merges, from which fits start
_VALUES = 2**20  # number of responsibilities that are computed at a time, which limits memory


def fits_of_families(
    run: Any, templates: Sequence[Mixture], data: Any, numbers: Sequence[int], n_init: int, n_turns: int, seed: int
) -> "list[FamilyFits]":
    """Return the best fits of each template for each number C of components; templates differ in covariance type.

    Fits of all templates start from the same `n_init` partitions, and from those by the fits of other templates of the
    same C. With C increasing, they also start from partitions in which a component of the fit of the previous C is
    split; then, with C decreasing, from those in which two components of the fit of the next C are merged.
    run: function that returns a copy of a template that is fitted to the data with C components; its arguments are the
    template, the data, C, a generator of random numbers, and other arguments of the template
    numbers: numbers of components, increasing    n_turns: number of passes over them, upward and then downward
    """
    rng = np.random.RandomState(seed)
    levels = [FamilyFits(run, templates, data, C, rng) for C in numbers]
    for turn in range(n_turns):
        for k, level in enumerate(levels):
            shared = [level.initial(number) for number in range(n_init if level.C > 1 else 1)] if turn == 0 else []
            for i in range(len(templates)):
                level.improve(i, [*shared, *(level.split(levels[k - 1].fits[i]) if k else [])])
        for k, level in reversed(list(enumerate(levels))):
            for i in reversed(range(len(templates))):
                level.improve(i, level.merged(levels[k + 1].fits[i]) if k + 1 < len(levels) else [])
    return levels


def quality(fit: Any) -> tuple[int, float]:
    """Return a key that is greater for a better fit: fewer doubtful components, then greater free energy F."""
    counts = np.bincount(fit.labels_, minlength=fit.n_components)
    return -n_doubtful(judged_model(fit), counts), fit.lower_bound_


def judged_model(fit: Any) -> Any:
    """Return the parameters of a fitted mixture with its `reg_covar`, which tells whether components have collapsed."""
    model: Any = model_of(fit)
    return model if model.least_variances is None else replace(model, reg_covar=fit.reg_covar)


class FamilyFits:
    """Best fits of several templates with C components, and the partitions (N,) of the points from which they start.

    fits: best fit of each template    seconds: time in which the fits were found
    """

    def __init__(self, run: Any, templates: Sequence[Mixture], data: Any, C: int, rng: np.random.RandomState) -> None:
        self.run, self.templates, self.data, self.C, self.rng = run, templates, data, C, rng
        self.fits: list[Any] = [None] * len(templates)
        self.seconds = 0.0
        self._tried: list[list[NDArray[np.int32]]] = [[] for _ in templates]
        self._key = Key(int(rng.randint(2**31)))
        self._n_threads = templates[0].n_threads
        with computing(self._n_threads):
            template: Any = clone(templates[0]).set_params(**size_of(templates[0], C))
            self._opened: Data = opened_within(template, data.X, data.weights)
            self._options = options_of(template)

    def improve(self, i: int, starts: Sequence[NDArray[np.int32]]) -> None:
        """Fit template i from partitions that are new to it: `starts`, and those by the fits of the other templates."""
        began, best, tried = perf_counter(), self.fits[i], self._tried[i]
        others = [np.asarray(fit.labels_) for fit in self.fits if fit is not None]
        new = _distinct(tried, [*starts, *others], self.C)
        if best is None or new:  # Points that coincide have no partition into C parts.
            changes = {"init_params": StartingPartitions(tuple(new))} if new else {}
            fit = self.run(self.templates[i], self.data, self.C, self.rng, changes)
            tried += new
            tried += _distinct(tried, [np.asarray(fit.labels_)], self.C)
            self.fits[i] = fit if best is None else max(best, fit, key=quality)
        self.seconds += perf_counter() - began

    def initial(self, number: int) -> NDArray[np.int32]:
        """Return the partition of the initialization with this number, 0, 1, ….  (N,)"""
        return self._started(self._options, replace(self._key, run=number))

    def split(self, fit: Mixture) -> list[NDArray[np.int32]]:
        """Return partitions that divide components of a fit of fewer components.

        The first one is that by the nearest of its means and of added centers. Each of the others divides one
        component, and then those of largest extent, by planes through their means.
        """
        centers, labels = centers_of(fit), np.asarray(fit.labels_)
        before, n_more = len(centers), self.C - len(centers)
        with computing(self._n_threads):
            X, weights, rows = rows_in_memory(self._opened, self.rng)
            more = extended(X, centers, n_more, weights, self.rng, self._n_threads)
            found = [self._started(replace(self._options, means_init=more), self._key)]
            pairs, extents = np.repeat(centers[:, np.newaxis], 2, axis=1).astype(self._opened.dtype), np.zeros(before)
            for c, cell in enumerate(cells(X, weights, labels[rows], before)):
                if len(cell.points) > 1:
                    mean, variance, direction = principal(cell)
                    pairs[c] = mean + np.sqrt(variance) * np.stack([-direction, direction])
                    extents[c] = cell.weight * variance
            halves = self._opened.map(partial(_halves, labels, pairs), None, np.int32, numbered=True)
        order = np.argsort(-extents, kind="stable")
        for c in order[: _MOST if n_more <= before else 0]:
            divided = labels.copy()
            for i, part in enumerate([c, *order[order != c][: n_more - 1]]):
                divided[halves == 2 * part + 1] = before + i
            found.append(divided)
        return found

    def merged(self, fit: Mixture) -> list[NDArray[np.int32]]:
        """Return partitions that unite components of a fit of more components, those of most similar responsibilities.

        The similarity of components is the cosine of their responsibilities of all points (Ueda et al. 2000).
        """
        with computing(self._n_threads):
            overlap = self._opened.each(_Overlap(model_of(fit)))
        groups, labels = np.arange(len(overlap)), np.asarray(fit.labels_)
        while True:
            norms = np.sqrt(np.maximum(np.diagonal(overlap), np.finfo(np.float64).tiny))
            first, second = np.triu_indices(len(overlap), 1)
            order = np.argsort(-(overlap / (norms * norms[:, np.newaxis]))[first, second], kind="stable")
            united = [_united(groups, first[k], second[k]) for k in order[:_MOST]]
            if len(overlap) == self.C + 1:
                return [each[labels].astype(np.int32) for each in united]
            groups = united[0]
            same = np.eye(len(overlap) - 1)[_united(np.arange(len(overlap)), first[order[0]], second[order[0]])]
            overlap = same.T @ overlap @ same

    def _started(self, options: Any, key: Key) -> NDArray[np.int32]:
        with computing(self._n_threads):
            self._opened.begin(keep=False)
            model = options.problem(self._opened).plain_start(self._opened, key)
            placed = self._opened.placed
            labels = self._opened.labels() if placed else self._opened.map(partial(best_of, model), None, np.int32)
            return np.asarray(labels)


@dataclass(frozen=True)
class _Overlap:
    """Job that computes Σ_n w_n r_nc r_nd of the responsibilities r of all pairs of components: (C, C)."""

    model: Model

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, NDArray[np.float64]]:
        C = self.model.n_components
        step, total = max(1, _VALUES // C), np.zeros((C, C))
        for begin in range(0, len(block), step):
            rows = slice(begin, begin + step)
            r = self.model.responsibilities(block.X[rows])
            weights = 1.0 if block.sample_weight is None else block.sample_weight[rows, np.newaxis]
            total += r.T @ (weights * r)
        return None, total


def _halves(labels: NDArray[np.int32], pairs: NDArray, X: Rows, first: int) -> NDArray[np.int32]:
    """Return 2 c + h for rows of the components c, where h is 0 or 1, the nearer of the component's two centers: (n,).

    labels (N,): component of each row of the data    pairs (C, 2, D): two centers for each component
    first: number of the first row of X
    """
    own = labels[first : first + len(X)]
    found = 2 * own
    for c in np.unique(own):
        rows = np.flatnonzero(own == c)
        found[rows] += X[rows].nearest(pairs[c])[0][:, 0]
    return found


def _united(groups: NDArray[np.intp], a: int, b: int) -> NDArray[np.intp]:
    """Return the group of each component after the groups a < b are united, which lowers the numbers above b by 1."""
    united = np.where(groups == b, a, groups)
    return united - (united > b)


def _distinct(
    known: Sequence[NDArray[np.int32]], partitions: Sequence[NDArray[np.int32]], C: int
) -> list[NDArray[np.int32]]:
    """Return the partitions (N,) into C parts without empty ones that are not nearly equal to a known or earlier one.

    Two partitions are nearly equal if all but 3 % of the points of each part are in the same part of the other one.
    """
    found: list[NDArray[np.int32]] = []
    for labels in partitions:
        if len(np.unique(labels)) == C and not any(_are_near(labels, each, C) for each in [*known, *found]):
            found.append(labels)
    return found


def _are_near(first: NDArray[np.int32], second: NDArray[np.int32], C: int) -> bool:
    counts = np.bincount(first.astype(np.int64) * C + second, minlength=C * C).reshape(C, C)
    return all((counts.max(axis=k) >= _NEARLY_ALL * counts.sum(axis=k)).all() for k in (0, 1))
