"""Lower bounds of J: the gap between J of a fit and the bound, and the seconds that the bound takes.

The data are iris with 2, 3 and 10 clusters, and generated Gaussian groups of standard deviation 1 in every feature,
whose centers have a given least distance; a distance of 0 is one cloud without groups.
"""

import argparse
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.datasets import load_iris

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import table
from cprime.theory import lower_bound

TITLE = "Lower bounds of J"
_IRIS = (2, 3, 10)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", type=given.positive, default=10_000, help="rows of the groups (default: 10,000)")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=10, help="columns (default: 10)")
    parser.add_argument("-C", "--clusters", type=given.positive, default=10, help="groups (default: 10)")
    parser.add_argument(
        "--distances", type=_distances, default=(4.0, 2.0, 0.0), metavar="A,B,…", help="least distances of centers"
    )
    parser.add_argument("--limit", type=given.seconds, default=60.0, help="seconds for a bound (default: 60)")


def _distances(text: str) -> tuple[float, ...]:
    values = tuple(float(part) for part in text.split(","))
    if min(values) < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {text}")
    return values


def gaussian_groups(N: int, D: int, C: int, distance: float, seed: int = 0) -> NDArray[np.float64]:
    """Return Gaussian groups of variance 1 around centers whose least distance is given, (N, D)."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(C, D))
    centers *= distance / pdist(centers).min() if C > 1 else 0.0
    return centers[rng.integers(C, size=N)] + rng.normal(size=(N, D))


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    for C in _IRIS:
        yield [_record("iris", load_iris().data, C, options)]
    for distance in options.distances:
        X = gaussian_groups(options.points, options.dimensions, options.clusters, distance)
        yield [_record(f"groups at a distance of {distance:g}", X, options.clusters, options)]


def _record(name: str, X: NDArray[Any], C: int, options: argparse.Namespace) -> Record:
    begin = perf_counter()
    found = lower_bound(X, C, time_limit=options.limit, n_threads=options.threads, random_state=0)
    common = {"measure": "bounds", "data": name, "N": len(X), "D": X.shape[1], "C": C, "threads": options.threads}
    figures = {key: getattr(found, key) for key in ("value", "inertia", "gap", "method", "parts")}
    return {**common, **figures, "seconds": perf_counter() - begin, "limit": options.limit}


def report(records: list[Record]) -> str:
    rows = [
        [
            record["data"],
            f"{record['N']:,}",
            f"{record['D']}",
            f"{record['C']}",
            f"{record['inertia']:.6g}",
            f"{record['value']:.6g}",
            f"{100 * record['gap']:.3g}",
            f"{record['parts']}",
            f"{record['seconds']:.3g}",
        ]
        for record in records
    ]
    return table(["data", "N", "D", "C", "J", "bound", "gap, %", "parts", "seconds with the fit"], rows)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
