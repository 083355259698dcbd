"""Data larger than memory: a fit of a file of generated points, its peak memory and its iterations.

Memory is that of the process itself, without pages of the file in the page cache. With --in-memory the same points are
also fitted from memory, to compare the seconds of the iterations.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.rounds import median
from benchmarks.tables import table
from cprime import KMeans, datasets

TITLE = "Data larger than memory"
_PIECE = 1_000_000  # points generated at a time


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--points", type=given.positive, default=40_000_000, help="points N (default: 40,000,000)")
    parser.add_argument("-C", "--clusters", type=given.positive, default=4096, help="C (default: 4096)")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=32, help="dimensions D (default: 32)")
    parser.add_argument("--iterations", type=given.positive, default=5, help="iterations (default: 5)")
    parser.add_argument("--in-memory", action="store_true", help="fit the same from memory too")
    parser.add_argument("--folder", type=Path, help="where to generate the file (default: the system's for such)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    N, C, D = options.points, options.clusters, options.dimensions
    with tempfile.TemporaryDirectory(prefix="cprime-benchmark-", dir=options.folder) as folder:
        path = Path(folder) / "X.npy"
        _generate(path, N, D, 5 * C)
        for place, data in (("file", path), ("memory", None)):
            if place == "memory" and not options.in_memory:
                return
            X: Any = str(data) if data is not None else np.load(path)
            estimator = KMeans(
                C, search="graph", max_iter=options.iterations, tol=0, random_state=0, n_threads=options.threads
            )
            begin = time.perf_counter()
            with _watched() as peak:
                estimator.fit(X)
            yield [
                {
                    "measure": "larger",
                    "data": "generated clusters",
                    "place": place,
                    "N": N,
                    "D": D,
                    "C": C,
                    "threads": options.threads,
                    "seconds": time.perf_counter() - begin,
                    "iterations": estimator.history_["seconds"].tolist(),
                    "memory": peak[0],
                    "J": estimator.inertia_,
                }
            ]


def report(records: list[Record]) -> str:
    rows = [
        (
            record["place"],
            f"{record['seconds']:.1f}",
            f"{median(record['iterations']):.2f}",
            f"{record['memory'] / 1e9:.2f}",
            f"{record['J']:.6g}",
        )
        for record in records
    ]
    first = records[0]
    text = f"N = {first['N']:,}, D = {first['D']}, C = {first['C']:,}: {4e-9 * first['N'] * first['D']:.2f} GB\n\n"
    text += table(("from", "fit, s", "iteration, s (median)", "peak of its own memory, GB", "J"), rows)
    if len(records) == 2:
        ratio = median(records[0]["iterations"]) / median(records[1]["iterations"])
        text += f"\n\nAn iteration from the file takes {ratio:.2f} times that from memory."
    return text


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}


def _generate(path: Path, N: int, D: int, n_clusters: int) -> None:
    """Write points around random centers to a file, piece by piece."""
    centers = datasets.clusters(n_clusters, n_clusters, D, random_state=0).data.astype(np.float32)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(N, D))
    rng = np.random.default_rng(0)
    for begin in range(0, N, _PIECE):
        n = min(_PIECE, N - begin)
        out[begin : begin + n] = centers[rng.integers(0, n_clusters, n)] + rng.standard_normal((n, D), np.float32)
    out.flush()


@contextmanager
def _watched() -> Iterator[list[int]]:
    """Yield a list whose item is the process's peak memory [bytes] during the context: resident pages of no file."""
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            status = Path("/proc/self/status").read_text()
            own = [line.split()[1] for line in status.splitlines() if line.startswith(("RssAnon", "RssShmem"))]
            peak[0] = max(peak[0], 1024 * sum(map(int, own)))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()
