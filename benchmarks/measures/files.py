"""A k-means fit from a .npy file against the same fit of an array in memory: seconds, and how many times as many.

The rows are generated groups of unlike sizes in float32. The fits alternate, and both read warm data: the file is in
the system's cache, as after it was written.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from matplotlib.figure import Figure

from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.rounds import median, spread
from benchmarks.tables import grouped, table
from cprime import KMeans, open_data
from cprime.datasets import clusters

TITLE = "Fits from files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rows", type=given.counts, default=(500_000, 2_000_000), help="numbers of rows, ascending")
    parser.add_argument("-D", "--dimensions", type=given.positive, default=128, help="dimensions D (default: 128)")
    parser.add_argument("-C", "--clusters", type=given.positive, default=2000, help="clusters (default: 2000)")
    given.add_repetitions(parser, 3)


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    C, D = options.clusters, options.dimensions
    for N in options.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.npy"
            X = clusters(N, n_features=D, n_clusters=C, random_state=0).data
            np.save(path, X)
            seconds: dict[str, list[float]] = {"memory": [], "file": []}
            for seed in range(options.repetitions):
                for place, data in (("memory", X), ("file", path)):
                    begin = perf_counter()
                    KMeans(C, random_state=seed, n_threads=options.threads).fit(data)
                    seconds[place].append(perf_counter() - begin)
            common: Record = {"measure": "files", "N": N, "D": D, "C": C, "threads": options.threads}
            n_chunks = len(open_data(path).sizes)
            yield [{**common, "peer": p, "chunks": n_chunks, "seconds": s} for p, s in seconds.items()]


def report(records: list[Record]) -> str:
    rows = []
    for memory, file in grouped(records, "N", "D", "C"):
        ratio = median([b / a for a, b in zip(memory["seconds"], file["seconds"], strict=True)])
        shape = f"{file['N']:,} × {file['D']}, C = {file['C']:,}"
        rows.append([shape, file["chunks"], spread(memory["seconds"]), spread(file["seconds"]), f"{ratio:.2f}"])
    return table(["data", "chunks of the file", "memory, s", "file, s", "ratio"], rows)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
