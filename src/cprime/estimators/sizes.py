"""k-means with bounded cluster sizes: alternation of assignment within the bounds and means, after a free fit."""

import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose, seed_of
from cprime._utils.values import replace
from cprime.em import hard_free_energy
from cprime.em.hard import LabeledSums, SumLabeled
from cprime.estimators.solutions import KMeansSolution
from cprime.execution import Data, Local, local
from cprime.kernels import Floats, Infeasible, Rows, assign_bounded
from cprime.model.tied_spherical import variance_floor
from cprime.seeding import is_given, place
from cprime.seeding.kmeans_plusplus import choose_by_kmeans_plusplus
from cprime.seeding.random_rows import draw_rows

logger = logging.getLogger("cprime")

CANDIDATES = 16  # nearest centers that are candidates of a point at first
_LISTED = 4  # length of the neighbor lists that are searched, per candidate
_ACCURACY = 1e-4  # most that the costs of an assignment exceed the least ones, relative
_LARGE = 2**24  # N·C from which iterations within the bounds are few
_MOST_ITERATIONS, _LEAST_FALL = 10, 3e-3  # of large problems: most iterations, and least fall of J, relative
_MEDIUM = 2**22  # largest N·C for which there are further starts, and for which the best result is refined
_SMALL = 2**16  # largest N·C for which there are many starts
_STARTS, _FEW_STARTS = 8, 4  # further starts of small and of medium problems, by random rows and by k-means++
_FINE = 1e-6  # of refinement: accuracy of an assignment, and least fall of J, relative
_FEW_REASSIGNED = 1e-3  # share of reassigned points at which iterations by distances end
_MULTIPLE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*x\s*")


class _Balanced(NamedTuple):
    """Assignment within the bounds, and the nearest centers.

    centers (C, D)    labels (N,)    inertia: J    counts (C,): weight of each cluster
    nearest (N,), least: nearest center of each point that is known, and J of these
    """

    centers: Floats
    labels: NDArray[np.int32]
    inertia: float
    counts: NDArray[np.float64]
    nearest: NDArray[np.int32]
    least: float

    @property
    def n_displaced(self) -> int:
        """Return the number of points that are not with their nearest center."""
        return int(np.count_nonzero(self.nearest != self.labels))

    @property
    def size_cost(self) -> float:
        """Return the relative excess of J over that of the nearest centers."""
        return self.inertia / self.least - 1 if self.least > 0 else 0.0


def resolve_bounds(size_min: Any, size_max: Any, n_points: int, n_clusters: int) -> tuple[int, int]:
    """Return the least and the greatest number of points of a cluster, for the arguments `size_min` and `size_max`.

    Raises ValueError or TypeError that names the argument if a value is invalid, and ValueError if no assignment of the
    points to the clusters is within the bounds.
    """
    lower = 0 if size_min is None else _size(size_min, "size_min", n_points, n_clusters, math.floor)
    upper = n_points if size_max is None else _size(size_max, "size_max", n_points, n_clusters, math.ceil)
    if n_clusters * lower > n_points:
        raise ValueError(
            f"size_min={size_min!r} needs {n_clusters} * {lower} = {n_clusters * lower} points in n_clusters="
            f"{n_clusters} clusters, there are {n_points}."
        )
    if n_clusters * upper < n_points:
        raise ValueError(
            f"size_max={size_max!r} allows {n_clusters} * {upper} = {n_clusters * upper} points in n_clusters="
            f"{n_clusters} clusters, there are {n_points}."
        )
    if lower > upper:
        raise ValueError(f"size_min={size_min!r} ({lower} points) must not exceed size_max={size_max!r} ({upper}).")
    return lower, upper


def _size(value: Any, name: str, n_points: int, n_clusters: int, rounded: Any) -> int:
    if isinstance(value, str):
        found = _MULTIPLE.fullmatch(value)
        if found is None:
            raise ValueError(f'{name} must be a number of points or a text such as "1.2x", got {value!r}.')
        exact = float(found[1]) * n_points / n_clusters
        return int(rounded(exact - 1e-9 if rounded is math.ceil else exact + 1e-9))
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f'{name} must be an integer or a text such as "1.2x", got {value!r}.')
    if value < 0:
        raise ValueError(f"{name} == {value}, must be >= 0.")
    return int(value)


