"""Fits in little more memory than `docs/speed.md` states: at most 1.2 times that value above the data.

The limit is RLIMIT_DATA, set after the data exist and a small fit has loaded everything that fits need. An allocation
beyond it raises MemoryError.
"""

import resource
from pathlib import Path

import numpy as np

from cprime import GaussianMixture, KMeans
from cprime.search import Graph

_ROOM = 1.2


def _limited(megabytes: float) -> None:
    """Limit the memory that the process may add from now on, as counted by RLIMIT_DATA."""
    status = Path("/proc/self/status").read_text()
    has = int(status.partition("VmData:")[2].split()[0]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (has + int(megabytes * _ROOM * 1e6),) * 2)


def a_mixture(folder: Path) -> str:
    """Fit 130,290 x 90, C = 500, diagonal covariances: exact, and C' = 5 without regrouping, in 32 MB above data."""
    X = np.random.default_rng(0).standard_normal((130_290, 90), dtype=np.float32)
    common = {"covariance_type": "diag", "init_params": "random", "max_iter": 3, "random_state": 0, "n_threads": 1}
    mixtures = [
        GaussianMixture(500, **common, n_active=None),
        GaussianMixture(500, **common, n_active=5, search=Graph(regroup=False)),
    ]
    for mixture in mixtures:
        mixture.fit(X[:5000])
    _limited(32)
    for mixture in mixtures:
        mixture.fit(X)
    return f"32 MB, times {_ROOM}"


def a_million_clusters(folder: Path) -> str:
    """Fit 10⁷ points of 16 dimensions with 10⁶ clusters in 2.05 GB above the data."""
    X = np.random.default_rng(0).standard_normal((10_000_000, 16), dtype=np.float32)
    given = {"search": "graph", "max_iter": 2, "random_state": 0, "n_threads": 2}
    KMeans(2000, **given).fit(X[:20_000])
    _limited(2050)
    KMeans(1_000_000, **given).fit(X)
    return f"2.05 GB, times {_ROOM}"
