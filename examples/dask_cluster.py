"""
k-means on a Dask cluster that loses a worker
=============================================

A folder holds the points in several files. Each file becomes a chunk of a Dask array,
and `KMeans.fit` runs where the chunks are: here on two worker processes of this
machine, elsewhere on any cluster. The same chunks are then fitted in the memory of one
process. Finally they are fitted on the cluster again, and one worker is killed during
the fit (SIGKILL). Its chunks and the assignments of their points are recomputed from
the tasks that made them. All three fits are bit-identical. Two workers on the client's
machine show that this works, not how fast a cluster is, because they share its
processors.
"""

import logging
import os
import signal
import tempfile

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask import delayed
from distributed import Client, SubprocessCluster

from cprime import KMeans, open_data
from cprime.datasets import clusters

plt.style.use("cprime.style")

# %%
# The fits
# --------
# The Dask array contains only the tasks that read the data. A callback is called after
# every iteration; one of these callbacks kills a worker. The other worker may be
# reading from the killed one at that time. Its failure is expected here, so Dask is set
# not to log it as an error.

N, D, C, CHUNKS, KILL = 200_000, 32, 500, 8, 6
X = clusters(N, C, D, random_state=0).data


def fit(data, callback=None):
    return KMeans(
        C, search="graph", init=X[:C], random_state=0, callbacks=callback
    ).fit(data)


def kill(row):
    if row["iteration"] == KILL:
        os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


fits = {"one process": fit(open_data(X, chunk_rows=N // CHUNKS))}
with (
    tempfile.TemporaryDirectory() as folder,
    SubprocessCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    ) as cluster,
    Client(cluster) as client,
):
    parts = []
    for i, part in enumerate(np.split(X, CHUNKS)):
        np.save(f"{folder}/{i:02d}.npy", part)
        parts.append(
            da.from_delayed(
                delayed(np.load)(f"{folder}/{i:02d}.npy"), part.shape, X.dtype
            )
        )
    chunks = da.concatenate(parts)
    fits["two workers"] = fit(chunks)
    fits["two workers, one killed"] = fit(chunks, kill)
    labels = {name: np.asarray(km.labels_) for name, km in fits.items()}
    predicted = fits["two workers"].predict(chunks)
    print(f"labels: {type(predicted).__name__} of Dask, {predicted.npartitions} chunks")
    found = (fits["two workers"].labels_ == predicted).mean().compute()
    print(f"as the search found them: {found:.2%} of the points")

one = fits["one process"]
for name, km in fits.items():
    same = all(
        a.tobytes() == b.tobytes()
        for a, b in (
            (one.cluster_centers_, km.cluster_centers_),
            (labels["one process"], labels[name]),
            (one.history_["quantization_error"], km.history_["quantization_error"]),
        )
    )
    seconds = km.history_["seconds"].sum()
    course = f"{km.n_iter_} iterations, {seconds:.2f} s, J = {km.inertia_:.9g}"
    print(f"{name}: {course}, same bits: {same}")

# %%
# Time and error by iteration
# ---------------------------
# The iteration after the loss also recomputes what was lost.

figure, (time, error) = plt.subplots(1, 2, figsize=(9, 3.8))
looks = (("C2", 7), ("C0", 4), ("C1", 1.5))
for i, ((name, km), (color, width)) in enumerate(zip(fits.items(), looks, strict=True)):
    iterations = np.arange(1, km.n_iter_ + 1)
    time.plot(iterations, km.history_["seconds"], color=color)
    J = km.history_["quantization_error"] / one.inertia_
    error.plot(iterations, J, color=color, linewidth=width)
    place = {"xy": (0.35, 0.9 - 0.09 * i), "xycoords": "axes fraction"}
    error.annotate(name, color=color, weight="bold", **place)
time.axvline(KILL + 0.5, color="C1", linestyle=":", linewidth=1)
place = {"xytext": (4, -4), "textcoords": "offset points", "va": "top"}
time.annotate(
    "killed", (KILL + 0.5, 1), color="C1", xycoords=("data", "axes fraction"), **place
)
time.set(title="what the iterations took", xlabel="iteration", ylabel="seconds")
time.set_ylim(0, 1.15 * time.get_ylim()[1])
error.set(title="J: one curve on top of the other", xlabel="iteration")
error.set_ylabel("J / J at the end")
plt.show()
