"""Adapters of all peers return as many centers or components as requested, and better ones for a larger budget."""

import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from benchmarks.data import random_start
from benchmarks.measures.options import MIXTURES
from benchmarks.peers import PEERS, Fitted, Peer, Settings, Task
from benchmarks.quality import inertia, judge
from benchmarks.worker import FitFailed, Worker

from benchmarks import blas

C = 20


def called(name: str, task: Task, settings: Settings) -> Fitted:
    with warnings.catch_warnings(action="ignore"):
        return PEERS[name].fit(task, **settings)


@pytest.fixture(scope="module")
def elsewhere():
    """Yield a function that runs a peer in another process, apart from the threads of the tests."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield lambda *arguments: pool.submit(called, *arguments).result(timeout=120)


def installed(name: str) -> Peer:
    peer = PEERS[name]
    if peer.version is None:
        pytest.skip(f"{peer.distribution} is not installed")
    return peer


@pytest.mark.parametrize("name", PEERS)
def test_an_adapter_repeats_its_fit_and_returns_parameters_of_its_shapes(name, points, elsewhere):
    peer = installed(name)
    task = Task(points, C, random_start(points, C, 0), 0, 1)
    cheapest = peer.ladder((2, 8))[0]
    fitted = elsewhere(name, task, cheapest)
    value = judge(points, C, fitted)
    assert judge(points, C, elsewhere(name, task, cheapest)) == pytest.approx(value, rel=1e-4)
    if peer.model in MIXTURES:
        D = points.shape[1]
        shapes = {"mixture": (C,), "mixture-diag": (C, D), "mixture-full": (C, D, D)}
        assert fitted.weights.shape == (C,)
        assert fitted.covariances.shape == shapes[peer.model]
    else:
        assert value < 0.9 * inertia(points, points.mean(axis=0, keepdims=True))
    if peer.fixed is not None:
        longer = elsewhere(name, task, peer.fixed(8))
        assert longer.n_iter <= 8
        gain = judge(points, C, longer) - value
        assert gain > 0 if peer.model in MIXTURES else gain < 0.01 * value


@pytest.mark.parametrize("name", ["cprime-lloyd", "faiss", "sklearn-lloyd", "sklearn-elkan", "intelex"])
def test_peers_that_do_lloyd_from_the_given_start_agree(name, points, elsewhere):
    """Two iterations of a peer equal two of Lloyd's algorithm in NumPy from the same initial centers."""
    peer = installed(name)
    start = centers = random_start(points, 5, 3)
    for _ in range(2):
        labels = ((points[:, np.newaxis] - centers) ** 2).sum(axis=2).argmin(axis=1)
        centers = np.stack([points[labels == c].mean(axis=0, dtype=np.float64) for c in range(5)])
    fitted = elsewhere(name, Task(points, 5, start, 0, 1), peer.fixed(2))
    assert fitted.n_iter == 2
    np.testing.assert_allclose(fitted.centers, centers, atol=1e-4)


@pytest.mark.parametrize("name", ["cprime", "faiss", "faiss-super", "sklearn-minibatch", "superkmeans"])
def test_narrow_rows_are_the_same_numbers_to_every_peer(name, points, elsewhere):
    peer = installed(name)
    narrow = points.astype(np.float16)
    found = [
        elsewhere(name, Task(X, C, random_start(X, C, 0), 0, 1), peer.ladder((2,))[0]).centers
        for X in (narrow, narrow.astype(np.float32))
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", ["cprime-em", "sklearn-mixture"])
def test_mixtures_report_the_likelihood_that_is_recomputed(name, points, elsewhere):
    fitted = elsewhere(name, Task(points, 5, random_start(points, 5, 0), 0, 1), PEERS[name].fixed(60))
    assert judge(points, 5, fitted) == pytest.approx(fitted.objective, rel=1e-4)


def test_peers_that_are_not_suitable_say_why():
    assert PEERS["faiss-sampled"].unsuitable(1000, 8, 4) is not None
    assert PEERS["faiss-sampled"].unsuitable(2000, 8, 4) is None
    assert "32 dimensions" in PEERS["faiss-super"].unsuitable(1000, 16, 4)
    assert PEERS["cprime"].unsuitable(1000, 16, 4) is None


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [
        ({"": 3.0, "Haswell": 2.0, "SkylakeX": float("inf"), "Zen": 1.0}, "Zen"),
        ({"": 1.0, "Haswell": 0.92, "SkylakeX": 2.0, "Zen": 1.1}, ""),  # the difference is within the noise
        ({"": 1.0, "Haswell": float("inf"), "SkylakeX": float("inf"), "Zen": float("inf")}, ""),
    ],
)
def test_a_peer_is_given_the_kernels_that_it_is_clearly_fastest_with(seconds, chosen, monkeypatch):
    monkeypatch.setattr(blas, "_seconds", lambda distribution, kind, n_threads: seconds[kind])
    monkeypatch.setattr(blas.platform, "machine", lambda: "x86_64")
    blas.fastest.cache_clear()
    try:
        assert blas.fastest("faiss-cpu", 1) == chosen
        assert blas.fastest("cprime", 1) == ""
    finally:
        blas.fastest.cache_clear()


@pytest.mark.long
def test_kernels_with_which_a_fit_fails_are_never_chosen(monkeypatch):
    assert blas._seconds("cprime", "Haswell", 1) < 60
    monkeypatch.setattr(blas, "_LIMIT", 1e-6)
    assert blas._seconds("cprime", "Haswell", 1) == float("inf")


@pytest.mark.long
def test_a_fit_that_takes_too_long_is_ended_and_the_next_begins_anew(file, points):
    start = random_start(points, C, 0)
    with Worker("cprime", file, 1, warm=False) as worker:
        with pytest.raises(FitFailed, match="more than 1e-06 s"):
            worker.fit(C, start, 0, {}, 1e-6)
        assert worker.fit(C, start, 0, {}, 60).fitted.centers.shape == (C, 40)


@pytest.mark.long
def test_an_error_of_a_peer_comes_back_with_its_words(file, points):
    with (
        Worker("cprime", file, 1, warm=False) as worker,
        pytest.raises(FitFailed, match=r"ValueError: tol == -1\.0, must be"),
    ):
        worker.fit(C, random_start(points, C, 0), 0, {"tol": -1.0}, 60)


@pytest.mark.long
def test_memory_is_the_peak_above_the_data(file, points):
    with Worker("cprime", file, 1) as worker:
        outcome = worker.fit(C, random_start(points, C, 0), 0, {}, 60)
    if outcome.memory is None:
        pytest.skip("the peak of a process is not known on this system: no /proc/self/clear_refs")
    assert 0 <= outcome.memory < 100 * 2**20
