"""The experiments of Lücke & Forster: k-means and k-means-C′ on BIRCH data and on KDD, with measures by iteration.

All runs share a data set, as in the paper. Its random positions are uniform on the square of the grid, whose size the
paper does not give. Runs of different C′ have the same initial centers, by greedy k-means++. Runs are cached, because
several figures show the same ones.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from cprime._utils.random import check_random_state
from cprime.datasets import birch, birch_random
from cprime.estimators import GaussianMixture, KMeans
from cprime.kernels import as_rows
from cprime.model import TiedSpherical
from cprime.seeding import kmeans_plusplus
from reproduction import data
from reproduction.base import Context, standard_error
from reproduction.scores import agreement

BIRCH = {"grid": birch, "random": birch_random}
TITLES = {"grid": "BIRCH 5 × 5 grid", "random": "BIRCH 25 × random positions", "kdd": "KDD"}
N_CLUSTERS = 25
BIRCH_ACTIVE = (1, 2, 3, 5, 25)
BIRCH_ITERATIONS = tuple(range(41))
KDD_CLUSTERS = 200
KDD_ACTIVE = (1, 2, 5, 10)
KDD_ITERATIONS = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50)
KDD_RUNS = 10

_TOL = 1e-6


@dataclass(frozen=True)
class Runs:
    """Runs of one algorithm.

    iterations (T,): those with measurements; 0 is the start, and an ended run repeats its last value
    curves: measure → (runs, T), of "free_energy" and "log_likelihood" [nats per point], "quantization_error"
    [data unit²], and "purity" and "nmi" where the true clusters are known
    centers (runs, C, D): the last ones [data units]
    """

    iterations: tuple[int, ...]
    curves: dict[str, NDArray[np.float64]]
    centers: NDArray

    def final(self, measure: str) -> NDArray[np.float64]:
        """Return the last value of each run (runs,)."""
        return self.curves[measure][:, -1]

    def gap(self) -> NDArray[np.float64]:
        """Return the final L − F of each run (runs,) [nats per point]."""
        return self.final("log_likelihood") - self.final("free_energy")

    def summary(self, measure: str, best: int) -> dict[str, Any]:
        """Return mean, standard error and one run by iteration, for the record and the picture."""
        curves = self.curves[measure]
        errors = [standard_error(column) for column in curves.T.tolist()]
        return {"mean": curves.mean(axis=0).tolist(), "standard_error": errors, "best": curves[best].tolist()}


def estimator(
    start: NDArray, n_active: int, context: Context, *, epsilon: float = 0.0, tol: float = _TOL, max_iter: int = 1000
) -> KMeans | GaussianMixture:
    """Return k-means (C′ = 1, lazy with ε > 0) or k-means-C′ from given centers (C, D), with full search.

    k-means ends when no point is reassigned, k-means-C′ when F changes by less than `tol` [nats per point].
    """
    common: dict[str, Any] = {"search": "full", "max_iter": max_iter, "n_threads": context.n_threads}
    if n_active == 1:
        return KMeans(len(start), init=start, epsilon=epsilon, tol=0.0, **common)
    mixture: dict[str, Any] = {"covariance_type": "tied_spherical", "weights": "equal", "tol": tol}
    return GaussianMixture(len(start), n_active=n_active, means_init=start, momentum=False, **mixture, **common)


def fitted(model: KMeans | GaussianMixture, X: NDArray) -> KMeans | GaussianMixture:
    """Fit the model and return it; reaching max_iter raises no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def centers(model: KMeans | GaussianMixture) -> NDArray:
    """Return the centers (C, D) of a fitted estimator."""
    return model.cluster_centers_ if isinstance(model, KMeans) else model.means_


def nearest(X: NDArray, centers: NDArray, context: Context) -> tuple[NDArray[np.int32], float]:
    """Return the nearest center of every point (n,), and the quantization error [data unit²]."""
    kept, distances = as_rows(X).nearest(centers, n_threads=context.n_threads)[:2]
    return kept[:, 0], float(distances.sum(dtype=np.float64))


def log_likelihood(X: NDArray, centers: NDArray, variance: float, context: Context) -> float:
    """Return L, eq. (3) of Lücke & Forster, for centers (C, D) and σ² [data unit²], in nats per point."""
    log_sums = as_rows(X).log_sum_exp(np.ascontiguousarray(centers, X.dtype), variance, n_threads=context.n_threads)
    return TiedSpherical(centers, variance, 0.0).log_scale + float(log_sums.mean())


