"""
More data than memory
=====================

A folder of Parquet files, written part by part, is fitted by its path:
`KMeans(…).fit("folder")`. The files are read again in every iteration, one chunk at a
time; the next chunk is read while the present one is processed. Memory holds only two
chunks, the centers, and for each point the index of its center with its distance. A
second process first reads everything and then fits the same chunks in memory; its
result is bit-identical. The memory of both processes is measured from outside.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

plt.style.use("cprime.style")

# %%
# The program
# -----------
# `open_data` is needed only to set the size of a chunk; here a chunk is one file.

PROGRAM = """
import json, sys, time
from hashlib import blake2b
from cprime import KMeans, open_data

folder, way, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
begin = time.perf_counter()
X = open_data(folder, chunk_rows=rows)
if way == "read first":
    X = open_data(X.read(0, X.n_rows), chunk_rows=rows)
km = KMeans(100, init="two-level", max_iter=2, random_state=0).fit(X)
bits = blake2b(km.cluster_centers_.tobytes() + km.labels_.tobytes()).hexdigest()
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "J": km.inertia_, "bits": bits}))
"""


def resident(pid):
    """Return the MB of a process in memory, if the system has /proc; 0 once it has
    ended.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return (
        sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1000
    )


def watched(folder, way):
    """Return the program's output and its memory (n, 2): seconds, MB above its
    libraries.
    """
    command = [sys.executable, "-c", PROGRAM, str(folder), way, str(ROWS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        idle, begin, course = resident(process.pid), time.perf_counter(), []
        while process.poll() is None:
            course.append((time.perf_counter() - begin, resident(process.pid) - idle))
            time.sleep(0.02)
        return json.loads(process.stdout.read()), np.array(course[:-1])


# %%
# The files
# ---------
# Points around a hundred centers; never more than one part is in memory.

PARTS, ROWS, D = 24, 50_000, 64
rng = np.random.default_rng(0)
centers = rng.standard_normal((100, D), dtype=np.float32)
found, courses = {}, {}
with tempfile.TemporaryDirectory() as name:
    for i in range(PARTS):
        X = centers[rng.integers(0, len(centers), ROWS)] + rng.standard_normal(
            (ROWS, D), dtype=np.float32
        )
        pq.write_table(
            pa.table({f"x{j}": X[:, j] for j in range(D)}),
            f"{name}/{i:03d}.parquet",
            use_dictionary=False,
            compression="none",
        )
    for way in ("by its path", "read first"):
        found[way], courses[way] = watched(name, way)
size = PARTS * X.nbytes / 1e6
print(f"{PARTS * ROWS:,} points in {D} dimensions, {size:,.0f} MB in {PARTS} files")
for way, said in found.items():
    most = courses[way][:, 1].max()
    print(
        f"{way}: {said['seconds']:.1f} s, J = {said['J']:.10g}, at most {most:,.0f} MB"
    )
print(
    "the same bits"
    if found["by its path"]["bits"] == found["read first"]["bits"]
    else "they differ"
)

# %%
# Memory
# ------
# MB above the memory that Python and the libraries take.

share = courses["by its path"][:, 1].max() / size
figure, ax = plt.subplots(figsize=(8, 3.8))
ax.axhline(size, color="0.5", linestyle=":", linewidth=1)
ax.text(
    0.99,
    size,
    "the data",
    color="0.4",
    ha="right",
    va="bottom",
    transform=ax.get_yaxis_transform(),
)
for color, (way, course) in zip(("C1", "C0"), courses.items(), strict=True):
    ax.plot(*course.T, color=color)
    top = course[:, 1].argmax()
    ax.annotate(
        way,
        course[top],
        xytext=(0, 6),
        textcoords="offset points",
        color=color,
        ha="center",
        weight="bold",
    )
ax.set_ylim(0, 1.25 * size)
ax.set(
    title=f"by its path, a fit takes {share:.0%} of the memory of its data",
    xlabel="seconds",
    ylabel="MB in memory",
)
plt.show()
