"""Starting partitions for several starts of a mixture, which differ in their method and in the scale of the columns.

k-means with jumps finds nearly the same clusters in each start, so a mixture that starts from them ends alike. Ward's
agglomeration, as in mclust (Scrucca et al. 2016), Lloyd's iterations from random rows, and random rows themselves lead
to other optima. Likelihoods do not depend on the unit of a column ("diag") or on any linear map ("full", "tied"), but
squared distances do, so some of the starts use columns of equal variance, or whitened columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from cprime._utils.random import Key
from cprime._utils.values import replace
from cprime.em.expectation import Label
from cprime.em.hard import SetLabels
from cprime.em.joins import children_of, cluster_of, ward_joins
from cprime.em.loop import FitPlan, run
from cprime.em.mixture import EM
from cprime.execution import Data, local, rows_of
from cprime.kernels import Rows, as_rows
from cprime.model import Model, Tied
from cprime.seeding.jumps import start_by_jumps
from cprime.seeding.kmeans_plusplus import choose_by_kmeans_plusplus
from cprime.seeding.random_rows import draw_rows

# A starting partition is computed for a sample of the rows. Least number of rows in it: in total, and per component.
_LEAST, _PER_COMPONENT = 1000, 20
# Maximum number n of rows for Ward's agglomeration, which takes O(n²) time; more rows are clustered by k-means.
_OF_WARD = 1000
# Maximum number of Lloyd's iterations by which a starting partition is computed.
_ITERATIONS = 30
# Columns are whitened if there are at least this many rows per column; otherwise they are scaled to equal variance.
_PER_COLUMN = 5
# Number of short runs of EM, of which the best is continued, and number of iterations of each.
_CANDIDATES, _SHORT = 10, 5
# The same for partitions that are given: number of iterations in each round, and number of runs continued after it.
_ROUNDS = ((2, 8), (4, 4), (12, 2), (30, 1))
# A component is doubtful if it has fewer points than the first number per column, and a variance of at most the second
# number times `reg_covar`.
_FEW, _NARROW = 10, 100
# Short runs are made only if an iteration computes at most this many densities, because for larger data they would take
# longer than the rest of the fit.
_SMALL = 2**16
# For whitening, the variance of each column is increased by this share, so that the covariance is not singular.
_RIDGE = 1e-6


@dataclass(frozen=True)
class PartitionStart:
    """Initialization by a partition of the points, computed in the space of raw, scaled or whitened columns.

    method: "ward", "jumps" (k-means with jumps of centers), "lloyd" (k-means from random rows), "lloyd++" (from rows
    chosen by k-means++) or "rows" (random rows are centers)
    space: "raw", "columns" (scaled to equal variance) or "whitened"
    The partition is that of a sample. If this is not all rows, each row is assigned to the nearest center of the space.
    """

    method: str
    space: str

    name: ClassVar[str] = "partition"

    def centers(self, data: Data, n_clusters: int, rng: np.random.RandomState) -> NDArray:
        """Partition the data into C parts; return the centers (C, D) of the parts as starting centers.

        The active set of each point in `data` becomes the part to which the point belongs.
        """
        N = data.n_weighted
        if n_clusters > N:
            return data.take(np.sort(draw_rows(data, n_clusters, rng))).X.dense()
        n = max(_LEAST, _PER_COMPONENT * n_clusters)
        numbers = np.arange(N) if 2 * n >= N else np.sort(rng.choice(N, n, replace=False))
        taken = data.take(rows_of(data, numbers))
        X = taken.X.dense().astype(np.float64)
        w = np.ones(len(X)) if taken.sample_weight is None else taken.sample_weight
        mean, lower = _scale(X, w, self.space)
        scaled = np.ascontiguousarray(solve_triangular(lower, (X - mean).T, lower=True).T)
        centers, labels = _clusters(as_rows(scaled), w, n_clusters, self.method, rng)
        raw = (mean + centers @ lower.T).astype(data.dtype)
        if len(numbers) == data.n_points:
            data.each(SetLabels(labels))
        else:
            data.each(Label(Tied(raw, lower @ lower.T)))
        data.commit()
        return raw


@dataclass(frozen=True)
class StartingPartitions:
    """Initialization by several partitions of the points: a fit continues the best of short runs from all of them.

    labels: the component of each point (N,) int32, for each partition
    """

    labels: tuple[NDArray[np.int32], ...]

    name: ClassVar[str] = "partitions"


# Initializations of the successive starts of init_params="auto": first the six of the first tuple, then those of
# the second tuple in turn, again and again.
_FIRST = (
    "kmeans",
    "k-means++",
    "random",
    PartitionStart("ward", "raw"),
    PartitionStart("ward", "columns"),
    PartitionStart("jumps", "whitened"),
)
_LATER = (
    PartitionStart("lloyd", "raw"),
    PartitionStart("lloyd++", "columns"),
    "random",
    PartitionStart("rows", "whitened"),
    "k-means++",
    PartitionStart("lloyd", "whitened"),
)


def diverse_start(number: int) -> "str | PartitionStart":
    """Return the initialization of the start with this number (0, 1, …): a method's name or a `PartitionStart`."""
    return _FIRST[number] if number < len(_FIRST) else _LATER[(number - len(_FIRST)) % len(_LATER)]


def is_chosen(number: int) -> bool:
    """Return whether the start with this number consists of several short runs, of which the best is continued.

    The first six starts, of different kinds, have a single run each.
    """
    return number >= len(_FIRST)


