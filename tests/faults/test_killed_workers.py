"""A fit on a cluster whose workers are killed takes longer, and its result is bit-identical."""

import os
import signal
from threading import Event, Thread

import numpy as np
import pytest

from clusters import cluster_of_two
from cprime import KMeans, open_data

distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed: pip install cprime[dask]")
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
]
KILLS = max(2, int(os.environ.get("CPRIME_KILLS", "3")) * 2 // 5)
SEED = int(os.environ.get("CPRIME_KILLS_SEED", "20260101"))
SEARCHES = ("graph", "bounded", "full")


def data():
    rng = np.random.default_rng(0)
    places = 3.0 * rng.standard_normal((40, 5))
    return places[rng.integers(40, size=6000)] + rng.standard_normal((6000, 5))


def estimator(search):
    return KMeans(40, search=search, init="two-level", tol=0, max_iter=25, random_state=1, n_threads=1)


@pytest.fixture
def cluster():
    """Yield a new cluster for every test case, because a nanny may fail to restart a worker that was killed as it
    started.
    """
    with cluster_of_two("CRITICAL") as found:
        yield found


def killer(client, rng, done, killed):
    """Kill a worker at random moments, each time after both workers run again."""
    while not done.wait(rng.uniform(0.05, 1.0)):
        processes = sorted(client.run(os.getpid).values()) if len(client.nthreads()) == 2 else []
        if processes and not done.is_set():
            os.kill(processes[rng.integers(len(processes))], signal.SIGKILL)
            killed.append(processes)
            done.wait(1.0)


@pytest.mark.parametrize("turn", range(KILLS))
@pytest.mark.long
def test_killed_workers_cost_time_and_no_bit(turn, cluster):
    import dask.array as da

    search, rng = SEARCHES[turn % len(SEARCHES)], np.random.default_rng([SEED, turn])
    X, killed = data(), []
    expected = estimator(search).fit(open_data(X, chunk_rows=750))
    done = Event()
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        thread = Thread(target=killer, args=(client, rng, done, killed))
        thread.start()
        try:
            for _ in range(5):
                found = estimator(search).fit(da.from_array(X, chunks=(750, -1)))
                labels = found.labels_.compute()
                if killed:
                    break
        finally:
            done.set()
            thread.join()
    print(f"CPRIME_KILLS_SEED={SEED}, turn {turn}: {search}, {len(killed)} workers killed")  # noqa: T201
    assert killed
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(labels, expected.labels_)
    for column in ("lower_bound", "quantization_error", "n_moved", "n_distances"):
        np.testing.assert_array_equal(found.history_[column], expected.history_[column], column)


@pytest.mark.long
def test_a_worker_may_be_killed_as_all_are_asked_for_a_folder(cluster, monkeypatch):
    import dask.array as da

    X, plain, killed = data(), distributed.Client.run, []
    expected = estimator("full").fit(open_data(X, chunk_rows=750))
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        victim = min(client.run(os.getpid).values())

        def run(*args, **kwargs):
            if not killed:
                os.kill(victim, signal.SIGKILL)
                killed.append(victim)
            return plain(*args, **kwargs)

        monkeypatch.setattr(distributed.Client, "run", run)
        found = estimator("full").fit(da.from_array(X, chunks=(750, -1)))
    assert killed
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