def follow(
    model: KMeans | GaussianMixture,
    X: NDArray,
    start: NDArray,
    context: Context,
    iterations: Sequence[int],
    target: NDArray | None = None,
) -> tuple[dict[str, list[float]], NDArray]:
    """Fit; return the measures of `Runs` after each of the iterations, and the last centers (C, D).

    σ² of k-means is J/(DN) of the centers of that iteration; so is σ² of a start without a given value.
    """
    precision = getattr(model, "precisions_init", None)
    visited = [(start, math.nan if precision is None else 1 / precision)]

    def watch(_: Any, standing: Any) -> None:
        visited.append((centers(standing), standing.variance_))

    fitted(model.set_params(callbacks=watch), X)
    model.set_params(callbacks=None)
    bounds = [*model.lower_bounds_, model.lower_bound_]
    errors = [*model.history_["quantization_error"], nearest(X, centers(model), context)[1]]
    states = [min(iteration, model.n_iter_) for iteration in iterations]
    measured: dict[int, dict[str, float]] = {}
    for t in sorted(set(states)):
        place, variance = visited[t]
        if isinstance(model, KMeans) or math.isnan(variance):
            variance = float(errors[t]) / X.size  # eq. (14) of Lücke & Forster
        L = log_likelihood(X, place, variance, context)
        measured[t] = {"free_energy": bounds[t], "log_likelihood": L, "quantization_error": float(errors[t])}
        if target is not None:
            measured[t] |= agreement(target, nearest(X, place, context)[0])._asdict()
    return {measure: [measured[t][measure] for t in states] for measure in measured[states[0]]}, centers(model)


@cache
def birch_data(kind: str, random_state: int) -> Bunch:
    """Return the data set that all runs share, "grid" or "random"."""
    return BIRCH[kind](random_state=random_state)


def birch_runs(kind: str, n_active: int, context: Context) -> Runs:
    """Return `context.runs` runs on BIRCH data of 25 clusters."""
    return _birch_runs(kind, n_active, context.runs, context.random_state, context.n_threads)


@cache
def _birch_runs(kind: str, n_active: int, n_runs: int, random_state: int, n_threads: int | None) -> Runs:
    known = birch_data(kind, random_state)
    context = Context(n_runs, random_state, n_threads)
    return _runs(known.data, known.target, N_CLUSTERS, n_active, context, BIRCH_ITERATIONS)


def kdd_runs(n_active: int, context: Context) -> Runs:
    """Return runs on KDD with 200 clusters: a tenth of `context.runs`, at least 2 for a spread, at most the paper's 10.

    Raises
    ------
    Missing
        If the data do not exist.
    """
    n_runs = min(KDD_RUNS, context.runs, max(2, context.runs // 10))
    return _kdd_runs(n_active, n_runs, context.random_state, context.n_threads)


@cache
def _kdd_runs(n_active: int, n_runs: int, random_state: int, n_threads: int | None) -> Runs:
    context = Context(n_runs, random_state, n_threads)
    return _runs(data.load("KDD"), None, KDD_CLUSTERS, n_active, context, KDD_ITERATIONS)


def _runs(
    X: NDArray, target: NDArray | None, n_clusters: int, n_active: int, context: Context, iterations: tuple[int, ...]
) -> Runs:
    rng = check_random_state(context.random_state)
    curves: dict[str, list[list[float]]] = defaultdict(list)
    found = []
    for _ in range(context.runs):
        start = kmeans_plusplus(X, n_clusters, random_state=rng, n_threads=context.n_threads)[0]
        model = estimator(start, n_active, context, max_iter=iterations[-1])
        one, last = follow(model, X, start, context, iterations, target)
        for measure, values in one.items():
            curves[measure].append(values)
        found.append(last)
    return Runs(iterations, {measure: np.array(values) for measure, values in curves.items()}, np.array(found))


def missed(found: NDArray, truth: NDArray) -> int:
    """Return the number of true centers that are nearest to no found center.  Both (C, D)."""
    return len(truth) - len(np.unique(cdist(found, truth).argmin(axis=1)))


def stretch(found: NDArray, truth: NDArray, farthest: float) -> float:
    """Return the mean ratio of found to true distances, over pairs of true centers up to `farthest` apart [data units].

    Pairs count if each of the two is nearest to exactly one found center.  Both (C, D); NaN if there is no such pair.
    """
    owners = cdist(found, truth).argmin(axis=1)
    alone = np.flatnonzero(np.bincount(owners, minlength=len(truth)) == 1)
    stands_for = np.array([np.flatnonzero(owners == place)[0] for place in alone], dtype=np.intp)
    distances = pdist(truth[alone])
    close = distances <= farthest
    return float((pdist(found[stands_for])[close] / distances[close]).mean()) if close.any() else math.nan
