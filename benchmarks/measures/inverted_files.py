"""Inverted files for vector search: how long their training takes, and the recall of what was trained.

The same index (IVF, Flat) is trained by `cprime.faiss.train_ivf` and by faiss on all vectors, holds the same vectors
and answers the same queries, which neither has seen. faiss's default, at most 256 vectors a list, leaves none out as
long as there are no more. Iterations are those of the index's own setting, ten, if they are not given.

With `--size-max`, cprime also trains an index whose lists have bounded length. Recall is compared by the mean number of
vectors in the lists that a query visits, because long lists contain more neighbors and take longer.
"""

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks import blas
from benchmarks.measures import options as given
from benchmarks.plots import Curve, draw
from benchmarks.records import Record
from benchmarks.tables import case, grouped, table
from benchmarks.worker import environment

TITLE = "Inverted files"
K = 10
_ROUNDS = 3
_ALL = 2**31 - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["sift"])
    parser.set_defaults(model="k-means")
    parser.add_argument("--queries", type=given.positive, default=10_000, help="vectors held out (default: 10,000)")
    parser.add_argument("--probes", type=given.counts, default=(1, 2, 4, 8, 16, 32, 64), help="nprobe, several")
    parser.add_argument("--ours", type=given.counts, default=(10,), help="iterations of cprime, several (default: 10)")
    parser.add_argument("--size-max", metavar="SIZE", help="bound of the lists of a further training, such as 1.2x")
    parser.add_argument("--theirs", type=given.counts, default=(10,), help="iterations of faiss, several (default: 10)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    kind = blas.fastest("faiss-cpu", options.threads)
    with environment({blas.VARIABLE: kind}):
        import faiss

    faiss.omp_set_num_threads(options.threads)
    for data, C, common in given.cases(options, "inverted-files"):
        if data is None:
            yield [common]
            continue
        X = data.X.copy()
        np.random.default_rng(0).shuffle(X)
        queries, X = X[: options.queries], np.ascontiguousarray(X[options.queries :])
        exact = faiss.IndexFlatL2(X.shape[1])
        exact.add(X)
        truth = exact.search(queries, K)[1]
        common |= {"N": len(X), "blas": kind}
        trainings = [("cprime", niter, bound) for niter in options.ours for bound in {None: 0, options.size_max: 0}]
        for trainer, niter, size_max in [*trainings, *(("faiss", niter, None) for niter in options.theirs)]:
            index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], C)
            index.cp.niter = niter
            seconds = _trained(index, X, trainer, size_max)
            lengths = np.array([index.invlists.list_size(number) for number in range(C)])
            nearest = index.quantizer.search(queries, min(C, max(options.probes)))[1]
            visited = np.cumsum(lengths[nearest], axis=1).mean(axis=0)
            yield [
                {
                    **common,
                    "trainer": trainer,
                    "niter": niter,
                    **({"size_max": size_max} if size_max else {}),
                    "seconds": seconds,
                    "error": float(index.quantizer.search(queries, 1)[0].mean(dtype=np.float64)),
                    "largest": float(lengths.max() / lengths.mean()),
                    "search": [
                        {**_searched(index, queries, truth, probes), "visited": float(visited[min(C, probes) - 1])}
                        for probes in options.probes
                    ],
                }
            ]


def _trained(index: Any, X: NDArray[np.float32], trainer: str, size_max: str | None) -> float:
    """Train the index, add the vectors, and return the seconds of the training."""
    from cprime.faiss import add_to_lists, train_ivf

    index.cp.max_points_per_centroid, index.cp.min_points_per_centroid = _ALL, 1
    begin = time.perf_counter()
    if trainer == "cprime":
        estimator = train_ivf(index, X, size_max=size_max)
    else:
        index.train(X)
    seconds = time.perf_counter() - begin
    if size_max is None:
        index.add(X)
    else:
        add_to_lists(index, X, estimator.labels_)
    return seconds


