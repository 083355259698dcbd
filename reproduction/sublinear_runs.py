"""Runs of var-GMM and var-k-means (Forster & Lücke, Alg. 1 and 2) and of their references, each made once for all
entries.

This file has the data sets, the settings and the results of a run.
"""

import warnings
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from cprime import GaussianMixture, KMeans, datasets, seeding
from cprime.kernels import as_rows
from cprime.model import TiedSpherical
from cprime.search import Full, Papers
from reproduction.base import Context
from reproduction.data import load

SOURCE = "Forster & Lücke, AISTATS 2018"
MAX_ITER = {"BIRCH": 200, "KDD": 200, "MSD": 500}  # most iterations, as in the paper
_LISTS = {"X": "exact", "S": "estimated"}
# The paper chooses the number of initial E-steps by the training error and does not print it. Random sets have to find
# their way across a grid that is √C wide, so the number is this factor times √C, by (C′ > 1, G).
_WARMUP = {(False, 2): 1.0, (False, 5): 0.25, (True, 2): 0.5, (True, 5): 0.25}
_WARMUP_MSD = 5
RUNS = 5  # in the paper, except for figures 2 and C.1
ASKED = 50  # if this many runs are requested, all settings have that many runs
# Runs made of ten requested ones, 10 by default and at least one: more if a run takes milliseconds, fewer if it takes
# seconds. Runs of _LONG take minutes; they are made only if at least the given number of runs is requested.
_MADE_OF_TEN = {
    ("BIRCH", 25): 50,
    ("BIRCH", 100): 20,
    ("BIRCH", 400): 5,
    ("BIRCH", 1024): 3,
    ("BIRCH", 2025): 3,
    ("BIRCH", 4096): 1,
    ("KDD", 200): 5,
    ("MSD", 2000): 1,
}
_MADE_OF_TEN_SLOW = {("KDD", False, 20): 2, ("KDD", True, 2): 3, ("KDD", True, 5): 2}
_LONG = {
    ("KDD", True, 20): 20,
    ("MSD", False, 20): 20,
    ("MSD", False, 50): 20,
    ("MSD", True, 5): 20,
    ("MSD", True, 10): 50,
    ("MSD", True, 20): 50,
}
_LEAST_RISE = 1e-6  # of F [nats per point]: convergence of a mixture; k-means has converged once no point is reassigned


@dataclass(frozen=True)
class Setting:
    """An algorithm on a data set.

    data: "BIRCH", "KDD" or "MSD"    C: components    soft: a mixture, not k-means
    search: "X", "S", or "" for all components    G: length of the neighbor lists, C if all components are evaluated
    n_explore: additional random components, the "+1"    n_warmup: E-steps before the first M-step
    watched: what is computed exactly during the run: "error", "likelihood", or nothing
    """

    data: str
    C: int
    soft: bool
    search: str
    G: int
    n_explore: int = 0
    n_warmup: int = 0
    watched: tuple[str, ...] = ()

    @property
    def algorithm(self) -> str:
        """The paper's name of the algorithm."""
        family = "GMM" if self.soft else "k-means"
        return f"var-{family}-{self.search}" if self.search else family

    @property
    def neighbors(self) -> str:
        """G as the paper prints it, "5+1" with a random component."""
        return f"{self.G}+{self.n_explore}" if self.n_explore else str(self.G)

    @property
    def most_evaluations(self) -> int:
        """Return the largest number of distances per point and iteration: C′ G and the random ones, at most all."""
        return min(self.C, (self.G if self.soft else 1) * self.G + self.n_explore)


@dataclass(frozen=True)
class Run:
    """Results of a run.

    n_iter: iterations, including those before the first M-step
    evaluations: distances per point and iteration, mean over the iterations with M-steps
    checkpoints: numbers of iterations at which errors were computed; the last is n_iter and, if nothing is watched, the
    only one
    errors: φ = Σ_n min_c ‖x_n − μ_c‖² over all C at the checkpoints
    likelihoods: L per point [nats] at the checkpoints, but 0 for the first; empty if not watched
    free_energies: F per point [nats] after 0, 1 … n_iter iterations
    """

    n_iter: int
    evaluations: float
    checkpoints: list[int]
    errors: list[float]
    likelihoods: list[float]
    free_energies: list[float]

    @property
    def error(self) -> float:
        """φ at the end of the run."""
        return self.errors[-1]


def k_means(setting: Setting) -> Setting:
    """Return the setting of Lloyd's algorithm on the same data, the reference for errors."""
    return replace(setting, soft=False, search="", G=setting.C, n_explore=0, n_warmup=0)


def large(data: str, C: int, soft: bool, G: int, watched: tuple[str, ...] = ()) -> Setting:
    """Return the paper's setting of an "S" algorithm for many clusters: initial E-steps and a random component."""
    n_warmup = _WARMUP_MSD if data == "MSD" else round(_WARMUP[soft, G] * C**0.5)
    return Setting(data, C, soft, "S", G, 1, n_warmup, watched)


