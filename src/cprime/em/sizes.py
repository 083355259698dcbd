"""k-means with bounded cluster sizes.

After a fit without bounds ("free" fit), two steps alternate: the points are assigned to centers such that the sizes are
within the bounds and the cost is least, and centers become the means of their points.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose
from cprime._utils.values import replace
from cprime.em.hard import LabeledSums, SumLabeled
from cprime.em.k_means import hard_free_energy
from cprime.em.loop import Run
from cprime.em.solving import Problem
from cprime.execution import Data, local
from cprime.kernels import COPIES_OF_POINTS, Floats, Infeasible, Rows, assign_bounded, assign_weighted
from cprime.model.base import means_of
from cprime.model.tied_spherical import variance_floor
from cprime.model.unit import directions
from cprime.seeding import is_given
from cprime.seeding.kmeans_plusplus import choose_by_kmeans_plusplus
from cprime.seeding.methods import name_of
from cprime.seeding.random_rows import draw_rows

logger = logging.getLogger("cprime")

CANDIDATES = 16  # Number of nearest centers of a point to one of which it is assigned; more if sizes do not allow it.
_LISTED = 4  # To find K candidates of a point, the first 4 K neighbors in the list of its nearest center are searched.
_ACCURACY = 1e-4  # Largest relative excess of the cost of an assignment over the least possible cost.
_LARGE = 2**24  # Least N·C of large problems (N points, C clusters), whose iterations end earlier.
_MOST_ITERATIONS, _LEAST_FALL = 10, 3e-3  # Large problems: most iterations, and relative fall of J at which they end.
# Largest N·C (points × clusters) for which iterations start also from other centers than those of the fit without
# bounds, and the best result is refined.
_MEDIUM = 2**22
_SMALL = 2**16  # Largest N·C of small problems (N points, C clusters), which have more random starts.
_STARTS, _FEW_STARTS = 8, 4  # Number of random starts for N·C (points × clusters) up to 2¹⁶, and up to 2²².
# If N·C is above 2¹⁶, or points have weights, each run of iterations from a random start ends after _SHORT iterations.
# Then the _CONTINUED starts of least J are continued until convergence.
_SHORT, _CONTINUED = 5, 2
# Relative accuracy of assignments, and relative fall of J at which iterations end, for iterations from centers that the
# user gives, and for the refinement of the best result.
_FINE = 1e-6
_FEW_REASSIGNED = 1e-3  # Share of reassigned points at which iterations that minimize a sum of distances end.


class SizeBounds(NamedTuple):
    """Bounds of the sizes of clusters.

    lower, upper (C,): least and greatest size of each cluster: the number of its points, int64, or if points have
    weights the sum of these, float64
    """

    lower: NDArray[Any]
    upper: NDArray[Any]

    def match(self, counts: NDArray[Any]) -> NDArray[np.intp]:
        """Return an order (C,) of clusters of these `counts` (C,) in which greater clusters have greater bounds."""
        order = np.empty(len(counts), dtype=np.intp)
        order[np.argsort(self.lower + self.upper, kind="stable")] = np.argsort(counts, kind="stable")
        return order


@dataclass(frozen=True, eq=False)
class BoundedSizes:
    """`finish` of the problem of a k-means: it continues a fit without bounds by iterations within bounds of sizes.

    bounds: the bounds    metric: "euclidean" or "cosine"
    max_iter, tol: most iterations, and relative fall of J at which they end
    """

    bounds: SizeBounds
    metric: str
    max_iter: int
    tol: float

    def __call__(
        self, data: Data, problem: Problem, key: Key, run: Run, found: Mapping[str, Any]
    ) -> tuple[Run, dict[str, Any]]:
        """Return the final state of the fit and its measured values, with labels within the bounds.

        data: rows in memory or of a source    run, found: results of the fit without bounds, as `solve` returns them
        """
        assert run.counts is not None
        centers, jumps = run.model.centers, problem.plan.jumps or problem.plan.improved
        has_different_bounds = len(set(zip(self.bounds.lower.tolist(), self.bounds.upper.tolist(), strict=True))) > 1
        # Clusters have the ids of given starting centers unless centers jump, so that bounds refer to these ids.
        keeps_ids = name_of(problem.init) == "known" or (is_given(problem.init) and not jumps)
        matches = has_different_bounds and not keeps_ids
        if matches:
            order = self.bounds.match(run.counts)
            centers, found = centers[order], _reordered(found, order)
        best = self._balance(data, problem, key, centers, found, matches)
        weight = float(best.counts.sum())
        variance = max(best.inertia, float(np.finfo(float).tiny)) / (weight * data.n_features)
        model = type(run.model)(best.centers, variance, variance_floor(best.centers))
        run = replace(
            run,
            model=model,
            error=best.inertia,
            counts=best.counts,
            bound=hard_free_energy(model, best.inertia, weight),
        )
        return run, {
            **found,
            "labels": best.labels,
            "final_assignment": "bounded",
            "n_displaced": int(np.count_nonzero(best.nearest != best.labels)),
            "size_cost": best.inertia / best.least - 1 if best.least > 0 else 0.0,
        }

    def _balance(
        self, data: Data, problem: Problem, key: Key, centers: Floats, found: Mapping[str, Any], matches: bool
    ) -> "_Balanced":
        """Return the best assignment within the bounds that iterations from several starting centers find.

        The iterations start from `centers` (C, D), the result of a fit without bounds. If N·C is at most 2²²
        (`_MEDIUM`), other iterations start from the centers that the user gives, or from random rows and k-means++.
        Above 2¹⁶ (`_SMALL`) the latter are few; then, or with weights, only the best two starts are continued. The
        result of least J is refined by iterations with narrow tolerances.
        found: dictionary with the labels and the neighbor lists of the fit without bounds
        matches: whether larger clusters of other starting centers get larger bounds
        """
        C, n_pairs = len(centers), data.n_points * len(centers)
        weights = data.source.weights(0, data.n_points)  # type: ignore[attr-defined]
        options = _Options(
            self.bounds,
            weights,
            min(self.max_iter, _MOST_ITERATIONS) if n_pairs >= _LARGE else self.max_iter,
            max(self.tol, _LEAST_FALL) if n_pairs >= _LARGE else self.tol,
            _ACCURACY,
            self.metric,
        )
        fine = replace(options, tol=min(options.tol, _FINE), accuracy=_FINE)
        lists = found["neighbors"]
        first = _Candidates(data, lists, None if lists is None else found["labels"])
        best = _alternate(data, options, centers, first)
        if n_pairs <= _MEDIUM and C > 1:
            shortens = (n_pairs > _SMALL or weights is not None) and not is_given(problem.init)
            short = replace(options, max_iter=min(options.max_iter, _SHORT)) if shortens else options
            others = []
            for start, steps in _starts(data, problem, key, short, fine, matches):
                other = _alternate(data, steps[0], start, _Candidates(data))
                for step in steps[1:]:
                    other = _alternate(data, step, other.centers, _Candidates(data))
                others.append(other)
            if shortens:
                others = sorted(others, key=attrgetter("inertia"))[:_CONTINUED]
                others = [_alternate(data, options, other.centers, _Candidates(data)) for other in others]
            best = min([best, *others], key=attrgetter("inertia"))
            best = min(best, _alternate(data, fine, best.centers, _Candidates(data)), key=attrgetter("inertia"))
        if found["final_assignment"] != "exact":
            return best
        ids, squared = _Candidates(data, None, best.nearest, 1).find(best.centers)
        return replace(best, nearest=ids[:, 0], least=_sum_of(squared[:, 0], weights))


def assign_within(data: Data, centers: Floats, bounds: SizeBounds) -> tuple[NDArray[np.int32], Floats]:
    """Assign points to centers (C, D), which do not change, within bounds of sizes at the least J.

    Return the cluster of each point (N,), and its squared distance to the center (N,).
    """
    weights, candidates = data.source.weights(0, data.n_points), _Candidates(data)  # type: ignore[attr-defined]
    labels = _assign(candidates, centers, _Options(bounds, weights, 1, 0.0, _FINE, "euclidean")).labels
    ids, squared = candidates.find(centers)
    return labels, squared[ids == labels[:, np.newaxis]]


class _Balanced(NamedTuple):
    """Assignment of points to clusters within the bounds of sizes, compared with the nearest centers.

    centers (C, D)    labels (N,): cluster of each point    inertia: J of the labels
    counts (C,): total weight of each cluster
    nearest (N,): nearest center of each point among its candidates    least: J of `nearest`
    """

    centers: Floats
    labels: NDArray[np.int32]
    inertia: float
    counts: NDArray[np.float64]
    nearest: NDArray[np.int32]
    least: float


def _reordered(found: Mapping[str, Any], order: NDArray[np.intp]) -> dict[str, Any]:
    """Return the measured values of a fit with its clusters in another order (C,): c is the former cluster order[c]."""
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    lists = found["neighbors"]
    if lists is not None:
        lists = np.where(lists < 0, lists, rank[lists])[order]
    return {**found, "labels": rank[found["labels"]], "neighbors": lists}


def _starts(
    data: Data, problem: Problem, key: Key, options: "_Options", fine: "_Options", matches: bool
) -> Iterator[tuple[Floats, tuple["_Options", ...]]]:
    """Yield pairs: starting centers (C, D), and a tuple with the options of each run of iterations from them.

    A second run continues from the centers of the first. The pairs depend on the initialization of the problem:

    - If it gives centers, two pairs have these: one run with `fine`, and one that minimizes the sum of distances.
    - Otherwise four or eight pairs alternate: random rows, with a first run that minimizes the sum of distances and a
      second one with `options`; and centers by k-means++, with one run with `options`. Data in chunks have no pairs.

    Minimizing distances leads to other optima than squared distances do, from random rows often to better ones.
    options: usual tolerances    fine: the same options with narrower tolerances
    matches: whether larger clusters get larger bounds
    """
    whole, C = data.whole(), len(options.bounds.lower)
    if is_given(problem.init):
        centers = problem.plain_start(data, Key(0)).centers
        yield centers, (fine,)
        yield centers, (replace(fine, by_distances=True, tol=0),)
    elif whole is not None:
        X, weights = whole
        for run in range(_STARTS if data.n_points * C <= _SMALL else _FEW_STARTS):
            rng = replace(key, run=run).random_state(Purpose.SIZES)
            rows = choose_by_kmeans_plusplus(X, C, weights, rng) if run % 2 else draw_rows(local(X, weights), C, rng)
            start = X[rows].dense()
            if matches:
                start = start[options.bounds.match(np.bincount(X.nearest(start)[0][:, 0], weights, C))]
            by_distances = replace(options, by_distances=True, tol=_FEW_REASSIGNED)
            yield start, (options,) if run % 2 else (by_distances, options)


def _sum_of(squared: Floats, weights: NDArray[np.float64] | None) -> float:
    return float(np.add.reduce(squared, dtype=np.float64) if weights is None else (weights * squared).sum())


class _Options(NamedTuple):
    """Options of iterations of k-means with bounded cluster sizes.

    bounds: bounds of the sizes    weights (N,): weights of the points, or None
    max_iter: maximum number of iterations
    tol: iterations end if the relative fall of J is at most this
    accuracy: largest relative excess of the cost of an assignment over the least possible cost
    metric: "euclidean" or "cosine"
    by_distances: whether the sum of distances is minimized, not that of squared distances. The iterations then end if
    at most the share `tol` of the points is reassigned.
    """

    bounds: SizeBounds
    weights: NDArray[np.float64] | None
    max_iter: int
    tol: float
    accuracy: float
    metric: str
    by_distances: bool = False


class _Candidates:
    """Search of the K nearest centers of each point, which are the candidates in assignments within the bounds.

    The search compares a point with the neighbor list of its nearest center so far. Without lists, or if these are
    shorter than twice K, it compares the point with all centers.
    lists (C, G): the G neighbors of each center, or None    nearest (N,): nearest center of each point, or None
    n_candidates: K
    prices (C,): numbers added to the costs of clusters so that sizes are within the bounds, from the last assignment;
    the next assignment starts from them. None before the first assignment.
    """

    def __init__(
        self,
        data: Data,
        lists: NDArray[np.int32] | None = None,
        nearest: NDArray[np.int32] | None = None,
        n_candidates: int = CANDIDATES,
    ) -> None:
        self._data, self._lists, self.n_candidates = data, lists, n_candidates
        self.prices: NDArray[np.float64] | None = None
        self._known = None if nearest is None else nearest[:, np.newaxis]

    def find(self, centers: Floats) -> tuple[NDArray[np.int32], Floats]:
        """Return the K = n_candidates nearest centers of each point, nearest first, and squared distances: (N, K) each.

        If the search in neighbor lists finds fewer than K centers of a point, the other ids are −1.
        """
        n_candidates = self.n_candidates = min(self.n_candidates, len(centers))
        known, lists, width = self._known, self._lists, _LISTED * n_candidates + 1
        all_of_them = n_candidates == len(centers)
        if all_of_them or lists is None or known is None or lists.shape[1] < min(2 * n_candidates, len(centers)):
            same = known is not None and known.shape[1] == n_candidates and (known >= 0).all()
            job = partial(_near, centers, n_candidates, known if same else None)
        else:
            job = partial(_near_in_lists, centers, n_candidates, np.ascontiguousarray(lists[:, :width]), known)
        dtypes = np.int32, centers.dtype
        found: tuple[NDArray[np.int32], Floats] = self._data.map(job, n_candidates, dtypes, numbered=True)
        self._known = found[0]
        return found


def _near(
    centers: Floats, n_candidates: int, hint: NDArray[np.int32] | None, X: Rows, first: int
) -> tuple[NDArray[np.int32], Floats]:
    return X.nearest(centers, n_candidates, hint=None if hint is None else hint[first : first + len(X)])


def _near_in_lists(
    centers: Floats, n_candidates: int, lists: NDArray[np.int32], known: NDArray[np.int32], X: Rows, first: int
) -> tuple[NDArray[np.int32], Floats]:
    own = known[first : first + len(X)]
    return X.search_lists(centers, lists, np.ascontiguousarray(own[:, :1]), n_candidates, extra=own)[:2]


def _alternate(data: Data, options: _Options, centers: Floats, candidates: _Candidates) -> _Balanced:
    """Alternate between assignment within the bounds and means; return the assignment of least J.

    The iterations start with `centers` (C, D), and end if they have converged or after `options.max_iter`.
    """
    best, labels = None, None
    for iteration in range(1, options.max_iter + 1):
        found = _assign(candidates, centers, options)
        logger.debug("sizes, iteration %d: J %.6g within the bounds", iteration, found.inertia)
        sums = data.each(SumLabeled(found.labels, len(centers)))
        if options.by_distances:
            n_reassigned = data.n_points if labels is None else np.count_nonzero(labels != found.labels)
            converged = bool(n_reassigned <= options.tol * data.n_points)
        else:
            converged = best is not None and best.inertia - found.inertia <= options.tol * found.inertia
        if best is None or best.inertia > found.inertia:
            best = replace(found, counts=sums.counts)
        if converged:
            break
        labels, centers = found.labels, _means(sums, centers, options.metric)
    assert best is not None
    return best


def _means(found: LabeledSums, centers: Floats, metric: str) -> Floats:
    """Return the means of the points of each cluster as centers (C, D); an empty cluster keeps its center.

    If the metric is "cosine", the means are scaled to length 1; a mean of 0 has no direction, so the center stays.
    found: total weight and sum of the points of each cluster    centers (C, D): the present centers
    """
    if metric == "cosine":
        return directions(found.counts, found.sums, centers)[0].astype(centers.dtype)
    return means_of(found.counts, found.sums, centers).astype(centers.dtype)


def _assign(candidates: _Candidates, centers: Floats, options: _Options) -> _Balanced:
    """Return the assignment of points to these centers that has the least cost within the bounds of cluster sizes.

    The field `counts` of the result is an empty array; `_alternate` replaces it by the weights of the clusters.
    If no assignment of points to their candidates is within the bounds, the number of candidates per point is
    multiplied by four, for all later assignments too.
    """
    weights, bounds = options.weights, options.bounds
    while True:
        ids, squared = candidates.find(centers)
        costs = np.sqrt(squared) if options.by_distances else squared
        given = bounds.lower, bounds.upper, candidates.prices
        try:
            if weights is None:
                labels, candidates.prices = assign_bounded(ids, costs, *given, accuracy=options.accuracy)
            else:  # Points of weight 0 take no place: they stay with their nearest centers.
                labels, rows = ids[:, 0].copy(), weights > 0
                labels[rows], candidates.prices = assign_weighted(
                    ids[rows], costs[rows], weights[rows], *given, accuracy=options.accuracy
                )
            break
        except Infeasible:
            if candidates.n_candidates == len(centers):
                raise
            candidates.n_candidates, candidates.prices = min(4 * candidates.n_candidates, len(centers)), None
    J, least = _sum_of(squared[ids == labels[:, np.newaxis]], weights), _sum_of(squared[:, 0], weights)
    return _Balanced(centers, labels, J, np.empty(0), ids[:, 0].copy(), least)


def n_bytes(n_points: int, n_clusters: int, itemsize: int, weighted: bool) -> int:
    """Return the bytes that an assignment of n_points points to clusters of bounded size needs.

    These are the candidates of each point in two iterations, their squared distances, and the arrays of the auction
    algorithm that finds the assignment. If points have weights, their copies have candidates and distances too.
    itemsize: bytes per squared distance    weighted: whether points have weights
    """
    K, copies = min(CANDIDATES, n_clusters), 2 * COPIES_OF_POINTS if weighted else 0
    return n_points * (K * (2 * 4 + itemsize + copies * (5 + itemsize)) + max(1, copies) * 9 * 4)
