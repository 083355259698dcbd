"""Description of the machine, and two hardware limits for every implementation: sgemm rate and memory bandwidth."""

import platform
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.peers import PEERS
from cprime import kernels

_REPETITIONS = 5


def sgemm_rate(n_threads: int, n: int = 3000) -> float:
    """Return the floating-point operations per second of NumPy's matrix product in single precision."""
    A = np.random.default_rng(0).random((n, n), dtype=np.float32)
    with threadpool_limits(n_threads):
        return 2 * n**3 / min(_seconds(lambda: A @ A))


def read_seconds(X: NDArray[np.float32], n_threads: int) -> float:
    """Return the seconds of reading X once, with as many threads as a fit may use, each on an equal part."""
    parts = np.array_split(X.reshape(-1).view(np.int32), n_threads)
    with ThreadPoolExecutor(n_threads) as pool:
        return min(_seconds(lambda: list(pool.map(np.bitwise_xor.reduce, parts))))


def _seconds(call: Callable[[], object]) -> list[float]:
    """Return the seconds of each of a few calls, after one warm-up call."""
    seconds = []
    for _ in range(_REPETITIONS + 1):
        begin = perf_counter()
        call()
        seconds.append(perf_counter() - begin)
    return seconds[1:]


def describe(n_threads: int) -> dict[str, Any]:
    """Return the machine, the date and the versions of all peers, as a record of a results file."""
    X = np.ones((1 << 18, 128), dtype=np.float32)  # 134 MB; zeros would share one page
    return {
        "date": datetime.now().astimezone().isoformat(timespec="minutes"),
        "processor": _processor(),
        "architecture": platform.machine(),
        "threads": n_threads,
        "memory_gb": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "kernels": kernels.instruction_set(),
        "sgemm_gflops": sgemm_rate(n_threads) / 1e9,
        "read_gb_per_second": X.nbytes / read_seconds(X, n_threads) / 1e9,
        "versions": {peer.distribution: peer.version for peer in PEERS.values()},
        "commit": _commit(),
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _memory() -> float | None:
    path = Path("/proc/meminfo")
    if not path.exists():
        return None
    return round(int(path.read_text(encoding="utf-8").split()[1]) / 2**20, 1)


def _commit() -> str | None:
    """Return the commit of this clone, with "-dirty" if files were changed; None outside a clone."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() or None
