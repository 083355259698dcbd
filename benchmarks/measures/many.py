"""Many small k-means problems: `cprime.fit_many`, compared with loops over `cprime.KMeans` and scikit-learn's KMeans.

All begin with greedy k-means++ and make the same number of iterations at most. They run alternately in this process, so
that other load affects all. The loops fit each problem with one thread and with all, and the faster one counts. The
seconds of the processors are those of all threads; they show by how much the time can fall if processors become free.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter, process_time

import numpy as np
import sklearn.cluster
from matplotlib.figure import Figure
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import cprime
from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import table

TITLE = "Many small problems"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_repetitions(parser, 3)
    for name, value, text in (
        ("problems", 2000, "number of problems of fit_many"),
        ("loop", 200, "number of these problems that the loops fit"),
        ("rows", 512, "rows of a problem"),
        ("features", 64, "features"),
        ("clusters", 32, "clusters of a problem"),
        ("iterations", 10, "iterations of a problem"),
    ):
        parser.add_argument(f"--{name}", type=given.positive, default=value, help=f"{text} (default: {value})")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    shape = options.problems, options.rows, options.features
    X = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    common = {"measure": "many", "B": shape[0], "N": shape[1], "D": shape[2], "C": options.clusters}
    threads = sorted({1, options.threads})
    names: dict[str, list[Callable[[], int]]] = {
        "cprime.fit_many": [partial(_many, X, options, options.threads)],
        "cprime.KMeans": [partial(_loop, cprime.KMeans, X[: options.loop], options, n) for n in threads],
        "sklearn.cluster.KMeans": [
            partial(_loop, sklearn.cluster.KMeans, X[: options.loop], options, n) for n in threads
        ],
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence warnings: no argument for it is common to all
        for _ in range(options.repetitions):
            for name, runs in names.items():
                found[name].append(min(_seconds(run) for run in runs))
    common["threads"] = options.threads
    yield [
        {**common, "peer": name, "seconds": [one[0] for one in times], "processor_seconds": [one[1] for one in times]}
        for name, times in found.items()
    ]


def _many(X: NDArray, options: argparse.Namespace, n_threads: int) -> int:
    """Fit all problems in one call; return their number."""
    cprime.fit_many(X, options.clusters, max_iter=options.iterations, tol=0.0, random_state=0, n_threads=n_threads)
    return len(X)


def _loop(kind: Callable[..., cprime.KMeans], X: NDArray, options: argparse.Namespace, n_threads: int) -> int:
    """Fit the problems one after the other by an estimator of the given class; return their number."""
    with threadpool_limits(n_threads):
        for b, one in enumerate(X):
            kind(
                options.clusters, init="k-means++", n_init=1, max_iter=options.iterations, tol=0.0, random_state=b
            ).fit(one)
    return len(X)


def _seconds(run: Callable[[], int]) -> tuple[float, float]:
    """Return the seconds per problem, and those of all processors."""
    begin, worked = perf_counter(), process_time()
    n = run()
    return (perf_counter() - begin) / n, (process_time() - worked) / n


def report(records: list[Record]) -> str:
    rows, keys, first = [], ("seconds", "processor_seconds"), records[0]
    for record in records:
        row = [f"`{record['peer']}`"]
        for key in keys:
            seconds, ours = np.array(record[key]), np.array(first[key])
            row += [f"{1e3 * np.median(seconds):.3f}", f"{np.median(seconds / ours):.1f}"]
        rows.append(row)
    head = f"### {first['B']} problems of {first['N']} × {first['D']}, C = {first['C']}, {first['threads']} thread(s)"
    columns = ["call", "ms per problem", "ratio", "ms of processors", "ratio"]
    return f"{head}\n\n{table(columns, rows)}"


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