def _searched(index: Any, queries: NDArray[np.float32], truth: NDArray[np.int64], probes: int) -> Record:
    """Return the recall of the true neighbors, and milliseconds per query in one batch: the least of a few rounds."""
    index.nprobe, milliseconds = probes, np.inf
    for _ in range(_ROUNDS):
        begin = time.perf_counter()
        found = index.search(queries, K)[1]
        milliseconds = min(milliseconds, 1000 * (time.perf_counter() - begin) / len(queries))
    recall = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(found, truth, strict=True)])
    return {"nprobe": probes, "recall": float(recall), "milliseconds": float(milliseconds)}


def _name(record: Record) -> str:
    bound = f", size_max={record['size_max']}" if "size_max" in record else ""
    return f"{record['trainer']} (niter={record['niter']}{bound})"


def report(records: list[Record]) -> str:
    parts = []
    for group in grouped(records, "data", "C"):
        if "skipped" in group[0]:
            parts.append(f"### {group[0]['data']}\n\nSkipped: {group[0]['skipped']}.")
            continue
        probes = [found["nprobe"] for found in group[0]["search"]]
        columns = ["trained by", "training, s", "mean squared error", *(f"recall@{K}, nprobe={n}" for n in probes)]
        rows = [
            [
                _name(record),
                f"{record['seconds']:.3g}",
                f"{record['error']:.5g}",
                *(f"{found['recall']:.4f}" for found in record["search"]),
            ]
            for record in group
        ]
        parts.append(f"### {case(group[0])}\n\n{table(columns, rows)}\n\n{_visits(group)}{_compared(group)}")
    return "\n\n".join(parts)


def _visits(group: list[Record]) -> str:
    """Return a table of the recall at equal numbers of visited vectors, those of the first training; "" without them.

    Recall is interpolated along the logarithm of the number of vectors.
    """
    if any("largest" not in record for record in group):
        return ""
    curves = [_curve(record, "visited") for record in group]
    low, high = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    at = [x for x in curves[0][0] if low <= x <= high]
    columns = ["trained by", "longest list / mean", *(f"recall@{K}, {x:,.0f} vectors" for x in at)]
    rows = [
        [_name(record), f"{record['largest']:.2f}", *(f"{y:.4f}" for y in np.interp(np.log(at), np.log(xs), ys))]
        for record, (xs, ys) in zip(group, curves, strict=True)
    ]
    return f"{table(columns, rows)}\n\n"


def _curve(record: Record, x: str) -> tuple[list[float], list[float]]:
    """Return a number of each search, such as its milliseconds, and the recall."""
    return [found[x] for found in record["search"]], [found["recall"] for found in record["search"]]


def _compared(group: list[Record]) -> str:
    """Return a line for each pair of a training by cprime and one by faiss: differences of recall and speed."""
    lines = []
    for ours in (record for record in group if record["trainer"] == "cprime"):
        for theirs in (record for record in group if record["trainer"] == "faiss"):
            gaps = [a["recall"] - b["recall"] for a, b in zip(ours["search"], theirs["search"], strict=True)]
            faster = theirs["seconds"] / ours["seconds"]
            lines.append(
                f"- {_name(ours)} is trained {faster:.1f} times faster than {_name(theirs)}; its recall at equal "
                f"nprobe differs by {min(gaps):+.4f} to {max(gaps):+.4f}."
            )
    kernels = group[0]["blas"]
    return "\n".join([*lines, *([f"\nfaiss with the kernels of OpenBLAS for {kernels}."] if kernels else [])])


def figures(records: list[Record]) -> dict[str, Figure]:
    drawn = {}
    for group in grouped(records, "data", "C"):
        if "skipped" in group[0]:
            continue
        most = {record["trainer"]: record["niter"] for record in group}  # records are in increasing order of iterations
        shown = [record for record in group if record["niter"] == most[record["trainer"]]]
        title, name = f"IVF{group[0]['C']:,}, {group[0]['data']}", f"inverted-files-{group[0]['data']}-{group[0]['C']}"
        axes = {"milliseconds": ("ms a query", ""), "visited": ("vectors in visited lists", "-visited")}
        for x, (label, suffix) in axes.items():
            if all(x in found for record in shown for found in record["search"]):
                curves = [
                    Curve(f"{_name(record)}, {record['seconds']:.3g} s", record["trainer"], *_curve(record, x))
                    for record in shown
                ]
                drawn[f"{name}{suffix}"] = draw(curves, label, f"recall@{K}", title, y_scale="linear")
    return drawn
