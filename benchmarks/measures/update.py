"""Update of a fitted k-means after some rows were replaced, compared with a new fit of the changed data.

Rows are permuted first, so that the new rows come from the distribution of the old ones. The table has the share of the
rows that stay whose cluster keeps its id, the time relative to a new fit, and J relative to it.
"""

import argparse
from collections.abc import Iterator
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import table
from cprime import KMeans

TITLE = "Update after rows were replaced"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["msd"])
    given.add_repetitions(parser, 3)
    parser.set_defaults(model="k-means")
    parser.add_argument("--share", type=float, default=0.05, help="share of the rows that are replaced (default: 0.05)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    for data, C, common in given.cases(options, "update"):
        if data is None:
            yield [common]
            continue
        rng = np.random.default_rng(0)
        X = data.X[rng.permutation(len(data.X))]
        n = int(len(X) / (1 + options.share))
        before, replaced = X[:n], rng.choice(n, min(len(X) - n, n), replace=False)
        now = before.copy()
        now[replaced] = X[n : n + len(replaced)]
        stays = np.setdiff1d(np.arange(n), replaced)
        record: Record = {**common, "N": n, "share": options.share, "update_seconds": [], "fit_seconds": []}
        for _ in range(options.repetitions):
            fitted = KMeans(C, random_state=0, n_threads=options.threads).fit(before)
            labels, begin = fitted.labels_, perf_counter()
            fitted.update(now)
            record["update_seconds"].append(perf_counter() - begin)
            begin = perf_counter()
            new = KMeans(C, random_state=0, n_threads=options.threads).fit(now)
            record["fit_seconds"].append(perf_counter() - begin)
        record["same"] = float((fitted.labels_[stays] == labels[stays]).mean())
        record["error"], record["fit_error"] = fitted.inertia_, new.inertia_
        yield [record]


def report(records: list[Record]) -> str:
    rows = [
        [
            record["data"],
            f"{record['N']:,}",
            record["C"],
            f"{record['same']:.1%}",
            f"{np.median(record['update_seconds']) / np.median(record['fit_seconds']):.2f}",
            f"{record['error'] / record['fit_error'] - 1:+.2%}",
        ]
        for record in records
        if "skipped" not in record
    ]
    columns = ["data", "N", "C", "rows that keep their id", "time, relative to a new fit", "J, relative to a new fit"]
    return table(columns, rows) if rows else "skipped: no data"


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
