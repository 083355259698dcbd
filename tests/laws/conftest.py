"""Fixture for the laws: Dask's scheduler."""

import pytest

try:
    import dask
except ImportError:
    dask = None


@pytest.fixture(autouse=True)
def _dask_in_the_calling_thread():
    """Let Dask compute in the calling thread, because its own threads take more time than so few rows."""
    if dask is None:
        yield
        return
    with dask.config.set(scheduler="synchronous"):
        yield