def best_of_short_runs(data: Data, start: Callable[[Key], Model], plan: FitPlan, key: Key) -> Model:
    """Return the parameters of the best of several short runs of EM (Biernacki, Celeux & Govaert 2003).

    start: function that returns the starting parameters for a random key. The field `run` of the key selects the
    initialization. Each run has another number, so the runs differ in their initialization.
    For large data, the parameters of a single start are returned, because the runs would take longer than the rest of
    the fit.
    """
    if data.n_weighted * plan.n_kept > _SMALL:
        return start(key)
    plan = replace(plan, stage=EM(replace(plan.stage.settings, tol=0.0)))  # type: ignore[attr-defined]
    first = len(_FIRST) + (key.run - len(_FIRST)) * _CANDIDATES
    keys = [replace(key, run=first + i) for i in range(_CANDIDATES)]
    return best_of([partial(start, each) for each in keys], data, plan, keys, [(_SHORT, 1)])


def best_of(
    starts: Sequence[Callable[[], Model]],
    data: Data,
    plan: FitPlan,
    keys: Sequence[Key],
    rounds: Sequence[tuple[int, int]] = _ROUNDS,
) -> Model:
    """Return the parameters of the best run of EM from several starts, in rounds after which the worse runs end.

    The best run has the fewest doubtful components and, among these, the greatest free energy.
    starts: functions that return starting parameters    keys: random key of each run
    rounds: greatest number of iterations of each run in a round, and number of runs that are continued after it. The
    first round is of plain EM, because momentum takes time and needs more iterations to be of use.
    """
    for k, (n_iterations, n_continued) in enumerate(rounds):
        settings = replace(plan.stage.settings, max_iter=n_iterations)  # type: ignore[attr-defined]
        stage = EM(settings) if k == 0 else replace(plan.stage, settings=settings)
        short = replace(plan, stage=stage, callback=None)
        fits = [run(data, start, short, key) for start, key in zip(starts, keys, strict=True)]
        doubts = [n_doubtful(fit.model, fit.counts) for fit in fits]
        order = sorted(range(len(fits)), key=lambda i: (doubts[i], -fits[i].bound))[:n_continued]
        keys = [keys[i] for i in order]
        starts = [partial(_itself, fits[i].model) for i in order]
    data.begin(keep=False)
    return starts[0]()


def n_doubtful(model: Model, counts: Any) -> int:
    """Return the number of components that have collapsed, or are about to: of few points and nearly no extent.

    Such a component is one of fewer than 10 D points whose least variance is at most 100 times `reg_covar`. It is often
    due to a value that occurs several times in the data.    counts (C,): weight of the points of each component
    """
    least: Any = model.least_variances
    if least is None or model.n_collapsed:
        return model.n_collapsed
    is_narrow = least <= _NARROW * getattr(model, "reg_covar", 0.0)
    return 0 if is_narrow.all() else int((is_narrow & (np.asarray(counts) < _FEW * model.n_features)).sum())


def _itself(model: Model) -> Model:
    return model


def _scale(X: NDArray[np.float64], w: NDArray[np.float64], space: str) -> tuple[NDArray, NDArray]:
    """Return the mean (D,) of rows X, and a lower triangular matrix L (D, D) for scaling: L⁻¹(x − mean).

    w (n,): weights of the rows    space: "raw" (L is the identity), "columns" (scaled to variance 1) or "whitened"
    """
    (n, D), mean = X.shape, np.average(X, axis=0, weights=w)
    if space == "raw":
        return mean, np.eye(D)
    apart = X - mean
    largest = np.abs(apart).max(axis=0)
    unit = np.where(largest > 0, largest, 1.0)  # unit of each column, so that squares neither overflow nor underflow
    apart /= unit
    variances = np.average(np.square(apart), axis=0, weights=w)
    variances[variances <= 0] = 1.0
    if space == "columns" or n < _PER_COLUMN * D:
        return mean, np.diag(unit * np.sqrt(variances))
    covariance = (apart * (w / w.sum())[:, np.newaxis]).T @ apart
    return mean, unit[:, np.newaxis] * np.linalg.cholesky(covariance + _RIDGE * np.diag(variances))


def _clusters(
    rows: Rows, w: NDArray[np.float64], C: int, method: str, rng: np.random.RandomState
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Partition rows into C clusters; return their centers (C, D), and the cluster of each row (n,).

    w (n,): weights of the rows    method: "ward", "jumps", "lloyd", "lloyd++" or "rows", see `PartitionStart`
    """
    if method == "ward" and C <= len(rows) <= _OF_WARD:
        X = rows.dense().astype(np.float64)
        labels = cluster_of(children_of(ward_joins(X, w).pairs, len(X)), C).astype(np.int32)
        counts, sums = rows.accumulate(labels[:, np.newaxis], None, w, n_components=C)
        return sums / counts[:, np.newaxis], labels
    if method in ("ward", "jumps"):
        centers = start_by_jumps(local(rows, w), C, rng).astype(np.float64)
    else:
        plus = method == "lloyd++"
        chosen = choose_by_kmeans_plusplus(rows, C, w, rng, 1) if plus else draw_rows(local(rows, w), C, rng)
        centers = rows[chosen].dense().astype(np.float64)
    labels = rows.nearest(centers)[0]
    for _ in range(0 if method == "rows" else _ITERATIONS):
        counts, sums = rows.accumulate(labels, None, w, n_components=C)
        held = counts > 0
        centers[held] = sums[held] / counts[held, np.newaxis]
        before, labels = labels, rows.nearest(centers)[0]
        if np.array_equal(before, labels):
            break
    return centers, labels[:, 0].copy()
