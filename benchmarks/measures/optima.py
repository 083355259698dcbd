"""How close a fit comes to the best known k-means of data with few clusters, with one start and by default; its
seconds.

The tables show J in percent above the best known J, and the number of misplaced centers (the centroid index): reference
centers that are nearest to no center of the fit, or centers of the fit that are nearest to no reference center. The
best known J is that of Lloyd's algorithm from the true centers, or of the best peer if that is less.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks import blas
from benchmarks.data import load
from benchmarks.groups import GROUPS, Groups
from benchmarks.measures import options as given
from benchmarks.peers import Fitted
from benchmarks.records import Record
from benchmarks.rounds import Run, compare, label
from benchmarks.tables import grouped, table
from cprime import KMeans
from cprime.kernels import Dense

TITLE = "Optima of few clusters"
_BASE = "sklearn-default (default)"  # the unit of time is one start of this peer
_RUNS: tuple[Run, ...] = (
    ("cprime", {}),
    ("cprime", {"jumps": False}),
    ("sklearn-default", {}),
    ("sklearn-default", {"n_init": 10}),
    ("faiss", {"niter": 25}),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        action="append",
        metavar="NAME|FILE",
        help=f"{', '.join(GROUPS)}, or a file of one's own with -C; may be repeated (default: all that have names)",
    )
    parser.add_argument("-C", "--clusters", type=given.positive, help="number of clusters of a file")
    parser.add_argument("--seed", type=int, default=0, help="of the data (default: 0)")
    given.add_repetitions(parser, 5)
    given.add_peers(parser)


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    for name in options.data or GROUPS:
        groups = _groups(name, options)
        X = np.ascontiguousarray(groups.X, dtype=np.float32)
        C = groups.n_clusters
        known = None if groups.centers is None else _descended(X, groups.centers)
        found = compare(_RUNS, X, C, options, lambda fitted, known=known: _further(fitted, known))
        common = {"measure": "optima", "data": name, "N": len(X), "D": X.shape[1], "C": C, "threads": options.threads}
        best = min(
            [value for record in found for value in record.get("value", [])]
            + ([] if known is None else [float(Dense(X).nearest(known)[1].sum(dtype=np.float64))])
        )
        yield [{**common, "best": best, **record} for record in found]


def _groups(name: str, options: argparse.Namespace) -> Groups:
    if name in GROUPS:
        return GROUPS[name](np.random.default_rng([options.seed, list(GROUPS).index(name)]))
    data = load(name)
    return Groups(data.X.astype(np.float64), data.clusters(options.clusters), None)


def _descended(X: NDArray[np.float32], centers: NDArray) -> NDArray[np.float32]:
    """Return the converged centers of Lloyd's algorithm from these centers."""
    return KMeans(len(centers), init=centers.astype(np.float32), search="full", tol=0).fit(X).cluster_centers_


def _further(fitted: Fitted, known: NDArray[np.float32] | None) -> dict[str, float]:
    return {} if known is None else {"misplaced": misplaced(fitted.centers, known)}


def misplaced(centers: NDArray, reference: NDArray) -> int:
    """Return the centroid index of Fränti, Rezaei & Zhao (2014): the larger number of centers without a partner."""
    squares = np.square(centers[:, np.newaxis].astype(np.float64) - reference).sum(axis=2)
    met = [len(np.unique(squares.argmin(axis=axis))) for axis in (0, 1)]
    return max(len(centers) - met[0], len(reference) - met[1])


def report(records: list[Record]) -> str:
    rows, totals = [], []
    done = [record for record in records if record.get("seconds")]
    times = {record["data"]: record["seconds"] for record in done if label(record) == _BASE}
    for group in grouped(done, "data"):
        for record in group:
            excess, wrong, ratio = _excess(record), _misplaced(record), _ratio(record, times)
            rows.append(
                [
                    record["data"],
                    label(record),
                    *(f"{value:.4f}" for value in (np.mean(excess), max(excess))),
                    "" if wrong is None else f"{wrong}",
                    f"{1e3 * np.median(record['seconds']):.2f}",
                    "" if ratio is None else f"{ratio:.2f}",
                ]
            )
    for group in grouped([{**record, "label": label(record)} for record in done], "label"):
        excess = [value for record in group for value in _excess(record)]
        wrong = [count for record in group if (count := _misplaced(record)) is not None]
        ratios = [ratio for record in group if (ratio := _ratio(record, times)) is not None]
        span = f"{np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
        totals.append(
            [group[0]["label"], f"{len(excess)}", f"{np.mean(excess):.4f}", f"{max(excess):.4f}", f"{sum(wrong)}", span]
        )
    about = ["mean excess of J, %", "worst, %", "misplaced"]
    each = table(["data", "fit", *about, "ms", "of one start"], rows)
    note = f"Time is in that of {_BASE}, one start of k-means++: median of the seeds, then of the sets."
    every = table(["fit", "fits", *about, "time"], totals)
    return "\n\n".join(part for part in (each, every, note, blas.note(done)) if part)


def _excess(record: Record) -> list[float]:
    return [100 * (value / record["best"] - 1) for value in record["value"]]


def _misplaced(record: Record) -> int | None:
    counts = [extra["misplaced"] for extra in record["extra"] if "misplaced" in extra]
    return sum(counts) if counts else None


def _ratio(record: Record, times: dict[str, list[float]]) -> float | None:
    base = times.get(record["data"])
    return None if base is None else float(np.median(record["seconds"]) / np.median(base))


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
