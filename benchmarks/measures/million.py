"""A million clusters: a complete fit of generated points with its certificate, in a separate process.

An exact J would take C/G times as long as the fit. So J is computed exactly for a sample of points, in addition to the
certificate that the library computes itself.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.data import random_start
from benchmarks.measures import options as given
from benchmarks.peers import PEERS
from benchmarks.records import Record
from benchmarks.rounds import median, spread
from benchmarks.tables import case, table
from benchmarks.worker import FitFailed, Worker
from cprime import datasets
from cprime.kernels import Dense

TITLE = "A million clusters"
_JUDGED = 10_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", type=given.positive, default=10_000_000, help="points N (default: 10,000,000)")
    parser.add_argument("-C", "--clusters", type=given.positive, default=1_000_000, help="C (default: 1,000,000)")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=16, help="dimensions D (default: 16)")
    given.add_repetitions(parser, 1)
    parser.add_argument(
        "--limit", type=given.seconds, default=3600.0, metavar="SECONDS", help="end a fit that takes longer"
    )


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    N, C, D = options.points, options.clusters, options.dimensions
    if N < C:
        raise ValueError(f"--points must be at least the {C} clusters, got {N}")
    X = datasets.clusters(N, C, D, random_state=0).data
    record: Record = {
        "measure": "million",
        "data": "generated clusters",
        "model": "k-means",
        "N": N,
        "D": D,
        "C": C,
        "threads": options.threads,
        "data_bytes": X.nbytes,
        "peer": "cprime",
        "version": PEERS["cprime"].version,
        "settings": {},
        **{key: [] for key in ("seconds", "memory", "n_iter", "reported", "value", "half_width", "extra")},
    }
    print(case(record), flush=True)
    rows = X[np.sort(np.random.default_rng(1).permutation(N)[:_JUDGED])]
    with tempfile.TemporaryDirectory(prefix="cprime-benchmark-") as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        for seed in range(options.repetitions):
            with Worker("cprime", path, options.threads) as worker:
                try:
                    outcome = worker.fit(C, random_start(X, C, seed), seed, {}, options.limit)
                except FitFailed as error:
                    yield [{**record, "left_out": str(error)}]
                    return
            fitted = outcome.fitted
            assert fitted.centers.shape == (C, D)
            assert np.isfinite(fitted.centers).all()
            squared = Dense(rows).nearest(fitted.centers)[1][:, 0].astype(np.float64)
            record["seconds"].append(outcome.seconds)
            record["memory"].append(outcome.memory)
            record["n_iter"].append(fitted.n_iter)
            record["reported"].append(fitted.objective / N)
            record["value"].append(float(squared.mean()))
            record["half_width"].append(float(1.96 * squared.std(ddof=1) / np.sqrt(len(squared))))
            record["extra"].append(fitted.extra)
    yield [record]


def report(records: list[Record]) -> str:
    parts = []
    for record in records:
        if "left_out" in record:
            parts.append(f"### {case(record)}\n\nNot finished: {record['left_out']}.")
            continue
        extra = record["extra"][-1]
        peaks = [peak / 1e9 for peak in record["memory"] if peak is not None]
        rows = [
            ("whole fit, certificate included, s", spread(record["seconds"])),
            ("iterations", f"{median(record['n_iter']):g}"),
            ("evaluations a point", f"{extra['evaluations']:,.0f}"),
            ("peak memory above the data, GB", spread(peaks) if peaks else "not known on this system"),
            ("data, GB", f"{record['data_bytes'] / 1e9:.2f}"),
            ("J per point as reported", f"{record['reported'][-1]:.5g}"),
            (
                f"J per point of {_JUDGED:,} points searched exactly, 95 %",
                f"{record['value'][-1]:.5g} ± {record['half_width'][-1]:.2g}",
            ),
        ]
        if "agreement" in extra:
            rows += [
                ("certificate: share of points at their nearest center", f"{extra['agreement']:.3f}"),
                ("certificate: J above that of nearest centers", f"{extra['relative_excess']:.2%}"),
            ]
        parts.append(f"### {case(record)}\n\n{table(('', 'cprime'), rows)}")
    return "\n\n".join(parts)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
