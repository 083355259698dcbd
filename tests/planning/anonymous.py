"""Measure the peak anonymous memory of a fit in a separate process; memory of compiled code is included."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

# Memory that the allocator retains from earlier work would hide what a fit takes, so a small fit runs first.
_PROGRAM = """
import ctypes, json, sys, threading, time
import numpy as np
from cprime import Factors, GaussianMixture, KMeans, Memory, StudentTMixture

PAGE = 4096

def anonymous():
    with open("/proc/self/statm") as file:
        _, resident, shared = file.read().split()[:3]
    return (int(resident) - int(shared)) * PAGE

def watch():
    global most
    while watching:
        most = max(most, anonymous())
        time.sleep(0.002)

N, D = {shape}
rng = np.random.default_rng(0)
X = (rng.normal(size=(100, D)).astype(np.float32) * 3)[rng.integers(100, size=N)]
for begin in range(0, N, 10_000):
    X[begin : begin + 10_000] += rng.standard_normal((min(10_000, N - begin), D), dtype=np.float32)
KMeans(2, max_iter=2).fit(X[:500])
GaussianMixture(2, max_iter=2).fit(X[:500])
path = {path}
if path:
    np.save(path, X)
    X = path
ctypes.CDLL(None).malloc_trim(0)
before = most = anonymous()
watching = True
thread = threading.Thread(target=watch, daemon=True)
thread.start()
{estimator}.fit(X)
watching = False
thread.join()
sys.stdout.write(json.dumps(most - before))
"""

MEASURABLE = Path("/proc/self/statm").exists()


def peak(estimator: Any, shape: tuple[int, int], path: Path | None = None) -> int:
    """Return the peak bytes of a fit above those held before; path: the file of the rows, None for rows in memory."""
    code = _PROGRAM.format(shape=shape, path=repr(None if path is None else str(path)), estimator=repr(estimator))
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return int(json.loads(run.stdout))
