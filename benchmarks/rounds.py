"""Interleaved repetitions: because machines are noisy, peers take turns and are compared round by round."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import blas
from benchmarks.data import random_start
from benchmarks.peers import PEERS, Fitted, Settings, shown
from benchmarks.quality import judge
from benchmarks.records import Record
from benchmarks.worker import FitFailed, Outcome, Worker

Run = tuple[str, Settings]


def plan(names: Iterable[str], X: NDArray, C: int) -> tuple[list[str], list[Record]]:
    """Return the peers that can run on X with C clusters, and for each other peer a record with the reason."""
    able, left_out = [], []
    for name in names:
        peer = PEERS[name]
        reason = (
            f"{peer.distribution} is not installed" if peer.version is None else peer.unsuitable(len(X), X.shape[1], C)
        )
        if reason is None:
            able.append(name)
        else:
            left_out.append({"peer": name, "left_out": reason})
    return able, left_out


@contextmanager
def workers(names: Iterable[str], X: NDArray, n_threads: int) -> Iterator[dict[str, Worker]]:
    """Yield a process for each peer by name, all with the same data, each with its fastest OpenBLAS kernels."""
    with tempfile.TemporaryDirectory(prefix="cprime-benchmark-") as folder, ExitStack() as stack:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        yield {name: stack.enter_context(_worker(name, path, n_threads)) for name in names}


def _worker(name: str, path: Path, n_threads: int) -> Worker:
    return Worker(name, path, n_threads, environment={blas.VARIABLE: blas.fastest(PEERS[name].distribution, n_threads)})


def repeat(
    runs: list[Run],
    X: NDArray,
    C: int,
    *,
    repetitions: int,
    n_threads: int,
    limit: float,
    scored: NDArray | None = None,
    further: Callable[[Fitted], dict[str, Any]] = lambda _: {},
    afresh: bool = False,
) -> list[Record]:
    """Do every run once per round, with seed r and the same initial centers in round r; return one record per run.

    A run that fails or takes longer than `limit` seconds is left out of later rounds, and so are later, costlier runs
    of the same peer.
    scored: rows for evaluating a result, by default X    further: function that returns more entries of a result's
    record
    afresh: whether every fit has a new process, so that no memory of an earlier fit remains
    """
    records: list[Record] = [
        {
            "peer": name,
            "version": PEERS[name].version,
            "settings": settings,
            "start": PEERS[name].start,
            "blas": blas.fastest(PEERS[name].distribution, n_threads),
            **{key: [] for key in ("seconds", "value", "reported", "n_iter", "memory", "extra")},
        }
        for name, settings in runs
    ]
    ended: dict[str, str] = {}
    with workers({name for name, _ in runs}, X, n_threads) as processes:
        for seed in range(repetitions):
            start = random_start(X, C, seed)
            for (name, settings), record in zip(runs, records, strict=True):
                if "left_out" in record:
                    continue
                if name in ended and not record["seconds"]:
                    record["left_out"] = f"after {ended[name]}"
                    continue
                try:
                    outcome = processes[name].fit(C, start, seed, settings, limit)
                except FitFailed as error:
                    record["left_out"] = str(error)
                    ended[name] = f"{shown(settings)}: {error}"
                    continue
                if afresh:
                    processes[name].stop()
                value = judge(X if scored is None else scored, C, outcome.fitted)
                _add(record, outcome, value, further(outcome.fitted))
                print(f"  {seed + 1}/{repetitions} {name} ({shown(settings)}): {outcome.seconds:.3g} s", flush=True)
    return records


def compare(
    runs: Iterable[Run],
    X: NDArray,
    C: int,
    options: Any,
    further: Callable[[Fitted], dict[str, Any]],
    afresh: bool = False,
) -> list[Record]:
    """Do those runs that the options request and that can run; return their records and the others' reasons."""
    wanted = [run for run in runs if not options.peers or run[0] in options.peers]
    able, unable = plan(dict(wanted), X, C)
    found = repeat(
        [run for run in wanted if run[0] in able],
        X,
        C,
        repetitions=options.repetitions,
        n_threads=options.threads,
        limit=options.limit,
        further=further,
        afresh=afresh,
    )
    return [*found, *unable]


def _add(record: Record, outcome: Outcome, value: float, further: dict[str, Any]) -> None:
    fitted = outcome.fitted
    record["seconds"].append(outcome.seconds)
    record["value"].append(value)
    record["reported"].append(fitted.objective)
    record["n_iter"].append(fitted.n_iter)
    record["memory"].append(outcome.memory)
    record["extra"].append({**fitted.extra, **further})


def label(record: Record) -> str:
    """Return peer and settings as one line."""
    return f"{record['peer']} ({shown(record['settings'])})"


def median(values: list) -> float:
    return float(np.median(values))


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Return the ratios of two lists, round by round."""
    return [a / b for a, b in zip(above, below, strict=False)]


def spread(values: list[float], form: str = ".3g") -> str:
    """Return the median and the range of values as text."""
    middle = format(median(values), form)
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}} to {max(values):{form}})"
