"""Dask clusters of two processes, forked from one that has already loaded the libraries."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def cluster_of_two(silence_logs: str) -> Iterator[Any]:
    """Yield a Dask cluster of two workers with one thread each; a worker that dies is restarted."""
    import dask
    import distributed

    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    with dask.config.set({"distributed.worker.multiprocessing-method": method}):
        if method == "forkserver":
            distributed.utils.get_mp_context().set_forkserver_preload(["distributed", "cprime.estimators"])
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=silence_logs
        ) as found:
            yield found
