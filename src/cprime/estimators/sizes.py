"""k-means with bounded cluster sizes: alternation of assignment within the bounds and means, after a free fit."""

import logging
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._utils.random import Key, Purpose, seed_of
from cprime.em.transport import Infeasible, Sizes, assign
from cprime.execution import Data, Local
from cprime.execution.block import ActiveSet, Block
from cprime.execution.statistics import Sums
from cprime.kernels import Floats, Rows
from cprime.seeding import is_given, place
from cprime.seeding.kmeans_plusplus import choose_by_kmeans_plusplus

logger = logging.getLogger("cprime")

_CANDIDATES = 16  # nearest centers that are candidates of a point at first
_LARGE = 2**24  # N·C from which iterations within the bounds are few
_MOST_ITERATIONS, _LEAST_FALL = 10, 1e-3  # of large problems: most iterations, and least fall of J, relative
_SMALL = 2**16  # largest N·C for which there are further starts, and iterations until J falls by less than 0.001 %
_STARTS = 4  # further starts of small problems, by k-means++
_MULTIPLE = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*x\s*")


@dataclass(frozen=True)
class LabeledSums(Sums):
    """Sums over the points of each cluster: counts (C,) Σ w, and sums (C, D) Σ w x."""

    counts: NDArray[np.float64]
    sums: NDArray[np.float64]


@dataclass(frozen=True)
class SumLabeled:
    """Job that computes `LabeledSums` of C clusters for given labels of all points (N,)."""

    labels: NDArray[np.int32]
    n_clusters: int

    reads: ClassVar[bool] = True
    keeps: ClassVar[bool] = False

    def __call__(self, block: Block, kept: ActiveSet | None) -> tuple[None, LabeledSums]:
        own = self.labels[block.rows(np.arange(len(block)))][:, np.newaxis]
        found = block.X.accumulate(own, None, block.sample_weight, n_components=self.n_clusters)
        return None, LabeledSums(*found)


class _Result(NamedTuple):
    """Assignment within the bounds: J, the centers (C, D), the labels (N,), and the weight of each cluster (C,)."""

    inertia: float
    centers: Floats
    labels: NDArray[np.int32]
    counts: NDArray[np.float64]


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


def balance(k_means: Any, data: Data, lower: int, upper: int) -> None:
    """Replace the result of a free fit by one within the bounds: labels, centers, J and what is derived from these.

    The iterations begin with the centers of the free fit; if the problem is small, they are repeated from given centers
    or from a few starts of k-means++, and the result of least J is taken.
    """
    bounds = np.full(k_means.n_clusters, lower), np.full(k_means.n_clusters, upper)
    weights = data.source.weights(0, data.n_points)  # type: ignore[attr-defined]
    results = (_alternate(k_means, data, weights, bounds, start) for start in _starts(k_means, data))
    J, centers, labels, counts = min(results, key=attrgetter("inertia"))
    ids, squared = _candidates(data, centers, 1)
    nearest, free = ids[:, 0], squared[:, 0].astype(np.float64)
    least = float((free if weights is None else weights * free).sum())
    k_means.cluster_centers_, k_means.labels_, k_means.inertia_, k_means.counts_ = centers, labels, J, counts
    k_means.variance_ = max(J, float(np.finfo(np.float64).tiny)) / (counts.sum() * data.n_features)
    k_means.lower_bound_ = em.hard_free_energy(k_means._parameters(), J, float(counts.sum()))
    k_means.n_displaced_ = int(np.count_nonzero(nearest != labels))
    k_means.size_cost_ = J / least - 1 if least > 0 else 0.0


def _starts(k_means: Any, data: Data) -> Iterator[Floats]:
    """Yield the starting centers of the iterations within the bounds: those of the free fit, and some others."""
    yield k_means.cluster_centers_
    whole = data.whole()
    if data.n_points * k_means.n_clusters > _SMALL or whole is None or k_means.n_clusters == 1:
        return
    if is_given(k_means.init):
        yield k_means._first_model(data, place(data, k_means.n_clusters, k_means.init, _no_random), True).centers
        return
    (X, weights), seed = whole, seed_of(k_means.random_state)
    for run in range(_STARTS):
        rng = Key(seed, run).random_state(Purpose.SIZES)
        yield X[choose_by_kmeans_plusplus(X, k_means.n_clusters, weights, rng)].dense()


def _no_random() -> np.random.RandomState:
    raise AssertionError("given centers need no random numbers")


def _alternate(
    k_means: Any, data: Data, weights: NDArray[np.float64] | None, bounds: tuple[Sizes, Sizes], centers: Floats
) -> _Result:
    """Alternate assignment within the bounds and means until J hardly falls; return the best state."""
    C, prices, n_candidates = k_means.n_clusters, None, _CANDIDATES
    n_iter, tol, n_pairs = k_means.max_iter, k_means.tol, data.n_points * C
    if n_pairs >= _LARGE:
        n_iter, tol = min(n_iter, _MOST_ITERATIONS), max(tol, _LEAST_FALL)
    elif n_pairs <= _SMALL:
        tol = min(tol, 1e-5)
    best: _Result | None = None
    for iteration in range(1, n_iter + 1):
        labels, costs, prices, n_candidates = _within_bounds(data, centers, weights, *bounds, prices, n_candidates)
        J = float(costs.sum())
        logger.info("sizes, iteration %d: J %.6g within the bounds", iteration, J)
        found = data.each(SumLabeled(labels, C))
        settled = best is not None and best.inertia - J <= tol * J
        if best is None or best.inertia > J:
            best = _Result(J, centers, labels, found.counts)
        if settled:
            break
        centers = k_means._means_of(found, centers)
    assert best is not None
    return best


def _candidates(data: Data, centers: Floats, n_candidates: int) -> tuple[NDArray[np.int32], Floats]:
    """Return the nearest centers of each point, nearest first, and the squared distances: (N, K) each."""
    found: tuple[NDArray[np.int32], Floats]
    found = data.map(partial(_near, centers, n_candidates), n_candidates, (np.int32, centers.dtype))
    return found


def _near(centers: Floats, n_candidates: int, X: Rows) -> tuple[NDArray[np.int32], Floats]:
    return X.nearest(centers, n_candidates)


def _within_bounds(
    data: Data,
    centers: Floats,
    weights: NDArray[np.float64] | None,
    lower: Sizes,
    upper: Sizes,
    prices: NDArray[np.float64] | None,
    n_candidates: int,
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], int]:
    """Return labels (N,) within the bounds, weighted squared distances (N,), prices of the clusters (C,), and K.

    Candidates are the K nearest centers of each point, four times as many if the bounds cannot be met among these.
    """
    C, n_candidates = len(centers), min(n_candidates, len(centers))
    while True:
        ids, squared = _candidates(data, centers, n_candidates)
        costs = squared.astype(np.float64) if weights is None else squared * weights[:, np.newaxis]
        try:
            labels, prices = assign(ids, costs, lower, upper, prices)
        except Infeasible:
            if n_candidates == C:
                raise
            n_candidates, prices = min(4 * n_candidates, C), None
            continue
        own = np.take_along_axis(costs, (ids == labels[:, np.newaxis]).argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
        return labels, own, prices, n_candidates
