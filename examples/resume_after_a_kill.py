"""A fit that is killed, and goes on

A process fits clusters to the points of a file, with `checkpoint="folder"`: now and then it writes down where it
stands. It is killed on the way (SIGKILL, which no program can answer), a second process goes on by
`cprime.resume(folder)` and is killed as well, and a third one ends. Each time the iterations since the last complete
state are lost, and done again: states are written as seldom as it needs to take three per cent of the time. What comes
out is compared, bit by bit, with a fit that nothing has disturbed. The folder needs no copy of the points, for these
have a file of their own; points in memory would be written there too.
"""

import os
import signal
import tempfile
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from time import time

import numpy as np
from matplotlib.figure import Figure

import cprime
from cprime._style import BLUE, VERMILION, frame, name_curve
from cprime.datasets import clusters
from examples.processes import Iteration, begun, heard, told
from examples.result import table, write

Run = list[tuple[int, float, float]]  # iterations, J after each, and when


def main(output: Path, small: bool = False) -> None:
    """One fit undisturbed, one in several processes."""
    n_points, C, kills = (20_000, 60, (6,)) if small else (2_000_000, 2000, (12, 22))
    X = clusters(n_points, C, 8 if small else 32, random_state=0).data
    with tempfile.TemporaryDirectory(prefix="cprime-example-") as name:
        data, folder = Path(name) / "points.npy", Path(name) / "checkpoint"
        np.save(data, X)
        undisturbed = tracked(data, C)
        runs = [tracked(data, C, folder, kill) for kill in (*kills, None)]
        one, other = (cprime.load(path) for path in (Path(name) / "alone.safetensors", folder / "model.safetensors"))
    rows = [
        (f"process {i + 1}", f"{run[0][0]}", f"{run[-1][0]}", "SIGKILL" if i < len(kills) else "converged")
        for i, run in enumerate(runs)
    ]
    lines = [f"{n_points:,} points in {X.shape[1]} dimensions, C = {C:,}"]
    lines += table(("", "first iteration", "last", "ended by"), rows)
    lines.append(f"iterations of the undisturbed fit: {undisturbed[-1][0]}, done more than once: {twice(runs)}")
    lines += table(("the same bits as undisturbed", ""), compared(one, other))
    write(output, __name__, draw(undisturbed, runs), lines)


def tracked(data: Path, C: int, folder: Path | None = None, kill: int | None = None) -> Run:
    """A process that fits, or goes on where there is a checkpoint already, and what it said until it ended."""
    return told(*begun(fit, data, C, folder, kill))


def fit(connection: Connection, data: Path, C: int, folder: Path | None, kill: int | None) -> None:
    """The process; kill: after which iteration it dies."""
    with heard(partial(tell, connection, kill)):
        if folder is not None and folder.exists():
            cprime.resume(folder)
            return
        start = np.load(data, mmap_mode="r")[:C].copy()
        km = cprime.KMeans(C, search="graph", init=start, random_state=0, checkpoint=folder).fit(data)
        if folder is None:
            km.save(data.with_name("alone.safetensors"))


def tell(connection: Connection, kill: int | None, iteration: Iteration) -> None:
    connection.send((iteration.number, iteration.J, time()))
    if iteration.number == kill:
        os.kill(os.getpid(), signal.SIGKILL)


def twice(runs: list[Run]) -> int:
    """Iterations that were lost with a process, and done again."""
    done = [number for run in runs for number, *_ in run]
    return len(done) - len(set(done))


def compared(one: cprime.KMeans, other: cprime.KMeans) -> list[tuple[str, str]]:
    """What is the same to the last bit."""
    names = ("lower_bound", "quantization_error", "n_distances", "n_moved")
    steps, others = (np.column_stack([km.history_[name] for name in names]) for km in (one, other))
    pairs = {
        "centers": (one.cluster_centers_, other.cluster_centers_),
        "labels": (one.labels_, other.labels_),
        "neighbor lists": (one.neighbors_, other.neighbors_),
        "F, J, evaluations and moves of all iterations": (steps, others),
    }
    return [(name, "yes" if a.tobytes() == b.tobytes() else "no") for name, (a, b) in pairs.items()]


def draw(undisturbed: Run, runs: list[Run]) -> Figure:
    """Iterations over time, of the undisturbed fit and of the processes."""
    figure = Figure(figsize=(6.5, 3.4), layout="constrained")
    ax = figure.subplots()
    frame(ax, "one fit in several processes", "seconds since the first iteration", "iterations done")
    plot = partial(ax.plot, linewidth=1.5)
    numbers, _, times = np.array(undisturbed).T
    plot(times - times[0], numbers, color=BLUE)
    name_curve(ax, "undisturbed", (float(times[-1] - times[0]), numbers[-1]), BLUE, xytext=(4, 6), ha="right")
    first, last = runs[0][0][2], None
    for run in runs:
        numbers, _, times = np.array(run).T
        if last is not None:
            plot((last[0], times[0] - first), (last[1], numbers[0] - 1), ":", color="0.5")
        plot(times - first, numbers, color=VERMILION, marker=".", markersize=4)
        last = float(times[-1] - first), numbers[-1]
        if run is not runs[-1]:
            ax.plot(*last, "X", color=VERMILION, markersize=9)
            name_curve(ax, "killed", last, VERMILION, xytext=(8, 2))
    name_curve(ax, "resumed, to the same bits", last, VERMILION, xytext=(0, 9), ha="right")
    ax.set_ylim(0, 1.15 * numbers[-1])
    return figure
