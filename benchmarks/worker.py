"""Process of one peer: it holds the data, fits on request, and reports seconds and memory.

So threads of different libraries do not disturb each other, and a fit that takes too long can be ended.
"""

import multiprocessing
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import random_start
from benchmarks.peers import PEERS, Fitted, Settings, Task

_CONTEXT = multiprocessing.get_context("spawn")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_NOTHING: Mapping[str, str] = MappingProxyType({})
_WARM_UP = (8192, 160)  # points and clusters of the fit before the first timed one


class FitFailed(Exception):
    """A peer raised an error, its process died, or it took too long; the message says which."""


@dataclass(frozen=True)
class Outcome:
    """Result of a fit with its cost.

    seconds: of the call alone      memory: peak above what the process held before, in bytes; None if unknown
    """

    fitted: Fitted
    seconds: float
    memory: int | None


class Worker:
    """A peer in a separate process, which starts at the first fit and again after a failed one.

    data: a .npy file, beside which the output of the peer is written
    warm: whether a small fit runs before the first timed one; if not, only the library is imported
    environment: variables of the process in addition to the numbers of threads
    """

    def __init__(
        self, peer: str, data: Path, n_threads: int, warm: bool = True, environment: Mapping[str, str] = _NOTHING
    ) -> None:
        self._log = data.with_name(f"{peer}.log")
        self._arguments = (peer, data, self._log, n_threads, warm)
        self._environment = {**dict.fromkeys(_THREADS, str(n_threads)), **environment}
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def fit(self, n_clusters: int, start: NDArray, seed: int, settings: Settings, limit: float) -> Outcome:
        """Run one fit of the peer in at most `limit` seconds; raise FitFailed if it fails."""
        if self._connection is None:
            self._begin()
        assert self._connection is not None
        try:
            self._connection.send((n_clusters, start, seed, settings))
        except BrokenPipeError:
            raise self._death() from None
        return self._answer(limit)

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None

    def _begin(self) -> None:
        self._connection, other = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=serve, args=(other, *self._arguments), daemon=True)
        with environment(self._environment):
            self._process.start()
        other.close()
        self._answer(None)

    def _answer(self, limit: float | None) -> Outcome:
        assert self._connection is not None
        try:
            if not self._connection.poll(limit):
                self.stop()
                raise FitFailed(f"more than {limit:g} s")
            answer = self._connection.recv()
        except EOFError:
            raise self._death() from None
        if isinstance(answer, str):
            self.stop()
            raise FitFailed(answer)
        return answer

    def _death(self) -> FitFailed:
        """Return the error for a process that ended: its exit code and its last line of output."""
        assert self._process is not None
        self._process.join()
        code = self._process.exitcode
        self.stop()
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines() if self._log.exists() else []
        return FitFailed(f"the process died with exit code {code}{': ' + lines[-1] if lines else ''}")


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for new processes and newly loaded libraries during the context."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def serve(connection: Connection, name: str, data: Path, log: Path, n_threads: int, warm: bool) -> None:
    """Answer each request of the parent process with an Outcome or with one line about the error."""
    with log.open("w", encoding="utf-8") as file:  # libraries also print warnings outside of Python
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n_threads])
    peer = PEERS[name]
    try:
        exec(peer.statement, {})
        X = np.load(data)
        if warm:
            n, C = _WARM_UP
            points = np.random.default_rng(0).integers(0, 100, (n, X.shape[1]), np.uint8).astype(X.dtype)
            _timed(name, Task(points, C, random_start(points, C, 0), 0, n_threads), (peer.ladder((2,)) or [{}])[0])
        connection.send(None)
        while True:
            n_clusters, start, seed, settings = connection.recv()
            connection.send(_timed(name, Task(X, n_clusters, start, seed, n_threads), settings))
    except EOFError:
        return
    except Exception as error:
        connection.send(f"{type(error).__name__}: {' '.join(str(error).split())}")


def _timed(name: str, task: Task, settings: Settings) -> Outcome:
    before = _reset_peak()
    with warnings.catch_warnings(action="ignore"):  # warnings of convergence and few points per center are expected
        begin = perf_counter()
        fitted = PEERS[name].fit(task, **settings)
        seconds = perf_counter() - begin
    after = _status("VmHWM")
    return Outcome(fitted, seconds, None if before is None or after is None else max(0, after - before))


def _reset_peak() -> int | None:
    """Reset the peak memory of the process to its present memory; return this memory in bytes, None if unsupported."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmRSS")


def _status(key: str) -> int | None:
    """Return a value of /proc/self/status in bytes, None if there is no such file."""
    path = Path("/proc/self/status")
    if not path.exists():
        return None
    line = next(line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(f"{key}:"))
    return 1024 * int(line.split()[1])
