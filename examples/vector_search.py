"""A codebook for vector search

An inverted-file index divides vectors into cells around the centers of a codebook, and a query looks into the `nprobe`
cells nearest to it only. faiss trains the codebook by k-means of its own, with its default settings here (ten
iterations); a second index is trained by `cprime.faiss.train_ivf`, with as many iterations of all vectors. Both hold
the same vectors and answer the same queries, which neither has seen. Recall is the share of the true ten nearest
vectors that is found. The vectors are SIFT descriptors if the folder that CPRIME_DATA names has them
(`sift_300k.npz`), else generated clusters.
"""

import os
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from cprime import faiss
from cprime._style import BLUE, VERMILION, frame, name_curve
from cprime.datasets import clusters
from examples.result import table, write

K = 10
ROUNDS = 5


def main(output: Path, small: bool = False) -> None:
    """Train both, then search with more and more probes."""
    X, what = data(small)
    n_queries, n_held_out, C = (200, 1000, 64) if small else (1000, 10_000, 2048)
    held_out, X = X[:n_held_out], X[n_held_out:]
    queries = held_out[:n_queries]
    lines, indexes = [f"{what}; C = {C}; {n_queries:,} queries, all at once"], {}
    for name, train in (("cprime", by_cprime), ("faiss", by_faiss)):
        begin = time.perf_counter()
        index = train(X, C)
        seconds = time.perf_counter() - begin
        error = float(index.quantizer.search(held_out, 1)[0].mean(dtype=np.float64))
        index.add(X)
        cells = f"imbalance of the cells {index.invlists.imbalance_factor():.3f}"
        lines.append(f"{name}: trained in {seconds:.2f} s, mean squared error {error:.5g} of vectors not seen, {cells}")
        indexes[name] = index
    exact = faiss.IndexFlatL2(X.shape[1])
    exact.add(X)
    truth = exact.search(queries, K)[1]
    probes = (1, 2, 4, 8, 16) if small else (1, 2, 4, 8, 16, 32, 64)
    found = [searched(indexes, queries, truth, n_probes) for n_probes in probes]
    curves = {name: [row[name] for row in found] for name in indexes}
    numbers = np.array(list(curves.values())).swapaxes(0, 1).reshape(len(probes), -1)
    rows = [(f"{n}", *(f"{value:.4f}" for value in row)) for n, row in zip(probes, numbers, strict=True)]
    headings = ("nprobe", *(f"{name}: {column}" for name in indexes for column in (f"recall@{K}", "ms a query")))
    write(output, __name__, draw(curves, probes, what), [*lines, *table(headings, rows)])


def data(small: bool) -> tuple[np.ndarray, str]:
    """Vectors in random order, float32, and what they are: SIFT descriptors where they are, else generated ones."""
    path = Path(os.environ.get("CPRIME_DATA", "../shared/data")) / "sift_300k.npz"
    if small or not path.is_file():
        n, C, D = (10_000, 100, 16) if small else (300_000, 3000, 32)
        return clusters(n, C, D, random_state=0).data, f"{n:,} generated vectors in {D} dimensions around {C} centers"
    X = np.load(path)["X"].astype(np.float32)
    np.random.default_rng(0).shuffle(X)
    return X, f"{len(X):,} SIFT descriptors of photographs in {X.shape[1]} dimensions"


def by_cprime(X: np.ndarray, C: int) -> faiss.IndexIVFFlat:
    """An index around our centers."""
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], C)
    faiss.train_ivf(index, X)
    return index


def by_faiss(X: np.ndarray, C: int) -> faiss.IndexIVFFlat:
    """An index as faiss trains it with its default settings: ten iterations, of 256 vectors a center at most."""
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], C)
    index.train(X)
    return index


def searched(
    indexes: dict[str, faiss.IndexIVFFlat], queries: np.ndarray, truth: np.ndarray, n_probes: int
) -> dict[str, tuple[float, float]]:
    """Recall of the true neighbors, and milliseconds a query: the least of a few rounds in which both take turns."""
    recall, milliseconds = {}, dict.fromkeys(indexes, np.inf)
    for _ in range(ROUNDS):
        for name, index in indexes.items():
            index.nprobe = n_probes
            begin = time.perf_counter()
            found = index.search(queries, K)[1]
            milliseconds[name] = min(milliseconds[name], 1000 * (time.perf_counter() - begin) / len(queries))
            recall[name] = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(found, truth, strict=True)])
    return {name: (recall[name], milliseconds[name]) for name in indexes}


def draw(curves: dict[str, list[tuple[float, float]]], probes: tuple[int, ...], what: str) -> Figure:
    figure = Figure(figsize=(5.4, 4), layout="constrained")
    ax = figure.subplots()
    frame(ax, what, "ms a query", f"recall@{K}")
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    for color, marker, (name, curve) in zip((VERMILION, BLUE), "os", curves.items(), strict=True):
        recall, ms = np.array(curve).T
        ax.plot(ms, recall, marker=marker, color=color, markersize=4)
        above = name == "cprime"
        middle = len(probes) // 2
        place = {"xytext": (-6, 6) if above else (6, -8), "ha": "right" if above else "left"}
        name_curve(ax, f"codebook by {name}", (ms[middle], recall[middle]), color, **place)
    for n, (recall, ms) in zip(probes, curves["faiss"], strict=True):
        ax.annotate(f"{n}", (ms, recall), xytext=(0, -12), textcoords="offset points", ha="center", fontsize=7)
    ax.annotate("numbers: cells looked into (nprobe)", (0.98, 0.02), xycoords="axes fraction", ha="right", fontsize=8)
    return figure