def check_data(data: Data) -> None:
    """Raise ValueError if sizes cannot be bounded for these data: rows on a cluster, or with missing values."""
    if data.gaps:
        raise ValueError("size_max and size_min need complete rows: impute missing values first.")
    if not isinstance(data, Local):
        raise ValueError("size_max and size_min need an array, a table or a source: Dask collections have no sizes.")


def balanced(k_means: Any, data: Data, free: KMeansSolution) -> KMeansSolution:
    """Return the solution within the bounds that follows a free fit.

    k_means: the estimator, whose parameters are used    data: rows in memory or of a source    free: result of the fit
    """
    assert free.record is not None
    found = _balance(k_means, data, free.centers, free.record.measured)
    weight = float(found.counts.sum())
    variance = max(found.inertia, float(np.finfo(float).tiny)) / (weight * data.n_features)
    model = k_means._model(found.centers, variance, variance_floor(found.centers))
    measured = {**free.record.measured, "labels": found.labels}
    return replace(
        free,
        centers=found.centers,
        variance=variance,
        counts=found.counts,
        inertia=found.inertia,
        lower_bound=hard_free_energy(model, found.inertia, weight),
        record=replace(free.record, measured=measured),
        n_displaced=found.n_displaced,
        size_cost=found.size_cost,
    )


def _balance(k_means: Any, data: Data, centers: Floats, measured: Mapping[str, Any]) -> _Balanced:
    """Return the assignment within the bounds that follows a free fit.

    The iterations begin with the centers of the free fit. If the problem is not large, they also begin from given
    centers, or from some starts by random rows and k-means++, and the result of least J is refined.
    """
    C, n_pairs = k_means.n_clusters, data.n_points * k_means.n_clusters
    lower, upper = resolve_bounds(k_means.size_min, k_means.size_max, data.n_points, C)
    weights = data.source.weights(0, data.n_points)  # type: ignore[attr-defined]
    options = _Options(
        np.full(C, lower),
        np.full(C, upper),
        weights,
        min(k_means.max_iter, _MOST_ITERATIONS) if n_pairs >= _LARGE else k_means.max_iter,
        max(k_means.tol, _LEAST_FALL) if n_pairs >= _LARGE else k_means.tol,
        _ACCURACY,
        k_means._means_of,
    )
    fine = options._replace(tol=min(options.tol, _FINE), accuracy=_FINE)
    lists = measured["neighbors"]
    first = _Candidates(data, lists, None if lists is None else measured["labels"])
    best = _alternate(data, options, centers, first)
    if n_pairs <= _MEDIUM and C > 1:
        for start, steps in _starts(k_means, data, options, fine):
            found = _alternate(data, steps[0], start, _Candidates(data))
            for step in steps[1:]:
                found = _alternate(data, step, found.centers, _Candidates(data))
            best = min(best, found, key=attrgetter("inertia"))
        best = min(best, _alternate(data, fine, best.centers, _Candidates(data)), key=attrgetter("inertia"))
    if measured["final_assignment"] != "exact":
        return best
    ids, squared = _Candidates(data, None, best.nearest, 1).find(best.centers)
    return best._replace(nearest=ids[:, 0], least=_sum_of(squared[:, 0], weights))


def _starts(
    k_means: Any, data: Data, options: "_Options", fine: "_Options"
) -> Iterator[tuple[Floats, tuple["_Options", ...]]]:
    """Yield further starting centers, and the options of the iterations that begin there, one after another.

    Iterations by distances lead to other optima than those by squared distances, from random rows often to better ones.
    """
    whole, C = data.whole(), k_means.n_clusters
    if is_given(k_means.init):
        centers = k_means._first_model(data, place(data, C, k_means.init, _no_random), True).centers
        yield centers, (fine,)
        yield centers, (fine._replace(by_distances=True, tol=0),)
    elif whole is not None:
        (X, weights), seed = whole, seed_of(k_means.random_state)
        for run in range(_STARTS if data.n_points * C <= _SMALL else _FEW_STARTS):
            rng = Key(seed, run).random_state(Purpose.SIZES)
            if run % 2:
                yield X[choose_by_kmeans_plusplus(X, C, weights, rng)].dense(), (options,)
            else:
                start = X[draw_rows(local(X, weights), C, rng)].dense()
                yield start, (options._replace(by_distances=True, tol=_FEW_REASSIGNED), options)


