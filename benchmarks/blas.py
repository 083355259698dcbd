"""Selection of the OpenBLAS kernels with which a peer runs fastest.

OpenBLAS chooses kernels by the processor's model. A copy older than the processor falls back to kernels of 2004, three
times slower than others that it has (for example, faiss-cpu 1.15.1 on a Xeon of 2023). Timing these would be unfair.
"""

import functools
import platform
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.peers import PEERS
from benchmarks.records import Record
from benchmarks.worker import FitFailed, Worker

VARIABLE = "OPENBLAS_CORETYPE"
OWN_CHOICE = ""
_KINDS = (OWN_CHOICE, "Haswell", "SkylakeX", "Zen")  # AVX2, AVX-512, and AVX2 in blocks for larger caches
_POINTS, _DIMENSIONS, _CLUSTERS = 32768, 64, 1024
_ITERATIONS, _ROUNDS, _LIMIT = 5, 3, 60.0
_WORTH = 0.9  # of the seconds of OpenBLAS's own choice: a smaller gain may be noise


@functools.cache
def fastest(distribution: str, n_threads: int) -> str:
    """Return the OPENBLAS_CORETYPE with which a small fit of the distribution's first peer takes the least time.

    Return "", OpenBLAS's own choice, if no other is faster by a tenth, for cprime itself, and on processors other than
    x86.
    """
    if distribution == "cprime" or platform.machine() not in ("x86_64", "AMD64"):
        return OWN_CHOICE
    best = min(_KINDS, key=lambda kind: _seconds(distribution, kind, n_threads))
    # Time both again, because noise may have decided.
    own, other = (_seconds(distribution, kind, n_threads) for kind in (OWN_CHOICE, best))
    return best if other < _WORTH * own else OWN_CHOICE


def _seconds(distribution: str, kind: str, n_threads: int) -> float:
    """Return the seconds of the fastest of a few fits; infinity if the processor cannot run these kernels."""
    name = next(name for name, peer in PEERS.items() if peer.distribution == distribution)
    X = np.random.default_rng(0).standard_normal((_POINTS, _DIMENSIONS), dtype=np.float32)
    settings = PEERS[name].ladder((_ITERATIONS,))[0]
    with tempfile.TemporaryDirectory(prefix="cprime-benchmark-") as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        with Worker(name, path, n_threads, environment={VARIABLE: kind}) as worker:
            try:
                return min(worker.fit(_CLUSTERS, X[:_CLUSTERS], 0, settings, _LIMIT).seconds for _ in range(_ROUNDS))
            except FitFailed:
                return float("inf")


def note(records: list[Record]) -> str:
    """Return a line for the report: the peers that ran with other kernels than OpenBLAS's own choice; "" if none."""
    chosen = {record["peer"]: record["blas"] for record in records if record.get("seconds") and record.get("blas")}
    listed = ", ".join(f"{name} ({kind})" for name, kind in chosen.items())
    return f"With the kernels of OpenBLAS that are faster here than its own choice: {listed}." if listed else ""
