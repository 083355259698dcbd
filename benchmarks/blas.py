"""Which of OpenBLAS's kernels a peer is run with: those that it is fastest with.

OpenBLAS chooses by the model of the processor. A copy that is older than the processor takes kernels of 2004 for it,
three times as slow as others that it has (the one in faiss-cpu 1.15.1 on a Xeon of 2023), and would be measured for it.
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
_WORTH = 0.9  # of the seconds of its own choice: noise alone must not decide


@functools.cache
def fastest(distribution: str, n_threads: int) -> str:
    """The kernels (a value of OPENBLAS_CORETYPE) with which a small fit of a distribution's first peer ends first.

    Its own choice ("") where no other is faster by a tenth, for this library, and on processors other than x86.
    """
    if distribution == "cprime" or platform.machine() not in ("x86_64", "AMD64"):
        return OWN_CHOICE
    best = min(_KINDS, key=lambda kind: _seconds(distribution, kind, n_threads))
    # Both again, for a burst of noise may have decided.
    own, other = (_seconds(distribution, kind, n_threads) for kind in (OWN_CHOICE, best))
    return best if other < _WORTH * own else OWN_CHOICE


def _seconds(distribution: str, kind: str, n_threads: int) -> float:
    """Of the fastest of a few fits; infinite where the processor cannot run these kernels."""
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
    """Which peers were run with other kernels than OpenBLAS would have chosen, as a line of a report; "" if none."""
    chosen = {record["peer"]: record["blas"] for record in records if record.get("seconds") and record.get("blas")}
    listed = ", ".join(f"{name} ({kind})" for name, kind in chosen.items())
    return f"With the kernels of OpenBLAS that are faster here than its own choice: {listed}." if listed else ""
