"""
A fit that is killed, and goes on
=================================

A program fits clusters to the points of a file, with `checkpoint="folder"`: the fit
saves its state from time to time. The program is killed during the fit (SIGKILL, which
no program can handle), started again, killed again, and started a third time. Each
time, the iterations after the last complete state are lost and repeated. States are
saved only so often that it takes three per cent of the time. The result is
bit-identical to that of a fit without interruption. The folder contains no copy of the
points, because they are in a file.
"""

import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cprime
from cprime.datasets import clusters

plt.style.use("cprime.style")

# %%
# The program
# -----------
# The program prints each iteration. Started again with the same folder, `fit` continues
# from the last state there; so does `cprime.resume(folder)` in any program.

PROGRAM = """
import sys
import numpy as np
from cprime import KMeans

data, checkpoint, model = sys.argv[1:]
start = np.load(data, mmap_mode="r")[:2000].copy()
km = KMeans(
    2000, search="graph", init=start, random_state=0, checkpoint=checkpoint or None,
    callbacks=lambda row: print(row["iteration"], flush=True),
)
km.fit(data).save(model)
"""


def call(checkpoint, model, kill_after=None):
    """Return the printed iterations with their times (n, 2); the program may be killed
    after one.
    """
    command = [sys.executable, "-c", PROGRAM, str(data), str(checkpoint), str(model)]
    said = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            said.append((int(line), time.perf_counter()))
            if said[-1][0] == kill_after:
                process.kill()
    end = "killed" if process.returncode else "converged"
    print(f"iterations {said[0][0]} to {said[-1][0]}, then {end}")
    return np.array(said)


# %%
# One fit undisturbed, one in three processes
# -------------------------------------------

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    data = folder / "points.npy"
    np.save(data, clusters(80_000, 2000, 128, random_state=0).data)
    print("undisturbed:")
    undisturbed = call("", folder / "undisturbed.safetensors")
    print("disturbed:")
    runs = [
        call(folder / "state", folder / "disturbed.safetensors", kill)
        for kill in (8, 17, None)
    ]
    one, other = (
        cprime.load(folder / f"{name}.safetensors")
        for name in ("undisturbed", "disturbed")
    )

for what, a, b in (
    ("centers", one.cluster_centers_, other.cluster_centers_),
    ("labels", one.labels_, other.labels_),
    ("neighbor lists", one.neighbors_, other.neighbors_),
    *(
        (f"{step} of all iterations", one.history_[step], other.history_[step])
        for step in ("lower_bound", "n_moved")
    ),
):
    print(f"{what}: {'the same bits' if a.tobytes() == b.tobytes() else 'they differ'}")

# %%
# Iterations over time
# --------------------

figure, ax = plt.subplots(figsize=(8, 3.8))
for color, name, course in (
    ("C0", "undisturbed", [undisturbed]),
    ("C1", "killed and called again", runs),
):
    begin = course[0][0, 1]
    for run in course:
        ax.plot(run[:, 1] - begin, run[:, 0], ".-", color=color)
    for run, next_run in pairwise(course):
        ax.plot(run[-1, 1] - begin, run[-1, 0], "X", color=color, markersize=9)
        ax.plot(
            [run[-1, 1] - begin, next_run[0, 1] - begin],
            [run[-1, 0], next_run[0, 0]],
            ":",
            color="0.5",
        )
    ax.text(
        course[-1][-1, 1] - begin,
        course[-1][-1, 0] + 1,
        name,
        color=color,
        ha="right",
        weight="bold",
    )
ax.margins(y=0.12)
ax.set(
    title="one fit in three processes ends as in one",
    xlabel="seconds",
    ylabel="iteration",
)
plt.show()