def fewest_runs(setting: Setting) -> int:
    """Return the number of requested runs from which on a run of this setting is made."""
    return _LONG.get((setting.data, setting.soft, setting.G), 1)


def n_runs(setting: Setting, asked: int, most: int = RUNS) -> int:
    """Return how many runs of a setting are made for the requested number: at most `most`, 0 if they would take too
    long.
    """
    if asked < fewest_runs(setting):
        return 0
    of_ten = _MADE_OF_TEN.get((setting.data, setting.C), 10)
    of_ten = _MADE_OF_TEN_SLOW.get((setting.data, setting.soft, setting.G), of_ten)
    return min(most, max(1, asked * of_ten // 10))


@cache
def points(data: str, C: int, random_state: int) -> NDArray:
    """Return the data; BIRCH is drawn once for all runs."""
    return datasets.birch(round(C**0.5), random_state=random_state).data if data == "BIRCH" else load(data)


@cache
def start(data: str, C: int, run: int, random_state: int) -> NDArray:
    """Return the AFK-MC² centers from which all settings of a run start."""
    return seeding.seed(points(data, C, random_state), C, "afk-mc2", random_state=random_state + run)


def fitted(setting: Setting, run: int, context: Context) -> Run:
    """Return the results of one run; they are computed only once for equal arguments."""
    context.report(f"{setting.data}, C = {setting.C:,}: {setting.algorithm}, G = {setting.neighbors}, run {run + 1}")
    return _fitted(setting, run, context.random_state, context.n_threads)


@cache
def _fitted(setting: Setting, run: int, random_state: int, n_threads: int | None) -> Run:
    X = points(setting.data, setting.C, random_state)
    first = start(setting.data, setting.C, run, random_state)
    estimator = make_estimator(setting, first, random_state + run, n_threads)
    passed = [(0, first, np.nan)]

    def watch(row: dict[str, Any], standing: Any) -> None:
        if setting.watched and row["phase"] == "em" and is_checkpoint(row["iteration"]):
            centers = standing.means_ if setting.soft else standing.cluster_centers_
            passed.append((row["iteration"], centers, standing.variance_))

    estimator.set_params(callbacks=watch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(X)

    history = estimator.history_
    final = estimator.means_ if setting.soft else estimator.cluster_centers_
    passed.append((estimator.n_iter_, final, estimator.variance_))
    errors, likelihoods, labels = [], [], None
    for iteration, centers, variance in passed if setting.watched else passed[-1:]:
        labels, distances = as_rows(X).nearest(centers, hint=labels, n_threads=n_threads)
        errors.append(float(distances.sum(dtype=np.float64)))
        if "likelihood" in setting.watched and iteration > 0:
            if not setting.soft and iteration < len(history):  # σ² of the E-step with these centers
                variance = history["quantization_error"][iteration] / X.size
            likelihoods.append(_log_likelihood(X, centers, variance, n_threads))
    return Run(
        n_iter=int(estimator.n_iter_),
        evaluations=float(history["n_distances"][history["phase"] == "em"].mean() / len(X)),
        checkpoints=[iteration for iteration, *_ in passed] if setting.watched else [int(estimator.n_iter_)],
        errors=errors,
        likelihoods=likelihoods,
        free_energies=[*estimator.lower_bounds_, estimator.lower_bound_],
    )


def make_estimator(setting: Setting, first: NDArray, random_state: int, n_threads: int | None) -> Any:
    """Return the library's estimator for a setting."""
    options: dict[str, Any] = {
        "search": _search(setting),
        "max_iter": MAX_ITER[setting.data],
        "tol": _LEAST_RISE if setting.soft else 0.0,
        "n_threads": n_threads,
        "random_state": random_state,
    }
    if not setting.soft:
        return KMeans(setting.C, init=first, **options)
    options |= {"covariance_type": "tied_spherical", "weights": "equal", "means_init": first}
    return GaussianMixture(setting.C, n_active=setting.G if setting.search else None, momentum=False, **options)


def _search(setting: Setting) -> Full | Papers:
    """Return the library's search for a setting."""
    if not setting.search:
        return Full()
    return Papers(
        _LISTS[setting.search],
        n_neighbors=setting.G,
        n_explore=setting.n_explore,
        start="random",
        n_warmup=setting.n_warmup,
        certificate=0,
        final_assignment="found",
    )


def _log_likelihood(X: NDArray, centers: NDArray, variance: float, n_threads: int | None) -> float:
    """Return L per point [nats]."""
    log_sums = as_rows(X).log_sum_exp(centers, variance, n_threads=n_threads)
    return TiedSpherical(centers, variance, 0.0).log_scale + float(log_sums.mean())


def is_checkpoint(iteration: int) -> bool:
    """Return whether results are computed after this iteration: eight times between each number and its double."""
    return iteration % max(1, 2 ** (iteration.bit_length() - 4)) == 0
