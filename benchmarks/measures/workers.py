"""k-means on the workers of a Dask cluster, each a process with one thread: seconds, processor time and bytes.

Every fit has the same chunks and the same start, so centers are bit-identical. The reference is one process with one
thread. Efficiency is its processor time, divided by that of all workers. Bytes are those that pass the loopback device
of Linux, between workers, scheduler and driver, which a network would have to carry. Workers share the processors of
this machine, so their seconds show what the division costs, not how fast a cluster is.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.data import random_start
from benchmarks.executions import fitted, on_workers
from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import table
from cprime import KMeans, datasets, open_data
from cprime.search import Graph

TITLE = "Workers"
_COUNTERS = Path("/proc/net/dev")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", type=given.positive, default=2_000_000, help="points N (default: 2,000,000)")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=128, help="dimensions D (default: 128)")
    parser.add_argument("-C", "--clusters", type=given.positive, default=4096, help="C (default: 4096)")
    parser.add_argument("--workers", type=given.counts, default=(1, 2, 4, 8), help="numbers of workers (1,2,4,8)")
    parser.add_argument("--chunks", type=given.positive, default=8, help="chunks of the rows (default: 8)")
    parser.add_argument("--iterations", type=given.positive, default=12, help="iterations of a fit (default: 12)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    N, D, C = options.points, options.dimensions, options.clusters
    X = datasets.clusters(N, max(N // 100, 1), D, random_state=0).data
    X = np.clip(8 * X + 128, 0, 255).astype(np.uint8)
    start, size = random_start(X, C, 0), -(-N // options.chunks)
    base = {"measure": "workers", "N": N, "D": D, "C": C, "chunks": options.chunks}
    reference, record = _measured(open_data(X, chunk_rows=size), start, options.iterations, None)
    yield [{**base, "workers": 0, **record}]
    for n_workers in options.workers:
        fit, record = _on_workers(X, size, start, options.iterations, n_workers)
        assert np.array_equal(fit.cluster_centers_, reference.cluster_centers_)
        yield [{**base, "workers": n_workers, **record}]


def _on_workers(X: Any, size: int, start: Any, iterations: int, n_workers: int) -> tuple[KMeans, Record]:
    with tempfile.TemporaryDirectory(prefix="cprime-benchmark-") as folder, ExitStack() as stack:
        client, rows = on_workers(X, size, n_workers, Path(folder), stack)
        return _measured(rows, start, iterations, client)


def _measured(data: Any, start: Any, iterations: int, client: Any) -> tuple[KMeans, Record]:
    """Fit k-means; return the fit, and its record: means of an iteration after the first."""
    told: list[tuple[float, float, float, int]] = []

    def tell(row: dict[str, Any]) -> None:
        workers = sum(client.run(time.process_time).values()) if client else 0.0
        told.append((row["seconds"], time.process_time(), workers, _bytes()))

    search = Graph(33, certificate=0, final_assignment="found")
    fit = fitted(data, start, iterations, 1, search=search, jumps=False, callbacks=tell)
    steps = np.diff(np.array(told)[:, 1:], axis=0).mean(axis=0)
    seconds = float(np.median([seconds for seconds, *_ in told[1:]]))
    return fit, {"seconds": seconds, "driver": steps[0], "processor": steps[1], "bytes": steps[2]}


def _bytes() -> int:
    """Return how many bytes the loopback device has received."""
    line = next(line for line in _COUNTERS.read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def report(records: list[Record]) -> str:
    reference, rows = records[0], []
    for record in records:
        n = record["workers"]
        own = record["processor"] if n else record["driver"]
        rows.append(
            (
                f"{n}" if n else "none: one process",
                f"{record['seconds']:.3g}",
                f"{own:.3g}",
                f"{record['driver']:.3g}" if n else "",
                f"{100 * reference['driver'] / own:.0f} %",
                f"{record['bytes'] / 1e6:.1f}" if n else "",
                f"{record['bytes'] / n / 1e6:.1f}" if n else "",
            )
        )
    columns = ("workers", "an iteration, s", "processor time, s", "of the driver, s", "efficiency", "MB an iteration")
    head = f"{reference['N']:,} × {reference['D']} bytes, C = {reference['C']:,}, {reference['chunks']} chunks"
    return f"### {head}\n\n{table((*columns, 'MB for each worker'), rows)}"


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
