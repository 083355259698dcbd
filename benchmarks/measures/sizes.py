"""Clusters of bounded size: the time that the bounds take, and a comparison with `k-means-constrained`.

The first table has fits of one data set with and without `size_max`, alternately in this process. The second one has
fits of Gaussian clusters of unlike sizes, with bounds of 0.8 and 1.2 times the mean, by cprime and by
k-means-constrained: from the same random rows, and by the defaults of each; both in one thread, because several threads
of k-means-constrained fail for larger data.
"""

import argparse
import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import table
from cprime import KMeans

TITLE = "Clusters of bounded size"
_BLOBS = ((2000, 10, 20), (23_000, 50, 10))  # N, D, C
_LEAST, _MOST = 0.8, 1.2  # bounds, relative to the mean size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["sift"])
    given.add_repetitions(parser, 3)
    parser.set_defaults(model="k-means")
    parser.add_argument("--size-max", default="1.2x", help="bound of the first table (default: 1.2x)")
    parser.add_argument("--largest", type=given.positive, default=23_000, help="most points of the second table")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    for data, C, common in given.cases(options, "sizes"):
        if data is None:
            yield [common]
            continue
        X = _as_bytes(data.X)
        free, bounded = (
            KMeans(C, random_state=0, n_threads=options.threads, size_max=bound) for bound in (None, options.size_max)
        )
        seconds: tuple[list[float], list[float]] = [], []
        for _ in range(options.repetitions):
            for times, estimator in zip(seconds, (free, bounded), strict=True):
                times.append(_seconds(estimator, X))
        largest = np.bincount(bounded.labels_, minlength=C).max() * C / len(X)
        yield [
            {
                **common,
                "size_max": options.size_max,
                "free_seconds": seconds[0],
                "seconds": seconds[1],
                "free_error": free.inertia_,
                "error": bounded.inertia_,
                "largest": float(largest),
                "n_displaced": bounded.n_displaced_,
            }
        ]
    for N, D, C in _BLOBS:
        if options.largest >= N:
            yield _against_constrained(N, D, C)


def _as_bytes(X: NDArray) -> NDArray:
    """Return the data as uint8 if they are such numbers, else unchanged."""
    narrow = X.astype(np.uint8) if X.min() >= 0 and X.max() <= 255 else X
    return narrow if np.array_equal(narrow, X) else X


def blobs(N: int, D: int, C: int, seed: int = 0) -> NDArray[np.float64]:
    """Return Gaussian clusters of unlike sizes, (N, D)."""
    rng = np.random.default_rng(seed)
    centers = 2 * rng.normal(size=(C, D))
    return centers[rng.choice(C, N, p=rng.dirichlet(np.full(C, 2.0)))] + rng.normal(size=(N, D))


def _against_constrained(N: int, D: int, C: int) -> list[Record]:
    """Return records of fits by both libraries: from the same rows, and by the defaults of each."""
    common: Record = {"measure": "sizes", "data": "blobs", "N": N, "D": D, "C": C, "threads": 1}
    try:
        from k_means_constrained import KMeansConstrained
    except ImportError:
        return [{**common, "skipped": "k-means-constrained is not installed"}]
    X = blobs(N, D, C)
    start = X[np.random.default_rng(1).choice(N, C, replace=False)]
    bounds = {"size_min": int(_LEAST * N / C), "size_max": int(np.ceil(_MOST * N / C)), "random_state": 0}
    found = []
    for name, arguments, theirs in (("the same rows", {"init": start}, {"n_init": 1}), ("defaults", {}, {})):
        fits = (
            KMeans(C, n_threads=1, **bounds, **arguments),
            KMeansConstrained(C, n_jobs=1, **bounds, **arguments, **theirs),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = [_seconds(estimator, X) for estimator in fits]
        figures = {"error": fits[0].inertia_, "peer_error": float(fits[1].inertia_)}
        found.append({**common, "start": name, "seconds": seconds[0], "peer_seconds": seconds[1], **figures})
    return found


def _seconds(estimator: Any, X: NDArray) -> float:
    """Return the seconds of a fit."""
    begin = perf_counter()
    estimator.fit(X)
    return perf_counter() - begin


def report(records: list[Record]) -> str:
    skipped = [f"{record['data']}: skipped, {record['skipped']}." for record in records if "skipped" in record]
    measured = [record for record in records if "skipped" not in record]
    first, second = ([record for record in measured if ("start" in record) == peer] for peer in (False, True))
    parts = [*skipped]
    if first:
        columns = ["data", "C", "size_max", "free fit, s", "bounded, s", "ratio", "J above free fit", "largest / mean"]
        parts.append(table([*columns, "points not with nearest center"], [_bounded_row(record) for record in first]))
    if second:
        columns = ["N × D, C", "start", "seconds", "k-means-constrained, s", "times faster", "J, relative difference"]
        parts.append(table(columns, [_peer_row(record) for record in second]))
    return "\n\n".join(parts)


def _bounded_row(record: Record) -> list[str]:
    free, bounded = (np.asarray(record[key]) for key in ("free_seconds", "seconds"))
    return [
        f"{record['data']}, {record['N']:,} × {record['D']}",
        f"{record['C']:,}",
        record["size_max"],
        f"{np.median(free):.3g}",
        f"{np.median(bounded):.3g}",
        f"{np.median(bounded / free):.2f}",
        f"{record['error'] / record['free_error'] - 1:+.2%}",
        f"{record['largest']:.3f}",
        f"{record['n_displaced']:,}",
    ]


def _peer_row(record: Record) -> list[str]:
    return [
        f"{record['N']:,} × {record['D']}, {record['C']}",
        record["start"],
        f"{record['seconds']:.3g}",
        f"{record['peer_seconds']:.3g}",
        f"{record['peer_seconds'] / record['seconds']:.1f}",
        f"{record['error'] / record['peer_error'] - 1:+.3%}",
    ]


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