def _no_random() -> np.random.RandomState:
    raise AssertionError("given centers need no random numbers")


def _sum_of(squared: Floats, weights: NDArray[np.float64] | None) -> float:
    return float(np.add.reduce(squared, dtype=np.float64) if weights is None else (weights * squared).sum())


class _Options(NamedTuple):
    """Options of iterations.

    lower, upper (C,): bounds of the sizes    weights (N,) or None    tol: least fall of J, relative
    accuracy: most that the cost of an assignment exceeds the least one, relative    means: function for new centers
    by_distances: whether the sum of distances is minimized, not of squared ones; `tol` is then the share of reassigned
    points below which the iterations end
    """

    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    max_iter: int
    tol: float
    accuracy: float
    means: Callable[[LabeledSums, Floats], Floats]
    by_distances: bool = False


class _Candidates:
    """Search of the nearest centers of each point: among all, or in neighbor lists of the nearest one that is known.

    lists (C, G): neighbor lists of the centers, or None    nearest (N,): the nearest centers, if they are known
    prices (C,): prices of the clusters in the last assignment, or None
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
        """Return the nearest centers of each point, nearest first, and the squared distances: (N, K) each.

        Lists may have fewer than K centers; ids are then filled with −1.
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
    """Alternate assignment within the bounds and means until J hardly falls; return the best state."""
    best, labels = None, None
    for iteration in range(1, options.max_iter + 1):
        found = _assign(candidates, centers, options)
        logger.info("sizes, iteration %d: J %.6g within the bounds", iteration, found.inertia)
        sums = data.each(SumLabeled(found.labels, len(centers)))
        if options.by_distances:
            n_reassigned = data.n_points if labels is None else np.count_nonzero(labels != found.labels)
            converged = bool(n_reassigned <= options.tol * data.n_points)
        else:
            converged = best is not None and best.inertia - found.inertia <= options.tol * found.inertia
        if best is None or best.inertia > found.inertia:
            best = found._replace(counts=sums.counts)
        if converged:
            break
        labels, centers = found.labels, options.means(sums, centers)
    assert best is not None
    return best


def _assign(candidates: _Candidates, centers: Floats, options: _Options) -> _Balanced:
    """Return the assignment within the bounds for these centers, without counts.

    If the bounds cannot be met among the candidates of the points, there are four times as many from then on.
    """
    weights = options.weights
    while True:
        ids, squared = candidates.find(centers)
        costs = np.sqrt(squared) if options.by_distances else squared
        if weights is not None:
            costs = np.where(ids < 0, 0, costs) * weights[:, np.newaxis]
        try:
            labels, candidates.prices = assign_bounded(
                ids, costs, options.lower, options.upper, candidates.prices, accuracy=options.accuracy
            )
            break
        except Infeasible:
            if candidates.n_candidates == len(centers):
                raise
            candidates.n_candidates, candidates.prices = min(4 * candidates.n_candidates, len(centers)), None
    J, least = _sum_of(squared[ids == labels[:, np.newaxis]], weights), _sum_of(squared[:, 0], weights)
    return _Balanced(centers, labels, J, np.empty(0), ids[:, 0].copy(), least)


def n_bytes(n_points: int, n_clusters: int, itemsize: int, weighted: bool) -> int:
    """Return the bytes of the candidates of all points, and of their assignment.

    These are ids of two iterations, squared distances (and costs in float64, if points have weights), and lists of
    points in the auction.
    """
    K = min(CANDIDATES, n_clusters)
    return n_points * (K * (2 * 4 + itemsize + 8 * weighted) + 9 * 4)
