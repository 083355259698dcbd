"""Models of shards combined to one, compared with a fit of all data: J of k-means, held-out likelihood of mixtures.

The data are drawn from 1,000 Gaussians with random covariances whose columns have falling variances, as in features of
speech; they overlap. The fits of the shards have starts of their own, or one common start: the fit of the first shard.
The table also shows the best model of a single shard with the same number of clusters.
"""

import argparse
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import grouped, table
from cprime import GaussianMixture, KMeans, combine

TITLE = "Combined models of shards"
_GAUSSIANS = 1000
_HELD_OUT = 50_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_model(parser, "k-means", "mixture-full")
    parser.add_argument("--rows", type=given.positive, default=125_000, help="rows of a shard (default: 125,000)")
    parser.add_argument("--shards", type=given.positive, default=16, help="number of shards (default: 16)")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=39, help="dimensions D (default: 39)")
    parser.add_argument("-C", "--clusters", type=given.positive, help="C of the result (default: 100, mixtures 10)")
    parser.add_argument(
        "--of-shard", type=given.counts, metavar="LIST", help="C of each shard (default: C and 4 C, mixtures C)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of data and fits (default: 0)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    is_mixture = options.model == "mixture-full"
    C = options.clusters or (10 if is_mixture else 100)
    X = speech_like(options.rows * options.shards + _HELD_OUT, options.dimensions, options.seed)
    X, held_out = X[:-_HELD_OUT], X[-_HELD_OUT:]
    judged = held_out if is_mixture else X

    def fit(rows: NDArray[np.float32], n: int, seed: int, start: Any = None) -> Any:
        chosen = {"n_threads": options.threads, "random_state": seed}
        if not is_mixture:
            return KMeans(n, **chosen, init="auto" if start is None else start).fit(rows)
        if start is not None:
            weights = start.weights_.astype(np.float64)
            chosen["weights_init"] = weights / weights.sum()
            chosen |= {"means_init": start.means_, "precisions_init": start.precisions_}
        return GaussianMixture(n, **chosen).fit(rows)

    begin = perf_counter()
    whole = float(fit(X, C, options.seed).score(judged))
    common: Record = {
        "measure": "combine",
        "model": options.model,
        "data": "speech-like Gaussians",
        "N": len(X),
        "D": options.dimensions,
        "C": C,
        "shards": options.shards,
        "threads": options.threads,
        "whole": whole,
        "whole_seconds": perf_counter() - begin,
    }
    for n in options.of_shard or ((C,) if is_mixture else (C, 4 * C)):
        for start in ("own", "common"):
            begin, models = perf_counter(), []
            for seed, rows in enumerate(np.array_split(X, options.shards)):
                models.append(fit(rows, n, seed, models[0] if models and start == "common" else None))
            seconds = perf_counter() - begin
            begin = perf_counter()
            combined = combine(models, C, random_state=options.seed, n_threads=options.threads)
            record: Record = {**common, "of_shard": n, "start": start, "shards_seconds": seconds}
            record["seconds"] = perf_counter() - begin
            record["value"] = float(combined.score(judged))
            record["bound"] = None if is_mixture else -float(combined.inertia_)
            record["single"] = max(float(model.score(judged)) for model in models) if n == C else None
            yield [record]


def speech_like(n: int, D: int, seed: int) -> NDArray[np.float32]:
    """Return n rows (n, D) drawn in random order from 1,000 Gaussians; column d has a deviation of about 1/√(1 + d)."""
    rng = np.random.default_rng(seed)
    deviations = 1 / np.sqrt(1 + np.arange(D))
    means = rng.normal(size=(_GAUSSIANS, D)) * deviations
    roots = rng.normal(size=(_GAUSSIANS, D, D)) / np.sqrt(D) * deviations[:, np.newaxis]
    components = rng.choice(_GAUSSIANS, n, p=rng.dirichlet(np.full(_GAUSSIANS, 2.0)))
    order = np.argsort(components, kind="stable")
    bounds = np.searchsorted(components[order], np.arange(_GAUSSIANS + 1))
    X = np.empty((n, D), np.float32)
    for k in range(_GAUSSIANS):
        rows = order[bounds[k] : bounds[k + 1]]
        X[rows] = means[k] + rng.normal(size=(len(rows), D)) @ roots[k].T
    return X


def report(records: list[Record]) -> str:
    parts = []
    for group in grouped(records, "model", "N", "C"):
        first = group[0]
        is_mixture = first["model"] == "mixture-full"

        def behind(value: float | None, whole: float = first["whole"], is_mixture: bool = is_mixture) -> str:
            if value is None:
                return ""
            return f"{whole - value:.3f}" if is_mixture else f"{100 * (value / whole - 1):.2f}"

        unit = "nats per row below" if is_mixture else "J above, %"
        rows = [
            [
                record["of_shard"],
                record["start"],
                *(behind(record[name]) for name in ("value", "bound", "single")),
                f"{record['shards_seconds']:.1f}",
                f"{record['seconds']:.2f}",
                f"{record['whole_seconds']:.1f}",
            ]
            for record in group
        ]
        columns = ["C of a shard", "start", f"combined: {unit}", "its inertia_", "best shard"]
        title = f"{first['shards']} shards of {first['N'] // first['shards']:,} × {first['D']}, to C = {first['C']}"
        seconds = ["fits of shards, s", "combine, s", "fit of all, s"]
        parts.append(f"### {first['model']}: {title}\n\n{table([*columns, *seconds], rows)}")
    return "\n\n".join(parts)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
