"""The cost of checkpoints: the same fit with and without them, alternately.

The fit is long, with a tolerance of 0 and a fixed number of iterations, so that states are written as in a long fit.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import load
from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.rounds import median, spread
from benchmarks.tables import table
from cprime import KMeans

TITLE = "Checkpoints"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", default="kdd", metavar="NAME|FILE", help="data (default: kdd)")
    parser.add_argument("-C", "--clusters", type=given.positive, default=2000, help="C (default: 2000)")
    parser.add_argument("--copies", type=given.positive, default=10, help="times the data are repeated (default: 10)")
    parser.add_argument("--iterations", type=given.positive, default=60, help="iterations (default: 60)")
    parser.add_argument("--starts", type=given.positive, default=1, help="starts of a fit (default: 1)")
    given.add_repetitions(parser, 5)


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    X = load(options.data).X
    rng = np.random.default_rng(0)
    noise = 1e-3 * X.std(axis=0)
    X = np.concatenate([X + noise * rng.standard_normal(X.shape, np.float32) for _ in range(options.copies)])
    X = X.astype(np.float32, copy=False)
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    centers = []
    for _ in range(options.repetitions):
        for name, found in seconds.items():
            with tempfile.TemporaryDirectory(prefix="cprime-benchmark-") as folder, warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                estimator = KMeans(
                    options.clusters,
                    max_iter=options.iterations,
                    tol=0 if options.starts == 1 else 1e-4,
                    n_init=options.starts,
                    checkpoint=str(Path(folder) / "run") if name == "with" else None,
                    random_state=0,
                    n_threads=options.threads,
                )
                begin = time.perf_counter()
                centers.append(estimator.fit(X).cluster_centers_)
                found.append(time.perf_counter() - begin)
    assert all(np.array_equal(centers[0], other) for other in centers)
    yield [
        {
            "measure": "survival",
            "data": f"{options.data} × {options.copies}",
            "N": len(X),
            "D": X.shape[1],
            "C": options.clusters,
            "threads": options.threads,
            "n_iter": estimator.n_iter_,
            **seconds,
        }
    ]


def report(records: list[Record]) -> str:
    rows = []
    for record in records:
        ratios = [a / b for a, b in zip(record["with"], record["without"], strict=True)]
        rows.append(
            (
                f"{record['data']}, C = {record['C']:,}, {record['n_iter']} iterations",
                spread(record["without"]),
                spread(record["with"]),
                f"{100 * (median(ratios) - 1):+.1f} %",
            )
        )
    return table(("fit", "without, s", "with checkpoints, s", "cost (median of pairs)"), rows)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
