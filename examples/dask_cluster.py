"""k-means on a Dask cluster that loses a worker

A folder holds the points in several files. Each becomes a chunk of a Dask array, and `KMeans.fit` runs where the chunks
are: on the two worker processes of a `LocalCluster` here, on any cluster else. The same chunks are then fitted in the
memory of one process, and on the cluster once more, where one worker is killed on the way (SIGKILL): its chunks, and
what their points keep, follow anew from the tasks that made them. All three fits are the same to the last bit. Labels
are a Dask array that stays on the workers until it is computed; `predict` gives one that is computed when asked for.
Two workers on the machine of the client show that it works, not how fast a cluster is: they share its processors.
"""

import logging
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import dask.array as da
import numpy as np
from dask import delayed
from dask.distributed import Client, LocalCluster
from matplotlib.figure import Figure

import cprime
from cprime._style import BLUE, GREEN, VERMILION, frame, name_curve
from cprime.datasets import clusters
from examples.processes import Iteration, heard
from examples.result import table, write

N_CHUNKS = 16
COLORS = {"one process": GREEN, "two workers": BLUE, "two workers, one killed": VERMILION}


def main(output: Path, small: bool = False) -> None:
    """The same chunks in three ways."""
    n, D, C, kill = (24_000, 8, 30, 3) if small else (2_000_000, 32, 2000, 8)
    X = clusters(n, C, D, random_state=0).data
    found: dict[str, cprime.KMeans] = {"one process": fit(cprime.open_data(X, chunk_rows=n // N_CHUNKS), C, X[:C])}
    with (
        tempfile.TemporaryDirectory(prefix="cprime-example-") as name,
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR) as cluster,
        Client(cluster) as client,
    ):
        chunks = written(Path(name), X)
        found["two workers"] = fit(chunks, C, X[:C])
        workers = sorted(client.run(os.getpid).values())
        found["two workers, one killed"] = fit(chunks, C, X[:C], lambda: os.kill(workers[0], signal.SIGKILL), kill)
        labels = {name: np.asarray(km.labels_) for name, km in found.items()}
        lazy = found["two workers"].labels_, found["two workers"].predict(chunks)
        agreement = float((lazy[0] == lazy[1]).mean().compute())
    rows = [
        (
            name,
            f"{km.n_iter_}",
            f"{km.history_['seconds'].sum():.2f}",
            f"{km.inertia_:.9g}",
            "yes" if same(found["one process"], km, labels["one process"], labels[name]) else "no",
        )
        for name, km in found.items()
    ]
    lines = [f"{n:,} points in {D} dimensions, {N_CHUNKS} chunks, C = {C:,}; killed after iteration {kill}"]
    lines += table(("", "iterations", "seconds", "J", "the same bits"), rows)
    lines.append(f"labels_: {type(lazy[0]).__module__}.{type(lazy[0]).__name__} in {lazy[0].npartitions} chunks")
    lines.append(f"points whose label is that of predict, which searches all centers: {agreement:.4f}")
    write(output, __name__, draw(found, kill), lines)


def written(folder: Path, X: np.ndarray) -> da.Array:
    """Files of equal numbers of rows, and the Dask array of them: what it knows of the data is how to read them."""
    parts = []
    for i, part in enumerate(np.split(X, N_CHUNKS)):
        np.save(folder / f"{i:02d}.npy", part)
        parts.append(da.from_delayed(delayed(np.load)(folder / f"{i:02d}.npy"), part.shape, X.dtype))
    return da.concatenate(parts)


def fit(
    data: object, C: int, start: np.ndarray, strike: Callable[[], None] | None = None, kill: int = 0
) -> cprime.KMeans:
    """strike: called after iteration `kill`."""

    def hear(iteration: Iteration) -> None:
        if strike is not None and iteration.number == kill:
            strike()

    with heard(hear):
        return cprime.KMeans(C, search="graph", init=start, tol=1e-3, random_state=0).fit(data)


def same(one: cprime.KMeans, other: cprime.KMeans, labels: np.ndarray, other_labels: np.ndarray) -> bool:
    """Whether centers, labels, and J of every iteration are the same to the last bit."""
    pairs = (
        (one.cluster_centers_, other.cluster_centers_),
        (labels, other_labels),
        (one.history_["quantization_error"], other.history_["quantization_error"]),
    )
    return all(a.tobytes() == b.tobytes() for a, b in pairs)


def draw(found: dict[str, cprime.KMeans], kill: int) -> Figure:
    """Seconds of every iteration, and J, which is the same."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    time, error = figure.subplots(1, 2)
    frame(time, "what the iterations took", "iteration", "seconds")
    frame(error, "J: one curve on top of the other", "iteration", "J / J at the end")
    for i, (name, km) in enumerate(found.items()):
        iterations = np.arange(1, km.n_iter_ + 1)
        time.plot(iterations, km.history_["seconds"], color=COLORS[name], linewidth=1.5)
        error.plot(iterations, km.history_["quantization_error"] / km.inertia_, color=COLORS[name], linewidth=5 - 2 * i)
        name_curve(error, name, (0.4, 0.9 - 0.09 * i), COLORS[name], xycoords="axes fraction")
    time.set_ylim(bottom=0)
    struck = found["two workers, one killed"].history_["seconds"]
    name_curve(time, "a worker is killed", (kill + 1, struck[kill]), VERMILION, xytext=(6, 4))
    return figure
