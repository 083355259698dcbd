"""Fixture of one Dask cluster of two processes for all tests of this folder; without Dask they are skipped."""

from importlib.util import find_spec

import pytest

from clusters import cluster_of_two

collect_ignore_glob = [] if find_spec("distributed") else ["test_dask_*.py"]


@pytest.fixture(scope="session")
def cluster():
    with cluster_of_two("ERROR") as found:
        yield found


@pytest.fixture
def client(cluster):
    """Yield a client that is Dask's current one during the test."""
    from distributed import Client

    with Client(cluster) as found:
        yield found
