"""`partial_fit` in batches: J of all rows, relative to J of a fit of all rows, for cprime and scikit-learn.

The rows are drawn from C Gaussians of unit variance whose means have the deviation `--spread`, and are read once in
batches. With `--drift` the first half of the rows comes from other Gaussians than the second half, and J is of the last
quarter of the rows, relative to a fit of these. Compared are the default, plain online k-means (`jumps=False`),
scikit-learn's `MiniBatchKMeans`, and a fit of the first batch only.
"""

import argparse
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.cluster import MiniBatchKMeans

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.rounds import median, spread
from benchmarks.tables import grouped, table
from cprime import KMeans

TITLE = "Batches"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=given.positive, default=20_000, help="rows of a batch (default: 20,000)")
    parser.add_argument("--batches", type=given.positive, default=10, help="number of batches (default: 10)")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=16, help="dimensions D (default: 16)")
    parser.add_argument("-C", "--clusters", type=given.positive, default=400, help="clusters (default: 400)")
    parser.add_argument("--spread", type=float, default=4.0, help="deviation of the means (default: 4)")
    parser.add_argument("--decay", type=float, default=1.0, help="learning_decay (default: 1)")
    parser.add_argument("--drift", action="store_true", help="draw the second half from other Gaussians")
    given.add_repetitions(parser, 3)


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    C, n, N = options.clusters, options.rows, options.rows * options.batches
    common: Record = {"measure": "online", "N": N, "D": options.dimensions, "C": C, "rows": n}
    common |= {"decay": options.decay, "drift": options.drift, "threads": options.threads}
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(options.repetitions):
        X = rows_of_groups(N, C, options.dimensions, options.spread, options.drift, seed)
        judged = X[-(N // 4) :] if options.drift else X
        best = float(KMeans(C, random_state=seed, n_threads=options.threads).fit(judged).inertia_)
        chosen = {"random_state": seed, "n_threads": options.threads, "learning_decay": options.decay}
        makers: dict[str, Callable[[], Any]] = {
            "cprime": lambda chosen=chosen: KMeans(C, **chosen),
            "cprime, jumps=False": lambda chosen=chosen: KMeans(C, jumps=False, **chosen),
            "sklearn": lambda seed=seed: MiniBatchKMeans(C, random_state=seed, n_init=1),
        }
        for name, make in makers.items():
            begin, model = perf_counter(), make()
            for first in range(0, N, n):
                model.partial_fit(X[first : first + n])
            found.setdefault(name, []).append((perf_counter() - begin, -float(model.score(judged)) / best))
        begin, model = perf_counter(), KMeans(C, **chosen).fit(X[:n])
        found.setdefault("fit of the first batch", []).append(
            (perf_counter() - begin, -float(model.score(judged)) / best)
        )
    yield [
        {**common, "peer": name, "seconds": [s for s, _ in pairs], "value": [J for _, J in pairs]}
        for name, pairs in found.items()
    ]


def rows_of_groups(n: int, C: int, D: int, spread: float, drift: bool, seed: int) -> NDArray[np.float32]:
    """Return n rows (n, D) of C Gaussians in random order; if `drift`, the second half has other means."""
    rng = np.random.default_rng(seed)
    means = spread * rng.standard_normal((2, C, D))
    half = (np.arange(n) >= n // 2) & drift
    return (means[half.astype(int), rng.integers(C, size=n)] + rng.standard_normal((n, D))).astype(np.float32)


def report(records: list[Record]) -> str:
    parts = []
    for group in grouped(records, "N", "D", "C", "rows", "decay", "drift"):
        first = group[0]
        rows = [[r["peer"], f"{median(r['value']):.3f}", f"{max(r['value']):.3f}", spread(r["seconds"])] for r in group]
        title = f"{first['C']} groups, {first['N'] // first['rows']} batches of {first['rows']:,} × {first['D']}"
        title += f", learning_decay = {first['decay']:g}" + (", drift" if first["drift"] else "")
        parts.append(f"### {title}\n\n{table(['peer', 'J of that of a fit', 'worst', 'seconds'], rows)}")
    return "\n\n".join(parts)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
