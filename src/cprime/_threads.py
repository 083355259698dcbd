"""How many threads a call may use."""

import os
from numbers import Integral


def resolve_threads(n_threads: int | None) -> int:
    """The number of threads meant by `n_threads`: None is every processor that this process may run on."""
    if n_threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise ValueError(f"n_threads must be None or an integer >= 1, got {n_threads!r}")
    return int(n_threads)
