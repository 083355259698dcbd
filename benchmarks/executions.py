"""The same k-means fit on data in memory, in files, and on the workers of a Dask cluster.

Fits alternate in this process, with its threads; each of the cluster's two workers has one thread. Only the seconds of
iterations count, as the library records them.
"""

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks.data import random_start
from benchmarks.quality import inertia
from benchmarks.records import Record
from cprime import KMeans, __version__, open_data
from cprime.search import Graph

WHOLE = "memory, one chunk"
CHUNKS = 8  # in every execution but the first
_Opened = Callable[[NDArray, Path, ExitStack], Any]


def _whole(X: NDArray, folder: Path, stack: ExitStack) -> Any:
    return X


def _rows(X: NDArray) -> int:
    return -(-len(X) // CHUNKS)


def _chunks(X: NDArray, folder: Path, stack: ExitStack) -> Any:
    return open_data(X, chunk_rows=_rows(X))


def _npy(X: NDArray, folder: Path, stack: ExitStack) -> Any:
    np.save(folder / "X.npy", X)
    return open_data(folder / "X.npy", chunk_rows=_rows(X))


def _parquet(X: NDArray, folder: Path, stack: ExitStack) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    (folder / "parquet").mkdir()
    names = [f"x{j}" for j in range(X.shape[1])]
    for i, first in enumerate(range(0, len(X), _rows(X))):
        table = pa.table(list(X[first : first + _rows(X)].T.copy()), names)
        parquet.write_table(table, folder / "parquet" / f"{i:03d}.parquet", use_dictionary=False)
    return open_data(folder / "parquet", chunk_rows=_rows(X))


def on_workers(X: NDArray, size: int, n_workers: int, folder: Path, stack: ExitStack) -> tuple[Any, Any]:
    """Return a client of a new Dask cluster of one-threaded workers, and X as an array in chunks of their memory.

    size: rows of a chunk    folder: where the chunks are stored, from which workers read them
    """
    import dask.array as da
    from dask import delayed
    from dask.distributed import Client, LocalCluster

    silent = {"dashboard_address": None, "silence_logs": logging.ERROR}
    cluster = stack.enter_context(LocalCluster(n_workers=n_workers, threads_per_worker=1, **silent))
    client = stack.enter_context(Client(cluster))
    parts = []
    for i, first in enumerate(range(0, len(X), size)):
        path, part = folder / f"part-{i:03d}.npy", X[first : first + size]
        np.save(path, part)
        parts.append(da.from_delayed(delayed(np.load)(path), part.shape, X.dtype))
    return client, client.persist(da.concatenate(parts))


def _dask(X: NDArray, folder: Path, stack: ExitStack) -> Any:
    return on_workers(X, _rows(X), 2, folder, stack)[1]


# Name: the function that opens the data in this way, and the library it needs.
EXECUTIONS: dict[str, tuple[_Opened, str | None]] = {
    WHOLE: (_whole, None),
    f"memory, {CHUNKS} chunks": (_chunks, None),
    f".npy, {CHUNKS} chunks": (_npy, None),
    f"Parquet, {CHUNKS} chunks": (_parquet, "pyarrow"),
    f"Dask, 2 workers, {CHUNKS} chunks": (_dask, "distributed"),
}


@contextmanager
def _opened(X: NDArray, names: list[str]) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="cprime-benchmark-") as folder, ExitStack() as stack:
        yield {name: EXECUTIONS[name][0](X, Path(folder), stack) for name in names}


def repeat(
    X: NDArray, C: int, *, iterations: int, repetitions: int, n_threads: int, scored: NDArray | None = None
) -> list[Record]:
    """Run every execution once per round, from the round's initial centers; return records like those of peers."""
    records: dict[str, Record] = {}
    for name, (_, library) in EXECUTIONS.items():
        records[name] = {"peer": name, "version": __version__, "settings": {"max_iter": iterations}}
        if library is not None and find_spec(library) is None:
            records[name]["left_out"] = f"{library} is not installed"
    able = [name for name, record in records.items() if "left_out" not in record]
    with _opened(X, able) as opened:
        for seed in range(-1, repetitions):  # the first round is a warm-up
            start = random_start(X, C, max(seed, 0))
            for name in able:
                found = fitted(opened[name], start, iterations if seed >= 0 else 2, n_threads)
                if seed < 0:
                    continue
                record, steps = records[name], found.history_["seconds"].tolist()
                for key, value in (
                    ("seconds", sum(steps)),
                    ("value", inertia(X if scored is None else scored, found.cluster_centers_)),
                    ("n_iter", found.n_iter_),
                    ("extra", {"step_seconds": steps}),
                ):
                    record.setdefault(key, []).append(value)
                print(f"  {seed + 1}/{repetitions} {name}: {sum(steps):.3g} s", flush=True)
    return list(records.values())


def fitted(data: Any, start: NDArray, iterations: int, n_threads: int, **further: Any) -> KMeans:
    """Return a k-means by graph search after a number of iterations; further: other options, also another search."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = {"max_iter": iterations, "tol": 0.0, "n_threads": n_threads, "random_state": 0}
        return KMeans(len(start), init=start, **{"search": Graph(certificate=0), **options, **further}).fit(data)
