"""Fits of small data, as users repeat them thousands of times: seconds compared with scikit-learn's, call by call.

Both libraries fit alternately in this process, so that other load affects both. A row is the median of rounds; a round
consists of as many calls as take some milliseconds. `cprime.sklearn` has scikit-learn's interface and its algorithm,
`cprime` its own defaults.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import sklearn.cluster
import sklearn.datasets
import sklearn.mixture
from matplotlib.figure import Figure
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import cprime
import cprime.sklearn
from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import table

TITLE = "Small fits"
_ROUND = 0.01  # least seconds of the calls of a round


class _Case(NamedTuple):
    """A fit of cprime and the corresponding fit of the peer, both functions of the data."""

    data: str
    fit: str
    ours: Callable[[NDArray], Any]
    theirs: Callable[[NDArray], Any]


@cache
def _data(name: str) -> NDArray:
    if name in ("iris", "wine", "digits", "breast_cancer"):
        return getattr(sklearn.datasets, f"load_{name}")().data
    n, D, C, dtype = {
        "1,000 × 10": (1000, 10, 8, np.float64),
        "1,000 × 10, float32": (1000, 10, 8, np.float32),
        "10,000 × 10": (10_000, 10, 8, np.float64),
        "10,000 × 20": (10_000, 20, 20, np.float64),
        "100,000 × 2": (100_000, 2, 8, np.float64),
    }[name]
    return sklearn.datasets.make_blobs(n, D, centers=C, random_state=0)[0].astype(dtype)


def _fits(kind: Callable[..., Any], C: int, **params: Any) -> Callable[[NDArray], Any]:
    """Return a function that fits a new estimator of the given class."""
    return lambda X: kind(C, random_state=0, **params).fit(X)


def _drop_in(data: str, name: str, C: int, **params: Any) -> _Case:
    """Return the case of an estimator of `cprime.sklearn` and scikit-learn's estimator with the same arguments."""
    shown = ", ".join([f"{C}", *(f"{key}={value!r}" for key, value in params.items())])
    theirs = getattr(sklearn.mixture if hasattr(sklearn.mixture, name) else sklearn.cluster, name)
    ours = getattr(cprime.sklearn, name)
    return _Case(data, f"cprime.sklearn.{name}({shown})", _fits(ours, C, **params), _fits(theirs, C, **params))


def _own(data: str, C: int) -> _Case:
    """Return the case of `KMeans` with its defaults and scikit-learn's with one start."""
    return _Case(data, f"cprime.KMeans({C})", _fits(cprime.KMeans, C), _fits(sklearn.cluster.KMeans, C, n_init=1))


def _own_mixture(data: str, C: int, kind: str) -> _Case:
    """Return the cases of both libraries' `GaussianMixture` with their defaults."""
    ours, theirs = (_fits(module.GaussianMixture, C, covariance_type=kind) for module in (cprime, sklearn.mixture))
    return _Case(data, f"cprime.GaussianMixture({C}, covariance_type={kind!r})", ours, theirs)


CASES = (
    _drop_in("iris", "KMeans", 3),
    _drop_in("iris", "KMeans", 3, n_init=10),
    _drop_in("wine", "KMeans", 3),
    _drop_in("breast_cancer", "KMeans", 2),
    _drop_in("digits", "KMeans", 10),
    _drop_in("1,000 × 10", "KMeans", 8),
    _drop_in("1,000 × 10, float32", "KMeans", 8),
    _drop_in("10,000 × 10", "KMeans", 8),
    _drop_in("10,000 × 10", "KMeans", 32),
    _drop_in("100,000 × 2", "KMeans", 8),
    _drop_in("iris", "BisectingKMeans", 3),
    _drop_in("1,000 × 10", "BisectingKMeans", 8),
    _drop_in("digits", "BisectingKMeans", 10),
    _drop_in("10,000 × 20", "BisectingKMeans", 8),
    _drop_in("10,000 × 20", "BisectingKMeans", 20),
    _drop_in("iris", "MiniBatchKMeans", 3),
    _drop_in("1,000 × 10", "MiniBatchKMeans", 8),
    _drop_in("10,000 × 20", "MiniBatchKMeans", 20),
    _drop_in("iris", "GaussianMixture", 3, covariance_type="diag"),
    _drop_in("iris", "GaussianMixture", 3),
    _drop_in("wine", "GaussianMixture", 3, covariance_type="diag", reg_covar=1e-3),
    _drop_in("wine", "GaussianMixture", 3, covariance_type="spherical"),
    _drop_in("1,000 × 10", "GaussianMixture", 8, covariance_type="diag"),
    _own("iris", 3),
    _own("wine", 3),
    _own("digits", 10),
    _own("1,000 × 10", 8),
    _own("10,000 × 10", 8),
    _own("100,000 × 2", 8),
    _own_mixture("iris", 3, "diag"),
    _own_mixture("wine", 3, "full"),
    _own_mixture("1,000 × 10", 8, "diag"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_repetitions(parser, 15)
    parser.add_argument("--only", metavar="TEXT", help="the cases whose data and call contain this")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    for case in CASES:
        if options.only and options.only not in f"{case.data} {case.fit}":
            continue
        with threadpool_limits(options.threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # convergence warnings: no argument for it is common to both
            ours, theirs = _seconds(case, options.repetitions)
        N, D = _data(case.data).shape
        common = {"measure": "small", "data": case.data, "fit": case.fit, "N": N, "D": D, "threads": options.threads}
        yield [{**common, "seconds": ours, "peer_seconds": theirs}]


def _seconds(case: _Case, rounds: int) -> tuple[list[float], list[float]]:
    """Return the seconds per call in each round, for cprime and for the peer."""
    X, calls = _data(case.data), (case.ours, case.theirs)
    once = [_call(fit, X, 2) for fit in calls]  # the first call allocates memory that later ones reuse
    n_calls = [max(1, round(_ROUND / seconds)) for seconds in once]
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for seconds, fit, n in zip(found, calls, n_calls, strict=True):
            seconds.append(_call(fit, X, n))
    return found


def _call(fit: Callable[[NDArray], Any], X: NDArray, n: int) -> float:
    begin = perf_counter()
    for _ in range(n):
        fit(X)
    return (perf_counter() - begin) / n


def report(records: list[Record]) -> str:
    rows = []
    for record in records:
        ours, theirs = (np.asarray(record[key]) for key in ("seconds", "peer_seconds"))
        ratio = f"{np.median(ours / theirs):.2f}"
        rows.append(
            [record["data"], f"`{record['fit']}`", *(f"{1e3 * np.median(s):.2f}" for s in (ours, theirs)), ratio]
        )
    return table(["data", "fit", "ms", "scikit-learn, ms", "ratio"], rows)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
