"""More data than memory

A folder of Parquet files, written part by part, is fitted by its path: `KMeans(…).fit("folder")`. The files are read
anew in every iteration, a chunk at a time, the next one while the one before is computed; what stays in memory is two
chunks, the centers, and for each point the number of its center with its distance. Labels are then written to a file
chunk by chunk. A second process reads everything first, and fits the same chunks in memory, to the same bits. The
memory of both processes is watched from outside.
"""

import tempfile
import threading
import time
from hashlib import blake2b
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from numpy.lib.format import open_memmap

import cprime
from cprime._style import BLUE, VERMILION, frame, name_curve
from examples.processes import begun, told
from examples.result import table, write

D, C = 64, 500
STREAMED, WHOLE = "by its path", "read first"
COLORS = {STREAMED: VERMILION, WHOLE: BLUE}


def main(output: Path, small: bool = False) -> None:
    """Writes the folder, and fits it in two ways."""
    n_parts, rows = (8, 30_000) if small else (40, 100_000)
    with tempfile.TemporaryDirectory(prefix="cprime-example-") as name:
        folder = Path(name) / "points"
        write_parts(folder, n_parts, rows)
        on_disk = sum(path.stat().st_size for path in folder.iterdir())
        seen = {way: watched(folder, way, rows) for way in (STREAMED, WHOLE)}
    data = n_parts * rows * D * 4
    lines = [f"{n_parts * rows:,} points in {D} dimensions, {data / 1e6:,.0f} MB as float32"]
    lines.append(f"{n_parts} Parquet files, {on_disk / 1e6:,.0f} MB; C = {C}; one file is one chunk")
    rows_of = [
        (
            way,
            f"{found['idle'] / 1e6:,.0f}",
            f"{(found['peak'] - found['idle']) / 1e6:,.0f}",
            f"{(found['peak'] - found['idle']) / data:.2f}",
            f"{found['seconds']:.1f}",
            f"{found['J']:.10g}",
        )
        for way, (found, _) in seen.items()
    ]
    lines += table(("", "MB before", "MB more at the peak", "of the data", "seconds", "J"), rows_of)
    found, other = seen[STREAMED][0], seen[WHOLE][0]
    lines.append(f"centers and labels to the same bits: {'yes' if found['bits'] == other['bits'] else 'no'}")
    lines.append(
        f"labels written chunk by chunk: {found['labels']:,}, {found['agreement']:.2%} of them as the search found them"
    )
    write(output, __name__, draw({way: curve for way, (_, curve) in seen.items()}, data), lines)


def write_parts(folder: Path, n_parts: int, rows: int) -> None:
    """Files of points around the same centers; never more than one part is in memory."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    centers = 3 * rng.standard_normal((C, D), dtype=np.float32)
    for i in range(n_parts):
        X = centers[rng.integers(0, C, rows)] + rng.standard_normal((rows, D), dtype=np.float32)
        pq.write_table(
            pa.table({f"x{j}": X[:, j] for j in range(D)}), folder / f"{i:03d}.parquet", use_dictionary=False
        )


def watched(folder: Path, way: str, rows: int) -> tuple[dict[str, Any], list[tuple[float, float]]]:
    """What a process says of itself, and its memory in bytes over seconds, as it is seen from here."""
    curve: list[tuple[float, float]] = []
    process, connection = begun(fit, folder, way, rows)
    status, begin, ended = Path(f"/proc/{process.pid}/status"), time.perf_counter(), threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            curve.append((time.perf_counter() - begin, memory(status, "VmRSS")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    (found,) = told(process, connection)
    ended.set()
    watcher.join()
    return found, [point for point in curve if point[1] > 0]


def fit(connection: Connection, folder: Path, way: str, rows: int) -> None:
    """The process."""
    own = Path("/proc/self/status")
    idle, begin = memory(own, "VmRSS"), time.perf_counter()
    source = cprime.open_data(folder, chunk_rows=rows)
    X = source if way == STREAMED else cprime.open_data(source.read(0, source.n_rows), chunk_rows=rows)
    km = cprime.KMeans(C, search="graph", init="two-level", max_iter=10, random_state=0).fit(X)
    found = {"idle": idle, "seconds": time.perf_counter() - begin, "J": km.inertia_}
    found["bits"] = blake2b(km.cluster_centers_.tobytes() + km.labels_.tobytes()).hexdigest()
    if way == STREAMED:
        labels = open_memmap(folder.with_name("labels.npy"), "w+", np.int32, (source.n_rows,))
        for i, part in enumerate(sorted(folder.iterdir())):
            labels[i * rows : (i + 1) * rows] = km.predict(part)
        found |= {"labels": len(labels), "agreement": float((labels == km.labels_).mean())}
    connection.send(found | {"peak": memory(own, "VmHWM")})


def memory(status: Path, name: str) -> float:
    """Bytes of a process: now (VmRSS), or the most so far (VmHWM). 0 where there is no such file, or no more."""
    try:
        lines = status.read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return 1024.0 * next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def draw(curves: dict[str, list[tuple[float, float]]], data: float) -> Figure:
    """Memory over time, beside the size of the data."""
    figure = Figure(figsize=(6.5, 3.2), layout="constrained")
    ax = figure.subplots()
    frame(ax, "memory of the whole process", "seconds", "MB")
    ax.axhline(data / 1e6, color="0.5", linestyle=":", linewidth=1)
    name_curve(ax, "the data", (1, data / 1e6), "0.4", xycoords=("axes fraction", "data"), xytext=(-2, 6), ha="right")
    for way, curve in curves.items():
        seconds, held = np.array(curve or [(0, 0)]).T
        ax.plot(seconds, held / 1e6, color=COLORS[way], linewidth=1.5)
        top = int(held.argmax())
        name_curve(ax, way, (seconds[top], held[top] / 1e6), COLORS[way], xytext=(0, 8), ha="center")
    ax.set_ylim(0, 1.1 * ax.get_ylim()[1])
    return figure
