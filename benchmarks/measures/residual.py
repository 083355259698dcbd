"""Residual codes: seconds of training and held-out error of `ResidualKMeans`, compared with FAISS's ResidualQuantizer.

Both train codebooks of the same number of levels and clusters on the same rows, alternately in this process, so that
other load affects both. FAISS searches with beam size 1, as greedy codes do, and has its default number of iterations.
Held-out rows are encoded by each library's own codes.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import cprime
from benchmarks import blas
from benchmarks.measures import options as given
from benchmarks.records import Record
from benchmarks.tables import case, table
from benchmarks.worker import environment

TITLE = "Residual codes"
_HELD_OUT = 10_000  # at most; a tenth of smaller data


def add_arguments(parser: argparse.ArgumentParser) -> None:
    given.add_data(parser, ["sift"])
    given.add_repetitions(parser, 3)
    parser.set_defaults(clusters=256)
    parser.add_argument("--levels", type=given.positive, default=4, help="number of levels (default: 4)")
    parser.add_argument("--points", type=given.positive, default=100_000, help="training rows (default: 100,000)")


def measure(options: argparse.Namespace) -> Iterator[list[Record]]:
    kind = blas.fastest("faiss-cpu", options.threads)
    with environment({blas.VARIABLE: kind}):
        import faiss

    faiss.omp_set_num_threads(options.threads)
    if options.clusters & (options.clusters - 1):
        raise ValueError(f"-C must be a power of two, as FAISS requires, got {options.clusters}")
    for data, C, common in given.cases(options, "residual"):
        if data is None:
            yield [common]
            continue
        X = data.X.copy()
        np.random.default_rng(0).shuffle(X)
        held_out, X = np.split(X, [min(_HELD_OUT, len(X) // 10)])
        X = np.ascontiguousarray(X[: options.points])
        if len(X) < C:
            raise ValueError(f"--points must be at least the {C} clusters, got {len(X)}")
        fits = _fits(C, options)
        seconds: dict[str, list[float]] = {name: [] for name in fits}
        errors: dict[str, list[float]] = {name: [] for name in fits}
        with threadpool_limits(options.threads):
            for round_ in range(options.repetitions):
                for name, fit in fits.items():
                    begin = perf_counter()
                    model = fit(X, round_)
                    seconds[name].append(perf_counter() - begin)
                    errors[name].append(_error(model, held_out))
        common |= {"N": len(X), "levels": options.levels, "held_out": len(held_out), "blas": kind}
        yield [
            {**common, "quantizer": name, "seconds": seconds[name], "error": errors[name], "value": errors[name]}
            for name in fits
        ]


def _fits(n_clusters: int, options: argparse.Namespace) -> dict[str, Callable[[NDArray[np.float32], int], Any]]:
    """Return the functions of rows and a seed that train a quantizer, by name."""

    def ours(X: NDArray[np.float32], seed: int, **params: Any) -> Any:
        k_means = cprime.ResidualKMeans(n_clusters, options.levels, n_threads=options.threads, random_state=seed)
        return k_means.set_params(**params).fit(X)

    def theirs(X: NDArray[np.float32], seed: int) -> Any:
        import faiss

        quantizer = faiss.ResidualQuantizer(X.shape[1], options.levels, n_clusters.bit_length() - 1)
        quantizer.max_beam_size, quantizer.train_type = 1, faiss.ResidualQuantizer.Train_default
        quantizer.cp.seed = seed
        quantizer.train(X)
        return quantizer

    return {"cprime": ours, "cprime, tol=1e-4": partial(ours, tol=1e-4), "faiss": theirs}


def _error(model: Any, X: NDArray[np.float32]) -> float:
    """Return the mean squared error of the rows decoded from their codes."""
    found = model.decode(model.encode(X) if hasattr(model, "encode") else model.compute_codes(X))
    return float(np.square(found.astype(np.float64) - X).sum(axis=1).mean())


def report(records: list[Record]) -> str:
    parts = []
    for name in dict.fromkeys(record["data"] for record in records):
        group = [record for record in records if record["data"] == name]
        if "skipped" in group[0]:
            parts.append(f"### {name}\n\nSkipped: {group[0]['skipped']}.")
            continue
        peer = next(record for record in group if record["quantizer"] == "faiss")
        rows = []
        for record in group:
            faster = np.median(np.divide(peer["seconds"], record["seconds"]))
            worse = np.mean(record["error"]) / np.mean(peer["error"])
            rows.append(
                [
                    record["quantizer"],
                    f"{np.median(record['seconds']):.3g}",
                    f"{faster:.1f}",
                    f"{np.mean(record['error']):.5g}",
                    f"{worse:.3f}",
                ]
            )
        columns = ["quantizer", "training, s", "times as fast as faiss", "held-out error", "ratio to faiss"]
        kernels = f"\n\nfaiss with the kernels of OpenBLAS for {peer['blas']}." if peer["blas"] else ""
        levels = f"{peer['levels']} levels, {peer['held_out']:,} rows held out."
        parts.append(f"### {case(peer)}\n\n{levels}\n\n{table(columns, rows)}{kernels}")
    return "\n\n".join(parts)


def figures(records: list[Record]) -> dict[str, Figure]:
    return {}
