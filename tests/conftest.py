"""Fixtures for all tests: a seeded generator, real data, forked programs, a terminal; settings of hypothesis.

If pytest runs several workers, each of them and each process it starts has one thread, in kernels and BLAS. Tests of
threads set the number of threads explicitly.
"""

import io
import os
import sys
from pathlib import Path

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is loaded

import numpy as np
import pytest
from hypothesis import settings

from forks import PACKAGE, forks
from pairwise import beyond, is_quick

ROOT = Path(__file__).parents[1]
LONG_FOLDERS = ("benchmarks", "reproduction")
CONTRACTS = ROOT / "tests" / "contracts"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # to import the folder `reliability`, which is not part of the package

settings.register_profile("cprime", derandomize=True, deadline=None, max_examples=40, print_blob=False)
settings.load_profile("cprime")


def pytest_addoption(parser):
    what = "cases of tests of several parameters: enough for every value, enough for every pair of values, or all"
    parser.addoption("--full-products", choices=("values", "pairs", "all"), default="values", help=what)


def pytest_itemcollected(item):
    """Mark tests long that are rare, run measurements or whole experiments, or start a Dask cluster."""
    if item.path.parent.name in LONG_FOLDERS or item.get_closest_marker("rare") or "cluster" in item.fixturenames:
        item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Leave out cases of products of parameters, unless `--full-products` asks for them.

    Contracts keep all pairs of two values in long runs, because kernels and data types differ in code.
    """
    chosen = config.getoption("full_products")
    contracts = {item for item in items if CONTRACTS in item.path.parents}
    if chosen == "values":
        for item in beyond([item for item in items if item in contracts and is_quick(item)], 1):
            item.add_marker(pytest.mark.long)
    yield  # choose by marks and names
    out = set()
    if chosen != "all":
        out |= beyond([item for item in items if item in contracts], 2)
        out |= beyond([item for item in items if item not in contracts], 1 if chosen == "values" else 2)
    config.hook.pytest_deselected(items=list(out))
    items[:] = [item for item in items if item not in out]


@pytest.fixture(autouse=True)
def no_scheduler_of_a_closed_client():
    """Reset Dask's scheduler after a test if it is that of a cluster whose client has been closed.

    Clients restore the scheduler that was set when they were made. If they are closed in another order, that of a
    closed client stays.
    """
    yield
    if "distributed" not in sys.modules:
        return
    import dask
    import distributed

    if dask.config.get("scheduler", None) == "dask.distributed":
        try:
            distributed.Client.current()
        except ValueError:  # there is no client
            dask.config.set(scheduler=None)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a random generator with the same seed in every test."""
    return np.random.default_rng(20260101)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of real data, named by CPRIME_DATA; skip the test if there is none."""
    folder = (ROOT / os.environ.get("CPRIME_DATA", "../shared/data")).resolve()
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not a folder (CPRIME_DATA names another)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_disks():
    """Disable fsync, because no test simulates a loss of power."""
    with pytest.MonkeyPatch.context() as context:
        context.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session")
def forked():
    """Return a function that runs programs in new processes, forked with the package already loaded."""
    if not hasattr(os, "fork"):
        pytest.skip("this system forks no processes")
    with forks(*PACKAGE) as run:
        yield run


@pytest.fixture
def cells_for_few(monkeypatch):
    """Make approximate predictions use cells for few components too, not only for many."""
    for few in ("_FEW", "_FEW_OF_WALKS"):
        monkeypatch.setattr(f"cprime.search.nearby.{few}", 0)


@pytest.fixture
def terminal(monkeypatch):
    """Return the stream that receives the output of progress bars, as if it were a terminal."""
    from rich.console import Console

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=140)
    monkeypatch.setattr("cprime.callbacks.bar._console", lambda: console)
    return stream
